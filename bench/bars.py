"""A bar: what is to be reached, what was measured, and whether that is enough."""

from collections import namedtuple

Bar = namedtuple("Bar", "what target measured unit good quartiles", defaults=[None])


def at_least(what, ratio, target):
    middle = round(ratio.median, 3)
    return Bar(what, f">= {target}", middle, "x", ratio.median >= target, ratio.quartiles)


def below(what, measured, limit, unit):
    return Bar(what, f"< {limit}", round(measured, 3), unit, measured < limit)
