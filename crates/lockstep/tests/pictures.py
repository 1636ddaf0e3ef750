"""What the pipeline's tests need of Python: pictures to read, and others' opinion of what came out.

    pictures.py make IDX_FOLDER OUT TRAIN VAL TEST    pictures by class, so many a class
    pictures.py probe STORE                            accuracy of scikit-learn's linear probe on the vectors
    pictures.py types STORE                            what pyarrow takes the columns for
"""

import gzip
import json
import sys
from pathlib import Path

import numpy

CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def idx(path):
    data = gzip.open(path).read()
    sides = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).reshape(sides)


def make(source, out, *counts):
    """Fashion-MNIST's pictures as photos of a shop would be: larger, some wide, some tall, as JPEG, PNG or WebP."""
    from PIL import Image

    images = idx(Path(source) / "train-images-idx3-ubyte.gz")
    labels = idx(Path(source) / "train-labels-idx1-ubyte.gz")
    formats = [("jpg", "JPEG", {"quality": 90}), ("jpeg", "JPEG", {"quality": 80, "progressive": True}),
               ("png", "PNG", {}), ("webp", "WEBP", {"quality": 85})]
    for label, name in enumerate(CLASSES):
        rows = iter(numpy.flatnonzero(labels == label))
        for part, count in zip(["train", "val", "test"], map(int, counts)):
            folder = Path(out) / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                # Dark on light, as in a catalogue; the margin makes pictures of several shapes.
                picture = Image.fromarray(255 - images[next(rows)]).resize((112, 112), Image.BICUBIC)
                canvas = Image.new("RGB", (112 + 16 * (number % 3), 112 + 12 * (number % 4)), "white")
                canvas.paste(picture, ((canvas.width - 112) // 2, (canvas.height - 112) // 2))
                extension, form, options = formats[number % 4]
                canvas.save(folder / f"{number:04}.{extension}", form, **options)


def table(folder):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(sorted(map(str, Path(folder).glob("part-*.parquet")))).to_table()


def vectors(folder):
    rows = table(folder)
    width = rows.schema.field("embedding").type.list_size
    flat = rows.column("embedding").combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, width), rows.column("label").to_pylist()


def probe(store):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = vectors(Path(store) / "train"), vectors(Path(store) / "test")
    best = 0.0
    for c in (0.003, 0.03, 0.3):
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000))
        best = max(best, classifier.fit(*train).score(*test))
    print(json.dumps({"accuracy": best}))


def types(store):
    rows = table(Path(store) / "test")
    print(json.dumps({field.name: str(field.type) for field in rows.schema} | {"rows": rows.num_rows}))


{"make": make, "probe": probe, "types": types}[sys.argv[1]](*sys.argv[2:])
