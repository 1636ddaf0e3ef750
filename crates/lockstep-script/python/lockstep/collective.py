"""Ranks that wait for each other, for small things. Gradients go through PyTorch or TensorFlow."""

from __future__ import annotations

import base64
import pickle
from typing import Any, Optional, TypeVar

from . import session
from .plain import is_json

T = TypeVar("T")


def barrier(timeout_s: Optional[float] = None) -> None:
    """Returns when every rank has called it.

    It gives up after `timeout_s` seconds, by default the gang's own deadline, with a `GangTimeout` that names
    the ranks which did not come.
    """
    session.current().share("barrier", None, timeout_s)


def broadcast_from_rank_zero(data: T, timeout_s: Optional[float] = None) -> T:
    """Returns on every rank what rank 0 called it with; the others' `data` is passed over.

    Meant for small things, such as a name or a decision. It waits for all ranks, as `barrier` does.
    """
    current = session.current()
    if not current.in_gang:
        return data
    mine = _pack(data) if current.facts.rank == 0 else None
    return _unpack(current.share("broadcast", mine, timeout_s)[0])


def _pack(data: Any) -> dict:
    if is_json(data):
        return {"json": data}
    # Tuples, arrays and objects would not come back from JSON as they were.
    return {"pickle": base64.b64encode(pickle.dumps(data)).decode("ascii")}


def _unpack(packed: dict) -> Any:
    if "json" in packed:
        return packed["json"]
    # It was written by rank 0 of this very gang, which runs the same script as the same user.
    return pickle.loads(base64.b64decode(packed["pickle"]))
