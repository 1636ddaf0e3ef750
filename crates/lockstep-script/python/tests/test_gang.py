"""A rank of a gang: who it is, what it reports, what the ranks tell each other."""

import json
import os
import tempfile
import threading
import unittest
from pathlib import Path

import case
import numpy

import lockstep
from lockstep import session, train


class Reports(case.GangCase):
    def test_a_rank_knows_its_place_from_the_worker(self):
        context = train.get_context()
        self.assertEqual((context.get_world_rank(), context.get_world_size()), (0, 1))
        self.assertEqual((context.get_experiment_name(), context.get_trial_name()), ("job", "job-1"))
        self.assertEqual(context.get_seed(), 7)
        self.assertTrue(lockstep.in_gang())

    def test_numbers_of_numpy_and_those_that_json_lacks_arrive(self):
        lockstep.report({"loss": numpy.float32(0.5), "n": numpy.int64(3), "bad": float("nan"), "top": {"k": (1, 2)}})
        metrics = self.gang.reports[0]["metrics"]
        self.assertEqual(metrics, {"loss": 0.5, "n": 3, "bad": "NaN", "top": {"k": [1, 2]}})

    def test_a_metric_that_is_no_value_is_refused_by_its_name(self):
        with self.assertRaisesRegex(TypeError, "the metric model is a object"):
            lockstep.report({"model": object()})
        lockstep.report({"loss": 1.0})  # the conversation is still whole
        self.assertEqual(len(self.gang.reports), 1)

    def test_a_checkpoint_comes_back_after_its_folder_is_gone(self):
        self.assertIsNone(train.get_checkpoint())
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "model.pt").write_text("weights")
            checkpoint = train.Checkpoint.from_directory(folder)
            checkpoint.update_metadata({"epoch": 3})
            train.report({"loss": 1}, checkpoint=checkpoint, checkpoint_dir_name="x", checkpoint_upload_mode=None)
        newest = train.get_checkpoint()
        with newest.as_directory() as folder:
            self.assertEqual(Path(folder, "model.pt").read_text(), "weights")
        self.assertEqual(newest.get_metadata(), {"epoch": 3})
        copy = newest.to_directory(os.path.join(tempfile.mkdtemp(), "copy"))
        self.assertEqual(Path(copy, "model.pt").read_text(), "weights")

    def test_a_checkpoint_without_a_folder_is_refused_before_anybody_waits(self):
        with self.assertRaisesRegex(lockstep.LockstepError, "not there"):
            lockstep.report({}, checkpoint=train.Checkpoint("/no/such/folder"))
        self.assertEqual(self.gang.reports, [])

    def test_a_timeout_names_the_ranks_that_did_not_come(self):
        lockstep.get_context().get_world_size()
        self.gang.answer_with = {"error": "report 2 waited 5 s", "kind": "timeout", "missing": [1, 3]}
        with self.assertRaises(lockstep.GangTimeout) as caught:
            lockstep.report({"loss": 1.0})
        self.assertEqual(caught.exception.missing, [1, 3])
        self.assertIn("1, 3", str(caught.exception))
        self.assertIsInstance(caught.exception, TimeoutError)

    def test_a_worker_that_goes_ends_the_wait_in_plain_words(self):
        lockstep.get_context().get_world_size()
        self.gang.hang_up = True
        with self.assertRaisesRegex(lockstep.GangEnded, "gang is being ended"):
            lockstep.collective.barrier()

    def test_a_forked_child_has_a_conversation_of_its_own(self):
        lockstep.report({"who": "parent"})
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                lockstep.report({"who": "child"})
                os.write(write, b"ok")
            finally:
                os._exit(0)
        os.close(write)
        self.assertEqual(os.read(read, 2), b"ok")
        os.waitpid(child, 0)
        os.close(read)
        lockstep.report({"who": "parent again"})
        self.assertEqual([entry["metrics"]["who"] for entry in self.gang.reports][-1], "parent again")


class Two(case.GangCase):
    size = 2

    def as_ranks(self, what):
        """Runs a function of a session as both ranks at once, and returns what each came to."""
        found = [None, None]

        def one(rank):
            one = session.GangSession(self.gang.path(rank))
            found[rank] = what(one)
            one.close()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return found

    def test_a_barrier_lets_nobody_through_before_all_are_there(self):
        self.as_ranks(lambda one: [one.share("barrier", None, None), one.share("barrier", None, None)])
        self.assertEqual(sorted(self.gang.shared), ["barrier-1", "barrier-2"])

    def test_what_rank_zero_says_all_have_with_its_types(self):
        from lockstep.collective import _pack, _unpack

        for data in ({"a": [1, 2.5, None, True]}, (1, 2), {1: "x"}, 2**70, float("inf")):
            packed = json.loads(json.dumps(_pack(data)))

            def share(one, packed=packed):
                return one.share("broadcast", packed if one.facts.rank == 0 else None, None)

            both = self.as_ranks(share)
            self.assertEqual([_unpack(values[0]) for values in both], [data, data])
            self.assertIs(type(_unpack(both[1][0])), type(data))
            self.gang.shared.clear()


if __name__ == "__main__":
    unittest.main()
