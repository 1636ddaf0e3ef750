"""A search for the best settings from Python: `lockstep.tune("job.toml", {"train.batch": [32, 64]})`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Union

from . import frames, program, toml
from .display import words_for
from .frames import Files
from .jobs import Job, placed


@dataclass
class Tuning:
    """What a search tried, and what was best."""

    name: str
    metric: str
    best: Optional[Dict[str, Any]]
    """The settings of the best trial, for `lockstep.run(job, **tuning.best)`; None if no trial came to an end."""
    trials: Any = field(repr=False)
    """One row a trial: its `number`, the searched keys, the `epochs` it had, the metric and why it `failed`. A pandas
    table, or a list of dicts without pandas."""
    raw: Dict[str, Any] = field(repr=False)
    """All of it, as `lockstep tune --json` prints it."""


def tune(
    job: Union[str, "os.PathLike[str]", Job],
    search: Mapping[str, Any],
    *,
    trials: int = 20,
    parallel: int = 1,
    method: str = "tpe",
    metric: str = "loss",
    seed: int = 0,
    workers: Optional[int] = None,
    epochs: Optional[int] = None,
    quiet: bool = False,
    arguments: Optional[List[str]] = None,
    **settings: Any,
) -> Tuning:
    """Searches for the settings that learn best.

    `search` has keys of the job file and what each may be: a list of values, or a range in the words of `lockstep tune`,
    such as `{"train.optimizer.lr": "log(1e-4, 1e-1)"}`. `settings` are keys that all trials have in common, and
    `arguments` further ones of the command. Each trial is a line, unless `quiet`.

    Raises `RunFailed` with the words of what went wrong.
    """
    options = [("--trials", trials), ("--parallel", parallel), ("--method", method), ("--metric", metric)]
    options += [("--seed", seed), ("--workers", workers), ("--epochs", epochs)]
    show = words_for(quiet)
    with Files() as files, placed(job, files) as path:
        command = ["tune", path, "--json"]
        for key, values in search.items():
            command += ["--search", f"{key}={values if isinstance(values, str) else toml.value(list(values))}"]
        for option, given in options:
            if given is not None:
                command += [option, str(given)]
        for key, item in files.placed(settings).items():
            command += ["--set", f"{key}={toml.value(item)}"]
        raw = json.loads(program.output([*command, *(arguments or [])], show))
    return tuning_of(raw)


def tuning_of(raw: Dict[str, Any]) -> Tuning:
    """What `lockstep tune --json` prints, as a table."""
    rules = raw["rules"]
    metric, maximise = rules["metric"], rules["maximise"]
    rows = []
    for trial in raw["trials"]:
        reached = trial["reached"][-1] if trial["reached"] else {}
        values = {key: _value(text) for key, text in trial["values"]}
        known = {"epochs": reached.get("epochs"), metric: reached.get("value"), "failed": trial["failed"]}
        rows.append({"number": trial["number"], **values, **known})
    # Of those that were not stopped early: a number after few epochs is no rival to one after many.
    ended = [row for row in rows if row[metric] is not None and not row["failed"]]
    longest = max((row["epochs"] for row in ended), default=0)
    ended = [row for row in ended if row["epochs"] == longest]
    best = (max if maximise else min)(ended, key=lambda row: row[metric], default=None)
    keys = [dimension["key"] for dimension in rules["space"]["dimensions"]]
    settings = {key: best[key] for key in keys} if best else None
    return Tuning(raw["name"], metric, settings, frames.of_rows(rows, frames.usual()), raw)


def _value(text: str) -> Any:
    """A value of TOML as Python has it: numbers, words and lists of them are JSON's, but for those of no quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("'\"")
