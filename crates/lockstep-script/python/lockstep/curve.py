"""The curve of a run as an SVG: the loss on one side, other measures on the other."""

from __future__ import annotations

import html
import math
from typing import Dict, List, Sequence

COLOURS = ("#2a6fb0", "#d1622b", "#3a8f4d", "#8a4fa3", "#9c7a1c", "#5b6770")
WIDTH, HEIGHT, EDGE = 300, 160, 24


def curve_svg(rows: Sequence[Dict[str, float]]) -> str:
    """Two small charts side by side, one point a row: losses, and all else. Empty before there are two rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    groups = [[name for name in names if "loss" in name], [name for name in names if "loss" not in name]]
    charts = [_chart(rows, group) for group in groups if group and len(rows) > 1]
    return "".join(charts)


def _chart(rows: Sequence[Dict[str, float]], names: List[str]) -> str:
    values = [row[name] for row in rows for name in names if name in row and math.isfinite(row[name])]
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0

    def place(index: int, value: float) -> str:
        x = EDGE + (WIDTH - 2 * EDGE) * index / (len(rows) - 1)
        y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / span
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg width="{WIDTH}" height="{HEIGHT}" style="font:10px sans-serif" role="img">']
    parts.append(f'<text x="2" y="{EDGE - 8}">{high:.4g}</text><text x="2" y="{HEIGHT - 8}">{low:.4g}</text>')
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        points = [place(i, row[name]) for i, row in enumerate(rows) if name in row and math.isfinite(row[name])]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(points)}"/>')
        label = html.escape(name)
        parts.append(f'<text x="{WIDTH - 2}" y="{12 + 11 * number}" text-anchor="end" fill="{colour}">{label}</text>')
    return "".join([*parts, "</svg>"])
