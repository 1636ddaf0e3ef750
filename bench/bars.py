"""A bar: what is to be reached, what was measured, and whether that is enough."""

from collections import namedtuple

Bar = namedtuple("Bar", "what target measured unit good")


def at_least(what, measured, target):
    return Bar(what, f">= {target}", round(measured, 3), "x", measured >= target)


def below(what, measured, limit, unit):
    return Bar(what, f"< {limit}", round(measured, 3), unit, measured < limit)
