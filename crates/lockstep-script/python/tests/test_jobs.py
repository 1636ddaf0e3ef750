"""Jobs from Python: the file that is written, the program that is started, what comes back."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import case

import lockstep
from lockstep import curve, display, program, toml

JOB = {
    "name": "small",
    "data": {"train": "fashion-mnist:train", "normalise": {"mean": [0.5], "std": [0.25]}},
    "model": {"kind": "mlp", "hidden": [512, 512], "weights": None},
    "train": {"epochs": 2, "batch": 64, "optimizer": {"kind": "sgd", "lr": 1e-3, "nesterov": False}},
}


class Toml(unittest.TestCase):
    def test_what_is_written_is_read_back_the_same(self):
        text = toml.document({**JOB, "odd key": 'a "b"\n\\ \x7f é', "numbers": [1, 2.5, -1e-9, True], "empty": {}})
        if sys.version_info >= (3, 11):
            import tomllib

            found = tomllib.loads(text)
            self.assertEqual(found["train"], JOB["train"])
            self.assertEqual(found["data"], JOB["data"])
            self.assertEqual(found["model"], {"kind": "mlp", "hidden": [512, 512]})
            self.assertEqual(found["odd key"], 'a "b"\n\\ \x7f é')
            self.assertEqual(found["numbers"], [1, 2.5, -1e-9, True])
        self.assertTrue(text.startswith('name = "small"\n'))

    def test_what_toml_lacks_is_refused(self):
        with self.assertRaisesRegex(TypeError, "TOML has no object"):
            toml.value(object())


class Runs(case.AloneCase):
    def setUp(self):
        super().setUp()
        os.environ["LOCKSTEP_BINARY"] = self.stand_in()
        self.addCleanup(os.environ.pop, "LOCKSTEP_BINARY")

    def test_a_job_runs_and_says_what_it_came_to(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            result = lockstep.Job(JOB).run(workers=2, epochs=3, **{"train.batch": 32, "model.hidden": [8]})
        self.assertEqual(result.metrics, {"loss": 0.5, "accuracy": 0.7})
        self.assertEqual((result.run_dir, result.weights_sha256, result.best_epoch), ("/runs/job-1", "abc", 2))
        self.assertEqual([event["event"] for event in result.events], ["started", "epoch", "epoch", "result"])
        self.assertEqual(result.epochs[1]["test.accuracy"], 0.7)
        self.assertEqual(len(result.curves), 2)
        self.assertIn("epoch 2/2: train.loss 1, test.loss 0.5, test.accuracy 0.7", said.getvalue())
        seen = json.loads(Path("seen.json").read_text())
        wanted = ["--json", "--workers", "2", "--epochs", "3"]
        wanted += ["--set", "train.batch=32", "--set", "model.hidden=[8]"]
        self.assertEqual(seen["arguments"][1:], wanted)
        self.assertEqual(list(Path(".").glob(".lockstep-job-*")), [])

    def test_without_a_test_set_the_metrics_are_those_of_validation_and_say_so(self):
        result = lockstep.Job({**JOB, "data": {**JOB["data"], "val_split": 0.2}}).run(quiet=True)
        self.assertEqual(result.metrics, {"val.loss": 0.5, "val.accuracy": 0.7})
        self.assertIsNone(result.result["metrics"])

    def test_a_job_file_runs_quietly(self):
        lockstep.Job(JOB).write("job.toml")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            lockstep.run("job.toml", quiet=True, resume=True)
        self.assertEqual(said.getvalue(), "")
        self.assertIn("--resume", json.loads(Path("seen.json").read_text())["arguments"])

    def test_a_run_that_fails_raises_its_own_words(self):
        with self.assertRaisesRegex(lockstep.RunFailed, "worker 1 was killed") as caught:
            lockstep.Job(name="failing").run(quiet=True)
        self.assertEqual(caught.exception.result.run_dir, "/runs/job-1")
        with self.assertRaisesRegex(lockstep.RunFailed, "unknown key broken"):
            lockstep.Job(name="broken").run(quiet=True)

    def test_an_interrupt_stops_the_run_in_good_order(self):
        # What a shell starts in the background ignores it, and so would these tests.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def interrupt():
            deadline = time.monotonic() + 120
            while not Path("waiting").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            lockstep.Job(name="forever").run(quiet=True)
        self.assertEqual(Path("stopped").read_text(), "in good order")

    def test_a_missing_program_is_said_with_what_to_do(self):
        os.environ["LOCKSTEP_BINARY"] = "/no/such/program"
        with self.assertRaisesRegex(lockstep.ProgramNotFound, "LOCKSTEP_BINARY is /no/such/program"):
            program.find()


class Lines(unittest.TestCase):
    def test_trees_have_rounds_of_which_every_tenth_has_a_line_and_the_best(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            shown = display.Lines()
            config = [["model.rounds", "25"]]
            shown.event({"event": "started", "run": "a", "workers": 1, "epochs": 25, "run_dir": "/a", "config": config})
            for number in range(1, 26):
                shown.event({"event": "epoch", "epoch": number, "train": {"loss": 1 / number}, "best": number <= 23})
            shown.event({"event": "result", "status": "succeeded"})
        lines = said.getvalue().splitlines()
        self.assertEqual(lines[0], "a: 1 worker, /a")
        self.assertEqual([line.split(":")[0] for line in lines[1:]], ["round 10/25", "round 20/25", "round 23/25"])


class Notebooks(unittest.TestCase):
    def test_a_notebook_draws_the_curve_in_place(self):
        drawn = []
        handle = types.SimpleNamespace(update=drawn.append)
        fake = types.ModuleType("IPython.display")
        fake.HTML, fake.display = str, lambda *_, **__: handle
        package = types.ModuleType("IPython")
        package.display = fake
        package.get_ipython = lambda: types.SimpleNamespace(kernel=True)
        with mock.patch.dict(sys.modules, {"IPython": package, "IPython.display": fake}):
            shown = display.display_for(quiet=False)
        self.assertIsInstance(shown, display.Notebook)
        shown.event({"event": "started", "run": "a<b", "workers": 2, "epochs": 2})
        for epoch in (1, 2):
            shown.event({"event": "epoch", "epoch": epoch, "train": {"loss": 1 / epoch}, "test": {"accuracy": 0.5}})
        self.assertIn("a&lt;b", drawn[-1])
        self.assertEqual(drawn[-1].count("<svg"), 2)

    def test_a_curve_passes_over_what_is_no_number(self):
        rows = [{"loss": 1.0}, {"loss": float("nan")}, {"loss": 0.5}]
        self.assertEqual(curve.curve_svg(rows).count("<polyline"), 1)
        self.assertEqual(curve.curve_svg(rows[:1]), "")


class Versions(unittest.TestCase):
    def test_the_package_has_the_version_of_the_program(self):
        manifest = (case.ROOT / "Cargo.toml").read_text()
        self.assertIn(f'\nversion = "{lockstep.__version__}"\n', manifest)

    def test_importing_brings_no_framework(self):
        names = ("numpy", "torch", "tensorflow", "pandas", "polars", "pyarrow", "sklearn", "IPython")
        code = f"import lockstep, sys; print([name for name in {names} if name in sys.modules])"
        variables = {**os.environ, "PYTHONPATH": str(case.PYTHON)}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
