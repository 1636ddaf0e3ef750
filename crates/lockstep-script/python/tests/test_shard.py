"""Batches: whole, without copies, and valid as long as somebody holds them."""

import gc
import unittest

import case
import numpy

import lockstep
from lockstep import data, session, train


class Shards(case.GangCase):
    def tearDown(self):
        data.give(None)

    def test_an_epoch_has_every_sample_once_and_the_last_batch_is_short(self):
        shard = train.get_dataset_shard("train")
        self.assertEqual((shard.count(), shard.columns, shard.classes), (10, ["image", "label"], ["a", "b"]))
        for _ in range(2):
            sizes, labels = [], []
            for batch in shard.iter_batches(batch_size=4):
                self.assertEqual(batch["image"].shape[1:], (2, 3))
                numpy.testing.assert_array_equal(batch["image"], self.gang.image[batch["label"]])
                sizes.append(len(batch["label"]))
                labels += batch["label"].tolist()
            self.assertEqual((sizes, labels), ([4, 4, 2], list(range(10))))
        self.assertEqual(self.gang.closed, [1, 2])

    def test_the_last_short_batch_can_be_left_out(self):
        batches = list(train.get_dataset_shard("train").iter_batches(batch_size=4, drop_last=True))
        self.assertEqual([len(batch["label"]) for batch in batches], [4, 4])

    def test_batches_that_are_kept_stay_as_they_are(self):
        kept = list(train.get_dataset_shard("train").iter_batches(batch_size=1))
        gc.collect()
        self.assertEqual([int(batch["label"][0]) for batch in kept], list(range(10)))
        self.assertEqual(self.gang.most_slots, 10)
        # Even a view of a view, after all else is gone.
        row = kept[3]["image"][0, 1][1:]
        del kept
        gc.collect()
        numpy.testing.assert_array_equal(row, self.gang.image[3, 1, 1:])

    def test_batches_that_are_let_go_need_no_further_slots(self):
        seen = [len(batch["label"]) for batch in train.get_dataset_shard("train").iter_batches(batch_size=1)]
        self.assertEqual(len(seen), 10)
        self.assertEqual(self.gang.most_slots, 0)

    def test_batches_look_into_the_workers_memory_and_may_be_changed(self):
        for batch in train.get_dataset_shard("train").iter_batches(batch_size=5):
            self.assertFalse(batch["image"].flags.owndata)
            batch["image"] /= 255
            break

    def test_breaking_off_ends_the_iterator(self):
        iterator = iter(train.get_dataset_shard("train").iter_batches(batch_size=2))
        first = next(iterator)
        iterator.close()
        self.assertEqual(self.gang.closed, [1])
        self.assertEqual(first["label"].tolist(), [0, 1])

    def test_two_epochs_at_a_time_do_not_mix(self):
        shard = train.get_dataset_shard("train")
        pairs = zip(shard.iter_batches(batch_size=2), shard.iter_batches(batch_size=3))
        self.assertEqual([(a["label"][0], b["label"][0]) for a, b in pairs], [(0, 0), (2, 3), (4, 6), (6, 9)])

    def test_only_training_data_is_shuffled_unless_the_script_says_so(self):
        shard = train.get_dataset_shard("train")
        other = lockstep.DatasetShard("val", session.current().datasets["train"])
        for batches in (
            shard.iter_batches(),
            shard.iter_batches(shuffle=False),
            other.iter_batches(),
            other.iter_batches(local_shuffle_buffer_size=9),
        ):
            list(batches)
        asked = [request["shuffle"] for request in self.gang.requests if request["do"] == "shard"]
        self.assertEqual(asked, [True, False, False, True])

    def test_functions_of_the_script_change_batches(self):
        def add(batch, by):
            batch["label"] = batch["label"] + by
            return batch

        data.give({"train": data.read_csv("x.csv").map_batches(add, fn_kwargs={"by": 100}, batch_size=3)})
        labels = [batch["label"].tolist() for batch in train.get_dataset_shard("train").iter_batches(batch_size=5)]
        self.assertEqual(sum(labels, []), list(range(100, 110)))

    def test_a_set_that_is_not_there_is_refused_with_those_that_are(self):
        with self.assertRaisesRegex(lockstep.Refused, "no data set 'val'.*train"):
            train.get_dataset_shard("val")

    def test_rows_come_one_by_one(self):
        rows = list(train.get_dataset_shard("train").iter_rows())
        self.assertEqual([int(row["label"]) for row in rows], list(range(10)))


class Descriptions(unittest.TestCase):
    def test_data_sets_become_tables_of_the_job(self):
        pictures = data.read_images("s3://anonymous@bucket/train", size=(256, 200))
        self.assertEqual(
            data.job_tables({"train": pictures, "val": "fashion-mnist:test"}),
            {
                "data": {
                    "train": {"pictures": "s3://bucket/train"},
                    "val": "fashion-mnist:test",
                    "transform": {"resize": 200, "crop": [256, 200]},
                },
                "storage": {"anonymous": True},
            },
        )

    def test_anything_else_is_refused_in_plain_words(self):
        with self.assertRaisesRegex(lockstep.Refused, "'train' is a list"):
            data.job_tables({"train": [1, 2]})
        with self.assertRaisesRegex(lockstep.Refused, "train, val, test, not 'eval'"):
            data.job_tables({"eval": "x"})


if __name__ == "__main__":
    unittest.main()
