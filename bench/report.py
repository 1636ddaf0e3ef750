"""What the figures come to: tables for the terminal, and a page for docs/."""

from bars import Bar


def bar_rows(found):
    rows = [
        [
            bar.what,
            f"{bar.target} {bar.unit}",
            f"{bar.measured:.3g} {bar.unit}",
            "yes" if bar.good else "NO",
            "{:.3g} to {:.3g}".format(*bar.quartiles) if bar.quartiles else "",
        ]
        for bar in (Bar(*bar) for bar in found["bars"])
    ]
    return [["bar", "target", "measured", "ok?", "quartiles of the turns"], *rows]


def figure(number):
    """Three digits, and no powers of ten."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def speed_rows(found):
    rows = [[name, figure(speed)] for name, speed in found["steps_per_s"].items()]
    return [["configuration", "steps/s"], *rows]


def extra_rows(found):
    rows = [[name, f"{value:.3g}"] for name, value in found["extras"].items()]
    return [["measured once", ""], *rows] if rows else []


def limits(found):
    """What two processes that do not communicate come to, and why that may be less than two."""
    if not found["limits"]:
        return ""
    parts = [f"{limit:.2f} at batch {batch}" for batch, limit in found["limits"].items()]
    siblings = found["machine"]["threads_of_the_first_core"]
    shared = any(mark in siblings for mark in ",-")
    cores = "hyper-threads of one core" if shared else "cores of their own"
    return (
        f"Two runs at once, which do not communicate, reach {' and '.join(parts)} times the speed of one worker. "
        f"The system shows this machine's CPUs as {cores} (threads of the first core: {siblings})."
    )


def aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown(rows):
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def text(title, found):
    """One part for the terminal."""
    tables = [speed_rows(found), extra_rows(found), bar_rows(found)]
    parts = [f"\n{title}", *(aligned(rows) for rows in tables if rows), limits(found)]
    return "\n\n".join(part for part in parts if part)


def section(part, found):
    """One part of the page."""
    machine, versions = found["machine"], found["versions"]
    settings = "; ".join(f"{name}: {how}" for name, how in found["pytorch_settings"].items())
    tables = [markdown(rows) for rows in (bar_rows(found), speed_rows(found), extra_rows(found)) if rows]
    measured = f"""Measured {machine["date"]} on {machine["cpu"]}, {machine["cores"]} cores, {machine["memory_gib"]} GiB, {machine["system"]};
load average at the end {machine["load"]:.2f}; {found["rounds_taken"]} rounds. Lockstep {versions["lockstep"]},
PyTorch {versions["torch"]} ({settings})."""
    parts = [f"## {part.title}", part.notes, measured, *tables, limits(found)]
    return "\n\n".join(part for part in parts if part)


def kept(page):
    """What stands on the page between the parts that are written anew: figures of other benchmarks."""
    _, begin, rest = page.partition("## The exchange of gradients")
    return f"{begin}{rest.partition('## How it is measured')[0]}"


def page(parts, other):
    """docs/benchmarks.md, with the sections of other benchmarks as they are."""
    sections = "\n\n".join(section(part, found) for part, found in parts)
    return f"""# How fast

This page is written by `bench/train.py`. Lockstep and PyTorch are measured together, in windows of a tenth of a second
or a step. Batches are those of all processes together. Every process has one thread, and there are as many lanes as
workers.

The machine is a virtual one. Each of its cores may lose up to half of its speed to other programs, for milliseconds to
minutes. Even a loop of multiplications that shares nothing shows it: two such loops that waited for each other every 2
ms would reach 0.91 of their speed alone, or 0.97 in a quiet minute. So everything that is compared runs in turns. Each
turn gives a ratio. A bar, which is a goal, is compared with the median of all turns, and the quartiles are beside it
(with fewer than four turns, the smallest and the largest value). Steps/s are medians of the turns.

{sections}

{other}## How it is measured

- **PyTorch** is measured after a warm-up. The whole training set is in memory as normalised tensors, a batch is one
  `index_select`, no value is read back from a step, and images are `channels_last`. SGD is tried as a for-loop, foreach
  and fused, and convolutional networks in eager mode and with `torch.compile`; the fastest is used. DDP runs over gloo
  on loopback, with gradients as bucket views.
- **Lockstep** runs the real job and takes its data from the decoded cache. The speed is what the last epoch reports as
  its progress, without the first and the last report. Convolutional networks run two epochs, so that the first one has
  the page faults, as PyTorch's warm-up does.
- **Memory** is the sum of the proportional set sizes of a process and its children. It is taken every 20 ms, and the
  largest sum counts. For Lockstep, these are the coordinator and its workers, beginning with the files as they were
  downloaded.

## Repeat it

    make bench-train BENCH_ARGS=--write-docs
    make bench-train BENCH_ARGS="--only cnn --rounds 5"

This installs PyTorch into the cache folder (some gigabytes, once). `LOCKSTEP_BENCH_PYTHON=/path/to/python` uses an
installed one instead. Do not use the machine for anything else meanwhile, because the measurement keeps two cores busy.
"""
