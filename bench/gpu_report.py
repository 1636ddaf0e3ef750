#!/usr/bin/env python3
"""All that is to be seen on a machine with a GPU, in one command and a few minutes: `make report-gpu`.

    python3 bench/gpu_report.py --lockstep PATH [--tests PATH ...] [--encoder-speed PATH] [--minutes 7] [--json FILE]

What is worth most comes first, and every part has a time limit of its own, so that a short lease of a machine is enough:

1. the test programs that are named, those tests that are for a GPU (`--tests`: of lockstep-cuda and of lockstep-train);
2. networks with all kinds of layers, trained for 500 steps on the processor and on the GPU, which must have the same hash;
3. steps a second beside PyTorch in fp32 (bench/gpu.py), and of the encoders;
4. examples/fashion-mnist-accurate.toml as a whole, if its data is in the cache, and CLIP's vectors of JPEG files (`--pictures`,
   a folder of them, as bench/make_pictures.py makes it) beside what the cores decode (`--decode-rate`, lockstep-image's example);
5. several workers on one GPU; a run that changes from one device to the other in its middle; workers that are killed;
6. the kernels under compute-sanitizer, if there is one;
7. PyTorch with tf32 and under bf16 autocast;
8. the whole example once more on the processor, if minutes are left.

Nothing is built or downloaded. It needs Python 3; PyTorch and NumPy for the comparison. A short table is printed last.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import synthetic
from report import aligned

HERE = Path(__file__).resolve().parent
STEPS = 500
PICTURES = 20_000

IMAGES = '[data]\ntrain = {{ images = "{images}", labels = "{labels}" }}\nval_split = 0.0\n'
VARIED = "augment = {{ crop_padding = 4, flip = true, mixup = 0.2 }}\n"
LAYERS = """[model]
layers = [
  { kind = "conv2d", out = 16, kernel = 5, stride = 2, padding = 2 },
  { kind = "group-norm", groups = 4 },
  { kind = "silu" },
  { kind = "conv2d", out = 16, kernel = 3, padding = 1, groups = 16, bias = false },
  { kind = "batch-norm" },
  { kind = "leaky-relu" },
  { kind = "residual", body = [
    { kind = "conv2d", out = 32, kernel = 3, stride = 2, padding = 1 },
    { kind = "layer-norm" },
    { kind = "gelu" },
  ], shortcut = [{ kind = "conv2d", out = 32, kernel = 1, stride = 2 }] },
  { kind = "avg-pool", kernel = 2 },
  { kind = "conv2d", out = 32, kernel = 3, padding = 1 },
  { kind = "tanh" },
  { kind = "max-pool", kernel = 2 },
  { kind = "flatten" },
  { kind = "linear", out = 48 },
  { kind = "sigmoid" },
  { kind = "dropout", p = 0.2 },
  { kind = "linear" },
]
"""
SEQUENCES = """[model]
layers = [
  { kind = "flatten" },
  { kind = "unflatten", shape = [4, 196] },
  { kind = "conv1d", out = 24, kernel = 5, padding = "same" },
  { kind = "relu" },
  { kind = "max-pool1d", kernel = 4 },
  { kind = "conv1d", out = 24, kernel = 3 },
  { kind = "global-pool" },
  { kind = "linear" },
]
"""
SGD = 'optimizer = {{ kind = "sgd", lr = 1e-2, momentum = 0.9 }}\n'
# A name, sides and channels of the images, samples of a batch, lanes, and the rest of the job.
NETWORKS = [
    ("MLP", 28, 1, 32, 2, IMAGES + '[model]\nkind = "mlp"\nhidden = [512, 512]\ndropout = 0.25\n', SGD),
    ("head", 24, 1, 64, 3, IMAGES + '[model]\nkind = "head"\n',
     'optimizer = "adamw"\nclip_norm = 1.0\nlabel_smoothing = 0.1\naverage = 0.99\n'),
    ("CIFAR CNN, varied images", 32, 3, 16, 2, IMAGES + VARIED + '[model]\nkind = "cnn"\n', SGD),
    ("ResNet-18", 32, 3, 8, 1, IMAGES + '[model]\nkind = "resnet18"\nsmall_stem = true\n', SGD),
    ("all kinds of layers", 32, 3, 16, 3, IMAGES + LAYERS.replace("{", "{{").replace("}", "}}"), 'optimizer = "lion"\n'),
    ("sequences", 28, 1, 16, 2, IMAGES + SEQUENCES.replace("{", "{{").replace("}", "}}"), 'optimizer = "rmsprop"\n'),
]  # fmt: skip


class Report:
    """Parts with time limits, and what came of them."""

    def __init__(self, minutes, file=None):
        self.end, self.rows, self.facts, self.file = time.monotonic() + 60 * minutes, [], {}, file

    def left(self, limit):
        """Seconds of a part that may take so long."""
        return min(limit, self.end - time.monotonic())

    def add(self, part, what, ok=None):
        word = {True: "yes", False: "NO", None: ""}[ok]
        self.rows.append([part, what, word])
        self.facts[part] = {"what": what, "ok": ok}
        print(f"{part}: {what} {word}", file=sys.stderr, flush=True)

    def command(self, part, words, limit, env=None):
        """Runs a command within a limit; its output, or nothing if it failed or took too long."""
        seconds = self.left(limit)
        if seconds < 5:
            self.add(part, "left out: no time")
            return None
        try:
            done = subprocess.run(
                list(map(str, words)), capture_output=True, text=True, timeout=seconds, env={**os.environ, **(env or {})}
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace").strip().splitlines()
            self.add(part, f"not done after {seconds:.0f} s; {said[-1] if said else 'it said nothing'}", False)
            return None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
            self.add(part, f"failed: {said[-1] if said else done.returncode}", False)
            return None
        return done.stdout


class Program:
    """The program, with a cache and a store that are thrown away."""

    def __init__(self, report, binary, folder):
        self.report, self.binary, self.folder = report, Path(binary).resolve(), folder
        self.environment = {"LOCKSTEP_CACHE": str(folder / "cache")}

    def job(self, name, side, channels, batch, lanes, data, train):
        """Writes a job of 500 steps, in five epochs."""
        write = synthetic.write if channels == 3 else synthetic.write_grey
        images, labels = write(self.folder, name.replace(" ", "-"), STEPS // 5 * batch, side, side)
        path = self.folder / f"{name.split(',')[0].replace(' ', '-')}.toml"
        text = f'name = "{path.stem}"\n{data}[train]\nepochs = 5\nbatch = {batch}\nlanes = {lanes}\nworkers = 1\n{train}'
        path.write_text(text.format(images=images, labels=labels) + f'[run]\nstore = "{self.folder}/runs"\n')
        return path

    def run(self, job, device, *words):
        """Begins a run, whose last line is its result."""
        command = [self.binary, "run", job, "--json", "--set", f'train.device="{device}"', *words]
        environment = {**os.environ, **self.environment}
        return subprocess.Popen(
            list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def result(self, process, limit):
        """The result of a run; what went wrong as its status, if it did."""
        try:
            lines = process.communicate(timeout=max(1, self.report.left(limit)))[0].splitlines()
            return json.loads(lines[-1]) if lines else {"status": "nothing was said"}
        except subprocess.TimeoutExpired:
            process.kill()
            return {"status": "too slow"}


def tests(report, programs):
    for program in programs:
        part = f"tests of {Path(program).name.split('-')[0]}"
        said = report.command(part, [Path(program).resolve(), "gpu::", "--nocapture", "--test-threads", "4"], 100)
        if said is not None:
            skipped = "skipped:" in said
            result = [line for line in said.splitlines() if line.startswith("test result")]
            report.add(part, "skipped: no GPU" if skipped else (result or ["no tests"])[-1], not skipped)


def equal(report, name, results):
    """Compares the hashes of runs."""
    hashes = [result.get("weights_sha256") for result in results]
    if None in hashes or any(result.get("status") != "succeeded" for result in results):
        words = "; ".join(str(result.get("error") or result.get("status")) for result in results)
        return report.add(name, f"not compared: {words}", False)
    same = len(set(hashes)) == 1
    report.add(name, " ".join(sorted({value[:12] for value in hashes})), same)


def hashes(report, program):
    for name, *job in NETWORKS:
        if report.left(60) < 5:
            return report.add("500 steps", "left out: no time")
        path = program.job(name, *job)
        for precision in ["f32", "fixed16"]:
            # Beside each other: one computes on the processor, the other on the GPU.
            words = ["--set", f"train.precision={precision}"]
            runs = [program.run(path, device, *words) for device in ["cuda", "cpu"]]
            equal(report, f"500 steps in {precision}, {name}", [program.result(run, 60) for run in runs])


def gangs(report, program):
    """Workers that share the GPU, as many as there are lanes: each reads what the others have come to."""
    for name, *job in [network for network in NETWORKS if network[4] > 1]:
        path, lanes = program.job(name, *job), job[3]
        runs = [program.run(path, "cuda", "--workers", workers) for workers in [1, lanes]]
        equal(report, f"{lanes} workers on one GPU, {name}", [program.result(run, 40) for run in runs])


def changes(report, program):
    name, *job = NETWORKS[0]
    path = program.job(name, *job)
    results = [program.result(program.run(path, "cuda"), 40)]
    for first, then in [("cpu", "cuda"), ("cuda", "cpu")]:
        begun = program.result(program.run(path, first, "--epochs", "2"), 40)
        folder = begun.get("run_dir") or begun.get("run") or ""
        resumed = program.run(path, then, "--resume", folder)
        equal(report, f"resumed from {first} to {then}", [results[0], program.result(resumed, 40)])


def killed(report, program, workers):
    """Kills a worker in the middle: another one takes its place, to the same weights."""
    name, *job = NETWORKS[0]
    path = program.job(name, *job)
    words = ["--epochs", "600", "--workers", workers, "--set", 'checkpoint.every="1 epoch"']
    whole = program.result(program.run(path, "cuda", *words), 60)
    run, pid = program.run(path, "cuda", *words), None
    for line in run.stdout:
        event = json.loads(line)
        if event["event"] == "worker":
            pid = event["pid"]
        if event["event"] == "epoch" and event["epoch"] >= 3:
            os.kill(pid, signal.SIGKILL)
            break
    result = program.result(run, 60)
    equal(report, f"kill -9 of 1 of {workers}, {result.get('restarts')} restart", [whole, result])


def last(report, programs):
    """What ends a process's use of a GPU comes last: a kernel that goes wrong."""
    for program in programs[:1]:
        words = [Path(program).resolve(), "--ignored", "gpu_at_last::"]
        if report.command("a kernel that goes wrong", words, 30) is not None:
            report.add("a kernel that goes wrong", "is told with CUDA's words", True)


def speed(report, options, modes, part):
    file = Path(tempfile.mkdtemp()) / "gpu.json"
    words = [sys.executable, HERE / "gpu.py", "--lockstep", options.lockstep, "--rounds", 1, "--modes", modes, "--json", file]
    if options.encoder_speed:
        words += ["--encoder-speed", options.encoder_speed]
    said = report.command(part, words, 200)
    if said is not None:
        print(said)
    if file.exists():
        # A part of it, if there was no time for the whole.
        report.facts[f"{part}, figures"] = json.loads(file.read_text())
        for name, row in report.facts[f"{part}, figures"]["per_s"].items():
            other = row.get(modes.split(",")[0])
            ratio = f", {row['ours'] / other:.2f} times {modes.split(',')[0]}" if other and row.get("ours") else ""
            report.add(f"{part}: {name}", f"{row.get('ours', 0):,.1f}/s{ratio}")


def whole_run(report, options, device, limit):
    part = f"Fashion-MNIST, accurate, {device}"
    job = HERE.parent / "examples/fashion-mnist-accurate.toml"
    store = tempfile.mkdtemp()
    words = [options.lockstep, "run", job, "--json", "--offline", "--workers", "1"]
    words += ["--set", f'train.device="{device}"', "--set", f'run.store="{store}"']
    if subprocess.run([*map(str, words), "--dry-run"], capture_output=True).returncode != 0:
        return report.add(part, "left out: its data is not in the cache")
    said = report.command(part, words, limit)
    if said is None:
        return None
    result = json.loads(said.splitlines()[-1])
    report.add(part, f"{json.dumps(result['timing'])} {result['weights_sha256'][:12]}")
    return result


def from_jpegs(report, options, folder):
    """CLIP's vectors of many files, and how many of them the cores decode when they do nothing else."""
    if not options.pictures:
        return report.add("CLIP from JPEG files", "left out: no pictures were named")
    import clip

    files = sorted(options.pictures.glob("*.jpg"))
    if not files:
        return report.add("CLIP from JPEG files", f"{options.pictures} has no *.jpg", False)
    clip.write_model(folder / "clip")
    for i in range(PICTURES):
        link = folder / "jpegs" / f"class-{i % 2}" / f"{i:05}.jpg"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(files[i % len(files)].resolve())
    job = folder / "jpegs.toml"
    job.write_text(
        f'name = "jpegs"\n[data]\ntrain = "{folder}/jpegs"\nval_split = 0.0\n'
        f'[embed]\nmodel = "{folder}/clip"\nbatch = 256\nstore = "{folder}/vectors"\ndevice = "cuda"\n'
        '[model]\nkind = "head"\n[train]\nworkers = 1\n'
    )
    said = report.command("CLIP from JPEG files", [options.lockstep, "embed", job, "--json"], 90)
    if said is None:
        return
    events = [event for event in map(json.loads, said.splitlines()) if event["event"] == "embedding"]
    done = [event["pictures_done"] for event in events]
    seconds = [event["pictures_done"] / event["pictures_per_s"] for event in events]
    after_first = (done[-1] - done[0]) / (seconds[-1] - seconds[0])
    words = f"{done[-1] / seconds[-1]:,.0f}/s, {after_first:,.0f}/s after the first of them, {seconds[0]:.1f} s"
    if options.decode_rate:
        cores = os.cpu_count()
        decoded = report.command(
            "decoding alone", [options.decode_rate, options.pictures, "--processes", cores, "--seconds", 3], 30
        )
        words += f"; {cores} cores decode {json.loads(decoded)['images_per_s']:,.0f}/s" if decoded else ""
    report.add("CLIP from JPEG files", words)


def sanitizer(report, programs):
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
    tool = next((place for place in places if place and Path(place).exists()), None)
    if not tool or not programs:
        return report.add("compute-sanitizer", "left out: there is none here")
    cases = "a head|residual blocks|of 24 numbers|blocks of an EfficientNet-Lite"
    for check in ["memcheck", "racecheck"]:
        # Some tests are of what a GPU refuses: memory that it has not, a kernel that nobody wrote.
        words = [tool, "--tool", check, *(["--report-api-errors", "no"] if check == "memcheck" else [])]
        words += ["--error-exitcode", "9", Path(programs[0]).resolve(), "gpu::", "--test-threads", "1"]
        # Kernels that begin before the one before them has ended look like a race.
        environment = {"LOCKSTEP_CASES": cases, "LOCKSTEP_CUDA_AHEAD": "1" if check == "memcheck" else "0"}
        said = report.command(f"compute-sanitizer, {check}", words, 60, environment)
        if said is not None:
            report.add(f"compute-sanitizer, {check}", "clean", True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", required=True, help="the program")
    arguments.add_argument("--tests", action="append", default=[], help="a test program; may be repeated")
    arguments.add_argument("--encoder-speed", help="the example encoder_speed of lockstep-cuda")
    arguments.add_argument("--pictures", type=Path, help="a folder of JPEG files")
    arguments.add_argument("--decode-rate", help="the example decode_rate of lockstep-image")
    arguments.add_argument("--minutes", type=float, default=7)
    arguments.add_argument("--json", type=Path, help="where all of it goes")
    options = arguments.parse_args()
    report = Report(options.minutes, options.json)
    tests(report, options.tests)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(report, options.lockstep, Path(folder))
        hashes(report, program)
        speed(report, options, "fp32", "beside PyTorch")
        on_gpu = whole_run(report, options, "cuda", 90)
        from_jpegs(report, options, Path(folder))
        gangs(report, program)
        changes(report, program)
        killed(report, program, 1)
        killed(report, program, 2)
    sanitizer(report, options.tests)
    last(report, options.tests)
    speed(report, options, "tf32,bf16", "beside tf32")
    on_processor = on_gpu and whole_run(report, options, "cpu", 400)
    if on_processor:
        equal(report, "Fashion-MNIST, accurate, on both", [on_gpu, on_processor])
    if options.json:
        options.json.write_text(json.dumps(report.facts, indent=1))
    print(aligned([["part", "what came of it", "ok?"], *report.rows]))
    sys.exit(any(ok == "NO" for _, _, ok in report.rows))


if __name__ == "__main__":
    main()
