"""Rates of configurations that take turns, and ratios of those that ran beside each other.

The machine that the figures in docs/ come from is a virtual one, and its cores lose up to half of their speed to
what others do, for milliseconds to minutes. Rates from different minutes cannot be compared. So what is compared runs
in turns of a second or some, again and again; each turn gives a ratio, and the median of all turns is reported, with
the quartiles.
"""

from collections import namedtuple
from statistics import median, quantiles

Ratio = namedtuple("Ratio", "median quartiles")


class Group:
    """Configurations, by name, that take turns: functions that run one and return its steps/s in windows."""

    def __init__(self, turns, configurations):
        self.turns, self.configurations = turns, configurations
        self.rates = {name: [] for name in configurations}

    def round(self):
        for _ in range(self.turns):
            for name, run in self.configurations.items():
                self.rates[name].append(median(run()))


def ratio(groups, ours, theirs):
    """How many times as fast `ours` is as `theirs`, both of one group."""
    group = next(group for group in groups if ours in group.rates and theirs in group.rates)
    turns = [ours / theirs for ours, theirs in zip(group.rates[ours], group.rates[theirs])]
    quarters = quantiles(turns, n=4) if len(turns) > 3 else [min(turns), None, max(turns)]
    return Ratio(median(turns), [quarters[0], quarters[2]])


def rates(groups):
    """The median rate of every configuration."""
    names = dict.fromkeys(name for group in groups for name in group.rates)
    return {name: median(rate for group in groups for rate in group.rates.get(name, [])) for name in names}
