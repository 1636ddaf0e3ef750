"""Frames of pandas, polars and pyarrow in and out."""

import os

import lockstep
import pandas
import polars
import pyarrow
import pyarrow.parquet
from table import MODEL, TRAIN, table

arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
pyarrow.parquet.write_table(arrow, "table.parquet")


def job(train, **more):
    return lockstep.Job(name="small", data={"train": train, "val_split": 0.2, **more}, model=MODEL, train=TRAIN)


by_file = job({"parquet": "table.parquet", "label": "kind"}).run(quiet=True)
frames = {pandas.DataFrame: table, polars.DataFrame: polars.from_arrow(arrow), pyarrow.Table: arrow}
said = by_file.predict("table.parquet", probabilities=True)
assert list(said.columns[:3]) == ["path", "label", "predicted"], said.columns
for kind, frame in frames.items():
    result = job({"frame": frame, "label": "kind"}).run(quiet=True)
    assert result.weights_sha256 == by_file.weights_sha256, kind
    predicted = result.predict(frame, probabilities=True)
    assert type(predicted) is kind, type(predicted)
    as_pandas = predicted if kind is pandas.DataFrame else predicted.to_pandas(**{})
    assert as_pandas["probability_low"].tolist() == said["probability_low"].tolist(), kind
    assert result.evaluate(frame).raw["loss"] == by_file.evaluate("table.parquet").raw["loss"], kind

# Rows keep their names, and labels need not be there.
some = table.drop(columns="kind").iloc[40:43]
predicted = by_file.predict(some)
assert predicted.index.tolist() == [40, 41, 42] and predicted["predicted"].isin(["high", "low"]).all()
lazy = by_file.predict(frames[polars.DataFrame].lazy())
assert lazy["predicted"].to_list() == said["predicted"].tolist()

measured = by_file.evaluate(table)
assert measured.metrics["accuracy"] > 0.9 and measured.metrics["samples"] == len(table), measured
assert measured.confusion.loc["high"].sum() == (table["kind"] == "high").sum()
assert list(measured.classes["class"]) == ["high", "low"]

# What was trained before, by its name, a part of it, and its folder.
for name in (by_file.run, by_file.run[-4:], by_file.run_dir):
    before = lockstep.load(name)
    assert before.metrics == by_file.metrics and before.weights_sha256 == by_file.weights_sha256
    assert before.curves["val.loss"].tolist() == by_file.curves["val.loss"].tolist()
assert before.evaluate(table).metrics == measured.metrics

# The same frame is the same data: a run goes on with it.
first = job(table.rename(columns={"kind": "label"})).run(quiet=True, name="more", epochs=2)
job_again = job(table.rename(columns={"kind": "label"}))
assert job_again.run(quiet=True, name="more", resume=True, epochs=4).run == first.run
assert len(lockstep.load(first.run).curves) == 4

search = {"train.optimizer.lr": "log(1e-3, 1e-1)", "train.batch": [8, 16]}
tuning = lockstep.tune(job({"frame": table, "label": "kind"}), search, trials=3, epochs=2, quiet=True)
assert tuning.trials.columns.tolist() == ["number", "train.optimizer.lr", "train.batch", "epochs", "loss", "failed"]
assert len(tuning.trials) == 3 and set(tuning.best) == set(search)
again = job({"frame": table, "label": "kind"}).run(quiet=True, epochs=2, **tuning.best)
best = tuning.trials[tuning.trials["epochs"] == 2]["loss"].min()
assert abs(again.metrics["val.loss"] - best) < 1e-6, (again.metrics, best)

try:
    job(table).write("job.toml")
    raise AssertionError("a file cannot hold a frame")
except TypeError as error:
    assert "cannot hold a data frame" in str(error), error
try:
    job({"frame": "table.parquet"}).run(quiet=True)
    raise AssertionError("a path is no frame")
except lockstep.LockstepError as error:
    assert "`parquet`" in str(error), error
assert not [name for name in os.listdir(".") if name.startswith(".lockstep")]

# Of a frame nothing is kept that could be measured later without it.
tested = job(table.rename(columns={"kind": "label"}), test_split=0.2).run(quiet=True)
for asked in (tested.predict, tested.evaluate):
    try:
        asked()
        raise AssertionError("the frame is gone")
    except lockstep.RunFailed as failed:
        assert "give the samples as `data`" in str(failed), failed
