#!/usr/bin/env python3
"""A large CSV table, by several programs of Lockstep in turns: time and memory of `data show`, trees and a network.

    python3 bench/tables.py --lockstep new=target/release/lockstep --lockstep old=/path/to/another/lockstep

The table has 5,000,000 rows of 20 columns: 13 numbers, 5 categories, a date and a label of two classes. Every command begins
with an empty cache, so that the table is decoded each time. `wall` is the time of the whole command. `memory` is the largest sum
of the proportional set sizes of all its processes, and `own` the same without pages of files, which the system can take back.
Commands that a program does not know, such as those with parts of a table, are left out for it. `--only trees` runs those
whose names begin so.

Nothing is brought from a network, and Python's standard library is enough. Trees need the file libxgboost.so of version 3.0 or
newer, which `--xgboost` or LOCKSTEP_XGBOOST names, or which lies in the folder of each program. It is in the wheel `xgboost-cpu`
of PyPI, and `lockstep data get xgboost` brings it into the cache: take the folders `xgboost/lib` and `xgboost_cpu.libs` together,
as they lie beside each other, since the library finds libgomp there.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

from trees import Peak, ran

JOB = """
name = "table"
[data]
train = {{ csv = "{table}", label = "label" }}
val_split = 0.1
{split}
[model]
{model}
[run]
store = "{folder}/runs"
"""
TREES = 'kind = "xgboost"\nrounds = 10\n'
NETWORK = 'kind = "mlp"\nhidden = [32]\n[train]\nepochs = 1\nbatch = 4096\noptimizer = { kind = "adam" }\n'
SPLITS = {"": "", ", test_split": "test_split = 0.2", ", by date": 'test_split = 0.2\nsplit = { by = "day" }'}


def make(path, rows):
    """Writes the table: labels that depend on some of its columns."""
    draw = random.Random(5)
    towns = [f"town {number}" for number in range(200)]
    kinds = ["small", "middle", "large", "huge"]
    with path.open("w") as file:
        numbers = [f"n{number}" for number in range(13)]
        file.write(",".join([*numbers, "town", "kind", "flag", "shop", "code", "day", "label"]) + "\n")
        for row in range(rows):
            values = [draw.random() for _ in range(13)]
            words = [draw.choice(towns), draw.choice(kinds), draw.choice(["a", "b"]), f"s{row % 50}", f"c{row * 7 % 9}"]
            day = f"{2015 + row % 9}-{row % 12 + 1:02}-{row % 28 + 1:02}"
            label = "yes" if values[0] + values[1] * (words[1] == "large") + 0.5 * draw.random() > 1 else "no"
            # Numbers as people have them: some whole, some with many digits, some missing.
            cells = [f"{value:.6f}" if at % 3 else f"{value * 1000:.0f}" for at, value in enumerate(values)]
            if row % 17 == 0:
                cells[5] = ""
            file.write(",".join([*cells, *words, day, label]) + "\n")


def tasks(folder, table):
    """The commands, by their names."""
    yield "data show", ["data", "show", table, "--label", "label", "--json"]
    for model, name in [(TREES, "trees"), (NETWORK, "network")]:
        for split, key in SPLITS.items():
            job = folder / f"job-{len(list(folder.glob('job-*')))}.toml"
            job.write_text(JOB.format(table=table, folder=folder, model=model, split=key))
            yield name + split, ["run", job, "--json"]


def library(args, programs):
    """XGBoost's library as the environment names it for the programs; empty if each has its own beside it."""
    if args.xgboost:
        if not args.xgboost.is_file():
            sys.exit(f"--xgboost: there is no file {args.xgboost}")
        return {"LOCKSTEP_XGBOOST": str(args.xgboost.resolve())}
    for path in programs.values():
        if not (Path(path).resolve().parent / "libxgboost.so").is_file():
            sys.exit(f"trees need --xgboost PATH/libxgboost.so, or that file beside {path}; --only says what to do without them")
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", action="append", required=True, metavar="NAME=PROGRAM")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("target/bench-tables"))
    parser.add_argument("--only", default="", metavar="NAME", help="such as trees, data or network")
    parser.add_argument("--xgboost", type=Path, default=os.environ.get("LOCKSTEP_XGBOOST"), metavar="FILE")
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"table-{args.rows}.csv"
    if not table.exists():
        print(f"writing {table}", file=sys.stderr)
        make(table, args.rows)
    for job in folder.glob("job-*"):
        job.unlink()
    programs = dict(named.split("=", 1) for named in args.lockstep)
    found = {}
    chosen = [(name, words) for name, words in tasks(folder, table) if name.startswith(args.only)]
    trees = any(name.startswith("trees") for name, _ in chosen)
    environment = {"LOCKSTEP_OFFLINE": "1", **(library(args, programs) if trees else {})}
    for name, words in chosen:
        for turn in range(args.turns):
            for program, path in programs.items():
                if found.get((name, program)) == "unknown":
                    continue
                cache = folder / "cache"
                shutil.rmtree(cache, ignore_errors=True)
                shutil.rmtree(folder / "runs", ignore_errors=True)
                peak = Peak()

                def look(pid):
                    peak.look(pid)
                    time.sleep(0.1)

                try:
                    _, wall = ran([path, *map(str, words)], {**environment, "LOCKSTEP_CACHE": str(cache)}, look)
                except SystemExit as failed:
                    if "unknown key" not in str(failed):
                        raise
                    found[name, program] = "unknown"
                    continue
                row = {"task": name, "program": program, "wall": wall, "memory": peak.memory, "own": peak.own}
                print(json.dumps(row), flush=True)
                found.setdefault((name, program), []).append(row)
    print(f"\n{'':24}{'wall':>10}{'memory':>12}{'own':>12}")
    for (name, program), rows in found.items():
        if rows != "unknown":
            of = {key: statistics.median(row[key] for row in rows) for key in ["wall", "memory", "own"]}
            print(f"{name + ', ' + program:24}{of['wall']:8.1f} s{of['memory']:8.0f} MiB{of['own']:8.0f} MiB")


if __name__ == "__main__":
    main()
