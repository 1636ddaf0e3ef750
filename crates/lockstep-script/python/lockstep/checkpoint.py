"""A checkpoint: a folder of files, and a little metadata in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Union

from .errors import LockstepError

METADATA_FILE = ".metadata.json"

PathLike = Union[str, "os.PathLike[str]"]


class Checkpoint:
    """A folder that holds what a script needs to go on: weights, the optimizer's state, the epoch.

    Make one with `Checkpoint.from_directory(folder)` and hand it to `report`; get the newest back with
    `get_checkpoint()`. What `report` was given is copied, so the folder may be a temporary one.
    """

    def __init__(self, path: PathLike, filesystem: None = None) -> None:
        if filesystem is not None:
            raise LockstepError("Checkpoint(filesystem=...) is not supported: give a local folder")
        self.path = os.fspath(path)

    @classmethod
    def from_directory(cls, path: PathLike) -> "Checkpoint":
        """A checkpoint of the files in this folder. Nothing is copied yet."""
        return cls(path)

    def to_directory(self, path: Optional[PathLike] = None) -> str:
        """Copies the files into a folder, by default a new temporary one, and returns where that is."""
        target = os.path.expanduser(os.fspath(path)) if path is not None else tempfile.mkdtemp(prefix="checkpoint-")
        shutil.copytree(self._local(), target, dirs_exist_ok=True)
        return target

    @contextlib.contextmanager
    def as_directory(self) -> Iterator[str]:
        """The folder itself, for reading: `with checkpoint.as_directory() as folder: ...`."""
        yield self._local()

    def get_metadata(self) -> Dict[str, Any]:
        """What `set_metadata` wrote; an empty dict if nothing was."""
        try:
            return json.loads(Path(self._local(), METADATA_FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def set_metadata(self, metadata: Dict[str, Any]) -> None:
        """Writes metadata into the folder, in place of what was there."""
        Path(self._local(), METADATA_FILE).write_text(json.dumps(metadata), encoding="utf-8")

    def update_metadata(self, metadata: Dict[str, Any]) -> None:
        """Adds to the metadata in the folder."""
        self.set_metadata({**self.get_metadata(), **metadata})

    def _local(self) -> str:
        if "://" in self.path:
            raise LockstepError(
                f"the checkpoint {self.path} lies in a bucket, and only a gang brings it here by itself: "
                "copy it with the tool of your storage, or resume the run with the program"
            )
        if not os.path.isdir(self.path):
            raise LockstepError(f"the checkpoint's folder {self.path} is not there")
        return self.path

    def __fspath__(self) -> str:
        raise TypeError("a Checkpoint is not a path: use checkpoint.path, or `with checkpoint.as_directory() as ...`")

    def __repr__(self) -> str:
        return f"Checkpoint(path={self.path!r})"
