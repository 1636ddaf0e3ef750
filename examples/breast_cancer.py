"""Writes breast-cancer-train.csv and breast-cancer-test.csv beside this file, for trees.toml.

    pip install scikit-learn
    python examples/breast_cancer.py

569 tumours, thirty measurements each, and whether they were malignant (Street, Wolberg and Mangasarian, 1993).
scikit-learn carries the data; nothing else is downloaded. Every fifth tumour is for testing.
"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer

folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
data = load_breast_cancer()
names = [*(name.replace(" ", "_") for name in data.feature_names), "diagnosis"]
rows = [[*features, data.target_names[target]] for features, target in zip(data.data, data.target)]
for name, wanted in [("train", lambda row: row % 5 != 0), ("test", lambda row: row % 5 == 0)]:
    with open(folder / f"breast-cancer-{name}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(row for number, row in enumerate(rows) if wanted(number))
