"""Data frames in and out: those of pandas, polars and pyarrow, each as a file that the program reads or has written.

None of these libraries is needed, and none is imported before one of its tables is here. The files are Parquet, or CSV
where nothing can write Parquet, in a folder of their own that is removed when the program has read them.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .errors import LockstepError

PANDAS, POLARS, PYARROW = "pandas", "polars", "pyarrow"
COLUMNS = "columns"
"""A dict of names and one-dimensional arrays, which stands for a table where no library does."""
TABLES = {PANDAS: ("DataFrame",), POLARS: ("DataFrame", "LazyFrame"), PYARROW: ("Table", "RecordBatch")}
FRAME_KEY = "frame"
"""The key of a set in a job of Python's that holds a table, beside `label`, `drop`, `types` and so on."""
PREFIX = "lockstep-frames-"
"""What the names of the folders begin with in which tables are files for a while."""
COMPRESSION = "snappy"
BLOCK = 1 << 20


def library(item: Any) -> Optional[str]:
    """The library whose table this is. One that is not imported has made none."""
    for name, tables in TABLES.items():
        module = sys.modules.get(name)
        if module is not None and isinstance(item, tuple(getattr(module, table) for table in tables)):
            return name
    return None


class Files:
    """Tables as files for a while: `with Files() as files: files.placed(config)`."""

    def __init__(self) -> None:
        self._folder: Optional["tempfile.TemporaryDirectory[str]"] = None
        self._named: List[str] = []
        self._written: Dict[int, Tuple[Any, Tuple[str, str]]] = {}

    def __enter__(self) -> "Files":
        return self

    def __exit__(self, *_: Any) -> None:
        self._written.clear()
        for folder in self._named:
            shutil.rmtree(folder, ignore_errors=True)
        if self._folder is not None:
            self._folder.cleanup()

    def path(self, name: str) -> str:
        """Where a file of this name may be written. Only this user may enter the folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        return os.path.join(self._folder.name, name)

    def write(self, table: Any, name: str = "table") -> Tuple[str, str]:
        """Writes a table, once however often it is named: the format, as a job file has it, and the path."""
        known = self._written.get(id(table))
        if known is None:
            number = f"-{len(self._written)}" if self._written else ""
            # The table is kept beside its file: while it is here, no other has its id.
            kind, path = write(table, self.path(f"{name}{number}"))
            known = self._written[id(table)] = (table, (kind, self._named_by_content(path)))
        return known[1]

    def _named_by_content(self, path: str) -> str:
        """Moves a file to where the same table lies every time: a run goes on only with the data that it began with, and
        knows them by their path. While another process has the place, it stays where it is."""
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                digest.update(block)
        folder = os.path.join(tempfile.gettempdir(), f"{PREFIX}{digest.hexdigest()[:32]}")
        try:
            os.mkdir(folder, mode=0o700)
        except FileExistsError:
            return path
        self._named.append(folder)
        return shutil.move(path, folder)

    def placed(self, item: Any, name: str = "table") -> Any:
        """A job's settings with files where tables were."""
        if library(item) is not None:
            item = {FRAME_KEY: item}
        if not isinstance(item, Mapping):
            return item
        others = {key: self.placed(value, str(key)) for key, value in item.items() if key != FRAME_KEY}
        if FRAME_KEY not in item:
            return others
        if library(item[FRAME_KEY]) is None:
            raise LockstepError(
                f"`{name}`: `{FRAME_KEY}` is a table of pandas, polars or pyarrow, not {type(item[FRAME_KEY]).__name__}; "
                "a file is named by `csv` or `parquet`"
            )
        kind, path = self.write(item[FRAME_KEY], name)
        return {kind: path, **others}


def write(table: Any, stem: str) -> Tuple[str, str]:
    """Writes a table to STEM with the ending of its format: the format, and the path."""
    kind = library(table) or COLUMNS
    if kind == COLUMNS and _has(PYARROW):
        return write(_import(PYARROW).table(dict(table)), stem)
    if kind == COLUMNS or (kind == PANDAS and not _has(PYARROW)):
        path = f"{stem}.csv"
        if kind == PANDAS:
            table.to_csv(path, index=False)
        else:
            _write_csv(table, path)
        return "csv", path
    path = f"{stem}.parquet"
    if kind == PANDAS:
        names = [str(name) for name in table.columns]
        # Parquet has no names but words. Setting them on another axis copies no column.
        named = table if names == list(table.columns) else table.set_axis(names, axis=1)
        named.to_parquet(path, index=False, engine=PYARROW, compression=COMPRESSION)
    elif kind == POLARS:
        sink = getattr(table, "sink_parquet", None) or table.write_parquet
        sink(path, compression=COMPRESSION)
    else:
        pyarrow = _import(PYARROW)
        whole = pyarrow.Table.from_batches([table]) if isinstance(table, pyarrow.RecordBatch) else table
        _import("pyarrow.parquet").write_table(whole, path, compression=COMPRESSION)
    return "parquet", path


def ending(kind: Optional[str]) -> str:
    """How a file must end that the program writes, to become a table of this library."""
    reader = {POLARS: POLARS}.get(kind or "", PYARROW)
    return ".parquet" if kind is not None and _has(reader) else ".jsonl"


def read(path: str, kind: Optional[str]) -> Any:
    """What the program has written, as a table of this library; as a list of dicts without one."""
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as file:
            return of_rows([_flat(json.loads(line)) for line in file], kind)
    if kind == PANDAS:
        return _import(PANDAS).read_parquet(path, engine=PYARROW)
    if kind == POLARS:
        return _import(POLARS).read_parquet(path)
    table = _import("pyarrow.parquet").read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names} if kind == COLUMNS else table


def of_rows(rows: List[Dict[str, Any]], kind: Optional[str]) -> Any:
    """Rows as a table of this library; as they are without one."""
    if kind == PANDAS:
        return _import(PANDAS).DataFrame(rows)
    if kind == POLARS:
        return _import(POLARS).DataFrame(rows)
    if kind == PYARROW:
        return _import(PYARROW).Table.from_pylist(rows)
    if kind == COLUMNS:
        return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    return rows


def usual() -> Optional[str]:
    """What tables become that came from no frame: pandas', if it is installed."""
    return PANDAS if _has(PANDAS) else None


def _flat(row: Dict[str, Any]) -> Dict[str, Any]:
    """A line of predictions with the columns that a Parquet file has."""
    flat: Dict[str, Any] = {}
    for name, item in row.items():
        if not isinstance(item, dict):
            flat[name] = item
            continue
        prefix = {"label": "", "probabilities": "probability_"}.get(name, f"{name}_")
        flat.update({f"{prefix}{inner}": value for inner, value in item.items()})
    return flat


def _write_csv(columns: Mapping[str, Iterable[Any]], path: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Numbers as Python writes them come back as they were; those of NumPy have other words.
        writer.writerows(zip(*(getattr(cells, "tolist", lambda cells=cells: cells)() for cells in columns.values())))


def _has(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        # Python's answers about a module that is forbidden, or was made without a spec.
        return sys.modules.get(name) is not None


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise LockstepError(f"this needs {package}, which is not installed: pip install {package}") from error
