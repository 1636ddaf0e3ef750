"""Writes TOML: what a job file can hold, and no more. Python has a reader, but no writer."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, List, Mapping

from . import frames

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def value(item: Any) -> str:
    """A value on one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(int(item))
    if isinstance(item, float):
        return _number(float(item))
    if isinstance(item, (str, os.PathLike)):
        return _string(os.fspath(item))
    if isinstance(item, Mapping):
        inner = ", ".join(f"{_key(name)} = {value(found)}" for name, found in item.items() if found is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, (list, tuple)):
        return f"[{', '.join(value(found) for found in item)}]"
    if frames.library(item) is not None:
        raise TypeError("a job file cannot hold a data frame: write it to a Parquet file, and name that by `parquet`")
    if hasattr(item, "item"):
        return value(item.item())
    raise TypeError(f"TOML has no {type(item).__name__}: {item!r}")


def document(table: Mapping[str, Any]) -> str:
    """A whole file. A key whose value is None is left out."""
    lines: List[str] = []
    _table(table, [], lines)
    return "\n".join(lines) + "\n"


def _table(table: Mapping[str, Any], path: List[str], lines: List[str]) -> None:
    found = {name: item for name, item in table.items() if item is not None}
    # What belongs to this table comes before the tables within it: TOML would count it to them.
    for name, item in found.items():
        if not isinstance(item, Mapping):
            lines.append(f"{_key(name)} = {value(item)}")
    for name, item in found.items():
        if isinstance(item, Mapping):
            inner = [*path, _key(name)]
            lines += ["", f"[{'.'.join(inner)}]"]
            _table(item, inner, lines)


def _key(name: Any) -> str:
    name = str(name)
    return name if BARE_KEY.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped and JSON does not.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(number: float) -> str:
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return repr(number)
