"""As good as the libraries that people come from, on the same rows and without any setting: scikit-learn's own small sets,
and prices by week and region that are predicted for the weeks to come. Each figure is a mean over seeds."""

import sys
import warnings

import numpy
import pandas
from lockstep import Job, LockstepClassifier, LockstepRegressor, run
from sklearn import datasets
from sklearn.compose import ColumnTransformer
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

# The library that the program grows trees with is a Python package too.
sys.path.append(sys.argv[1])
import xgboost  # noqa: E402

warnings.simplefilter("ignore")
SEEDS = range(5)
POINT = 0.01
NEAR = 0.02


def small_sets():
    for name, ours, theirs in [
        ("wine", LockstepClassifier, MLPClassifier),
        ("breast_cancer", LockstepClassifier, MLPClassifier),
        ("diabetes", LockstepRegressor, MLPRegressor),
    ]:
        data = getattr(datasets, f"load_{name}")()
        scores = []
        for seed in SEEDS:
            classes = data.target if ours is LockstepClassifier else None
            a, b, a_y, b_y = train_test_split(
                data.data, data.target, test_size=0.25, random_state=seed, stratify=classes
            )
            our = ours(random_state=seed).fit(a, a_y).score(b, b_y)
            their = make_pipeline(StandardScaler(), theirs(random_state=seed)).fit(a, a_y).score(b, b_y)
            scores.append((our, their))
        our, their = numpy.mean(scores, axis=0)
        print(f"{name}: {our:.4f}, scikit-learn {their:.4f}")
        assert our > their - POINT, (name, our, their)


def prices(weeks=90, regions=54):
    """Prices of a week and a region: dates as DD-MM-YYYY, an index, and rows in no order."""
    random = numpy.random.default_rng(7)
    days = pandas.date_range("2015-01-04", periods=weeks, freq="7D")
    table = pandas.DataFrame(
        [(day, region, kind) for day in days for region in range(regions) for kind in range(2)],
        columns=["Date", "region", "type"],
    )
    base, season = random.normal(1.2, 0.2, regions), random.normal(0.1, 0.03, regions)
    volume = numpy.exp(random.normal(10, 1, len(table)) - 2.0 * table["type"])
    month = table["Date"].dt.month
    price = base[table["region"]] + 0.5 * table["type"] - 0.08 * (numpy.log(volume) - 10)
    price += season[table["region"]] * numpy.sin(month / 12 * 2 * numpy.pi) + random.normal(0, 0.05, len(table))
    table = table.assign(
        region=[f"Region {region}" for region in table["region"]],
        type=numpy.where(table["type"] == 1, "organic", "conventional"),
        Volume=volume.round(2),
        Bags=(volume * random.uniform(0.2, 0.4, len(table))).round(2),
        AveragePrice=price.round(2),
    )
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


def weeks_to_come():
    table = prices()
    written = table.assign(Date=table["Date"].dt.strftime("%d-%m-%Y"))
    written.to_csv("avocado.csv")
    cut = table["Date"].sort_values().iloc[int(0.8 * len(table))]
    before, after = table[table["Date"] < cut], table[table["Date"] >= cut]
    data = {
        "train": {"csv": "avocado.csv", "label": "AveragePrice"},
        "test_split": 0.2,
        "split": {"by": "Date"},
    }

    def parts(frame):
        date = frame["Date"].dt
        frame = frame.assign(year=date.year, month=date.month, day=date.day)
        return frame.drop(columns=["Date", "AveragePrice"])

    def score(model):
        result = run(Job(name="prices", data=data, model=model, train={"seed": 1}), quiet=True)
        return result.metrics["r2"]

    words = ["region", "type"]
    x, y = parts(before), before["AveragePrice"]
    ours = score({"kind": "xgboost", "rounds": 100, "depth": 6, "eta": 0.1})
    theirs = xgboost.XGBRegressor(
        n_estimators=100, max_depth=6, learning_rate=0.1, enable_categorical=True, tree_method="hist"
    )
    theirs.fit(x.astype({name: "category" for name in words}), y)
    of_trees = r2_score(after["AveragePrice"], theirs.predict(parts(after).astype({name: "category" for name in words})))
    print(f"prices, trees: {ours:.4f}, XGBoost {of_trees:.4f}")
    assert ours > of_trees - NEAR, (ours, of_trees)

    ours = score({"kind": "mlp"})
    scaled = ColumnTransformer([("words", OneHotEncoder(), words)], remainder=StandardScaler())
    theirs = make_pipeline(scaled, MLPRegressor(random_state=1)).fit(x, y)
    of_network = r2_score(after["AveragePrice"], theirs.predict(parts(after)))
    print(f"prices, network: {ours:.4f}, scikit-learn {of_network:.4f}")
    assert ours > of_network - NEAR, (ours, of_network)


small_sets()
weeks_to_come()
