"""Tables as pyarrow writes them, and what pyarrow makes of ours. Used by pyarrow.rs."""

import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

ROWS = 5
VECTORS = [[row + 0.5 * column for column in range(3)] for row in range(ROWS)]
LABELS = ["pug", "husky", "pug", "mops", "husky"]


class RayTensor(pa.ExtensionType):
    """The column type that Ray Data writes tensors as: a list of numbers with a name."""

    def __init__(self, shape):
        self.shape = shape
        super().__init__(pa.large_list(pa.float32()), "ray.data.arrow_tensor_v2")

    def __arrow_ext_serialize__(self):
        return str(self.shape).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls(None)


def vectors(kind):
    return pa.array(VECTORS, kind)


def write(folder):
    features = {
        "list": vectors(pa.list_(pa.float32())),
        "list64": vectors(pa.list_(pa.float64())),
        "list16": vectors(pa.list_(pa.float16())),
        "large": vectors(pa.large_list(pa.float32())),
        "fixed": vectors(pa.list_(pa.float32(), 3)),
        "tensor": pa.ExtensionArray.from_storage(
            RayTensor((3,)), vectors(pa.large_list(pa.float32()))
        ),
        "ints": pa.array([[int(2 * x) for x in row] for row in VECTORS], pa.list_(pa.int16())),
    }
    for column in range(3):
        kind = [pa.float32(), pa.float64(), pa.float16()][column]
        features[f"x{column}"] = pa.array([row[column] for row in VECTORS], kind)
    labels = {
        "text": pa.array(LABELS),
        "large_text": pa.array(LABELS, pa.large_string()),
        "view": pa.array(LABELS, pa.string_view()),
        "binary": pa.array([label.encode() for label in LABELS]),
        "dictionary": pa.array(LABELS).dictionary_encode(),
        "int8": pa.array([2, 0, 2, 1, 0], pa.int8()),
        "uint64": pa.array([2, 0, 2, 1, 2**64 - 1], pa.uint64()),
        "bool": pa.array([True, False, True, True, False]),
        "float": pa.array([0.0, 1.0, 2.0, 3.0, 4.0]),
        "gap": pa.array(["a", None, "b", "c", "d"]),
    }
    paths = {"path": pa.array([f"train/{row}.jpg" for row in range(ROWS)])}
    broken = {
        "ragged": pa.array([[1.0], [1.0], [1.0, 2.0], [1.0], [1.0]], pa.list_(pa.float32())),
        "hollow": pa.array([[1.0], [2.0], None, [1.0], [1.0]], pa.list_(pa.float32())),
        "holes": pa.array([[1.0, 2.0]] * 3 + [[1.0, None]] + [[1.0, 2.0]], pa.list_(pa.float32())),
        "nan": pa.array([[1.0], [2.0], [3.0], [4.0], [float("nan")]], pa.list_(pa.float64())),
        "huge": pa.array([1.0, 1e300, 1.0, 1.0, 1.0]),
        "empty": pa.array([[]] * ROWS, pa.list_(pa.float32())),
    }
    table = pa.table({**features, **labels, **paths, **broken})
    for codec in ["snappy", "zstd", "gzip", "lz4", "none"]:
        for version in ["1.0", "2.0"]:
            pq.write_table(
                table,
                f"{folder}/{codec}-{version}.parquet",
                compression=codec,
                data_page_version=version,
                row_group_size=2,
            )
    # As Ray Data names the files of `write_parquet`.
    uuid = "21_000000"
    for block in range(2):
        pq.write_table(
            table.select(["tensor", "text"]).slice(3 * block, 3 - block),
            f"{folder}/ray/{uuid}_00000{block}-0.parquet",
        )
    # All that is no number, with gaps.
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 13, 30, tzinfo=datetime.timezone.utc)
    mixed = {
        "town": pa.array(["Ulm", None, "Bonn"]).dictionary_encode(),
        "paid": pa.array([True, None, False]),
        "price": pa.array([decimal.Decimal("12.50"), None, decimal.Decimal("-0.25")], pa.decimal128(10, 2)),
        "day": pa.array([day, None, day], pa.date32()),
        "at": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
        "clock": pa.array([datetime.time(6, 45), None, datetime.time(0)], pa.time64("us")),
        "count": pa.array([3, None, 5], pa.int32()),
        "zip": pa.array([89073, None, 53111], pa.int64()),
        "pair": pa.array([{"a": 1}, None, {"a": 2}]),
        "amount": pa.array([decimal.Decimal("1.5"), decimal.Decimal("2"), decimal.Decimal("3")], pa.decimal128(5, 1)),
    }
    pq.write_table(pa.table(mixed), f"{folder}/mixed.parquet")
    # Feather packs with LZ4 unless it is told otherwise.
    feather.write_feather(pa.table(mixed), f"{folder}/mixed.feather")
    # 40 MB in one row group, in pages of the usual size.
    rows, width = 20_000, 512
    numbers = pa.array((i % 1000 for i in range(rows * width)), pa.float32())
    large = pa.FixedSizeListArray.from_arrays(numbers, width)
    pq.write_table(pa.table({"embedding": large}), f"{folder}/large.parquet", row_group_size=rows)


def read(folder):
    part = pq.ParquetFile(f"{folder}/part.parquet")
    schema = part.schema_arrow
    assert schema.field("path").type == pa.string() and not schema.field("path").nullable, schema
    assert schema.field("label").type == pa.string() and schema.field("label").nullable, schema
    embedding = schema.field("embedding").type
    assert pa.types.is_fixed_size_list(embedding), embedding
    assert (embedding.list_size, embedding.value_type) == (4, pa.float32()), embedding
    assert not embedding.value_field.nullable, embedding
    metadata = part.metadata.metadata
    assert metadata[b"lockstep.model"] == "clip \U0001f436".encode(), metadata
    assert part.metadata.created_by.startswith("lockstep version "), part.metadata
    table = part.read()
    assert table.column("path").to_pylist() == ["a/0.jpg", "b/1.jpg", "c/2.jpg"]
    assert table.column("label").to_pylist() == ["a", None, "c"]
    assert table.column("embedding").to_pylist() == [
        [4.0 * row + column - 0.5 for column in range(4)] for row in range(3)
    ]

    predictions = pq.read_table(f"{folder}/predictions.parquet")
    assert predictions.schema.equals(
        pa.schema(
            [
                pa.field("path", pa.string(), False),
                pa.field("label", pa.string(), True),
                pa.field("predicted", pa.string(), False),
                pa.field("probability", pa.float32(), False),
                pa.field("row", pa.int64(), False),
            ]
        )
    ), predictions.schema
    assert predictions.to_pylist()[1] == {
        "path": "b.jpg",
        "label": None,
        "predicted": "pug",
        "probability": 0.75,
        "row": 1,
    }


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
