"""What the figures come to: the bars, a table for the terminal, and a page for docs/."""

from collections import namedtuple

Bar = namedtuple("Bar", "what target measured unit good")


def bars(found):
    """Every bar with its target and what was measured."""
    speed, start = found["steps_per_s"], found["start_s"]

    def ratio(what, ours, theirs, target):
        measured = speed[ours] / speed[theirs]
        return Bar(what, f">= {target}", round(measured, 3), "x", measured >= target)

    def below(what, measured, limit, unit):
        return Bar(what, f"< {limit}", round(measured, 3), unit, measured < limit)

    one, two = "lockstep one worker, batch", "lockstep two workers, batch"
    pair = "lockstep two runs at once, batch"
    alone, ddp = "pytorch one process, batch 32", "pytorch ddp two processes, batch 32"
    return [
        below("start to first step, gzipped files", start["gzipped"], 0.5, "s"),
        below("start to first step, decoded cache", start["decoded"], 0.15, "s"),
        ratio("one worker / PyTorch, batch 32", f"{one} 32", alone, 1.8),
        ratio("two workers / PyTorch one process, batch 32", f"{two} 32", alone, 2.2),
        ratio("two workers / PyTorch DDP two processes, batch 32", f"{two} 32", ddp, 4),
        ratio("two workers / no-communication limit, batch 32", f"{two} 32", f"{one} 16", 0.75),
        ratio("two workers / no-communication limit, batch 128", f"{two} 128", f"{one} 64", 0.9),
        ratio("two workers / two runs at once, batch 32", f"{two} 32", f"{pair} 16 each", 0.75),
        ratio("two workers / two runs at once, batch 128", f"{two} 128", f"{pair} 64 each", 0.9),
        below("peak memory of a two-worker run (PSS)", found["peak_pss_mib"], 300, "MiB"),
    ]


def bar_rows(found):
    header = ["bar", "target", "measured", "ok?"]
    rows = [
        [bar.what, f"{bar.target} {bar.unit}", f"{bar.measured:.3g} {bar.unit}", "yes" if bar.good else "NO"]
        for bar in found["bars"]
    ]
    return [header, *rows]


def speed_rows(found):
    rows = [[name, f"{speed:.0f}"] for name, speed in found["steps_per_s"].items()]
    return [["configuration", "steps/s"], *rows]


def aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown(rows):
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def text(found):
    return f"{aligned(speed_rows(found))}\n\n{aligned(bar_rows(found))}"


def page(found, options):
    """docs/benchmarks.md."""
    machine, versions, start = found["machine"], found["versions"], found["start_s"]
    settings = "; ".join(f"{name}: {how}" for name, how in found["pytorch_settings"].items())
    return f"""# How fast

Written by `bench/train.py`, {machine["date"]}. Figures are medians of {options.rounds} alternating rounds in one
run; ratios are ratios of medians.

- Machine: {machine["cpu"]}, {machine["cores"]} cores, {machine["memory_gib"]} GiB, {machine["system"]};
  load average before the run {machine["load_before"]:.2f}.
- Versions: Lockstep {versions["lockstep"]}, PyTorch {versions["torch"]}, numpy {versions["numpy"]}.
- The job: `examples/fashion-mnist.toml`, an MLP 784-512-512-10 with ReLU and dropout 0.25, SGD 1e-3 with
  momentum 0.9, on Fashion-MNIST. Batches are global. One thread a process everywhere.

## The bars

{markdown(bar_rows(found))}

The no-communication limit is what two workers would do if exchanging cost nothing: the steps/s of one
worker, in one process, with half the batch. It takes for granted that two busy cores are each as fast as one
alone; two such runs at the same time, which exchange nothing and do not wait for each other, show what this
machine really gives.

## Steps a second

{markdown(speed_rows(found))}

## How it is measured

- **PyTorch**: {options.steps} steps after a warm-up. The whole training set is normalised tensors in memory,
  a batch is one `index_select`, no value is read back from a step. SGD is tried as a for-loop, foreach and
  fused, and the fastest is used ({settings}).
  DDP runs over gloo on loopback, gradients as bucket views.
- **Lockstep**: one epoch of the real job, data gathered from the decoded cache; `samples_per_s` of the result
  divided by the batch. As many lanes as workers.
- **Start**: median of {options.starts} two-worker runs, page cache warm, as the run reports it. Seen from outside, from exec to
  the event's arrival: {start["decoded, from outside"]:.3f} s from the decoded cache, {start["gzipped, from outside"]:.3f} s from the gzipped files.
- **Memory**: proportional set sizes of the coordinator and its workers, added up every 20 ms; the largest sum
  over a run that begins from the gzipped files.

## Repeat it

    make bench-train BENCH_ARGS=--write-docs

It installs PyTorch into the cache folder (some gigabytes, once); `LOCKSTEP_BENCH_PYTHON=/path/to/python` uses
one that is there. Leave the machine alone meanwhile: two busy cores are what is measured.
"""
