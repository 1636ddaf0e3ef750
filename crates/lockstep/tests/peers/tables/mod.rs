//! Models of tables in other programs: onnxruntime and MLflow's own client take the columns as they are, with words,
//! dates and gaps, and say what `lockstep predict` says of the same rows.

use crate::common::serve::Serve;
use crate::common::{Place, Ran};
use lockstep_testkit::{onnx_answers_of_table, onnx_distance, python_with_mlflow};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// How far an answer may be from that of `predict`.
const NEAR: f64 = 1e-6;

const JOB: &str = r#"
name = "houses"

[data]
train = { csv = "train.csv", label = LABEL, drop = ["price", "kind"], types = { shop = "category" } }

[model]
MODEL

[train]
seed = 5
"#;
/// The number of the first row that is predicted.
const FIRST_NEW: usize = 160;
const NETWORK: &str = "kind = \"mlp\"\nhidden = [8]";
const TREES: &str = "kind = \"xgboost\"\nrounds = 8\ndepth = 3";

/// A place with a table to train on, `train.csv`, and one to predict, `new.csv`, which has gaps and words that the first
/// does not have; and a job of this label and model.
fn place(label: &str, model: &str) -> Place {
    let place = Place::new();
    let rows = |from: usize, to: usize, is_new: bool| -> String {
        let row = |row: usize| {
            let town = ["Bonn", "Jena", "Ulm", ""][row * 7 % 4];
            let town = if is_new && row % 10 == 3 {
                "Köln"
            } else {
                town
            };
            let shop = [11, 7, 200][row * 5 % 3];
            let (day, month) = (row * 3 % 28 + 1, row * 11 % 12 + 1);
            let sold = format!("{day:02}/{month:02}/{}", 1968 + row % 60);
            let sold = if row % 13 == 5 { String::new() } else { sold };
            let seen = format!(
                "2024-{month:02}-{day:02} {:02}:{:02}:30",
                row % 24,
                row * 7 % 60
            );
            let area = (row * 17 % 23) as f64 / 4.0 + 20.1;
            let shown = if row % 9 == 4 {
                String::new()
            } else {
                area.to_string()
            };
            let rooms = row * 5 % 7;
            let rooms = match is_new && row % 8 == 2 {
                true => String::new(),
                false => rooms.to_string(),
            };
            let new = ["no", "yes"][row % 2];
            let (met, opens) = (met(row).0, format!("{}:{:02}", row % 20, row * 7 % 60));
            let price = 900.5 * area + 100.0 * (row % 4) as f64;
            let kind = ["low", "high", "very high"][(row * 7 % 4 + row * 5 % 7) / 4];
            format!(
                "{town},{shop},{sold},{seen},{shown},{rooms},{new},{met},{opens},{price},{kind}\n"
            )
        };
        "town,shop,sold,seen,area,rooms,new,met,opens,price,kind\n".to_owned()
            + &(from..to).map(row).collect::<String>()
    };
    fs::write(place.path("train.csv"), rows(0, FIRST_NEW, false)).unwrap();
    // Of rows to be predicted, nobody knows the label.
    let new: String = rows(FIRST_NEW, FIRST_NEW + 40, true)
        .lines()
        .map(|line| line.rsplitn(3, ',').last().unwrap().to_owned() + "\n")
        .collect();
    fs::write(place.path("new.csv"), new).unwrap();
    let other = if label == "price" { "kind" } else { "price" };
    let job = JOB
        .replace("LABEL", &format!("{label:?}"))
        .replace("[\"price\", \"kind\"]", &format!("[{other:?}]"))
        .replace("MODEL", model);
    let job = match model == TREES {
        true => job,
        false => job + "epochs = 3\nbatch = 16\noptimizer = { kind = \"adam\" }\n",
    };
    place.write_job(&job);
    place
}

/// A moment of a row in one of the forms that people write, and in ISO's.
fn met(row: usize) -> (String, String) {
    // Days around which calendars go wrong.
    let hard = [
        (2024, 2, 29),
        (2000, 2, 29),
        (1999, 12, 31),
        (1900, 2, 28),
        (1900, 3, 1),
        (2100, 3, 1),
    ];
    let (year, month, day) = match row % 6 {
        1 => hard[row / 6 % hard.len()],
        _ => (1950 + row % 90, row * 7 % 12 + 1, row * 5 % 28 + 1),
    };
    let (hour, minute) = (row % 20, row * 11 % 60);
    let written = match row % 5 {
        0 => format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z"),
        1 => format!("{day:02}.{month:02}.{year} {hour:02}:{minute:02}"),
        2 => format!("{year}/{month}/{day} {hour}:{minute:02}:00.250"),
        3 => format!(
            "{year}-{month:02}-{day:02}T{:02}:{minute:02}:00+02:00",
            hour + 2
        ),
        _ => format!("{day}/{month}/{year} {hour:02}:{minute:02}"),
    };
    let iso = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00");
    (written, iso)
}

/// Runs a command that may need XGBoost.
fn succeeds(place: &Place, words: &[&str]) -> Ran {
    let mut command = place.command(words);
    command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
    ran
}

/// Trains the job of a place, and gives the name of its run and what `predict` says of `new.csv`, a line a row.
fn trained(place: &Place) -> (String, Vec<Value>) {
    let ran = succeeds(place, &["run", "job.toml", "--json", "--workers", "1"]);
    let run = ran.result()["run"].as_str().unwrap().to_owned();
    let words = ["predict", &run, "--data", "new.csv", "--probabilities"];
    succeeds(place, &[&words[..], &["--out", "said.jsonl"]].concat());
    let lines = fs::read_to_string(place.path("said.jsonl")).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (run, lines.collect())
}

/// The columns of `new.csv` as people have them, with dates in ISO's form.
fn columns(place: &Place) -> Value {
    let text = fs::read_to_string(place.path("new.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut columns = json!({});
    for name in &names {
        columns[name] = json!([]);
    }
    for (row, line) in (FIRST_NEW..).zip(lines) {
        for (name, cell) in names.iter().zip(line.split(',')) {
            let cell = match (*name, cell) {
                (_, "") => Value::Null,
                ("sold", date) => json!(format!("{}-{}-{}", &date[6..], &date[3..5], &date[..2])),
                ("met", _) => json!(met(row).1),
                ("opens", clock) => json!(format!("1970-01-01T{clock:0>5}")),
                ("area" | "rooms", number) => json!(number.parse::<f64>().unwrap()),
                ("new", word) => json!(u8::from(word == "yes")),
                (_, word) => json!(word),
            };
            columns[name].as_array_mut().unwrap().push(cell);
        }
    }
    columns
}

#[test]
fn onnxruntime_takes_the_columns_of_a_table_by_their_names_and_says_the_class_as_a_word() {
    for vectors in [false, true] {
        let place = place("kind", NETWORK);
        if vectors {
            let job = fs::read_to_string(place.path("job.toml")).unwrap();
            let more = job.replace("types = {", "types = { town = \"embedding\",");
            assert!(more != job);
            place.write_job(&more);
        }
        let (run, lines) = trained(&place);
        place.succeeds(&["export", &run, "--onnx", "model.onnx"]);
        let found = onnx_answers_of_table(&place.path("model.onnx"), &columns(&place));
        let inputs: Vec<String> = (found["inputs"].as_array().unwrap().iter())
            .map(|input| format!("{} {} {}", input["name"], input["type"], input["shape"]))
            .collect();
        let expected = ["town string", "shop string", "sold int64", "seen int64"]
            .into_iter()
            .chain(["area float", "rooms float", "new float"])
            .chain(["met int64", "opens int64"])
            .map(|input| {
                let (name, element) = input.split_once(' ').unwrap();
                format!("{name:?} \"tensor({element})\" [\"N\"]")
            });
        assert_eq!(inputs, expected.collect::<Vec<_>>());
        let classes = ["high", "low", "very high"];
        let probabilities: Vec<f32> = lines
            .iter()
            .flat_map(|line| classes.map(|class| line["probabilities"][class].as_f64().unwrap()))
            .map(|probability| probability as f32)
            .collect();
        let off = onnx_distance(&found["answers"]["probabilities"], &probabilities);
        println!("a table by its columns: {off:e}");
        assert!(off < NEAR, "{off}");
        let predicted: Vec<&Value> = lines.iter().map(|line| &line["predicted"]).collect();
        assert_eq!(found["answers"]["predicted"], json!(predicted));
        for (at, word) in predicted.iter().enumerate() {
            let class = found["answers"]["class"][at].as_f64().unwrap();
            assert_eq!(**word, classes[class as usize]);
        }
    }
}

#[test]
fn onnxruntime_says_numbers_of_a_table_in_their_units() {
    let place = place("price", NETWORK);
    let (run, lines) = trained(&place);
    place.succeeds(&["export", &run, "--onnx", "model.onnx"]);
    let found = onnx_answers_of_table(&place.path("model.onnx"), &columns(&place));
    let price = |line: &Value| line["predicted"]["price"].as_f64().unwrap() as f32;
    let expected: Vec<f32> = lines.iter().map(price).collect();
    let off = onnx_distance(&found["answers"]["values"], &expected);
    assert!(off < NEAR, "{off}");
}

/// Registers the run of a place, and lets MLflow's own client ask the model of it.
fn asked_by_mlflow(place: &Place, run: &str) -> Value {
    let words = ["models", "register", "houses", run, "--alias", "champion"];
    place.succeeds(&words);
    let serve = Serve::start(place, &[]);
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/peers/tables/load_table.py"
    );
    let library: PathBuf = lockstep_testkit::xgboost_library();
    let packages = library.ancestors().nth(3).unwrap();
    let said = lockstep_testkit::succeed(
        Command::new(python_with_mlflow())
            .arg(script)
            .args([&serve.url(), "models:/houses@champion"])
            .args([place.path("train.csv"), place.path("new.csv")])
            .args([place.path("said.jsonl"), packages.to_owned()])
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "true")
            .env_remove("MLFLOW_TRACKING_URI"),
    );
    serde_json::from_str(said.lines().last().unwrap()).unwrap_or_else(|_| panic!("{said}"))
}

/// Checks that a CSV file of predictions has a column for each class.
fn assert_all_probabilities_are_columns(place: &Place, run: &str, classes: &[&str]) {
    let words = ["predict", run, "--data", "new.csv", "--probabilities"];
    succeeds(place, &[&words[..], &["--out", "said.csv"]].concat());
    let text = fs::read_to_string(place.path("said.csv")).unwrap();
    let columns = classes.iter().map(|class| format!(",probability_{class}"));
    let expected = "path,predicted,probability,row".to_owned() + &columns.collect::<String>();
    assert_eq!(text.lines().next(), Some(&expected[..]));
}

#[test]
fn mlflows_client_predicts_the_rows_of_a_data_frame_as_they_are() {
    for (label, model) in [
        ("kind", NETWORK),
        ("price", NETWORK),
        ("kind", TREES),
        ("price", TREES),
    ] {
        let place = place(label, model);
        let has_threshold = (label, model) == ("kind", TREES);
        if has_threshold {
            // Two classes, of which one is predicted wherever it is not very improbable.
            for (file, found, other) in [
                ("train.csv", "very high", "high"),
                ("job.toml", "seed = 5", "seed = 5\nthreshold = 0.05"),
            ] {
                let text = fs::read_to_string(place.path(file)).unwrap();
                fs::write(place.path(file), text.replace(found, other)).unwrap();
            }
        }
        let (run, lines) = trained(&place);
        assert_eq!(lines.len(), 40);
        match (label, has_threshold) {
            ("kind", false) => {
                let classes = ["high", "low", "very high"];
                assert_all_probabilities_are_columns(&place, &run, &classes);
            }
            ("kind", true) => {
                assert_all_probabilities_are_columns(&place, &run, &["high", "low"]);
                let improbable = |line: &&Value| line["probability"].as_f64() < Some(0.5);
                assert!(lines.iter().filter(improbable).count() > 0, "{lines:?}");
            }
            _ => {}
        }
        let said = asked_by_mlflow(&place, &run);
        println!("{label}: {}", said["off"]);
        assert!(said["off"].as_f64().unwrap() < NEAR, "{label}: {said}");
        let types = &said["inputs"];
        assert_eq!(types["town"], "string", "{types}");
        assert_eq!(types["sold"], "any", "{types}");
        let missing = said["missing"].as_str().unwrap();
        assert!(missing.contains("town"), "{missing}");
        let wrong = said["wrong"].as_str().unwrap();
        assert!(wrong.contains("area") && wrong.contains("large"), "{wrong}");
        assert_eq!(said["example_is_a_row"], true, "{said}");
    }
}
