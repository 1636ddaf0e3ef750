//! One table, parted into what is trained, validated and tested on: by time, by groups, by classes, and in folds.

use crate::common::{Place, Ran};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// What is the same for every learner; `SPLIT` is how rows are parted.
const DATA: &str = r#"
name = "prices"

[data]
train = { csv = "prices.csv", label = "price", path = "row", drop = ["shop"] }
test_split = 0.2
val_split = 0.1
SPLIT
"#;

const NETWORK: &str = r#"
[model]
kind = "mlp"
hidden = [16]

[train]
epochs = 4
batch = 32
optimizer = { kind = "adam", lr = 1e-2 }
lanes = 2
"#;

const TREES: &str = r#"
[model]
kind = "xgboost"
rounds = 8
depth = 4
"#;

fn of(model: &str) -> String {
    format!("{DATA}{model}")
}

/// The day, from 0 on, and the shop of a row: neither goes along with the order of rows.
fn day_and_shop(row: usize) -> (usize, usize) {
    (row * 37 % 50, row * 11 % 23)
}

const ROWS: usize = 600;

/// Prices that depend on the size, the region and the time, which is written the German way.
fn prices() -> String {
    let mut text = "row,Date,shop,region,size,price\n".to_owned();
    for row in 0..ROWS {
        let (day, shop) = day_and_shop(row);
        let (region, size) = (row * 7 % 5, (row * 13 % 29) as f64 / 10.0);
        let price = size * 2.0 + region as f64 + day as f64 / 25.0;
        let (date, month) = (day % 25 + 1, day / 25 + 3);
        text += &format!(
            "r{row},{date:02}-{month:02}-2021,shop {shop},region {region},{size},{price:.3}\n"
        );
    }
    text
}

fn place(job: &str, split: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("prices.csv"), prices()).unwrap();
    place.write_job(&job.replace("SPLIT", split));
    place
}

fn run(place: &Place, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
    Ran::from(command.output().unwrap())
}

fn succeeds(place: &Place, args: &[&str]) -> Ran {
    let ran = run(place, args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

fn train(place: &Place, args: &[&str]) -> Value {
    succeeds(place, &[&["run", "job.toml", "--json"], args].concat()).result()
}

/// The rows that the run of a result was tested on.
fn tested(place: &Place, result: &Value) -> BTreeSet<usize> {
    let folder = result["run_dir"].as_str().unwrap();
    succeeds(place, &["predict", folder, "--out", "said.csv"]);
    let said = fs::read_to_string(place.path("said.csv")).unwrap();
    let names = said
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap());
    names
        .map(|name| name.trim_start_matches('r').parse().unwrap())
        .collect()
}

#[test]
fn both_kinds_are_tested_on_what_came_last_and_are_the_same_on_any_number_of_workers() {
    for job in [of(NETWORK), of(TREES)] {
        let place = place(&job, "split = { by = \"Date\" }");
        let one = train(&place, &["--workers", "1"]);
        let two = train(&place, &["--workers", "2"]);
        assert_eq!(one["weights_sha256"], two["weights_sha256"]);
        assert_eq!(one["metrics"], two["metrics"]);
        // Forty of the fifty days come before.
        let last = (0..ROWS).filter(|&row| day_and_shop(row).0 >= 40);
        assert_eq!(tested(&place, &one), last.collect());
        // Whoever evaluates afterwards measures the same rows.
        let folder = one["run_dir"].as_str().unwrap();
        let evaluated = succeeds(&place, &["evaluate", folder, "--json"]);
        let evaluated: Value =
            serde_json::from_str(evaluated.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(
            evaluated["r2"], one["evaluation"]["r2"],
            "{evaluated} {one}"
        );
    }
}

#[test]
fn a_column_that_only_parts_the_rows_is_no_input() {
    let place = place(&of(NETWORK), "split = { by = \"Date\" }");
    let with = train(&place, &[]);
    let job = of(NETWORK).replace("drop = [\"shop\"]", "drop = [\"shop\", \"Date\"]");
    place.write_job(&job.replace("SPLIT", "split = { by = \"Date\" }"));
    let without = train(&place, &[]);
    assert_eq!(tested(&place, &with), tested(&place, &without));
    let inputs = |result: &Value| {
        let card = format!("{}/model/model.json", result["run_dir"].as_str().unwrap());
        fs::read_to_string(card).unwrap().contains("Date.month")
    };
    assert!(inputs(&with) && !inputs(&without));
}

#[test]
fn no_group_is_trained_and_tested_on() {
    for job in [of(NETWORK), of(TREES)] {
        let place = place(&job, "split = { group = \"shop\" }");
        let result = train(&place, &[]);
        let rows = tested(&place, &result);
        // Other columns of the table are those of the same rows.
        let folder = result["run_dir"].as_str().unwrap();
        succeeds(
            &place,
            &["predict", folder, "--keep", "shop", "--out", "kept.csv"],
        );
        let kept = fs::read_to_string(place.path("kept.csv")).unwrap();
        for (line, &row) in kept.lines().skip(1).zip(&rows) {
            let shop = format!("shop {}", day_and_shop(row).1);
            let cells: Vec<&str> = line.split(',').collect();
            assert!(cells.contains(&shop.as_str()), "{row}: {line}");
        }
        let shops: BTreeSet<usize> = rows.iter().map(|&row| day_and_shop(row).1).collect();
        let theirs = (0..ROWS).filter(|&row| shops.contains(&day_and_shop(row).1));
        assert_eq!(rows, theirs.collect());
        assert!((80..=160).contains(&rows.len()), "{}", rows.len());
    }
}

#[test]
fn every_row_is_in_one_fold_and_their_measures_have_a_mean_and_a_deviation() {
    for job in [of(NETWORK), of(TREES)] {
        let place = place(&job.replace("test_split = 0.2\n", ""), "");
        let ran = succeeds(&place, &["run", "job.toml", "--folds", "3", "--json"]);
        let all: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
        let folds = all["folds"].as_array().unwrap();
        let values = folds
            .iter()
            .map(|fold| fold["metrics"]["r2"].as_f64().unwrap());
        let values: Vec<f64> = values.collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        assert!(
            (all["mean"]["r2"].as_f64().unwrap() - mean).abs() < 1e-12,
            "{all}"
        );
        assert!(all["deviation"]["r2"].as_f64().unwrap() > 0.0);
        let mut seen = BTreeSet::new();
        for run in place.runs() {
            let result = serde_json::json!({ "run_dir": run });
            let rows = tested(&place, &result);
            assert_eq!(rows.len(), ROWS / 3);
            seen.extend(rows);
        }
        assert_eq!(seen.len(), ROWS);
    }
    let place = place(&of(TREES).replace("test_split = 0.2\n", ""), "");
    let ran = succeeds(&place, &["run", "job.toml", "--folds", "2", "--discard"]);
    assert!(
        ran.stdout.contains("mean") && ran.stdout.contains("deviation"),
        "{}",
        ran.stdout
    );
    assert!(place.runs().is_empty());
}

#[test]
fn a_split_that_cannot_be_made_is_refused_by_its_reason() {
    let refused = |split: &str, words: &str| {
        let place = place(&of(NETWORK), split);
        let ran = run(&place, &["run", "job.toml"]);
        assert_ne!(ran.code, Some(0));
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(place.runs().is_empty());
    };
    refused(
        "split = { by = \"region\" }",
        "the column `region` holds names, which have no order",
    );
    refused("split = { by = \"day\" }", "it has no column `day`");
    refused("split = { group = \"town\" }", "`town`");
    refused(
        "split = { by = \"Date\", group = \"shop\" }",
        "has both `by` and `group`",
    );
    refused(
        "split = { fold = 3, folds = 2 }",
        "tests on fold 3, and there are 2",
    );
    refused(
        "test = { csv = \"prices.csv\", label = \"price\" }",
        "a part of data.train is the test set",
    );
    refused(
        "stratify = true\nsplit = { by = \"Date\" }",
        "cannot be used together with a column",
    );
}

#[test]
fn rows_that_are_trained_and_measured_on_are_said() {
    let job = of(TREES)
        .replace("test_split = 0.2\n", "")
        .replace(", drop = [\"shop\"]", "");
    let place = place(
        &job,
        "test = { csv = \"prices.csv\", label = \"price\", path = \"row\" }",
    );
    let ran = succeeds(&place, &["run", "job.toml"]);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        said.contains("prices.csv are trained on too, with the same inputs"),
        "{said}"
    );
    // Of one number, many rows are the same by chance; but this is the same table.
    let few = "data.train={ csv = 'prices.csv', label = 'price', features = ['size'] }";
    let same = [
        "run",
        "job.toml",
        "--set",
        few,
        "--set",
        "data.test={ csv = 'prices.csv', label = 'price' }",
    ];
    let ran = succeeds(&place, &same);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for words in [
        "540 of the 600 rows of ",
        "a sample has 1 number, the column size",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Rounds are measured on validation rows alone: what would be empty has no column.
    assert!(
        said.contains("val loss") && !said.contains("test loss"),
        "{said}"
    );
}
