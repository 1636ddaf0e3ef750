//! `train.precision = "fixed16"`: the same weights wherever they are computed, and other ones than in single precision.

use crate::common::{Place, read_json};
use serde_json::Value;

const FIXED16: [&str; 2] = ["--set", "train.precision=fixed16"];

/// A network with convolutions that move by one pixel and by two, and dense layers.
const LAYERS: &str = "model={ layers = [\
    { kind = 'conv2d', out = 16, kernel = 3, padding = 1 }, { kind = 'batch-norm' }, { kind = 'relu' }, \
    { kind = 'conv2d', out = 20, kernel = 3, stride = 2 }, { kind = 'gelu' }, \
    { kind = 'conv2d', out = 20, kernel = 3, padding = 1, groups = 20 }, { kind = 'global-pool' }, \
    { kind = 'linear', out = 40 }, { kind = 'relu' }, { kind = 'linear' }] }";

/// The hash of the weights that a run with these arguments ends with, computed by this engine.
fn weights_by(place: &Place, engine: &str, args: &[&str]) -> String {
    let job = ["run", "job.toml", "--json"];
    let mut command = place.command(&[&job[..], args].concat());
    let output = command.env("LOCKSTEP_FIXED16", engine).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let result: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    result["weights_sha256"].as_str().unwrap().to_owned()
}

#[test]
fn it_gives_the_same_weights_on_any_workers_threads_and_engines_and_after_a_power_cut() {
    let place = Place::new();
    let always = [&FIXED16[..], &["--set", LAYERS, "--set", "train.lanes=4"]].concat();
    let short = ["--set", "train.batch=250", "--epochs", "1"];
    let weights = |more: &[&str], engine: &str| {
        weights_by(&place, engine, &[&always[..], &short, more].concat())
    };
    let expected = weights(&["--workers", "1"], "avx2");
    assert_eq!(weights(&["--workers", "2"], "vnni"), expected);
    assert_eq!(weights(&["--workers", "4"], "amx"), expected);
    let threads = ["--workers", "1", "--set", "train.threads=4"];
    assert_eq!(weights(&threads, "amx"), expected);
    let single = ["--set", "train.precision=f32"];
    assert_ne!(
        weights(&[&single[..], &["--workers", "2"]].concat(), "amx"),
        expected
    );
}

/// All kinds of layers that products are computed for, and those between them.
const ALL_LAYERS: &str = "model={ layers = [\
    { kind = 'conv2d', out = 12, kernel = 5, stride = 2, padding = 2 }, { kind = 'batch-norm' }, { kind = 'relu' }, \
    { kind = 'residual', body = [{ kind = 'conv2d', out = 12, kernel = 3, padding = 1 }, { kind = 'batch-norm' }] }, \
    { kind = 'conv2d', out = 24, kernel = 1, stride = 2 }, { kind = 'gelu' }, { kind = 'dropout', p = 0.1 }, \
    { kind = 'conv2d', out = 24, kernel = 3, padding = 1, groups = 4 }, { kind = 'layer-norm' }, { kind = 'relu' }, \
    { kind = 'max-pool', kernel = 2 }, { kind = 'linear', out = 40 }, { kind = 'relu' }, \
    { kind = 'linear' }] }";

#[test]
#[ignore = "takes minutes: make test-long"]
fn over_500_steps_it_gives_the_same_weights_on_any_workers_threads_and_engines_and_after_a_kill() {
    let place = Place::new();
    let layers = ["--set", ALL_LAYERS, "--set", "train.lanes=4"];
    // 32 steps an epoch.
    let long = ["--set", "train.batch=32", "--epochs", "20"];
    let always = [&FIXED16[..], &layers, &long].concat();
    let weights =
        |more: &[&str], engine: &str| weights_by(&place, engine, &[&always[..], more].concat());
    let expected = weights(&["--workers", "1"], "amx");
    for (workers, threads, engine) in [("1", "4", "vnni"), ("2", "1", "avx2"), ("4", "1", "amx")] {
        let threads = format!("train.threads={threads}");
        let on = ["--workers", workers, "--set", &threads];
        assert_eq!(weights(&on, engine), expected, "{on:?} by {engine}");
    }
    let saved = ["--set", "checkpoint.every=50 steps"];
    place.cut_off(&[&always[..], &saved].concat());
    let resumed = [&saved[..], &["--resume", "--workers", "2"]].concat();
    assert_eq!(weights(&resumed, "vnni"), expected, "after a kill");
}

#[test]
fn a_run_that_was_cut_off_ends_with_the_same_weights_and_not_in_another_precision() {
    let place = Place::new();
    let saved = [&FIXED16[..], &["--set", "checkpoint.every=1 step"]].concat();
    let expected = place.weights(&saved);
    place.cut_off(&saved);
    let resume = ["run", "job.toml", "--json", "--resume"];
    place.refused(&resume, &["train.precision", "fixed16", "f32", "--fork"]);
    let ran = place.succeeds(&[&resume[..], &saved].concat());
    assert_eq!(ran.result()["weights_sha256"], expected.as_str());
    let name = ran.result()["run"].as_str().unwrap().to_owned();
    place.succeeds(&["run", "job.toml", "--json", "--resume", &name, "--fork"]);
}

#[test]
fn the_plan_says_what_computes_it() {
    let place = Place::new();
    let plan = ["run", "job.toml", "--dry-run"];
    let said = place.said(&[&plan[..], &FIXED16].concat());
    assert!(said.contains("fixed16, here by "), "{said}");
    let slow = place.command(&[&plan[..], &FIXED16].concat());
    let output = { slow }.env("LOCKSTEP_FIXED16", "avx2").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("no AMX"), "{said}");
    // A GPU of a worker has matrix units of its own, so that what is here says nothing.
    let on_gpu = [&FIXED16[..], &["--set", "train.device=cuda"]].concat();
    let said = place.said(&[&plan[..], &on_gpu].concat());
    assert!(
        !said.contains("here by ") && !said.contains("AMX"),
        "{said}"
    );
}

#[test]
fn a_network_of_one_precision_can_be_asked_in_the_other() {
    let place = Place::new();
    let [single, fixed] = [&[][..], &FIXED16].map(|args| {
        let result = place.train(args);
        result["run"].as_str().unwrap().to_owned()
    });
    let said = |run: &str, args: &[&str]| {
        let predict = [&["predict", run, "--out", "-", "--probabilities"], args].concat();
        place.succeeds(&predict).stdout
    };
    let (own, other) = (
        said(&single, &[]),
        said(&single, &["--precision", "fixed16"]),
    );
    assert_ne!(own, other);
    assert_eq!(said(&single, &["--precision", "f32"]), own);
    let (own, other) = (said(&fixed, &[]), said(&fixed, &["--precision", "f32"]));
    assert_ne!(own, other);
    assert_eq!(said(&fixed, &["--precision", "fixed16"]), own);
    // By a little: the classes are the same but for a few.
    let class = |line: &str| serde_json::from_str::<Value>(line).unwrap()["class"].clone();
    let pairs = own.lines().zip(other.lines());
    let differing = pairs
        .filter(|(own, other)| class(own) != class(other))
        .count();
    assert!(differing * 50 <= own.lines().count(), "{differing}");
    // What a run says of its own test set stays.
    let record = place.path("runs").join(&single).join("evaluation.json");
    let before = read_json(&record);
    place.succeeds(&["evaluate", &single, "--precision", "fixed16"]);
    assert_eq!(read_json(&record), before);
}

#[test]
fn what_was_trained_in_it_is_evaluated_in_it() {
    let place = Place::new();
    let result = place.train(&FIXED16);
    let name = result["run"].as_str().unwrap();
    let ran = place.succeeds(&["evaluate", name, "--json"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let folder = place.runs().remove(0);
    assert_eq!(found, read_json(&folder.join("evaluation.json")));
    let card = read_json(&folder.join("model/model.json"));
    assert_eq!(card["precision"], "fixed16");
}
