"""Where and when figures were measured."""

import os
import platform
import time
from pathlib import Path


def machine():
    """Where and when this was measured."""
    words = dict.fromkeys(["model name"], platform.machine())
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in words:
            words[key.strip()] = value.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    siblings = siblings.read_text().strip() if siblings.exists() else "unknown"
    return {
        "cpu": words["model name"],
        "cores": len(os.sched_getaffinity(0)),
        # More than one number: cores that are hyper-threads of one.
        "threads_of_the_first_core": siblings,
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.release()}",
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }
