"""Estimators among scikit-learn's: scores, searches, pipelines, pickles, and frames of three libraries."""

import pickle

import numpy
import polars
import pyarrow
from lockstep import LockstepClassifier, LockstepError, LockstepRegressor, RunFailed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from table import FEATURES, MODEL, table

rows, kind = table[FEATURES], table["kind"]
classifier = LockstepClassifier(model=MODEL, lr=0.02)
scores = cross_val_score(classifier, rows, kind, cv=3)
assert scores.min() > 0.8, scores
price = 3 * table["a"] + numpy.where(table["town"] == "Bonn", 1.0, 0.0)
scores = cross_val_score(LockstepRegressor(model=MODEL, epochs=40, lr=0.02), rows[["a", "town"]], price, cv=2)
assert scores.min() > 0.8, scores

pipeline = make_pipeline(StandardScaler(), clone(classifier))
assert pipeline.fit(rows[["a"]], kind).score(rows[["a"]], kind) > 0.9
search = GridSearchCV(classifier, {"epochs": [1, 20]}, cv=2).fit(rows, kind)
assert search.best_params_ == {"epochs": 20}, search.best_params_

# A copy has the model with it, and outlives what it was made of.
classifier.fit(rows, kind)
probabilities = classifier.predict_proba(rows)
assert probabilities.shape == (len(rows), 2) and numpy.allclose(probabilities.sum(axis=1), 1)
packed = pickle.dumps(classifier)
assert classifier.result_.evaluate(rows.assign(target=kind)).metrics["accuracy"] == classifier.score(rows, kind)
del classifier
copy = pickle.loads(packed)
assert (copy.predict_proba(rows) == probabilities).all()
assert (copy.predict(rows) == numpy.asarray(copy.classes_)[probabilities.argmax(axis=1)]).all()

arrow = pyarrow.Table.from_pandas(rows, preserve_index=False)
for frame in (arrow, polars.from_arrow(arrow)):
    other = clone(copy).fit(frame, kind)
    assert (other.predict_proba(frame) == probabilities).all(), type(frame)

# Classes that are no words, and a column that has the name of the label.
numbers = rows.rename(columns={"a": "target"})
of_numbers = clone(copy).set_params(epochs=2).fit(numbers, (table["a"] * 3).astype(int) - 1)
assert of_numbers.classes_.tolist() == [-1, 0, 1] and set(of_numbers.predict(numbers)) <= {-1, 0, 1}

try:
    LockstepClassifier(settings={"train.bach": 3}).fit(rows, kind)
    raise AssertionError("there is no such key")
except RunFailed as error:
    assert isinstance(error, LockstepError) and "train.bach" in str(error), error
