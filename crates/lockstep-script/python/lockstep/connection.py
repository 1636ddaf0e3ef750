"""A connection to the worker that started this process: one JSON line a request, one JSON line an answer."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any, Dict, Optional

from .errors import GangEnded, GangTimeout, LockstepError, Refused

SOCKET_VARIABLE = "LOCKSTEP_SOCKET"
"""The variable in which the worker says where it listens. Without it a process is alone."""

PROTOCOL_VERSION = 1
CONNECT_SECONDS = 30.0

ENDED = (
    "the Lockstep worker of this process has gone: the gang is being ended or begun again. "
    "The words of the process that failed first are in the output of `lockstep launch`."
)


class Connection:
    """One stream to the worker. Requests of several threads take turns.

    A signal handler may make requests too, also when it interrupts one of its own thread: that one's answer is
    still to come, so the handler's request goes over a stream of its own.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._is_busy = False
        self._stream: Optional[socket.socket] = None
        self._rest = b""
        self._pid = os.getpid()

    def request(self, do: str, **fields: Any) -> Dict[str, Any]:
        """Sends a request and returns what stands in the answer's `ok`.

        It waits as long as the worker takes: the deadlines are the worker's, which knows what the other ranks
        do, and when the worker ends, so does the wait.
        """
        if self._pid != os.getpid():
            # A forked child must not write into its parent's conversation, and the lock may be held by a thread
            # that it does not have.
            self._lock, self._is_busy, self._pid = threading.RLock(), False, os.getpid()
            self.close()
        with self._lock:
            if self._is_busy:
                return self._beside(do, fields)
            self._is_busy = True
            try:
                if self._stream is None:
                    self._open()
                return self._exchange({"do": do, **fields})
            finally:
                self._is_busy = False

    def _beside(self, do: str, fields: Dict[str, Any]) -> Dict[str, Any]:
        another = Connection(self._path)
        try:
            return another.request(do, **fields)
        finally:
            another.close()

    def hello(self) -> Dict[str, Any]:
        """What the worker says about this process and its gang."""
        with self._lock:
            return self._open()

    def close(self) -> None:
        """Ends the connection. A later request opens another."""
        if self._stream is not None:
            self._stream.close()
        self._stream, self._rest = None, b""

    def _open(self) -> Dict[str, Any]:
        self.close()
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(CONNECT_SECONDS)
        try:
            stream.connect(self._path)
        except OSError as error:
            stream.close()
            raise GangEnded(f"{ENDED} ({self._path}: {error})") from error
        stream.settimeout(None)
        self._stream = stream
        return self._exchange({"do": "hello", "version": PROTOCOL_VERSION})

    def _exchange(self, request: Dict[str, Any]) -> Dict[str, Any]:
        assert self._stream is not None
        # Encoded before anything is sent, so that what cannot be encoded leaves the conversation whole.
        line = json.dumps(request, allow_nan=False).encode() + b"\n"
        try:
            self._stream.sendall(line)
            answer = json.loads(self._read_line())
        except BaseException as error:
            # Half a conversation cannot be gone on with, also not after Ctrl-C.
            self.close()
            if isinstance(error, OSError):
                raise GangEnded(f"{ENDED} ({error})") from error
            raise
        if "ok" in answer:
            return answer["ok"]
        raise failure(answer)

    def _read_line(self) -> bytes:
        assert self._stream is not None
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = self._stream.recv(1 << 16)
            if not part:
                raise GangEnded(ENDED)
            parts.append(part)
        line, self._rest = b"".join(parts).split(b"\n", 1)
        return line


def failure(answer: Dict[str, Any]) -> LockstepError:
    """The error that an answer without `ok` stands for."""
    words = str(answer.get("error", "the worker gave an answer that is not known"))
    kind = answer.get("kind")
    if kind == "timeout":
        missing = [int(rank) for rank in answer.get("missing") or []]
        if missing:
            ranks = ", ".join(str(rank) for rank in missing)
            words = f"{words} (ranks that did not come: {ranks})"
        return GangTimeout(words, missing)
    if kind == "gone":
        return GangEnded(words)
    if kind == "refused":
        return Refused(words)
    return LockstepError(words)
