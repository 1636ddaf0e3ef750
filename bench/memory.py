"""How much memory a process and its children hold, seen from outside."""

import time
from pathlib import Path

SAMPLE_S = 0.02


def peak_pss(process):
    """The largest sum of proportional set sizes while a process runs, in MiB.

    Its output must fit a pipe, as nobody reads it meanwhile.
    """
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(pss, [process.pid, *children(process.pid)])))
        time.sleep(SAMPLE_S)
    return peak / 2**20


def children(pid):
    """Ids of a process's children."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # the thread has ended
            pass
    return found


def pss(pid):
    """A process's proportional set size in bytes; 0 once it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
