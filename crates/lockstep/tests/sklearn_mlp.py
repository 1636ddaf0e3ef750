"""What scikit-learn's MLP reaches on a table: sklearn_mlp.py TRAIN TEST LABEL; prints the mean accuracy over seeds.

The preprocessing is that of docs/tables.md: numbers and the parts of dates at one scale with the mean for gaps and a flag,
a column for each value of a category.
"""

import csv
import datetime
import sys
import warnings

import numpy
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

NUMBERS = ["Sample Number", "Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)",
           "Delta 15 N (o/oo)", "Delta 13 C (o/oo)"]
CATEGORIES = ["studyName", "Region", "Island", "Stage", "Clutch Completion", "Sex"]


def read(path, label):
    numbers, categories, labels = [], [], []
    for row in csv.DictReader(open(path, encoding="utf-8")):
        day = datetime.date.fromisoformat(row["Date Egg"])
        parts = [day.year, day.month, day.day, day.weekday()]
        numbers.append([float(row[name]) if row[name] != "NA" else numpy.nan for name in NUMBERS] + parts)
        categories.append([row[name] for name in CATEGORIES])
        labels.append(row[label])
    table = numpy.empty((len(labels), len(numbers[0]) + len(CATEGORIES)), dtype=object)
    table[:, : len(numbers[0])] = numbers
    table[:, len(numbers[0]):] = categories
    return table, labels


warnings.filterwarnings("ignore")
train, labels = read(sys.argv[1], sys.argv[3])
test, expected = read(sys.argv[2], sys.argv[3])
width = len(NUMBERS) + 4
encode = ColumnTransformer([
    ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), list(range(width))),
    ("categories", OneHotEncoder(handle_unknown="ignore"), list(range(width, width + len(CATEGORIES)))),
])
scores = []
for seed in range(3):
    network = MLPClassifier([32], batch_size=32, learning_rate_init=3e-3, max_iter=30, random_state=seed)
    scores.append(make_pipeline(encode, network).fit(train, labels).score(test, expected))
print(numpy.mean(scores))
