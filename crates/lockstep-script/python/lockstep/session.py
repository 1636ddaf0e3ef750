"""What this process is: a rank of a gang, or alone.

Both kinds answer the same questions, so that a script runs unchanged with `python script.py` and with
`lockstep launch -- python script.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Protocol

from . import plain
from .connection import SOCKET_VARIABLE, Connection
from .errors import NotInGang

KEPT_ALONE = 3
"""How many checkpoints a process without a gang keeps."""


@dataclass(frozen=True)
class Facts:
    """Who this process is in its gang."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0
    experiment: str = "alone"
    run: str = "alone"
    run_dir: Optional[str] = None
    generation: int = 0
    restarts: int = 0
    seed: int = 0
    batch: int = 256
    timeout_s: Optional[float] = None


class Session(Protocol):
    """What the rest of this package asks a session."""

    facts: Facts
    in_gang: bool
    datasets: Dict[str, Dict[str, Any]]
    checkpoint: Optional[str]
    checkpoint_metrics: Optional[Dict[str, Any]]
    last_metrics: Optional[Dict[str, Any]]

    def report(self, metrics: Mapping[str, Any], checkpoint: Optional[str], timeout_s: Optional[float]) -> None:
        """Tells the gang how training goes, and hands over a folder to keep."""

    def share(self, kind: str, value: Any, timeout_s: Optional[float]) -> List[Any]:
        """Waits for all ranks and returns what each of them brought."""

    def data_connection(self) -> Connection:
        """The connection for batches: another thread may read them while this one waits in a report."""

    def close(self) -> None:
        """Lets go of the worker."""


class GangSession:
    """A rank of a gang: everything is asked of the worker that started this process."""

    in_gang = True

    def __init__(self, path: str) -> None:
        self._connection = Connection(path)
        self._data_connection = Connection(path)
        hello = self._connection.hello()
        names = Facts.__dataclass_fields__
        self.facts = Facts(**{name: value for name, value in hello.items() if name in names and value is not None})
        self.datasets: Dict[str, Dict[str, Any]] = {
            name: facts for name, facts in (hello.get("datasets") or {}).items() if facts
        }
        self.checkpoint: Optional[str] = hello.get("checkpoint")
        self.checkpoint_metrics: Optional[Dict[str, Any]] = hello.get("checkpoint_metrics")
        self.last_metrics: Optional[Dict[str, Any]] = None
        self._shared: Dict[str, int] = {}

    def report(self, metrics: Mapping[str, Any], checkpoint: Optional[str], timeout_s: Optional[float]) -> None:
        told = plain.metrics(metrics)
        answer = self._connection.request("report", metrics=told, checkpoint=checkpoint, timeout_s=timeout_s)
        self.last_metrics = told
        kept = answer.get("checkpoint")
        # Only a folder of the worker's own stays: the reported one is often a temporary one.
        if kept and kept != checkpoint:
            self.checkpoint, self.checkpoint_metrics = kept, told

    def share(self, kind: str, value: Any, timeout_s: Optional[float]) -> List[Any]:
        # The number makes a rank that skipped a call visible: its name then differs from the others'.
        self._shared[kind] = self._shared.get(kind, 0) + 1
        name = f"{kind}-{self._shared[kind]}"
        return self._connection.request("share", name=name, value=value, timeout_s=timeout_s)["values"]

    def data_connection(self) -> Connection:
        return self._data_connection

    def close(self) -> None:
        self._connection.close()
        self._data_connection.close()


class AloneSession:
    """A process that no worker started: rank 0 of 1. Reports are printed, checkpoints kept in a folder."""

    in_gang = False

    def __init__(self, store: Optional[str] = None) -> None:
        self.facts = Facts()
        self.datasets: Dict[str, Dict[str, Any]] = {}
        self.checkpoint: Optional[str] = None
        self.checkpoint_metrics: Optional[Dict[str, Any]] = None
        self.last_metrics: Optional[Dict[str, Any]] = None
        self.store = store or "lockstep-runs"
        self._run_dir: Optional[Path] = None
        self._number = 0

    def report(self, metrics: Mapping[str, Any], checkpoint: Optional[str], timeout_s: Optional[float]) -> None:
        told = plain.metrics(metrics)
        self._number += 1
        self.last_metrics = told
        where = ""
        if checkpoint is not None:
            self.checkpoint, self.checkpoint_metrics = self._keep(checkpoint), told
            where = f"  [{self.checkpoint}]"
        print(f"report {self._number}: {plain.words(told)}{where}", file=sys.stderr, flush=True)

    def share(self, kind: str, value: Any, timeout_s: Optional[float]) -> List[Any]:
        return [value]

    def data_connection(self) -> Connection:
        raise NotInGang("this process was started without a gang: use `lockstep launch -- python SCRIPT`")

    def close(self) -> None:
        pass

    @property
    def run_dir(self) -> str:
        """The folder of this process's checkpoints; made when it is first asked for."""
        if self._run_dir is None:
            name = time.strftime("alone-%Y%m%d-%H%M%S", time.gmtime()) + f"-{os.getpid()}"
            self._run_dir = Path(self.store, name).absolute()
            self._run_dir.mkdir(parents=True, exist_ok=True)
        return str(self._run_dir)

    def _keep(self, folder: str) -> str:
        checkpoints = Path(self.run_dir, "checkpoints")
        target = checkpoints / f"{self._number:06}"
        # Under another name until it is whole: a script that is ended here leaves no half checkpoint.
        partial = checkpoints / f".{self._number:06}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(folder, partial)
        partial.rename(target)
        whole = sorted(entry for entry in checkpoints.iterdir() if not entry.name.startswith("."))
        for old in whole[:-KEPT_ALONE]:
            shutil.rmtree(old, ignore_errors=True)
        return str(target)


# A signal handler may ask for the session while its thread holds this.
_lock = threading.RLock()
_session: Optional[Session] = None


def current() -> Session:
    """The session of this process; the first call connects to the worker, if there is one."""
    global _session
    with _lock:
        if _session is None:
            path = os.environ.get(SOCKET_VARIABLE)
            _session = GangSession(path) if path else AloneSession()
        return _session


def replace(session: Optional[Session]) -> None:
    """Puts another session in place of the current one; None means that the next call begins afresh."""
    global _session
    with _lock:
        if _session is not None:
            _session.close()
        _session = session


def in_gang() -> bool:
    """Whether a worker started this process."""
    return bool(os.environ.get(SOCKET_VARIABLE))
