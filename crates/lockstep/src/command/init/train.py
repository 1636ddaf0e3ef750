"""A script that `lockstep run` starts once for each worker: it reports what it measures, with a checkpoint, and goes on
from the newest one after a crash. Put your own training where the steps are."""

import json
import os
import tempfile

from lockstep import train

context = train.get_context()
print(f"worker {context.get_world_rank()} of {context.get_world_size()}")

begin = 0
checkpoint = train.get_checkpoint()
if checkpoint:
    with checkpoint.as_directory() as folder:
        with open(os.path.join(folder, "state.json")) as file:
            begin = json.load(file)["step"] + 1

for step in range(begin, 5):
    loss = 1.0 / (1 + step)  # your training goes here
    with tempfile.TemporaryDirectory() as folder:
        if context.get_world_rank() == 0:
            with open(os.path.join(folder, "state.json"), "w") as file:
                json.dump({"step": step}, file)
        train.report({"step": step, "loss": loss}, checkpoint=train.Checkpoint.from_directory(folder))
