"""Each rank reports eight steps, each with a checkpoint that holds a file of every rank, and goes on from the newest."""

import json, os, tempfile, time
from lockstep import train

context = train.get_context()
checkpoint = train.get_checkpoint()
begin = 0
if checkpoint:
    with checkpoint.as_directory() as folder:
        begin = json.load(open(os.path.join(folder, "rank-0.json"))) + 1
        assert os.path.exists(os.path.join(folder, f"rank-{context.get_world_size() - 1}.json"))
for step in range(begin, 8):
    time.sleep(0.2)
    with tempfile.TemporaryDirectory() as folder:
        json.dump(step, open(os.path.join(folder, f"rank-{context.get_world_rank()}.json"), "w"))
        train.report({"step": step}, checkpoint=train.Checkpoint.from_directory(folder))
everyone = train.collective.broadcast_from_rank_zero({"steps": step})
assert everyone == {"steps": 7}
