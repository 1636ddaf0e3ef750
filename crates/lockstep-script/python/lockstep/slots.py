"""Batches without copies: the worker writes them into a file in memory, and arrays here look into it.

A batch lies in a slot of the file. The worker uses a slot again only after this process has said that it is
free, and a slot is free when the last array that looks into it is gone. So a batch that somebody keeps stays
as it is, however long.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Sequence

Read = Callable[[Any, Sequence[Dict[str, Any]], int], Any]
"""Makes a batch of a buffer, what is said of its columns, and the number of its rows."""


class Slots:
    """The slots of one iterator."""

    def __init__(self, path: str, slot_bytes: int, columns: Sequence[Dict[str, Any]]) -> None:
        # Read and write: a script may change a batch where it lies. The slot is its own until it is free.
        self._file = open(path, "r+b", buffering=0)
        self._bytes = slot_bytes
        self._columns = columns
        self._maps: Dict[int, mmap.mmap] = {}
        # Filled by finalizers, which may run in any thread at any time: appending is atomic.
        self._free: Deque[int] = deque()

    def batch(self, slot: int, rows: int, read: Read) -> Any:
        """What `read` makes of the columns of a batch: arrays or a table that look into its slot."""
        buffer = (ctypes.c_char * self._bytes).from_buffer(self._map(slot))
        # Every array holds on to `buffer`; when they are gone, so is it.
        weakref.finalize(buffer, self._free.append, slot).atexit = False
        return read(buffer, self._columns, rows)

    def take_free(self) -> List[int]:
        """The slots that became free since the last call."""
        free = []
        while self._free:
            free.append(self._free.popleft())
        return free

    def close(self) -> None:
        """Closes the file. Arrays that are still held stay valid: their maps live as long as they do."""
        self._maps.clear()
        self._file.close()

    def _map(self, slot: int) -> mmap.mmap:
        # Slot by slot, since the file grows when all slots are in use, and a map does not grow with it.
        if slot not in self._maps:
            self._maps[slot] = mmap.mmap(self._file.fileno(), self._bytes, offset=slot * self._bytes)
        return self._maps[slot]
