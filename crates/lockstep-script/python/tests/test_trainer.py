"""`trainer.fit()` outside of a gang: the script is run again, once in every process of one."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import case

SCRIPT = '''
import sys
import lockstep
from lockstep import train
from lockstep.train import RunConfig, ScalingConfig

def loop(config):
    context = train.get_context()
    print("loop on", context.get_world_rank(), "of", context.get_world_size())
    if sys.argv[1:] == ["fail"] and context.get_world_rank() == 1:
        raise ValueError("no")
    train.report({"value": config["value"] + context.get_world_rank()})

def fit(value):
    trainer = train.DataParallelTrainer(
        loop,
        train_loop_config={"value": value},
        scaling_config=ScalingConfig(num_workers=2, use_gpu=True, placement_strategy="SPREAD"),
        run_config=RunConfig(name="mine", storage_path="store", failure_config=train.FailureConfig(max_failures=1)),
        datasets={"train": "fashion-mnist:train"},
    )
    return trainer.fit()

lockstep.init()
first = fit(1)
second = fit(first.metrics["value"] + 10)
print("results", first.metrics, second.metrics, len(second.reports))
'''


class Fit(case.AloneCase):
    def script(self, *arguments):
        Path("script.py").write_text(SCRIPT)
        variables = {**os.environ, "PYTHONPATH": str(case.PYTHON), "LOCKSTEP_BINARY": self.stand_in()}
        command = [sys.executable, "script.py", *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)

    def test_the_loop_runs_on_every_rank_as_told_and_the_rest_of_the_script_once(self):
        done = self.script()
        self.assertEqual(done.returncode, 0, done.stderr)
        loops = ["[0] loop on 0 of 2", "[1] loop on 1 of 2"]
        self.assertEqual(done.stdout.splitlines(), [*loops, *loops, "results {'value': 1} {'value': 11} 1"])
        self.assertIn("report 1: value 11", done.stderr)
        job = Path("launched.toml").read_text()
        for line in (
            'name = "mine"',
            "workers = 2",
            'store = "store"',
            "max_restarts = 1",
            'train = "fashion-mnist:train"',
            "gpus = 1",
            'place = "spread"',
        ):
            self.assertIn(f"\n{line}\n", f"\n{job}")

    def test_a_failure_is_raised_with_the_words_of_the_gang(self):
        done = self.script("fail")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("RunFailed: rank 1 ended with 1", done.stderr)

    def test_a_console_is_told_to_write_a_file(self):
        code = "from lockstep import train; train.DataParallelTrainer(print).fit()"
        variables = {**os.environ, "PYTHONPATH": str(case.PYTHON), "LOCKSTEP_BINARY": "/bin/true"}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=300)
        self.assertIn("write the code into a file", done.stderr)


if __name__ == "__main__":
    unittest.main()
