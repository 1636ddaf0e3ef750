"""Makes reference.json: what scikit-learn says of some predictions.

    python crates/lockstep-measure/tests/reference.py
"""

import json
import pathlib
import warnings

import numpy as np
import sklearn
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

warnings.filterwarnings("ignore")


def case(name, actual, scores):
    actual = np.asarray(actual)
    classes = scores.shape[1]
    predicted = scores.argmax(axis=1)
    ranks = (scores > scores[np.arange(len(actual)), actual][:, None]).sum(axis=1)

    def average(kind):
        p, r, f, _ = precision_recall_fscore_support(
            actual, predicted, average=kind, zero_division=0
        )
        return {"precision": float(p), "recall": float(r), "f1": float(f)}

    p, r, f, s = precision_recall_fscore_support(
        actual, predicted, labels=range(classes), zero_division=0
    )
    return {
        "name": name,
        "classes": classes,
        "actual": actual.tolist(),
        "predicted": predicted.tolist(),
        "in_top5": (ranks < 5).tolist(),
        "accuracy": float(accuracy_score(actual, predicted)),
        "top5": 1.0
        if classes <= 5
        else float(top_k_accuracy_score(actual, scores, k=5, labels=range(classes))),
        "macro": average("macro"),
        "weighted": average("weighted"),
        "micro": average("micro"),
        "per_class": [
            {"precision": float(a), "recall": float(b), "f1": float(c), "support": int(d)}
            for a, b, c, d in zip(p, r, f, s)
        ],
        "confusion": confusion_matrix(actual, predicted, labels=range(classes)).tolist(),
    }


def main():
    random = np.random.default_rng(5)

    def noisy(actual, classes, skill):
        scores = random.random((len(actual), classes))
        scores[np.arange(len(actual)), actual] += skill
        return scores

    ten = random.integers(0, 10, 500)
    skewed = random.choice(7, 300, p=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02, 0.0])
    two = random.integers(0, 2, 60)
    never = noisy(two, 4, 0.5)
    never[:, 2] = -1  # a class that is neither there nor predicted
    one = np.zeros((5, 3))
    one[:, 1] = 1.0
    cases = [
        case("ten classes", ten, noisy(ten, 10, 0.4)),
        case("skewed, one class without samples", skewed, noisy(skewed, 7, 0.3)),
        case("one class neither there nor predicted", two, never),
        case("everything wrong", [0, 2, 0, 2, 0], one),
    ]
    made = {"scikit-learn": sklearn.__version__, "cases": cases}
    path = pathlib.Path(__file__).with_name("reference.json")
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
