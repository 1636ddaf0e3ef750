"""A stand-in for the worker: it speaks the protocol of one gang to any number of ranks, from a script's view."""

from __future__ import annotations

import json
import os
import shutil
import socketserver
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy

PAGE = 4096


class Gang:
    """The state that all ranks share."""

    def __init__(self, size: int = 1, samples: int = 10, slots: int = 2) -> None:
        self.size = size
        self.folder = Path(tempfile.mkdtemp(prefix="gang-"))
        self.image = numpy.arange(samples * 6, dtype="float32").reshape(samples, 2, 3)
        self.label = numpy.arange(samples, dtype="int64")
        self.reports: List[Dict[str, Any]] = []
        self.shared: Dict[str, Dict[int, Any]] = {}
        self.changed = threading.Condition()
        self.slots = slots
        self.most_slots = 0
        self.epochs: Dict[int, "Epoch"] = {}
        self.closed: List[int] = []
        self.requests: List[Dict[str, Any]] = []
        self.answer_with: Optional[Dict[str, Any]] = None
        self.hang_up = False
        self.servers = [self._serve(rank) for rank in range(size)]

    def path(self, rank: int = 0) -> str:
        """Where the worker of a rank listens."""
        return str(self.folder / f"{rank}.sock")

    def end(self) -> None:
        """Closes all sockets and removes the folder."""
        for server in self.servers:
            server.shutdown()
            server.server_close()
        for epoch in self.epochs.values():
            epoch.file.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self, rank: int) -> socketserver.ThreadingUnixStreamServer:
        gang = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                conversation = Conversation(gang, rank)
                for line in self.rfile:
                    answer = conversation.answer(json.loads(line))
                    if gang.hang_up:
                        return
                    self.wfile.write(json.dumps(answer).encode() + b"\n")

        server = socketserver.ThreadingUnixStreamServer(self.path(rank), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server


class Conversation:
    """One connection of one rank."""

    def __init__(self, gang: Gang, rank: int) -> None:
        self.gang, self.rank = gang, rank

    def answer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.gang.requests.append(request)
        do = request["do"]
        if self.gang.answer_with is not None and do != "hello":
            return self.gang.answer_with
        return {"ok": getattr(self, do)(request)}

    def hello(self, request: Dict[str, Any]) -> Dict[str, Any]:
        columns = [dict(column, offset=0) for column in COLUMNS]
        samples = len(self.gang.label)
        datasets = {"train": {"samples": samples, "columns": columns, "classes": ["a", "b"]}}
        size = self.gang.size
        place = {"rank": self.rank, "world_size": size, "local_rank": self.rank, "local_world_size": size}
        names = {"node_rank": 0, "experiment": "job", "run": "job-1", "run_dir": str(self.gang.folder)}
        more = {"generation": 0, "restarts": 0, "seed": 7, "timeout_s": 60.0, "checkpoint": None}
        return {**place, **names, **more, "checkpoint_metrics": None, "datasets": datasets}

    def report(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.gang.reports.append(dict(request, rank=self.rank))
        number = len(self.gang.reports)
        kept = None
        if request["checkpoint"] is not None:
            kept = str(self.gang.folder / f"checkpoint-{number}")
            shutil.copytree(request["checkpoint"], kept)
        return {"number": number, "checkpoint": kept}

    def share(self, request: Dict[str, Any]) -> Dict[str, Any]:
        with self.gang.changed:
            brought = self.gang.shared.setdefault(request["name"], {})
            brought[self.rank] = request["value"]
            self.gang.changed.notify_all()
            assert self.gang.changed.wait_for(lambda: len(brought) == self.gang.size, timeout=300.0)
            return {"values": [brought[rank] for rank in range(self.gang.size)]}

    def shard(self, request: Dict[str, Any]) -> Dict[str, Any]:
        number = len(self.gang.epochs) + 1
        self.gang.epochs[number] = Epoch(self.gang, request)
        return self.gang.epochs[number].opened(number)

    def next(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return self.gang.epochs[request["iterator"]].next(request["free"])

    def close(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.gang.closed.append(request["iterator"])
        return {}


COLUMNS = [
    {"name": "image", "dtype": "float32", "shape": [2, 3]},
    {"name": "label", "dtype": "int64", "shape": []},
]


class Epoch:
    """One iterator: batches in slots of a file that grows when all are in use."""

    def __init__(self, gang: Gang, request: Dict[str, Any]) -> None:
        self.gang, self.batch, self.at = gang, request["batch"], 0
        self.drop_last = request["drop_last"]
        self.slot_bytes = -(-(self.batch * (24 + 8)) // PAGE) * PAGE
        self.file = tempfile.NamedTemporaryFile(dir=gang.folder, delete=False)
        self.free = list(range(gang.slots))
        self.slots = gang.slots
        self.file.truncate(self.slots * self.slot_bytes)

    def opened(self, number: int) -> Dict[str, Any]:
        columns = [dict(COLUMNS[0], offset=0), dict(COLUMNS[1], offset=self.batch * 24)]
        place = {"iterator": number, "path": self.file.name, "slot_bytes": self.slot_bytes}
        return {**place, "columns": columns, "samples_left": len(self.gang.label)}

    def next(self, free: List[int]) -> Dict[str, Any]:
        assert not set(free) & set(self.free), "a slot is freed once"
        self.free += free
        rows = min(self.batch, len(self.gang.label) - self.at)
        if rows == 0 or (self.drop_last and rows < self.batch):
            return {"end": True}
        if not self.free:
            self.free.append(self.slots)
            self.slots += 1
            os.truncate(self.file.name, self.slots * self.slot_bytes)
            self.gang.most_slots = max(self.gang.most_slots, self.slots)
        slot = self.free.pop(0)
        part = slice(self.at, self.at + rows)
        with open(self.file.name, "r+b") as file:
            file.seek(slot * self.slot_bytes)
            file.write(self.gang.image[part].tobytes())
            file.seek(slot * self.slot_bytes + self.batch * 24)
            file.write(self.gang.label[part].tobytes())
        self.at += rows
        return {"slot": slot, "rows": rows}
