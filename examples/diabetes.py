"""Writes diabetes-train.csv and diabetes-test.csv beside this file, for diabetes.toml.

    pip install scikit-learn
    python examples/diabetes.py

442 patients, ten measurements each, and how far their diabetes had gone a year later (Efron et al., Least Angle
Regression, 2004). scikit-learn carries the data; nothing else is downloaded. Every fifth patient is for testing.
"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_diabetes

folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
data = load_diabetes()
names = [*data.feature_names, "progression"]
rows = [[*features, target] for features, target in zip(data.data, data.target)]
for name, wanted in [("train", lambda row: row % 5 != 0), ("test", lambda row: row % 5 == 0)]:
    with open(folder / f"diabetes-{name}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(row for number, row in enumerate(rows) if wanted(number))
