"""JPEG files to normalised numbers: decode, resize, crop, normalise; beside Pillow and Ray Data."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bars import at_least

PACKAGES = ["ray[data]==2.60.0", "pillow==13.0.0", "numpy==2.4.6"]
COUNT = 500


def python_with_ray(cache):
    """The Python that has Ray Data and Pillow; installs them if need be."""
    chosen = os.environ.get("LOCKSTEP_DATA_PYTHON")
    if chosen:
        return chosen
    folder = cache / "data-venv"
    python, done = folder / "bin/python", folder / "installed"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        print(f"installing {' '.join(PACKAGES)} into {folder} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        done.write_text(" ".join(PACKAGES))
    return str(python)


def last_line(command):
    """The JSON in the last line of what a command prints."""
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


class Pictures:
    title = "500 x 375 JPEG files to 224 x 224 normalised numbers"

    def __init__(self, place, options):
        self.place, self.seconds, self.versions = place, options.seconds, {}
        self.example = place.target / "release/examples/decode_rate"
        if not self.example.exists():
            sys.exit(f"{self.example} is missing: run `make bench-data`, which builds it")
        self.folder = place.cache / f"pictures-500x375-{COUNT}"
        made = self.folder.with_suffix(".made")
        if not made.exists():
            print(f"drawing {COUNT} pictures into {self.folder} (once)", file=sys.stderr)
            maker = place.root / "bench/make_pictures.py"
            subprocess.run([place.python, maker, self.folder, "--count", str(COUNT)], check=True)
            made.touch()

    def lockstep(self, processes):
        command = [self.example, self.folder, "--processes", processes, "--seconds", self.seconds]
        return last_line(command)["images_per_s"]

    def script(self, name):
        """A script beside this file, in the environment that has what it needs."""
        path = Path(__file__).with_name(name)
        figures = last_line([self.place.python, path, self.folder, "--seconds", self.seconds])
        self.versions |= figures["versions"]
        return figures["images_per_s"]

    def round(self):
        return {
            "Lockstep, one thread": self.lockstep(1),
            "Pillow and numpy, one thread": self.script("pillow_rate.py"),
            "Lockstep, two workers": self.lockstep(2),
            "Ray Data, two cores": self.script("ray_rate.py"),
        }

    @staticmethod
    def bars(speed):
        one, two = speed["Lockstep, one thread"], speed["Lockstep, two workers"]
        return [
            at_least("one thread / Pillow", one / speed["Pillow and numpy, one thread"], 3),
            at_least("two workers / one", two / one, 1.8),
            at_least("two workers / Ray Data on two cores", two / speed["Ray Data, two cores"], 5),
        ]
