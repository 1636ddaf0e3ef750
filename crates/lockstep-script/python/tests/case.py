"""What the tests share: the package's path, and a gang of stand-in workers around a test."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
ROOT = PYTHON.parents[2]
sys.path.insert(0, str(PYTHON))
sys.path.insert(0, str(Path(__file__).parent))

from lockstep import session  # noqa: E402
from worker import Gang  # noqa: E402


class GangCase(unittest.TestCase):
    """A test within a gang. This process is rank 0."""

    size = 1
    options: dict = {}

    def setUp(self) -> None:
        self.gang = Gang(self.size, **self.options)
        self.addCleanup(self.gang.end)
        os.environ["LOCKSTEP_SOCKET"] = self.gang.path(0)
        session.replace(None)
        self.addCleanup(session.replace, None)
        self.addCleanup(os.environ.pop, "LOCKSTEP_SOCKET", None)


class AloneCase(unittest.TestCase):
    """A test of a process without a gang, in a temporary folder."""

    def setUp(self) -> None:
        os.environ.pop("LOCKSTEP_SOCKET", None)
        session.replace(None)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name)

    def stand_in(self) -> str:
        """A program to find as `lockstep`, run by the Python that runs the tests."""
        path = self.folder / "lockstep"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PYTHON / "tests" / "program.py"}" "$@"\n')
        path.chmod(0o755)
        return str(path)
