"""How fast the machine's clock goes, all along.

A virtual machine is slowed down by what its neighbours do: on the one that the figures in docs/ come from, both
cores together lose up to half of their speed, for tenths of a second or for minutes. A thread that counts for some
microseconds, 25 times a second, notices, roughly. With it, rates from different moments can be compared better.
"""

import threading
import time
from bisect import bisect_left
from statistics import mean

PAUSE_S = 0.04
TURNS = 2000


class Clock:
    """Samples of the clock, relative to the fastest of them."""

    def __init__(self):
        self.times, self.speeds = [], []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stopped.wait(PAUSE_S):
            # The best of a few: one may be interrupted.
            speed = max(count() for _ in range(3))
            self.times.append(time.time())
            self.speeds.append(speed)

    def stop(self):
        self.stopped.set()
        self.thread.join()
        # Not the very fastest, which may be an error of measurement.
        self.full = sorted(self.speeds)[round(0.98 * (len(self.speeds) - 1))]

    def share(self, begin, end):
        """The part of the full clock that the machine had from `begin` to `end`."""
        first = max(0, bisect_left(self.times, begin) - 1)
        last = bisect_left(self.times, end) + 1
        return min(1.0, mean(self.speeds[first:last]) / self.full)


def count():
    began = time.perf_counter()
    for _ in range(TURNS):
        pass
    return TURNS / (time.perf_counter() - began)
