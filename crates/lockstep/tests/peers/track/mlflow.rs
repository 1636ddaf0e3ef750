//! Against a real MLflow server, read back through MLflow's own client.

use super::{ask, job, killed_in_the_middle, only_run, warnings};
use crate::common::recorder::Recorder;
use crate::common::{self, EIGHT_STEPS, Place, read_json};
use lockstep_testkit::{Server, python_with_mlflow};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

fn read(server: &Server, experiment: &str) -> Vec<Value> {
    let said = ask(
        python_with_mlflow(),
        "read_mlflow.py",
        &[server.endpoint(), experiment],
    );
    said["runs"].as_array().unwrap().clone()
}

/// The only run of an experiment.
fn read_one(server: &Server, experiment: &str) -> Value {
    let runs = read(server, experiment);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}

/// All points of a metric, each a step and a value.
fn history(run: &Value, metric: &str) -> Vec<(u64, f64)> {
    let points = run["history"][metric].as_array();
    let points = points.unwrap_or_else(|| panic!("no {metric} in {}", run["history"]));
    let points = points.iter();
    points
        .map(|point| (point[0].as_u64().unwrap(), point[1].as_f64().unwrap()))
        .collect()
}

/// The points of a metric while the run went on: each step is there once. What the kept weights came to on the test set
/// is there once more at the end.
fn points(run: &Value, metric: &str) -> Vec<(u64, f64)> {
    let mut points = history(run, metric);
    if metric.starts_with("test.") && run["status"] == "FINISHED" {
        points.pop();
    }
    let steps: BTreeSet<u64> = points.iter().map(|(step, _)| *step).collect();
    let last = points.last();
    assert_eq!(
        steps.len(),
        points.len(),
        "{metric} twice, such as {last:?}"
    );
    points
}

/// Checks that MLflow has the epochs that the run's folder has.
fn has_all_epochs(run: &Value, folder: &std::path::Path) {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (name, of) in [
        ("train.loss", ["train", "loss"]),
        ("val.accuracy", ["val", "accuracy"]),
        ("test.loss", ["test", "loss"]),
    ] {
        let value = |line: &Value| line[of[0]][of[1]].as_f64();
        let expected: Vec<(u64, f64)> = lines
            .iter()
            .map(|line| (line["step"].as_u64().unwrap(), value(line).unwrap()))
            .collect();
        assert_eq!(points(run, name), expected, "{name}");
    }
}

#[test]
pub(crate) fn a_run_is_kept_with_everything_and_its_model_predicts_as_predict_does() {
    let place = Place::new();
    let server = Server::mlflow(&place.path("mlflow"), "0");
    place.write_job(&job(
        200,
        &format!(
            "[track]\nmlflow = \"{}\"\nexperiment = \"digits\"\nregister = \"small\"\nalias = \"champion\"\nwait_s = 120\n",
            server.endpoint()
        ),
    ));
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(warnings(&ran), Vec::<String>::new());
    let folder = only_run(&place);
    let name = folder.file_name().unwrap().to_str().unwrap();
    let result = read_json(&folder.join("result.json"));
    let run = read_one(&server, "digits");
    assert_eq!(
        (&run["name"], &run["status"]),
        (&json!(name), &json!("FINISHED"))
    );
    assert_eq!(run["params"]["train.optimizer.lr"], "0.05");
    assert_eq!(run["params"]["model.hidden"], "[24, 16]");
    assert_eq!(
        run["tags"]["lockstep.weights_sha256"],
        result["weights_sha256"]
    );
    assert_eq!(run["tags"]["lockstep.run"], name);
    assert!(run["tags"]["mlflow.user"].is_string());
    has_all_epochs(&run, &folder);
    assert!(!points(&run, "loss").is_empty());
    let accuracy = result["metrics"]["accuracy"].as_f64().unwrap();
    assert_eq!(history(&run, "test.accuracy").last().unwrap().1, accuracy);
    let f1 = &result["evaluation"]["macro"]["f1"];
    assert_eq!(history(&run, "test.macro.f1").last().unwrap().1, *f1);
    for file in ["evaluation.json", "confusion.svg", "result.json"] {
        assert!(run["files"].get(file).is_some(), "{file}: {}", run["files"]);
    }
    let written = fs::read_to_string(folder.join("job.toml")).unwrap();
    assert_eq!(run["job"], written);
    let sets: BTreeSet<&str> = run["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| set["tags"]["mlflow.data.context"].as_str().unwrap())
        .collect();
    assert!(sets.contains("train") && sets.contains("test"), "{sets:?}");
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let started = events.lines().find(|line| line.contains("\"started\""));
    let started: Value = serde_json::from_str(started.unwrap()).unwrap();
    for set in started["data"].as_array().unwrap() {
        let inputs = run["inputs"].as_array().unwrap().iter();
        let mut same = inputs.filter(|input| input["tags"]["mlflow.data.context"] == set["set"]);
        let digest = same.next().unwrap()["digest"].as_str().unwrap().to_owned();
        assert!(
            set["sha256"].as_str().unwrap().starts_with(&digest),
            "{set}"
        );
    }
    let models = run["models"].as_array().unwrap();
    assert!(models.len() >= 2, "checkpoints and the model: {models:?}");
    assert!(
        models.iter().all(|model| model["status"] == "READY"),
        "{models:?}"
    );
    let epoch = models
        .iter()
        .find(|model| model["name"] == "epoch-200")
        .unwrap();
    assert!(epoch["metrics"]["val.loss"].is_number(), "{epoch}");

    // The registered model, against `predict` on the same rows.
    let ran = place.run(&["predict", name, "--out", "said.jsonl", "--probabilities"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<Value> = fs::read_to_string(place.path("said.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let images = fs::read(place.path("test-images")).unwrap();
    let dims = images[3] as usize;
    let header = 4 + 4 * dims;
    let size: usize = (1..dims)
        .map(|d| u32::from_be_bytes(images[4 + 4 * d..][..4].try_into().unwrap()) as usize)
        .product();
    let rows: Vec<&[u8]> = images[header..].chunks(size).collect();
    fs::write(
        place.path("rows.json"),
        serde_json::to_string(&rows).unwrap(),
    )
    .unwrap();
    let rows_file = place.path("rows.json");
    let words = [
        server.endpoint(),
        "models:/small@champion",
        rows_file.to_str().unwrap(),
    ];
    let said = ask(python_with_mlflow(), "load_model.py", &words);
    assert_eq!(said["heavy"], json!([]), "no framework is needed");
    assert!(
        said["inputs"].as_str().unwrap().contains("object"),
        "{}",
        said["inputs"]
    );
    assert_eq!(said["of_example"].as_array().unwrap().len(), 1);
    let model = read_json(&folder.join("model/model.json"));
    let classes = model["classes"].as_array().unwrap();
    assert_eq!(said["class"].as_array().unwrap().len(), lines.len());
    for (at, line) in lines.iter().enumerate() {
        let class = said["class"][at].as_u64().unwrap() as usize;
        assert_eq!(line["predicted"], classes[class]);
        for (class, name) in classes.iter().enumerate() {
            let expected = line["probabilities"][name.as_str().unwrap()]
                .as_f64()
                .unwrap();
            let found = said["probabilities"][at][class].as_f64().unwrap();
            assert!(
                (expected - found).abs() < 1e-5,
                "row {at}: {expected} {found}"
            );
        }
    }
}

#[test]
fn a_server_that_is_killed_and_comes_back_in_mid_run_has_everything_once() {
    let place = Place::new();
    let folder = place.path("mlflow");
    let server = Server::mlflow(&folder, "0");
    let port = server.said["port"].clone();
    let sections = format!(
        "[track]\nmlflow = \"{}\"\nwait_s = 120\n",
        server.endpoint()
    );
    place.write_job(&job(100_000, &sections));
    let mut running = place.start(&[]);
    running.wait_for("epoch");
    let began = Instant::now();
    while read(&server, "small").is_empty() {
        assert!(began.elapsed() < common::LIMIT);
    }
    drop(server);
    let mut told = Value::Null;
    let began = Instant::now();
    while told.is_null() {
        assert!(began.elapsed() < common::LIMIT, "nobody was warned");
        let event = running.next().unwrap();
        if event["event"] == "warning" {
            told = event["message"].clone();
        }
    }
    assert!(
        told.as_str().unwrap().contains("lockstep runs push"),
        "{told}"
    );
    let server = Server::mlflow(&folder, &port);
    running.wait_for("epoch");
    running.signal(Signal::INT);
    let (code, _, stderr) = running.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let run = read_one(&server, "small");
    assert_eq!(run["status"], "KILLED");
    has_all_epochs(&run, &only_run(&place));
}

#[test]
fn a_coordinator_that_is_killed_goes_on_with_the_same_run_and_sends_nothing_twice() {
    let place = Place::new();
    let server = Server::mlflow(&place.path("mlflow"), "0");
    let sections = format!(
        "[track]\nmlflow = \"{}\"\nwait_s = 120\n",
        server.endpoint()
    );
    place.write_job(&job(100_000, &sections));
    killed_in_the_middle(&place);
    let epochs = fs::read_to_string(only_run(&place).join("metrics.jsonl")).unwrap();
    let more = (epochs.lines().count() + 3).to_string();
    let ran = place.run(&["run", "job.toml", "--json", "--resume", "--epochs", &more]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = read_one(&server, "small");
    assert_eq!(run["status"], "FINISHED");
    has_all_epochs(&run, &only_run(&place));
    assert_eq!(run["tags"]["lockstep.now.train.epochs"], more);
    for (name, most) in [
        ("cpu_utilization_percentage", 1e4),
        ("waiting_percentage", 100.0),
    ] {
        let points = points(&run, &format!("system/worker-1/{name}"));
        assert!(
            points.iter().all(|(_, value)| (0.0..=most).contains(value)),
            "{points:?}"
        );
    }
}

#[test]
fn a_script_is_kept_too_with_its_files_where_the_server_says_and_a_token_in_every_request() {
    let place = Place::new();
    let files = place.path("files");
    let variables = [
        "MLFLOW_SERVE_ARTIFACTS=false".to_owned(),
        format!("MLFLOW_DEFAULT_ARTIFACT_ROOT={}", files.display()),
    ];
    let server = Server::mlflow_with(&place.path("mlflow"), "0", &variables);
    let upstream = server.endpoint().trim_start_matches("http://");
    let recorder = Recorder::new(upstream);
    fs::write(place.path("train.py"), EIGHT_STEPS).unwrap();
    place.write_job(
        "name = 'script'\n[train]\ncommand = ['python3', 'train.py']\nworkers = 1\n[run]\nstore = 'runs'\n\
         [track]\nwait_s = 120\n",
    );
    let ran = place
        .command(&["run", "job.toml", "--json"])
        .env("MLFLOW_TRACKING_URI", recorder.endpoint())
        .env("MLFLOW_TRACKING_TOKEN", "secret-token")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{stderr}");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(!said.contains("\"warning\""), "{said}");
    let run = read_one(&server, "script");
    assert_eq!(run["status"], "FINISHED");
    let steps: Vec<f64> = points(&run, "step").iter().map(|(_, step)| *step).collect();
    assert_eq!(steps, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let kept: Vec<_> = common::files(&files).into_keys().collect();
    assert!(
        kept.iter().any(|path| path.ends_with("job.toml")),
        "{kept:?}"
    );
    let is_token = |line: &str| line.eq_ignore_ascii_case("authorization: bearer secret-token");
    let tokens = recorder.lines(is_token).len();
    assert_eq!(tokens, recorder.requests().len());
    let left = common::files(&only_run(&place));
    let leaked = left.iter().find(|(_, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        text.contains("secret-token")
    });
    assert_eq!(leaked.map(|(path, _)| path), None);
}

#[test]
fn a_server_that_is_away_costs_a_warning_and_a_word_on_what_it_lacks_and_not_the_run() {
    let place = Place::new();
    place.write_job(&job(2, "[track]\nmlflow = \"http://127.0.0.1:9\"\n"));
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let warnings = warnings(&ran);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with("MLflow: cannot look for a server at http://127.0.0.1:9"),
        "{warnings:?}"
    );
    let lacks = warnings[1].contains("were not sent") && warnings[1].contains("runs push");
    assert!(lacks, "{warnings:?}");
}

#[test]
fn an_earlier_run_is_pushed_once_however_often_that_is_asked() {
    let place = Place::new();
    place.write_job(&job(30, "[track]\nmlflow = \"none\"\n"));
    place.train(&[]);
    let server = Server::mlflow(&place.path("mlflow"), "0");
    let doctor = place
        .command(&["doctor", "--json"])
        .env("MLFLOW_TRACKING_URI", server.endpoint())
        .output()
        .unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    let answers = format!("\"{}/ answers\"", server.endpoint());
    assert!(
        doctor.contains(&answers) || doctor.contains(&answers.replace("/ ", " ")),
        "{doctor}"
    );
    let folder = only_run(&place);
    let words = [
        "runs",
        "push",
        folder.to_str().unwrap(),
        "--mlflow",
        server.endpoint(),
        "--set",
        "track.register=small",
    ];
    for _ in 0..2 {
        let ran = place.run(&words);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let run = read_one(&server, "small");
    assert_eq!(run["status"], "FINISHED");
    has_all_epochs(&run, &folder);
    let models = run["models"].as_array().unwrap().len();
    // Another who knows nothing of the first finds the run by its name.
    fs::remove_file(folder.join("mlflow.json")).unwrap();
    let ran = place.run(&words[..5]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = read_one(&server, "small");
    has_all_epochs(&run, &folder);
    assert!(models >= 2, "checkpoints and the model");
}
