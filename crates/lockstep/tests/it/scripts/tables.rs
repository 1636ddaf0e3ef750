//! Tables that scripts are handed: the columns that the file has, with their types, without copies.

use super::run;
use crate::common::{Place, logged};
use lockstep_testkit::{python, succeed};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Writes a Parquet file with a column of every kind; which row it is decides over all of them.
const WRITE: &str = r#"
import datetime, numpy, pyarrow as pa, pyarrow.parquet as pq
rows = range(101)
day = datetime.datetime(2024, 5, 1)
pq.write_table(pa.table({
    "id": pa.array(rows, pa.int32()),
    "price": pa.array([None if row % 10 == 3 else row / 2 for row in rows], pa.float64()),
    "stock": pa.array([None if row % 10 == 4 else 2**60 + row for row in rows], pa.int64()),
    "name": [None if row % 10 == 5 else "ü" * (row % 4) + str(row) for row in rows],
    "embedding": pa.array([[row, row + 0.5, -row] for row in rows], pa.list_(pa.float32(), 3)),
    "tokens": pa.array([list(range(row % 5)) for row in rows], pa.list_(pa.uint16())),
    "sold": [row % 2 == 0 for row in rows],
    "at": pa.array([day + datetime.timedelta(hours=row) for row in rows], pa.timestamp("us")),
    "nested": [{"a": row} for row in rows],
}), "rows.parquet", row_group_size=17)
"#;

/// Looks at every row in the three forms, one epoch each.
const READ: &str = r#"
import collections, json, numpy
from lockstep import train

shard = train.get_dataset_shard("train")
names = ["id", "price", "stock", "name", "embedding", "tokens", "sold", "at"]
assert shard.columns == names, shard.columns
seen = []

def check(rows):
    for row in rows:
        number = row["id"]
        assert row["name"] == (None if number % 10 == 5 else "ü" * (number % 4) + str(number)), row
        assert list(row["embedding"]) == [number, number + 0.5, -number], row
        assert list(row["tokens"]) == list(range(number % 5)), row
        assert bool(row["sold"]) == (number % 2 == 0), row
        seen.append(int(number))

for batch in shard.iter_batches(batch_size=8):
    types = {name: str(batch[name].dtype) for name in names}
    assert types["id"] == "int32" and types["price"] == "float64" and types["embedding"] == "float32", types
    assert types["at"] == "datetime64[us]" and types["sold"] == "bool", types
    assert batch["embedding"].shape[1:] == (3,) and not batch["embedding"].flags.owndata
    gaps = batch["id"] % 10 == 3
    assert numpy.isnan(batch["price"][gaps]).all() and (batch["price"][~gaps] == batch["id"][~gaps] / 2).all()
    hours = (batch["at"] - numpy.datetime64("2024-05-01")) / numpy.timedelta64(1, "h")
    assert (hours == batch["id"]).all()
    check({name: batch[name][row] for name in names} for row in range(len(batch["id"])))

for table in shard.iter_batches(batch_size=8, batch_format="pyarrow"):
    table.validate(full=True)
    types = {field.name: str(field.type) for field in table.schema}
    assert types["stock"] == "int64" and types["name"] == "string" and types["tokens"].startswith("list"), types
    rows = table.to_pylist()
    for row in rows:
        # More than a double can tell apart.
        assert row["stock"] == (None if row["id"] % 10 == 4 else 2**60 + row["id"]), row
        assert row["price"] == (None if row["id"] % 10 == 3 else row["id"] / 2), row
    check(rows)

for frame in shard.iter_batches(batch_size=8, batch_format="pandas"):
    # Missing texts are NaN in new versions of pandas.
    frame["name"] = frame["name"].astype(object).where(frame["name"].notna(), None)
    check(row for _, row in frame.iterrows())

# Lines that are the same on several ranks would be one.
print("seen", json.dumps([train.get_context().get_world_rank(), seen]))
"#;

#[test]
fn a_table_is_handed_out_as_the_columns_that_its_file_has() {
    let python = python("columns", &["numpy", "pyarrow", "pandas"]);
    let place = Place::new();
    let mut write = Command::new(&python);
    succeed(write.args(["-c", WRITE]).current_dir(place.path("")));
    fs::write(place.path("train.py"), READ).unwrap();
    place.write_job(&format!(
        "name = \"table\"\n[data]\ntrain = \"rows.parquet\"\n[train]\ncommand = [{python:?}, \"train.py\"]\nworkers = 2\n"
    ));
    let ran = run(&place, &[]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let mut seen: Vec<u64> = Vec::new();
    for line in logged(&ran) {
        let Some(line) = line.strip_prefix("seen ") else {
            continue;
        };
        let line: Value = serde_json::from_str(line).unwrap();
        let numbers = line[1].as_array().unwrap().iter();
        seen.extend(numbers.map(|number| number.as_u64().unwrap()));
    }
    seen.sort_unstable();
    let three_epochs: Vec<u64> = (0..101).flat_map(|row| [row; 3]).collect();
    assert_eq!(seen, three_epochs);
    let told = "the column `nested` is left out, since it holds";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    place.assert_no_process_is_left();
}

#[test]
fn features_that_the_job_names_come_as_one_matrix() {
    let script = "from lockstep import train\n\
        shard = train.get_dataset_shard('train')\n\
        for batch in shard.iter_batches(batch_size=4):\n\
        \x20   assert list(batch) == ['features', 'label'] and batch['features'].shape == (2, 2), batch\n\
        \x20   assert (batch['features'][:, 1] == 2 * batch['features'][:, 0]).all()\n\
        print('classes', shard.classes)\n";
    let place = super::place(script, "");
    fs::write(
        place.path("rows.csv"),
        "a,b,word,label\n1,2,x,no\n3,6,y,yes\n",
    )
    .unwrap();
    let job = fs::read_to_string(place.path("job.toml")).unwrap();
    let train = "{ csv = \"rows.csv\", features = [\"a\", \"b\"] }";
    place.write_job(&format!("{job}\n[data]\ntrain = {train}\n"));
    let ran = run(&place, &[]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(logged(&ran), ["classes ['no', 'yes']"]);
    // What is to be normalised must be named.
    place.write_job(&format!(
        "{job}\n[data]\ntrain = \"rows.csv\"\nnormalise = {{ mean = [0.5], std = [0.5] }}\n"
    ));
    let ran = run(&place, &[]);
    assert!(
        ran.stdout.contains("data.normalise") || ran.stderr.contains("data.normalise"),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
}
