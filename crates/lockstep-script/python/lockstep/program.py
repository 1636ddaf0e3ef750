"""The program `lockstep`: where it is, and how a run of it is followed from here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import threading
from collections import deque
from pathlib import Path
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .errors import ProgramNotFound, RunFailed

BINARY_VARIABLE = "LOCKSTEP_BINARY"
STOP_SECONDS = 120.0
"""How long a run may take to write its state after Ctrl-C before it is asked once more."""
KEPT_LINES = 50
"""Lines of the program's standard error that are kept for an error message."""

Event = Dict[str, Any]


def find() -> str:
    """The program's path: LOCKSTEP_BINARY, what the wheel installed with this package, or PATH."""
    named = os.environ.get(BINARY_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise ProgramNotFound(f"{BINARY_VARIABLE} is {named}, which is no program that can be run")
        return named
    # The folder of commands that goes with PREFIX/lib/pythonX.Y/site-packages/lockstep.
    of_package = Path(os.path.normpath(Path(__file__).resolve().parent / "../../../../bin"))
    for folder in (of_package, Path(sysconfig.get_path("scripts"))):
        beside = folder / "lockstep"
        if os.access(beside, os.X_OK):
            return str(beside)
    found = shutil.which("lockstep")
    if found is None:
        raise ProgramNotFound(
            "the program `lockstep` was not found: install the wheel, put the program into PATH, "
            f"or say with {BINARY_VARIABLE} where it is"
        )
    return found


def follow(arguments: List[str], on_event: Callable[[Event], None]) -> Tuple[int, List[Event], str]:
    """Runs the program, hands on each event as it comes, and returns the exit code, all events but logs and
    progress, and the last lines of its standard error.

    On Ctrl-C the run is asked to stop, its state is written, and KeyboardInterrupt goes on from here.
    """
    events: List[Event] = []

    def heard(line: bytes) -> None:
        event = _event(line)
        if event is None:
            return
        if event["event"] not in ("log", "progress", "embedding"):
            events.append(event)
        on_event(event)

    code, words = _run(arguments, heard, lambda _: None)
    return code, events, words


def output(arguments: List[str], on_words: Callable[[str], None] = lambda _: None) -> str:
    """What the program prints. Lines of its standard error are handed on as they come.

    Raises `RunFailed` with the last of them if it fails. Ctrl-C is passed on as `follow` does.
    """
    printed: List[bytes] = []
    code, words = _run(arguments, printed.append, on_words)
    if code != 0:
        raise RunFailed(words or f"`lockstep {' '.join(arguments)}` ended with {code} and said nothing")
    return b"".join(printed).decode("utf-8")


def _run(
    arguments: List[str], on_line: Callable[[bytes], None], on_words: Callable[[str], None]
) -> Tuple[int, str]:
    """Runs the program to its end: the exit code, and the last lines of its standard error."""
    process = subprocess.Popen(
        [find(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Not in this process's group: a Ctrl-C would reach both, and two mean "at once" to the program.
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    words: Deque[str] = deque(maxlen=KEPT_LINES)
    listener = threading.Thread(target=_listen, args=(process.stderr, words, on_words), daemon=True)
    try:
        # An interrupt while this thread starts stops the run as well.
        listener.start()
        for line in process.stdout:
            on_line(line)
        code = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        if listener.is_alive():
            listener.join(timeout=5.0)
        process.stdout.close()
    return code, "\n".join(words)


def _event(line: bytes) -> Optional[Event]:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _listen(stream: Any, words: Deque[str], on_words: Callable[[str], None]) -> None:
    with stream:
        for line in stream:
            words.append(line.decode(errors="replace").rstrip())
            on_words(words[-1])


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Asks a run to stop, at first in good order."""
    # What it still says must be read, or it would wait for a reader; nobody looks at it any more.
    drain = threading.Thread(target=lambda: process.stdout and process.stdout.read(), daemon=True)
    drain.start()
    for sign in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            break
        process.send_signal(sign)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    drain.join(timeout=5.0)
