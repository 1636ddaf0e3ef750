"""A machine with pandas, but without pyarrow and polars."""

import sys



class NotInstalled:
    """Stands before all that finds modules, and says that these are not here."""

    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in ("pyarrow", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NotInstalled)

import lockstep  # noqa: E402
import pandas  # noqa: E402
from table import FEATURES, MODEL, TRAIN, table  # noqa: E402

table.to_csv("table.csv", index=False)
data = {"train": {"csv": "table.csv", "label": "kind"}}
by_file = lockstep.Job(name="file", data=data, model=MODEL, train=TRAIN).run(quiet=True)
data = {"train": {"frame": table, "label": "kind"}}
result = lockstep.Job(name="frame", data=data, model=MODEL, train=TRAIN).run(quiet=True)
assert result.weights_sha256 == by_file.weights_sha256
said = result.predict(table, probabilities=True)
assert isinstance(said, pandas.DataFrame) and said["label"].tolist() == table["kind"].tolist()
assert (said["probability_high"] + said["probability_low"]).between(0.999, 1.001).all()

numbers = table[["a"]].to_numpy()
regressor = lockstep.LockstepRegressor(model=MODEL, epochs=30, lr=0.03).fit(numbers, 3 * numbers[:, 0] + 1)
assert regressor.score(numbers, 3 * numbers[:, 0] + 1) > 0.9
classifier = lockstep.LockstepClassifier(model=MODEL, lr=0.02).fit(table[FEATURES], table["kind"])
assert classifier.score(table[FEATURES], table["kind"]) > 0.9
