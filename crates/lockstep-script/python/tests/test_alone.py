"""A script that was started without a gang."""

import contextlib
import io
import unittest
from pathlib import Path

import case

import lockstep
from lockstep import train


class Alone(case.AloneCase):
    def test_a_process_alone_is_rank_0_of_1(self):
        context = train.get_context()
        self.assertEqual((context.get_world_rank(), context.get_world_size()), (0, 1))
        self.assertEqual((context.get_local_rank(), context.get_local_world_size(), context.get_node_rank()), (0, 1, 0))
        lockstep.collective.barrier()
        self.assertEqual(lockstep.collective.broadcast_from_rank_zero({"a": (1, 2)}), {"a": (1, 2)})
        lockstep.init(address="auto")
        lockstep.shutdown()

    def test_a_report_is_one_line_and_its_checkpoint_comes_back(self):
        folder = self.folder / "mine"
        folder.mkdir()
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            for epoch in range(5):
                (folder / "weights").write_text(str(epoch))
                train.report({"loss": 1 / (epoch + 1)}, checkpoint=train.Checkpoint.from_directory(folder))
        self.assertEqual(len(said.getvalue().splitlines()), 5)
        self.assertIn("report 5: loss 0.2", said.getvalue())
        newest = train.get_checkpoint()
        self.assertEqual(Path(newest.path, "weights").read_text(), "4")
        self.assertEqual(len(list(Path(newest.path).parent.iterdir())), 3)

    def test_data_needs_the_program_and_the_error_says_how(self):
        with self.assertRaisesRegex(lockstep.NotInGang, r"lockstep run job.toml[^$]*data.train = \"fashion"):
            train.get_dataset_shard("train")

    def test_a_loop_with_no_workers_runs_here(self):
        trainer = train.DataParallelTrainer(
            lambda config: train.report({"lr": config["lr"]}),
            train_loop_config={"lr": 0.5},
            scaling_config=train.ScalingConfig(num_workers=0),
        )
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(trainer.fit().metrics, {"lr": 0.5})


if __name__ == "__main__":
    unittest.main()
