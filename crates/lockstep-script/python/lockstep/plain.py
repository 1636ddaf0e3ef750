"""Values as JSON has them: numbers of NumPy, PyTorch and TensorFlow become Python's."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping

LARGEST_WHOLE = 2**63
"""Whole numbers beyond this are no numbers to most readers of JSON."""


def metrics(values: Mapping[str, Any]) -> Dict[str, Any]:
    """Metrics as they can be sent. Not-a-number and infinity, which JSON does not have, become words."""
    if not isinstance(values, Mapping):
        raise TypeError(f"metrics are a dict of names and values, not {type(values).__name__}: {values!r}")
    return {str(name): _plain(value, str(name)) for name, value in values.items()}


def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _word(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, f"{where}.{name}") for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{where}[{index}]") for index, inner in enumerate(value)]
    # A scalar of NumPy or PyTorch has `item`, a tensor of TensorFlow `numpy`, an array `tolist`.
    for name in ("item", "tolist", "numpy"):
        convert = getattr(value, name, None)
        if callable(convert):
            try:
                plain = convert()
            except (TypeError, ValueError, RuntimeError):
                continue
            if type(plain) is not type(value):
                return _plain(plain, where)
    raise TypeError(
        f"the metric {where} is a {type(value).__name__}, which cannot be written as JSON: "
        "report numbers, strings, lists or dicts of them, or float(...) of it"
    )


def _word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def is_json(value: Any) -> bool:
    """Whether a value comes back from JSON exactly as it was, types included."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return True
    if kind is int:
        return -LARGEST_WHOLE <= value < LARGEST_WHOLE
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return all(is_json(inner) for inner in value)
    if kind is dict:
        return all(type(name) is str and is_json(inner) for name, inner in value.items())
    return False


def words(values: Mapping[str, Any]) -> str:
    """Metrics as one line for people: `loss 0.4312, accuracy 0.84`."""
    return ", ".join(f"{name} {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
