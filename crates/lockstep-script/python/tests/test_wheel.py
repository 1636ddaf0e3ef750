"""The wheel: what pip needs of it, and the platform that the program in it says."""

import base64
import csv
import hashlib
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import case

sys.path.insert(0, str(case.PYTHON))
import make_wheel  # noqa: E402


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # A small program stands for the large one; any that is linked with glibc will do.
        cls.wheel = make_wheel.build(Path("/bin/true"), Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_file_is_recorded_with_its_hash(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            record = next(name for name in names if name.endswith("dist-info/RECORD"))
            rows = list(csv.reader(archive.read(record).decode().splitlines()))
            self.assertEqual(sorted(row[0] for row in rows), sorted(names))
            for name, digest, size in rows:
                if name == record:
                    continue
                content = archive.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={found}", str(len(content))), name)
            for needed in ("lockstep/__init__.py", "lockstep/train/tensorflow/keras.py"):
                self.assertIn(needed, names)
            mode = archive.getinfo(next(name for name in names if name.endswith("scripts/lockstep"))).external_attr
            self.assertEqual(mode >> 16 & 0o777, 0o755)

    def test_the_tag_is_that_of_the_newest_glibc_which_the_program_needs(self):
        program = Path("/bin/true").read_bytes()
        newest = max(make_wheel.glibc_versions(program))
        self.assertIn(f"manylinux_{newest[0]}_{newest[1]}_", self.wheel.name)
        with zipfile.ZipFile(self.wheel) as archive:
            text = archive.read(next(name for name in archive.namelist() if name.endswith("/WHEEL"))).decode()
        self.assertIn("Tag: " + "-".join(self.wheel.stem.split("-")[2:]) + "\n", text)

    def test_the_same_input_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = make_wheel.build(Path("/bin/true"), Path(folder))
            self.assertEqual(again.read_bytes(), self.wheel.read_bytes())

    def test_pip_installs_the_command_and_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
            target = ["--root-user-action=ignore", "--prefix", folder, str(self.wheel)]
            done = subprocess.run([sys.executable, *install, *target], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            command = Path(folder, "bin/lockstep")
            self.assertEqual(subprocess.run([command], timeout=120).returncode, 0)
            self.assertTrue(list(Path(folder).glob("lib/python*/site-packages/lockstep/train/torch.py")))


if __name__ == "__main__":
    unittest.main()
