"""PyTorch's side of the benchmark: bench/pytorch_steps.py in processes of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from memory import peak_pss

PACKAGES = ["torch==2.15.0", "numpy==2.4.6"]


def python_with_pytorch(cache):
    """The Python that has PyTorch; installs it if need be."""
    chosen = os.environ.get("LOCKSTEP_BENCH_PYTHON")
    if chosen:
        return chosen
    folder = cache / "bench-venv"
    python, done = folder / "bin/python", folder / "installed"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        print(f"installing {' '.join(PACKAGES)} into {folder} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        done.write_text(" ".join(PACKAGES))
    return str(python)


class PyTorch:
    """A network and its data in PyTorch."""

    def __init__(self, python, network, data, cache, compiled=False):
        self.python, self.network, self.data, self.compiled = python, network, data, compiled
        # What torch.compile made is kept, so that only the first run waits for it.
        self.environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache / "bench-inductor")}
        self.versions, self.settings = {}, {}

    def command(self, batch, workers, steps, modes, precision="f32"):
        command = [self.python, Path(__file__).with_name("pytorch_steps.py"), self.network, self.data]
        command += ["--batch", batch, "--workers", workers, "--steps", steps, "--precision", precision]
        command += ["--modes", *modes]
        return list(map(str, command))

    def steps_per_s(self, batch, workers, steps, precision="f32"):
        """Steps a second in windows, at the fastest settings, which are remembered."""
        modes = ["eager", "compile"] if self.compiled and workers == 1 else ["eager"]
        command = self.command(batch, workers, steps, modes, precision)
        done = subprocess.run(
            command, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        figures = json.loads(done.stdout.splitlines()[-1])
        self.versions = figures["versions"]
        kind = "one process" if workers == 1 else "DDP"
        self.settings[f"{kind}, batch {batch}"] = figures["settings"]
        return figures["steps_per_s"]

    def peak_pss(self, batch, steps):
        """The most memory of a process in eager mode, in MiB."""
        command = self.command(batch, 1, steps, ["eager"])
        run = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        peak = peak_pss(run)
        if run.wait() != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
        return peak
