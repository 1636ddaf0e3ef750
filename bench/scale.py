#!/usr/bin/env python3
"""The model of docs/scale.md, and measurements to hold it against.

Every rank is a process in a network namespace of its own. Namespaces are joined by a bridge, and each sends through a
token bucket (`tc tbf`), so that a rank sends and receives no faster than its rate. Needs root, iproute2 and a kernel
with veth, bridge and tbf; `make bench-scale` runs it. Delay is made by relays in the ranks' own processes
(crates/lockstep-gang/examples/collective_rate/delay.rs), since many kernels come without `tc netem`.

`--model` prints the tables of the model alone, which needs nothing. `--tree` measures hosts with several workers alone.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import report
from machine import machine

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "lockstep-scale"
CHUNK = 16 * 1024  # numbers in a chunk
HEADER = 32  # bytes before a chunk's numbers
# What is left of a packet of 1500 bytes for data, after Ethernet, IP and TCP with timestamps.
PAYLOAD = 1448 / 1514
MODELS = {"MLP (0.67 M)": 669_706, "ResNet-18 (11.7 M)": 11_689_512, "ViT-B (86 M)": 86_000_000}
# From one host of a data centre's network to another, one way.
LATENCY = 50e-6


def step(numbers, workers, gigabits, latency=LATENCY):
    """What a worker sends in a step, by owners: bytes, the busiest one's, frames, and how long it takes."""
    chunks = -(-numbers // CHUNK)
    chunk = 4 * numbers / chunks + HEADER
    # A vote to everyone, and for each chunk a post to its owner, or its new values to everyone.
    frames = 2 * chunks * (workers - 1) / workers + (workers - 1)
    # The busiest has a whole number of chunks of its own, and posts the others.
    own = -(-chunks // workers)
    busiest = (chunks - own) + own * (workers - 1)
    wire = 8 * (busiest * chunk + (workers - 1) * HEADER) / PAYLOAD / (gigabits * 1e9)
    return {
        "bytes": 8 * numbers * (workers - 1) / workers,
        "busiest": busiest * chunk,
        "frames": frames,
        # The last new values arrive a delay after they were sent. Before that nothing waits, unless the first new
        # values cannot come before the last post is sent, half of the time.
        "wire": wire + latency + max(0, latency - wire / 2),
    }


def ring(numbers, workers, gigabits, latency=LATENCY):
    """The same in a ring: as many bytes, but a chain of 2 (n - 1) messages."""
    payload = 4 * 2 * numbers * (workers - 1) / workers
    return {"frames": 2 * (workers - 1), "wire": 8 * payload / PAYLOAD / (gigabits * 1e9) + 2 * (workers - 1) * latency}


def tree(numbers, workers, gigabits, latency=LATENCY, on_host=8):
    """Owners among hosts, each of which adds its workers' gradients in shared memory first."""
    hosts = max(1, workers // on_host)
    if hosts == 1:
        return {"frames": 0, "wire": 0.0}
    found = step(numbers, hosts, gigabits, latency)
    return {"frames": found["frames"], "wire": found["wire"]}


def model_rows():
    head = ["model", "workers", "MB sent a worker", "by the busiest", "frames a worker"]
    for gigabits in (10, 100):
        head += [f"by owners, {gigabits} Gbit/s", f"ring, {gigabits}", f"hosts of 8, {gigabits}"]
    rows = [head]
    for name, numbers in MODELS.items():
        for workers in (8, 64, 512):
            found = step(numbers, workers, 10)
            row = [name, str(workers), *(f"{found[key] / 1e6:,.1f}" for key in ("bytes", "busiest"))]
            row.append(f"{found['frames']:,.0f}")
            for gigabits in (10, 100):
                ways = [how(numbers, workers, gigabits) for how in (step, ring, tree)]
                row += [f"{1e3 * way['wire']:,.2f} ms" for way in ways]
            rows.append(row)
    return rows


def run(*command, check=True):
    return subprocess.run(list(map(str, command)), check=check, capture_output=True, text=True)


class Network:
    """Namespaces on a bridge, each with a rate at which it sends."""

    def __init__(self, workers, megabits, slow=None):
        self.workers = workers
        self.remove()
        run("ip", "link", "add", "lsbridge", "type", "bridge")
        run("ip", "link", "set", "lsbridge", "up")
        for rank in range(workers):
            space = f"{PREFIX}-{rank}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", f"lsout{rank}", "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "link", "set", f"lsout{rank}", "master", "lsbridge", "up")
            inside = ["ip", "-n", space]
            run(*inside, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")
            rate = slow if slow and rank == workers - 1 else megabits
            # A burst of a millisecond, at least two of the largest packets that the kernel hands down.
            burst = max(2 * 65_536, rate * 125)
            limit = ["rate", f"{rate}mbit", "burst", burst, "latency", "400ms"]
            run("tc", "-n", space, "qdisc", "add", "dev", "eth0", "root", "tbf", *limit)
            # What a rank receives leaves the bridge through the other end of its link.
            run("tc", "qdisc", "add", "dev", f"lsout{rank}", "root", "tbf", *limit)

    def remove(self):
        for rank in range(64):
            if not Path(f"/run/netns/{PREFIX}-{rank}").exists():
                continue
            # A namespace is taken down in the background, and its links with it.
            run("ip", "link", "del", f"lsout{rank}", check=False)
            run("ip", "netns", "del", f"{PREFIX}-{rank}", check=False)
        run("ip", "link", "del", "lsbridge", check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Gang:
    """Ranks in the namespaces of a network, which do steps when they are told to."""

    def __init__(self, example, workers, numbers, delay=0, transport="tcp"):
        command = [example, transport, workers, numbers, PREFIX, round(1e6 * delay)]
        self.run = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def steps(self, count):
        """What so many steps took."""
        print(count, file=self.run.stdin, flush=True)
        return json.loads(self.run.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.stdin.close()
        self.run.wait()


def seconds(example, workers, numbers, steps, series, delay=0):
    """Seconds a step, the median of some series, and how long each rank took to hand over its gradient."""
    with Gang(example, workers, numbers, delay) as gang:
        # The first series warms up.
        found = [gang.steps(steps) for _ in range(series + 1)][1:]
    handing_over = [median(one["handing_over"][rank] / steps for one in found) for rank in range(workers)]
    return median(one["seconds"] / steps for one in found), handing_over


def measured_rows(example, cases):
    rows = [["workers", "gradient", "Mbit/s a rank", "delay", "model", "measured", "measured / model"]]
    for workers, megabits, numbers, delay in cases:
        with Network(workers, megabits):
            took, _ = seconds(example, workers, numbers, 3, 5, delay)
        expected = step(numbers, workers, megabits / 1000, delay)["wire"]
        row = [str(workers), f"{4 * numbers / 1e6:.1f} MB", str(megabits), f"{1e3 * delay:.0f} ms"]
        rows.append([*row, f"{1e3 * expected:.1f} ms", f"{1e3 * took:.1f} ms", f"{took / expected:.2f}"])
        print(" ".join(rows[-1]), file=sys.stderr)
    return rows


def sent_by(hosts):
    """Bytes that the namespaces have sent, each."""
    count = "/sys/class/net/lsout{}/statistics/rx_bytes"
    return [int(Path(count.format(host)).read_text()) for host in range(hosts)]


def tree_rows(example, cases):
    """Hosts with several workers: a tree beside an exchange of all with all, by turns on the same network."""
    rows = [["hosts x workers", "gradient", "Mbit/s a host", "all with all", "tree", "times as fast",
             "MB sent a host, all with all", "tree", "one worker a host", "model", "measured / model"]]
    for hosts, each, megabits, numbers, steps, turns in cases:
        took, sent = {}, {}
        with Network(hosts, megabits):
            gangs = {
                "all": Gang(example, f"{hosts}x{each}", numbers),
                "tree": Gang(example, f"{hosts}x{each}", numbers, transport="tree"),
                "one": Gang(example, f"{hosts}x1", numbers),
            }
            for turn in range(turns + 1):
                for name, gang in gangs.items():
                    before = sent_by(hosts)
                    spent = gang.steps(steps)["seconds"] / steps
                    bytes_sent = max(now - then for now, then in zip(sent_by(hosts), before)) / steps
                    if turn > 0:  # The first one warms up.
                        took.setdefault(name, []).append(spent)
                        sent.setdefault(name, []).append(bytes_sent / 1e6)
            for gang in gangs.values():
                gang.__exit__()
        took, sent = ({name: median(found) for name, found in all.items()} for all in (took, sent))
        expected = step(numbers, hosts, megabits / 1000, 0)["wire"]
        rows.append([
            f"{hosts} x {each}", f"{4 * numbers / 1e6:.1f} MB", str(megabits),
            f"{1e3 * took['all']:.0f} ms", f"{1e3 * took['tree']:.0f} ms", f"{took['all'] / took['tree']:.2f}",
            f"{sent['all']:.1f}", f"{sent['tree']:.1f}", f"{sent['one']:.1f}",
            f"{1e3 * expected:.0f} ms", f"{took['tree'] / expected:.2f}",
        ])
        print(" ".join(rows[-1]), file=sys.stderr)
    return rows


def slow_rows(example):
    """What one slow rank of four does to how long the others take to hand over their gradients."""
    rows = [["slowest rank", "a step", "the others hand over within", "the slow one"]]
    for slow in (None, 100):
        with Network(4, 400, slow):
            took, handing_over = seconds(example, 4, 5_000_000, 1, 5)
        name = "as the others, 400 Mbit/s" if slow is None else f"{slow} Mbit/s"
        cells = [took, max(handing_over[:3]), handing_over[3]]
        rows.append([name, *(f"{1e3 * cell:.1f} ms" for cell in cells)])
    return rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--example", type=Path, default=ROOT / "target/release/examples/collective_rate")
    arguments.add_argument("--model", action="store_true", help="print the model alone")
    arguments.add_argument("--tree", action="store_true", help="measure hosts with several workers alone")
    arguments.add_argument("--turns", type=int, default=5, help="turns of each exchange in a tree (5)")
    options = arguments.parse_args()
    print(report.markdown(model_rows()))
    if options.model:
        return
    if os.geteuid() != 0:
        sys.exit("network namespaces are made by root: run it as root, or with --model")
    mlp, resnet = MODELS["MLP (0.67 M)"], MODELS["ResNet-18 (11.7 M)"]
    # Hosts, workers on each, megabits a second, numbers, steps in a turn, turns.
    trees = [(2, 2, 1000, resnet, 3, options.turns), (2, 4, 1000, resnet, 3, options.turns)]
    trees += [(4, 4, 400, 5_000_000, 3, options.turns), (4, 4, 400, mlp, 10, options.turns)]
    print("\n" + report.markdown(tree_rows(options.example, trees)))
    if options.tree:
        return print(f"\n{machine()}")
    several = (2, 4, 8, 16)
    cases = [(workers, megabits, mlp, 0) for megabits in (100, 400) for workers in several]
    cases += [(workers, 400, 5_000_000, 0) for workers in several]
    cases += [(workers, 400, mlp, 0.02) for workers in several]
    print("\n" + report.markdown(measured_rows(options.example, cases)))
    print("\n" + report.markdown(slow_rows(options.example)))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
