"""Tables in and out where no library of tables is installed."""

import sys
import unittest
from pathlib import Path
from unittest import mock

import case

import lockstep
from lockstep import frames, inference, tuning


class Bare(case.AloneCase):
    def setUp(self):
        super().setUp()
        none = mock.patch.object(frames, "_has", lambda _: False)
        none.start()
        self.addCleanup(none.stop)

    def test_columns_go_as_csv_and_come_back_as_columns(self):
        with frames.Files() as files:
            kind, path = files.write({"a": [1.5, 2.0], "words, too": ['say "x"', ""]})
            self.assertEqual(kind, "csv")
            self.assertEqual(Path(path).read_text(), 'a,"words, too"\n1.5,"say ""x"""\n2.0,\n')
            folder = Path(path).parent
            self.assertEqual(folder.stat().st_mode & 0o077, 0)
        self.assertFalse(folder.exists())

    def test_lines_have_the_columns_of_a_parquet_file(self):
        Path("said.jsonl").write_text(
            '{"label":{"b":1.5},"predicted":{"b":2.5},"row":0}\n'
            '{"predicted":"x","probabilities":{"x":0.75,"y":0.25},"row":1}\n'
        )
        self.assertEqual(frames.ending(None), ".jsonl")
        rows = frames.read("said.jsonl", None)
        self.assertEqual(rows[0], {"b": 1.5, "predicted_b": 2.5, "row": 0})
        self.assertEqual(rows[1], {"predicted": "x", "probability_x": 0.75, "probability_y": 0.25, "row": 1})
        self.assertEqual(frames.read("said.jsonl", frames.COLUMNS)["predicted_b"], [2.5, None])

    def test_the_same_content_has_the_same_path_but_never_that_of_another_process(self):
        with frames.Files() as first, frames.Files() as second:
            one, other = first.write({"a": [1, 2]})[1], second.write({"a": [1, 2]})[1]
            self.assertNotEqual(one, other)
        with frames.Files() as again:
            self.assertEqual(again.write({"a": [1, 2]})[1], one)
        self.assertFalse(Path(one).exists() or Path(other).exists())

    def test_an_evaluation_is_lists_of_dicts(self):
        raw = {"loss": 0.5, "macro": {"f1": 0.75}, "classes": [{"class": "x", "f1": 1.0}, {"class": "y", "f1": 0.5}]}
        found = inference.evaluation_of({**raw, "confusion": [[3, 0], [1, 2]], "mistakes": [{"row": 7}]})
        self.assertEqual(found.metrics, {"loss": 0.5, "macro.f1": 0.75})
        self.assertEqual(found.confusion, [{"x": 3, "y": 0}, {"x": 1, "y": 2}])
        self.assertEqual((found.classes, found.mistakes), (raw["classes"], [{"row": 7}]))

    def test_the_best_trial_is_one_that_was_not_stopped_early(self):
        def trial(number, lr, *reached, failed=None):
            reached = [{"epochs": epochs, "value": value} for epochs, value in reached]
            return {"number": number, "values": [["lr", lr]], "reached": reached, "failed": failed}

        space = {"dimensions": [{"key": "lr"}]}
        trials = [trial(0, "0.1", (1, 0.1)), trial(1, "0.2", (1, 0.9), (3, 0.4)), trial(2, "0.3", failed="why")]
        rules = {"metric": "loss", "maximise": False, "space": space}
        found = tuning.tuning_of({"name": "tune-x", "rules": rules, "trials": trials})
        self.assertEqual(found.best, {"lr": 0.2})
        self.assertEqual(found.trials[2], {"number": 2, "lr": 0.3, "epochs": None, "loss": None, "failed": "why"})


class Missing(unittest.TestCase):
    def test_an_estimator_without_scikit_learn_says_what_to_install(self):
        hidden = {name: None for name in ("sklearn", "sklearn.base")}
        before = sys.modules.pop("lockstep.estimators", None)
        with mock.patch.dict(sys.modules, hidden), self.assertRaisesRegex(lockstep.LockstepError, "pip install"):
            lockstep.LockstepClassifier
        if before is not None:
            sys.modules["lockstep.estimators"] = before
        with self.assertRaises(AttributeError):
            lockstep.no_such_name

    def test_a_library_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(lockstep.LockstepError, "pip install surely_not_there"):
            frames._import("surely_not_there.parquet")


if __name__ == "__main__":
    unittest.main()
