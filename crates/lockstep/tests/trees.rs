//! Boosted trees through the real binary: the same model on any number of workers and after any interruption, and what
//! is made of it afterwards.

mod common;

use common::{Place, Running, read_json, send};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

const JOB: &str = r#"
name = "trees"

[data]
train = { csv = "train.csv" }
test = { csv = "test.csv" }
val_split = 0.1

[model]
kind = "xgboost"
rounds = 12
depth = 4
eta = 0.3
subsample = 0.8
colsample_bytree = 0.7

[checkpoint]
every = "2 steps"
"#;

/// A table of six numbers, and a label that depends on them.
fn table(rows: usize, seed: u64, label: impl Fn(&[f64]) -> String) -> String {
    let mut state = seed;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) * 4.0 - 2.0
    };
    let mut text = "a,b,c,d,e,f,label\n".to_owned();
    for _ in 0..rows {
        let row: Vec<f64> = (0..6).map(|_| random()).collect();
        // One number in twenty is not there.
        let cell = |x: &f64| {
            if random_cell(*x) {
                String::new()
            } else {
                format!("{x:.5}")
            }
        };
        let numbers: Vec<String> = row.iter().map(cell).collect();
        text += &format!("{},{}\n", numbers.join(","), label(&row));
    }
    text
}

/// Whether a number is left out: a function of its last digits.
fn random_cell(x: f64) -> bool {
    ((x + 2.0) * 1e5) as u64 % 20 == 7
}

fn score(row: &[f64]) -> f64 {
    row[0] * row[1] + row[2] - 0.3 * row[3] * row[3]
}

fn binary(row: &[f64]) -> String {
    if score(row) > 0.0 { "yes" } else { "no" }.to_owned()
}

fn several(row: &[f64]) -> String {
    format!("class-{}", (score(row) + 6.0) as u32 / 3)
}

fn number(row: &[f64]) -> String {
    format!("{:.4}", score(row) * 100.0 + 0.5)
}

/// A place with two tables and a job of trees, in which XGBoost is found.
struct Trees(Place);

impl Trees {
    fn new(label: fn(&[f64]) -> String) -> Self {
        let place = Place::new();
        fs::write(place.path("train.csv"), table(2000, 1, label)).unwrap();
        fs::write(place.path("test.csv"), table(500, 2, label)).unwrap();
        place.write_job(JOB);
        Self(place)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
        command
    }

    fn output(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn train(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.output(&[&["run", "job.toml", "--json"], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
    }

    fn start(&self, args: &[&str], failpoints: &str) -> Running {
        let mut command = self.command(&[&["run", "job.toml", "--json"], args].concat());
        command.env("LOCKSTEP_FAILPOINTS", failpoints);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(command.spawn().unwrap())
    }
}

#[test]
fn any_number_of_workers_and_threads_grows_the_same_trees() {
    for label in [binary, several, number] {
        let place = Trees::new(label);
        let one = place.train(&[]);
        let expected = one["weights_sha256"].as_str().unwrap();
        for args in [
            ["--workers", "2", "--set", "train.threads=1"],
            ["--workers", "3", "--set", "train.threads=2"],
            ["--workers", "4", "--set", "train.threads=1"],
        ] {
            let other = place.train(&args);
            assert_eq!(other["weights_sha256"], expected, "{args:?}");
            assert_eq!(other["metrics"], one["metrics"], "{args:?}");
        }
        let run = one["run_dir"].as_str().unwrap();
        let model = fs::read(format!("{run}/model/model.ubj")).unwrap();
        assert_eq!(lockstep_fs::sha256(&model), expected);
    }
}

#[test]
fn a_worker_that_is_killed_or_stopped_costs_some_rounds_and_changes_nothing() {
    let place = Trees::new(binary);
    let expected = place.train(&[])["weights_sha256"].clone();
    for signal in [Signal::KILL, Signal::STOP] {
        let mut run = place.start(
            &["--workers", "3", "--set", "gang.deadline_s=3"],
            "round.begin=sleep:60",
        );
        let victim = run.wait_for_worker(1);
        for _ in 0..5 {
            run.wait_for("epoch");
        }
        send(victim, signal);
        let restart = run.wait_for("restart");
        let began = std::time::Instant::now();
        run.wait_for("epoch");
        eprintln!(
            "{signal:?}: {restart}; going on after {:?}",
            began.elapsed()
        );
        let (code, result, stderr) = run.finish();
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(result["weights_sha256"], expected, "{signal:?}");
        assert_eq!(result["restarts"], 1);
    }
    place.0.assert_no_process_is_left();
}

#[test]
fn a_run_that_was_stopped_goes_on_with_other_workers_to_the_same_trees() {
    let place = Trees::new(several);
    let expected = place.train(&[])["weights_sha256"].clone();
    let mut run = place.start(&["--workers", "2"], "round.begin=sleep:60");
    for _ in 0..4 {
        run.wait_for("epoch");
    }
    run.signal(Signal::INT);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let folder = result["run_dir"].as_str().unwrap().to_owned();
    let resumed = place.train(&["--resume", &folder, "--workers", "3"]);
    assert_eq!(resumed["weights_sha256"], expected);
    assert_eq!(resumed["epochs"], 12);
    let again = place.output(&["run", "job.toml", "--resume", &folder]);
    assert_eq!(again.0, Some(1));
    assert!(again.2.contains("12 rounds already"), "{}", again.2);
    let other = [
        "run",
        "job.toml",
        "--resume",
        &folder,
        "--set",
        "model.eta=0.1",
    ];
    let other = place.output(&other);
    assert!(other.2.contains("model.eta"), "{}", other.2);
}

#[test]
fn a_coordinator_that_is_killed_leaves_a_state_to_go_on_from() {
    let place = Trees::new(number);
    let expected = place.train(&[])["weights_sha256"].clone();
    let mut run = place.start(&["--workers", "2"], "round.begin=sleep:60");
    let folder = run.wait_for("started")["run_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..6 {
        run.wait_for("epoch");
    }
    run.signal(Signal::KILL);
    run.finish();
    place.0.assert_no_process_is_left();
    let resumed = place.train(&["--resume", &folder]);
    assert_eq!(resumed["weights_sha256"], expected);
}

#[test]
fn trees_are_measured_and_predict_as_pythons_xgboost_does() {
    let place = Trees::new(binary);
    let result = place.train(&["--workers", "2"]);
    assert!(
        result["metrics"]["accuracy"].as_f64().unwrap() > 0.8,
        "{result}"
    );
    let folder = result["run_dir"].as_str().unwrap().to_owned();
    let own = read_json(&std::path::Path::new(&folder).join("evaluation.json"));
    let (code, stdout, stderr) = place.output(&["evaluate", &folder, "--json", "--out", "again"]);
    assert_eq!(code, Some(0), "{stderr}");
    let again: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(again["accuracy"], own["accuracy"]);
    let predict = [
        "predict",
        &folder,
        "--data",
        "test.csv",
        "--out",
        "said.jsonl",
        "--probabilities",
    ];
    let (code, _, stderr) = place.output(&predict);
    assert_eq!(code, Some(0), "{stderr}");
    let said: Vec<Value> = fs::read_to_string(place.0.path("said.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let script = "import sys, csv, json, numpy, xgboost\n\
        rows = list(csv.reader(open(sys.argv[2])))[1:]\n\
        x = numpy.array([[float(v or 'nan') for v in row[:-1]] for row in rows], dtype='float32')\n\
        model = xgboost.Booster(model_file=sys.argv[1])\n\
        gain = model.get_score(importance_type='gain')\n\
        print(json.dumps([model.predict(xgboost.DMatrix(x)).tolist(), [gain.get(f'f{i}', 0) for i in range(6)]]))\n";
    let mut python = Command::new(lockstep_testkit::python_with_xgboost());
    python.args(["-c", script, &format!("{folder}/model/model.ubj")]);
    let answer = lockstep_testkit::succeed(python.arg(place.0.path("test.csv")));
    let (answer, gains): (Vec<f64>, Vec<f64>) = serde_json::from_str(&answer).unwrap();
    let table = fs::read_to_string(format!("{folder}/model/importance.csv")).unwrap();
    assert_eq!(table.lines().count(), 7, "{table}");
    for (column, expected) in ["a", "b", "c", "d", "e", "f"].iter().zip(gains) {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{column},")));
        let found: f64 = row.unwrap().split(',').nth(1).unwrap().parse().unwrap();
        assert!(
            (found - expected).abs() <= 1e-6 * expected,
            "{column}: {found} {expected}"
        );
    }
    assert_eq!(answer.len(), said.len());
    for (said, expected) in said.iter().zip(answer) {
        let found = said["probabilities"]["yes"].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-6, "{said} {expected}");
    }
}

#[test]
fn bad_jobs_of_trees_are_refused_by_name_and_leave_nothing() {
    let place = Trees::new(binary);
    let cases: [(&[&str], &str); 6] = [
        (
            &["--set", "model.objective=multi:softprop"],
            "model.objective",
        ),
        (
            &["--set", "model.objective=reg:squarederror"],
            "model.objective",
        ),
        (
            &["--set", "train.patience=3", "--set", "data.val_split=0.0"],
            "train.patience",
        ),
        (&["--set", "checkpoint.best=mse"], "checkpoint.best"),
        (
            &["--set", "model.parameters={ colsample_bynode = 0.5 }"],
            "colsample_bynode",
        ),
        (&["--set", "model.depht=3"], "depth"),
    ];
    for (args, word) in cases {
        let (code, _, stderr) = place.output(&[&["run", "job.toml"], args].concat());
        assert_ne!(code, Some(0), "{args:?}");
        assert!(stderr.contains(word), "{args:?}: {stderr}");
        assert_eq!(place.0.runs().len(), 0, "{args:?}");
    }
    let mut missing = place.0.command(&["run", "job.toml"]);
    missing.env("LOCKSTEP_XGBOOST", "/nowhere/libxgboost.so");
    let said = String::from_utf8(missing.output().unwrap().stderr).unwrap();
    assert!(
        said.contains("LOCKSTEP_XGBOOST") && said.contains("/nowhere"),
        "{said}"
    );
}

#[test]
fn the_newest_library_comes_without_python_and_keeps_the_promise() {
    let place = Trees::new(binary);
    let brought = |args: &[&str]| {
        let mut command = place.0.command(args);
        command.env("LOCKSTEP_CACHE", place.0.path("cache"));
        command.env("PATH", "").env_remove("LOCKSTEP_XGBOOST");
        command.output().unwrap()
    };
    let missing = brought(&["run", "job.toml"]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(
        said.contains("`lockstep data get xgboost` brings it"),
        "{said}"
    );
    for _ in 0..2 {
        let got = brought(&["data", "get", "xgboost"]);
        let said = String::from_utf8_lossy(&got.stderr);
        assert!(got.status.success(), "{said}");
        assert!(got.stdout.ends_with(b"xgboost/xgboost/lib/libxgboost.so\n"));
    }
    let hashes = ["1", "2"].map(|workers| {
        let ran = brought(&["run", "job.toml", "--json", "--workers", workers]);
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let last = String::from_utf8(ran.stdout).unwrap();
        let result: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        result["weights_sha256"].clone()
    });
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn a_search_tries_the_same_trees_on_any_number_of_workers() {
    let search = [
        "tune",
        "job.toml",
        "--json",
        "--trials",
        "4",
        "--search",
        "model.eta=log(0.01,1)",
        "--search",
        "model.depth=int(2,5)",
        "--metric",
    ];
    let found = |args: &[&str]| {
        let trees = Trees::new(binary);
        let (code, stdout, stderr) = trees.output(&[&search[..], args].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        found["trials"].clone()
    };
    let one = found(&["loss", "--workers", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 4);
    assert_eq!(one, found(&["loss", "--workers", "2", "--parallel", "2"]));
}
