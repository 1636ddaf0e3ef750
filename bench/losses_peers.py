#!/usr/bin/env python3
"""What Ray Train and torchft lose when one of their two workers is killed again and again.

Both train an MLP 784-512-512-10 on two processes of this machine with one thread each: SGD 0.05 with momentum 0.9,
128 samples a worker and step. Each job first runs undisturbed, which gives its speed; then every few seconds one of
its workers gets a SIGKILL, by turns. The result says how far the job came, compared with its own undisturbed speed.

- Ray Train: TorchTrainer starts all workers again after a failure, from the newest checkpoint.
- torchft: two replica groups of one process each and a lighthouse. The one that is left goes on alone; the one that
  was killed is started again at once by this script, and takes the state from the other.

Needs a Python with `ray[train]`, torch, numpy and torchft (or torchft-nightly).
"""

import argparse
import ctypes
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

WORKERS, SHARE = 2, 128
SAMPLES, PIXELS, CLASSES = 60_000, 784, 10
# A time without a new step counts as standing still from here on; a step takes some milliseconds.
STILL = 0.2
# After the first steps, before the undisturbed window begins.
SETTLE = 3
START_LIMIT = 180

# A line of a worker: `step` counts from 1; `samples` is what the whole step trained on, 0 if it was given up.
Line = namedtuple("Line", "rank process step at samples")


# What both systems train.


def write_data(folder, images, labels):
    """The training set as two arrays, which all workers map, so that a start does not wait for the data."""
    import numpy as np

    if images:
        pixels = np.frombuffer(idx(images), np.uint8, offset=16).reshape(-1, PIXELS) / np.float32(255)
        classes = np.frombuffer(idx(labels), np.uint8, offset=8).astype(np.int64)
    else:
        dice = np.random.default_rng(7)
        pixels = dice.random((SAMPLES, PIXELS), dtype=np.float32)
        classes = dice.integers(0, CLASSES, SAMPLES)
    np.save(folder / "pixels.npy", pixels)
    np.save(folder / "classes.npy", classes)


def idx(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def load_data(folder):
    import numpy as np
    import torch

    # "c" maps the file as memory that may be written, which torch asks for; nothing writes it.
    return [torch.from_numpy(np.load(f"{folder}/{name}.npy", mmap_mode="c")) for name in ("pixels", "classes")]


def network():
    import torch
    from torch import nn

    torch.manual_seed(7)
    return nn.Sequential(
        nn.Linear(PIXELS, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)
    )


def sgd(model):
    import torch

    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


class Journal:
    """The steps of one worker process, in a file of its own; each line is written at once, as SIGKILL loses buffers."""

    def __init__(self, folder, rank):
        # The parent finds the process to kill by this name.
        path = f"{folder}/{rank}-{os.getpid()}-{time.monotonic_ns()}.steps"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, step, samples):
        os.write(self.file, b"%d %.4f %d\n" % (step, time.monotonic(), samples))


# Ray Train's side.


def ray_loop(config):
    """The training function of one Ray worker; the data of a step follow from its number, so none is left out."""
    import ray.train
    import torch
    from ray.train.torch import prepare_model

    torch.set_num_threads(1)
    rank = ray.train.get_context().get_world_rank()
    pixels, classes = load_data(config["folder"])
    model = prepare_model(network())
    optimizer, step = sgd(model), 0
    if newest := ray.train.get_checkpoint():
        with newest.as_directory() as folder:
            state = torch.load(f"{folder}/state.pt")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    journal = Journal(config["folder"], rank)
    steps_an_epoch, epoch = len(pixels) // (WORKERS * SHARE), None
    while True:
        if epoch != step // steps_an_epoch:
            epoch = step // steps_an_epoch
            order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(epoch))
        begin = (step % steps_an_epoch * WORKERS + rank) * SHARE
        batch = order[begin : begin + SHARE]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pixels[batch]), classes[batch]).backward()
        optimizer.step()
        step += 1
        journal.write(step, WORKERS * SHARE)
        if step % config["checkpoint_every"] == 0:
            ray_report(rank, step, model, optimizer)


def ray_report(rank, step, model, optimizer):
    """A checkpoint of rank 0; all ranks have to report."""
    import ray.train
    import torch

    if rank != 0:
        ray.train.report({"step": step})
        return
    with tempfile.TemporaryDirectory() as folder:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, f"{folder}/state.pt")
        ray.train.report({"step": step}, checkpoint=ray.train.Checkpoint.from_directory(folder))


def ray_driver(options):
    import ray
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    folder = str(options.folder)
    # The trainer's own actor may want a processor beside those of the workers.
    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, _temp_dir=f"{folder}/ray")
    trainer = TorchTrainer(
        ray_loop,
        train_loop_config={"folder": folder, "checkpoint_every": options.checkpoint_every},
        scaling_config=ScalingConfig(num_workers=WORKERS, resources_per_worker={"CPU": 1}),
        run_config=RunConfig(
            storage_path=f"{folder}/store",
            name="losses",
            failure_config=FailureConfig(max_failures=-1),
            checkpoint_config=CheckpointConfig(num_to_keep=2),
        ),
    )
    trainer.fit()


# torchft's side.


def lighthouse(options):
    from torchft.coordination import LighthouseServer

    server = LighthouseServer(
        bind="[::]:0",
        min_replicas=1,
        join_timeout_ms=options.join_timeout_ms,
        quorum_tick_ms=100,
        heartbeat_timeout_ms=options.heartbeat_timeout_ms,
    )
    part = options.folder / "lighthouse.part"
    part.write_text(server.address())
    part.rename(options.folder / "lighthouse")
    signal.pause()


def replica_manager(rank, address, state_dict, load_state_dict):
    """A manager as in torchft's own example; the store is what torchrun would have started."""
    from torch.distributed import TCPStore
    from torchft import Manager, ProcessGroupGloo

    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
        min_replica_size=1,
        state_dict=state_dict,
        load_state_dict=load_state_dict,
        replica_id=f"replica_{rank}",
        timeout=timedelta(seconds=30),
        store_addr="localhost",
        store_port=store.port,
        rank=0,
        world_size=1,
        lighthouse_addr=address,
        hostname="localhost",
    )
    # The store ends with the last reference to it.
    return manager, store


def replica(options):
    """One replica group of one process, until it is killed."""
    import torch
    from torchft import DistributedDataParallel, DistributedSampler, Optimizer

    torch.set_num_threads(1)
    pixels, classes = load_data(options.folder)
    plain = network()

    def state_dict():
        return {"model": plain.state_dict(), "optimizer": optimizer.state_dict()}

    def load_state_dict(state):
        plain.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    address = (options.folder / "lighthouse").read_text()
    manager, _store = replica_manager(options.rank, address, state_dict, load_state_dict)
    model = DistributedDataParallel(manager, plain)
    optimizer = Optimizer(manager, sgd(model))
    sampler = DistributedSampler(pixels, options.rank, WORKERS, group_rank=0, num_replicas=1, shuffle=True)
    journal, epoch = Journal(options.folder, options.rank), 0
    while True:
        sampler.set_epoch(epoch)
        for batch in torch.tensor(list(sampler)).split(SHARE):
            if len(batch) == SHARE:
                replica_step(manager, model, optimizer, pixels[batch], classes[batch], journal)
        epoch += 1


def replica_step(manager, model, optimizer, pixels, classes, journal):
    import torch

    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(pixels), classes).backward()
    # A replica that heals has the number of the others by now, and not yet one more.
    before = manager.current_step()
    optimizer.step()
    committed = manager.current_step() > before
    journal.write(before + 1, manager.num_participants() * SHARE if committed else 0)


# The processes of a job, from outside.


def become_subreaper():
    """Processes whose parent ended become children of this one, so that none is left behind: Ray starts daemons."""
    subreaper = 36
    ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0)


def descendants():
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, open_ends = [], [os.getpid()]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return found


def end_all():
    """Kills all processes below this one, until none is left."""
    limit = time.monotonic() + 20
    while (found := descendants()) and time.monotonic() < limit:
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.1)


def runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class System:
    """A job of one of the two systems, whose workers write their steps into `folder`."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "GLOO_SOCKET_IFNAME": "lo",
            # torchft writes several lines a step otherwise.
            "RUST_LOG": "warn",
            # Ray keeps a token in the home folder.
            "HOME": str(folder),
        }
        self.log = open(folder / "log", "a")

    def spawn(self, part, **more):
        chosen = {name: getattr(self.options, name) for name in self.settings}
        given = [f"--{name.replace('_', '-')}={value}" for name, value in {**chosen, **more}.items()]
        command = [sys.executable, Path(__file__).resolve(), f"--part={part}", f"--folder={self.folder}", *given]
        return subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log, cwd=self.folder)

    def newest(self, rank):
        """The newest process of this rank that has begun to train, if it still runs."""
        files = sorted(self.folder.glob(f"{rank}-*.steps"), key=lambda path: int(path.stem.split("-")[2]))
        process = int(files[-1].stem.split("-")[1]) if files else None
        return process if process and runs(process) else None

    def lines(self):
        found = []
        for path in sorted(self.folder.glob("*.steps")):
            rank, process, _ = map(int, path.stem.split("-"))
            # The last line may be cut off.
            for line in path.read_text().split("\n")[:-1]:
                step, at, samples = line.split()
                found.append(Line(rank, process, int(step), float(at), int(samples)))
        return sorted(found, key=lambda line: line.at)


class RayTrain(System):
    title, packages, settings = "Ray Train", ["ray", "torch"], ["checkpoint_every"]

    def start(self):
        self.driver = self.spawn("ray_driver")

    def watch(self):
        """Ray looks after its workers; only its driver has to be there."""
        if self.driver.poll() is not None:
            raise RuntimeError("Ray's driver ended")


class Torchft(System):
    title, packages = "torchft", ["torchft-nightly", "torchft", "torch"]
    settings = ["join_timeout_ms", "heartbeat_timeout_ms"]

    def start(self):
        self.house = self.spawn("lighthouse")
        while not (self.folder / "lighthouse").exists():
            if self.house.poll() is not None:
                raise RuntimeError("the lighthouse ended")
            time.sleep(0.05)
        self.replicas = [self.spawn("replica", rank=rank) for rank in range(WORKERS)]

    def watch(self):
        """Starts again what was killed."""
        for rank, process in enumerate(self.replicas):
            if process.poll() is not None:
                self.replicas[rank] = self.spawn("replica", rank=rank)


# The script starts itself as these processes of a job.
PARTS = {"ray_driver": ray_driver, "lighthouse": lighthouse, "replica": replica}
SYSTEMS = {"ray": RayTrain, "torchft": Torchft}


# What happens to a job, and what it comes to.


def wait(system, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        system.watch()
        time.sleep(0.02)


def wait_for_start(system):
    """Until all ranks train together."""
    limit = time.monotonic() + START_LIMIT
    while time.monotonic() < limit:
        wait(system, 0.2)
        together = {line.rank for line in system.lines() if line.samples == WORKERS * SHARE}
        if len(together) == WORKERS:
            return
    raise RuntimeError(f"{system.title} did not begin to train")


def disturb(system, options):
    """Kills a worker by turns; the times of the kills, and how many found no worker to kill."""
    begin, kills, missed = time.monotonic(), [], 0
    for number in range(1, 10**9):
        if number * options.every >= options.seconds:
            break
        wait(system, begin + number * options.every - time.monotonic())
        victim = system.newest((len(kills) + missed + 1) % WORKERS)
        if victim is None:
            missed += 1
            continue
        os.kill(victim, signal.SIGKILL)
        kills.append(time.monotonic())
    wait(system, begin + options.seconds - time.monotonic())
    return begin, kills, missed


def furthest(lines, before):
    return max((line.step for line in lines if line.samples and line.at <= before), default=0)


def progress(lines):
    """The times at which the job got further than ever before."""
    times, far = [], 0
    for line in lines:
        if line.samples and line.step > far:
            far = line.step
            times.append(line.at)
    return times


def stalls(times, kills, end):
    """For each kill, the seconds from it to the next one (or the end) that lie in long gaps between these times."""
    found = []
    for kill, until in zip(kills, [*kills[1:], end]):
        moments = [kill, *(at for at in times if kill < at < until), until]
        gaps = [after - before for before, after in zip(moments, moments[1:])]
        found.append(sum(gap for gap in gaps if gap > STILL))
    return found


def repeated(lines):
    """Steps that were finished again, after they had been finished once by the same rank."""
    done = Counter((line.rank, line.step) for line in lines if line.samples)
    most = {}
    for (_, step), times in done.items():
        most[step] = max(times, most.get(step, 0))
    return sum(times - 1 for times in most.values())


def figures(system, warm_begin, window, kills, missed):
    begin, end = window
    lines = [line for line in system.lines() if line.at <= end]
    first = furthest(lines, begin)
    speed = (first - furthest(lines, warm_begin)) / (begin - warm_begin)
    counted = furthest(lines, end) - first
    inside = [line for line in lines if line.at > begin]
    samples = {}
    for line in inside:
        # What was done before and is done again is no gain.
        if line.step > first:
            samples[line.step] = max(samples.get(line.step, 0), line.samples)
    trained = [count for count in samples.values() if count]
    still = stalls(progress(lines), kills, end)
    # Ray repeats steps after a failure: these are no progress, but the workers are there again.
    idle = stalls([line.at for line in lines if line.samples], kills, end)
    # A step of fewer workers is a faster one, so that goodput by steps may be above 1; by samples it counts its share.
    return {
        "undisturbed_steps_per_s": round(speed, 2),
        "wall_s": round(end - begin, 2),
        "kills": len(kills),
        "kills_that_found_no_worker": missed,
        "steps_counted": counted,
        "steps_repeated": repeated(lines),
        "steps_with_fewer_workers": sum(count < WORKERS * SHARE for count in trained),
        "samples_dropped": sum(WORKERS * SHARE - count for count in trained),
        "batches_given_up": sum(line.samples == 0 for line in inside),
        "still_s_per_kill_median": round(median(still), 2) if still else None,
        "still_s_per_kill": [round(seconds, 2) for seconds in still],
        "idle_s_per_kill_median": round(median(idle), 2) if idle else None,
        "idle_s_per_kill": [round(seconds, 2) for seconds in idle],
        "goodput": round(counted / speed / (end - begin), 4),
        "goodput_by_samples": round(sum(trained) / (WORKERS * SHARE) / speed / (end - begin), 4),
        "worker_processes": len({line.process for line in lines}),
        "starts_from_nothing": sum(line.step == 1 and line.at > begin for line in lines),
    }


def versions(packages):
    found = {"python": sys.version.split()[0]}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            pass
    return found


def measured(system, options):
    """The figures of one job, from its start to the end of the window with kills."""
    write_data(system.folder, options.images, options.labels)
    system.start()
    wait_for_start(system)
    wait(system, SETTLE)
    warm_begin = time.monotonic()
    wait(system, options.warm)
    begin, kills, missed = disturb(system, options)
    return figures(system, warm_begin, (begin, time.monotonic()), kills, missed)


def keep(folder, where):
    """What the processes wrote, without the data, the checkpoints and Ray's own files."""
    left_out = shutil.ignore_patterns("*.npy", "ray", ".ray", "store")
    shutil.copytree(folder, where, ignore=left_out, dirs_exist_ok=True)


def measure(name, options):
    folder = Path(tempfile.mkdtemp(prefix="losses-"))
    load = round(os.getloadavg()[0], 2)
    system = SYSTEMS[name](folder, options)
    try:
        found = measured(system, options)
    except BaseException:
        print((folder / "log").read_text()[-5000:], file=sys.stderr)
        raise
    finally:
        end_all()
        if options.logs:
            keep(folder, options.logs / name)
        shutil.rmtree(folder, ignore_errors=True)
    settings = {setting: getattr(options, setting) for setting in system.settings}
    given = {"every_s": options.every, "data": "files" if options.images else "synthetic", **settings}
    about = {"versions": versions(system.packages), "date": time.strftime("%Y-%m-%d"), "load_before": load}
    return {"system": system.title, **found, "settings": given, **about}


def table(results):
    rows = {
        "steps/s undisturbed": "undisturbed_steps_per_s",
        "kills": "kills",
        "kills that found no worker": "kills_that_found_no_worker",
        "steps that counted": "steps_counted",
        "steps repeated": "steps_repeated",
        "samples dropped": "samples_dropped",
        "s still per kill (median)": "still_s_per_kill_median",
        "goodput": "goodput",
        "goodput by samples": "goodput_by_samples",
    }
    lines = [f"| | {' | '.join(rows)} |", f"|{' --- |' * (len(rows) + 1)}"]
    for found in results:
        lines.append(f"| {found['system']} | {' | '.join(str(found[key]) for key in rows.values())} |")
    return "\n".join(lines)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", choices=SYSTEMS)
    arguments.add_argument("--warm", type=float, default=30, help="seconds without kills (30)")
    arguments.add_argument("--seconds", type=float, default=120, help="seconds with kills (120)")
    arguments.add_argument("--every", type=float, default=10, help="seconds between kills (10)")
    arguments.add_argument("--checkpoint-every", type=int, default=500, help="Ray's steps between checkpoints (500)")
    arguments.add_argument("--join-timeout-ms", type=int, default=10_000, help="torchft: as in its README (10000)")
    arguments.add_argument("--heartbeat-timeout-ms", type=int, default=5_000, help="torchft: its default (5000)")
    arguments.add_argument("--images", type=Path, help="an IDX file, perhaps gzipped, instead of random numbers")
    arguments.add_argument("--labels", type=Path)
    arguments.add_argument("--logs", type=Path, help="keep the steps and the output of the processes here")
    arguments.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.part:
        return PARTS[options.part](options)
    if bool(options.images) != bool(options.labels):
        sys.exit("--images and --labels go together")
    become_subreaper()
    # So that `finally` is reached when this script is to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    results = []
    for name in [options.only] if options.only else SYSTEMS:
        results.append(measure(name, options))
        print(json.dumps(results[-1]), flush=True)
    print(f"\n{table(results)}")


if __name__ == "__main__":
    main()
