"""PyTorch's data loader in a gang: each rank its share, each epoch its order, each batch on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

if TYPE_CHECKING:
    import torch


def with_distributed_sampler(loader: "torch.utils.data.DataLoader", rank: int, size: int, seed: int) -> Any:
    """The loader with a sampler that gives this rank its share. One over a stream stays as it is."""
    from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, SequentialSampler

    if isinstance(loader.dataset, IterableDataset) or isinstance(loader.sampler, DistributedSampler):
        return loader
    # A loader does not say whether it shuffles; only one that does not has this sampler.
    shuffle = not isinstance(loader.sampler, SequentialSampler)
    sampler: Any = DistributedSampler(loader.dataset, size, rank, shuffle=shuffle, seed=seed)
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        drop_last=loader.drop_last,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        generator=loader.generator,
        multiprocessing_context=loader.multiprocessing_context,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )


class PreparedLoader:
    """A data loader that counts its epochs and moves its batches to a device. All else is the loader's."""

    def __init__(self, loader: Any, device: Optional[Any], auto_transfer: bool = True) -> None:
        self._loader = loader
        self._device = device
        self._ahead = auto_transfer and device is not None and device.type == "cuda"
        self._last_epoch: Optional[int] = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_loader" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._count_epoch()
        if self._device is None:
            return iter(self._loader)
        return self._moved_ahead() if self._ahead else self._moved()

    def _count_epoch(self) -> None:
        sampler: Any = getattr(self._loader, "sampler", None)
        if not hasattr(sampler, "set_epoch") or not hasattr(sampler, "epoch"):
            return
        # The script has not set another epoch since the last one: without this the order would be the same again.
        if sampler.epoch == self._last_epoch:
            sampler.set_epoch(sampler.epoch + 1)
        self._last_epoch = sampler.epoch

    def _moved(self) -> Iterator[Any]:
        from .torch import move

        for batch in self._loader:
            yield move(batch, self._device)

    def _moved_ahead(self) -> Iterator[Any]:
        """Copies the next batch to the GPU while the one before is computed with."""
        import torch

        from .torch import move

        copies = torch.cuda.Stream(self._device)
        batches = iter(self._loader)

        def fetch() -> Any:
            batch = next(batches, None)
            with torch.cuda.stream(copies):
                return move(batch, self._device)

        ready = fetch()
        while ready is not None:
            compute = torch.cuda.current_stream(self._device)
            compute.wait_stream(copies)
            _record(ready, compute)
            current = ready
            ready = fetch()
            yield current


def _record(item: Any, stream: Any) -> None:
    """Tells the allocator that another stream uses these tensors, so that their memory is not given out early."""
    if isinstance(item, dict):
        item = list(item.values())
    if isinstance(item, (list, tuple)):
        for inner in item:
            _record(inner, stream)
    elif hasattr(item, "record_stream") and item.is_cuda:
        item.record_stream(stream)
