"""PyTorch and TensorFlow on one rank, each where it is installed; gangs of them are tried end to end elsewhere."""

import importlib.util
import unittest

import case

import lockstep
from lockstep import train

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Torch(case.GangCase):
    def test_tensors_look_into_the_workers_memory(self):
        import torch

        kept = []
        for batch in train.get_dataset_shard("train").iter_torch_batches(batch_size=4, dtypes={"label": torch.int32}):
            self.assertEqual((batch["image"].dtype, batch["label"].dtype), (torch.float32, torch.int32))
            kept.append(batch)
        whole = torch.cat([batch["image"] for batch in kept])
        self.assertTrue(torch.equal(whole, torch.from_numpy(self.gang.image)))

    def test_a_collate_function_makes_the_batch(self):
        import torch

        batches = train.get_dataset_shard("train").iter_torch_batches(
            batch_size=5, collate_fn=lambda batch: (torch.as_tensor(batch["image"]), batch["label"].sum())
        )
        found = [(tuple(images.shape), int(total)) for images, total in batches]
        self.assertEqual(found, [((5, 2, 3), 10), ((5, 2, 3), 35)])

    def test_a_model_alone_is_not_wrapped(self):
        import torch

        model = torch.nn.Linear(2, 1)
        self.assertIs(train.torch.prepare_model(model), model)

    def test_each_epoch_has_its_order_also_without_set_epoch(self):
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        from lockstep.train.loader import PreparedLoader, with_distributed_sampler

        data = TensorDataset(torch.arange(100))
        whole = DataLoader(data, batch_size=100, shuffle=True)
        parts = [with_distributed_sampler(whole, rank, 2, seed=7) for rank in (0, 1)]
        loaders = [PreparedLoader(part, torch.device("cpu")) for part in parts]
        epochs = [[next(iter(loader))[0].tolist() for loader in loaders] for _ in range(3)]
        for mine, others in epochs:
            self.assertEqual(sorted(mine + others), list(range(100)))
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertNotEqual(epochs[1], epochs[2])
        # The script's own number counts.
        loaders[0].sampler.set_epoch(1)
        self.assertEqual(next(iter(loaders[0]))[0].tolist(), epochs[1][0])
        self.assertEqual(len(loaders[0]), 1)

    def test_metrics_may_be_tensors(self):
        import torch

        lockstep.report({"loss": torch.tensor(0.5), "parts": torch.tensor([1, 2])})
        self.assertEqual(self.gang.reports[0]["metrics"], {"loss": 0.5, "parts": [1, 2]})


@unittest.skipUnless(HAS_TENSORFLOW, "TensorFlow is not installed")
class TensorFlow(case.GangCase):
    def test_a_data_set_of_tensorflow_has_features_and_labels(self):
        dataset = train.get_dataset_shard("train").to_tf("image", ["label"], batch_size=4)
        found = list(dataset)
        self.assertEqual([tuple(images.shape) for images, _ in found], [(4, 2, 3), (4, 2, 3), (2, 2, 3)])
        self.assertEqual([int(number) for _, labels in found for number in labels["label"]], list(range(10)))


if __name__ == "__main__":
    unittest.main()
