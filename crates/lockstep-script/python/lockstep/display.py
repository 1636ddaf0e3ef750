"""How a run is shown while it goes: lines on standard error, or a picture in a notebook that grows."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from . import plain
from .curve import curve_svg
from .program import Event

REDRAW_SECONDS = 0.25
"""How often a picture in a notebook is drawn again at most, epochs aside."""


EPOCH, ROUND = "epoch", "round"
ROUNDS_A_LINE = 10
"""Of the rounds of trees, every so many has a line."""


class Silent:
    """Shows nothing."""

    def event(self, event: Event) -> None:
        """Takes an event of the run."""

    def close(self) -> None:
        """The run has ended."""


class Lines(Silent):
    """One line an epoch, and one for each report, note, warning and restart, on standard error.

    What workers write goes there too, or to `logs`.
    """

    def __init__(self, logs: Any = None) -> None:
        self._logs = logs
        self._epochs: Optional[int] = None
        self._unit = EPOCH
        self._best: Optional[str] = None

    def event(self, event: Event) -> None:
        line = self._line(event)
        if line:
            stream = self._logs if event["event"] == "log" else None
            print(line, file=stream or sys.stderr, flush=True)

    def _line(self, event: Event) -> Optional[str]:
        kind = event["event"]
        if kind == "started":
            self._epochs, self._unit = event.get("epochs"), unit(event)
            return f"{event.get('run')}: {workers(event)}, {event.get('run_dir')}"
        if kind == "epoch":
            of = f"/{self._epochs}" if self._epochs else ""
            words = f"{plain.words(measures(event))}, {event.get('seconds', 0.0):.1f} s"
            line = f"{self._unit} {event['epoch']}{of}: {words}"
            # Trees grow by many rounds: every tenth is worth a line, and the best.
            has_line = self._unit == EPOCH or event["epoch"] % ROUNDS_A_LINE == 0
            if event.get("best"):
                self._best = None if has_line else line
            return line if has_line else None
        if kind == "result":
            best, self._best = self._best, None
            return best
        if kind == "reported":
            return f"report {event.get('report')}: {plain.words(event.get('metrics') or {})}"
        if kind == "log":
            others = event.get("count", 1) - 1
            who = f"{event.get('rank')} and {others} more" if others > 0 else event.get("rank")
            return f"[{who}] {event.get('line')}"
        if kind in ("note", "warning", "preparing"):
            return f"{kind}: {event.get('message')}"
        if kind == "restart":
            return f"restart {event.get('restart')}: {event.get('reason')}"
        return None


def unit(started: Event) -> str:
    """What a run counts: trees grow by rounds."""
    return ROUND if any(key == "model.rounds" for key, _ in started.get("config") or []) else EPOCH


def workers(started: Event) -> str:
    """How many workers a run has."""
    number = started.get("workers")
    return "1 worker" if number == 1 else f"{number} workers"


def measures(event: Event) -> Dict[str, float]:
    """The measured numbers of an `epoch` event: `train.loss`, `val.loss`, `test.accuracy`, ..."""
    return {
        f"{name}.{metric}": number
        for name in ("train", "val", "test")
        for metric, number in (event.get(name) or {}).items()
        if isinstance(number, (int, float))
    }


class Notebook(Silent):
    """A headline, a bar and the curve, drawn in place."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML("<p>starting…</p>"), display_id=True)
        self._headline = "starting…"
        self._share = 0.0
        self._words = ""
        self._epochs = 0
        self._unit = EPOCH
        self._rows: List[Dict[str, float]] = []
        self._drawn = 0.0

    def event(self, event: Event) -> None:
        kind = event["event"]
        now = time.monotonic()
        if kind == "started":
            self._epochs, self._unit = event.get("epochs") or 0, unit(event)
            self._headline = f"{event.get('run')}, {workers(event)}"
        elif kind == "progress":
            done = (event["epoch"] - 1) + event["step"] / max(event["steps"], 1)
            self._share = done / max(self._epochs, 1)
            self._words = f"{self._unit} {event['epoch']}, {event.get('samples_per_s', 0.0):,.0f} samples/s"
            if now - self._drawn < REDRAW_SECONDS:
                return
        elif kind in ("epoch", "reported"):
            row = measures(event) if kind == "epoch" else event.get("metrics") or {}
            self._rows.append({name: value for name, value in row.items() if isinstance(value, (int, float))})
            self._words = plain.words(row)
            self._share = event.get("epoch", 0) / max(self._epochs, 1)
            # Many short rounds are drawn together; the end draws all of them.
            if self._unit == ROUND and now - self._drawn < REDRAW_SECONDS:
                return
        elif kind in ("preparing", "warning", "note"):
            self._words = str(event.get("message"))
        elif kind == "result":
            self._headline = f"{self._headline}: {event.get('status')}"
            self._words = event.get("error") or self._words
        else:
            return
        self._drawn = now
        self._draw()

    def _draw(self) -> None:
        bar = (
            '<div style="width:480px;background:#ddd;height:6px">'
            f'<div style="width:{100 * min(self._share, 1.0):.1f}%;background:#2a6fb0;height:6px"></div></div>'
        )
        head = f"<b>{html.escape(self._headline)}</b>"
        self._handle.update(self._html(f"{head}{bar}<div>{html.escape(self._words)}</div>{curve_svg(self._rows)}"))


def display_for(quiet: bool) -> Silent:
    """What suits the place that this runs in."""
    if quiet:
        return Silent()
    return Notebook() if in_notebook() else Lines()


def words_for(quiet: bool) -> Callable[[str], None]:
    """What shows lines of the program itself, such as the trials of a search."""
    if quiet:
        return lambda _: None
    if not in_notebook():
        return lambda line: print(line, file=sys.stderr, flush=True)
    from IPython.display import HTML, display

    lines: List[str] = []
    handle = display(HTML("<p>starting…</p>"), display_id=True)

    def show(line: str) -> None:
        lines.append(html.escape(line))
        handle.update(HTML(f"<pre>{chr(10).join(lines)}</pre>"))

    return show


def in_notebook() -> bool:
    """Whether this is a notebook's kernel: IPython with a front end that draws, not one in a terminal."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")
