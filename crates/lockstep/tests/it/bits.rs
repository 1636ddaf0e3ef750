//! The promise of the name: the same weights, to the bit, however the work is spread.

use crate::common::Place;
use serde_json::Value;

/// Trains with each set of arguments and fails unless all end with the same weights.
fn assert_same_weights(place: &Place, always: &[&str], variants: &[&[&str]]) {
    let train = |variant: &[&str]| place.weights(&[always, variant].concat());
    let first = train(variants[0]);
    for variant in &variants[1..] {
        assert_eq!(
            train(variant),
            first,
            "{variant:?} against {:?}",
            variants[0]
        );
    }
}

const ONE: &[&str] = &["--workers", "1"];
const TWO: &[&str] = &["--workers", "2"];
const THREE: &[&str] = &["--workers", "3"];
const TCP_TWO: &[&str] = &["--workers", "2", "--set", "gang.transport=tcp"];
const TCP_THREE: &[&str] = &["--workers", "3", "--set", "gang.transport=tcp"];

#[test]
fn two_lanes_give_the_same_weights_on_one_and_two_workers_and_again() {
    assert_same_weights(&Place::new(), &[], &[ONE, TWO, TWO, TCP_TWO]);
}

#[test]
fn six_lanes_give_the_same_weights_on_one_two_and_three_workers() {
    let lanes = ["--set", "train.lanes=6"];
    assert_same_weights(&Place::new(), &lanes, &[ONE, TWO, THREE, TCP_THREE]);
}

#[test]
fn three_lanes_and_a_short_last_batch_give_the_same_weights() {
    // 1,003 samples at batch 32 leave 11 for the last.
    let lanes = ["--set", "train.lanes=3"];
    assert_same_weights(&Place::new(), &lanes, &[ONE, TWO, THREE, TCP_TWO]);
}

/// Layers wide enough, and a batch small enough, that gradients are exchanged as their factors.
const WIDE: [&str; 6] = [
    "--set",
    "model.hidden=[200, 150]",
    "--set",
    "train.batch=12",
    "--set",
    "train.lanes=6",
];

#[test]
fn gradients_exchanged_as_factors_give_the_same_weights() {
    // 1,003 samples at batch 12 leave 7 for the last: one lane of six has two rows.
    let slower = ["--workers", "6"];
    assert_same_weights(&Place::new(), &WIDE, &[ONE, TWO, THREE, TCP_THREE, &slower]);
}

#[test]
fn a_last_batch_with_fewer_rows_than_lanes_gives_the_same_weights() {
    // 1,003 samples at batch 10 leave 3 for the last: three lanes of six have none.
    let always = [&WIDE[..], &["--set", "train.batch=10"]].concat();
    let six = ["--workers", "6"];
    assert_same_weights(&Place::new(), &always, &[ONE, TWO, &six, TCP_THREE]);
}

#[test]
fn a_lane_without_rows_that_completes_a_sum_loses_nothing() {
    // 1,003 samples at batch 111 leave 4 for the last: of six lanes, 0 and 3 have no row.
    let always = ["--set", "train.lanes=6", "--set", "train.batch=111"];
    assert_same_weights(&Place::new(), &always, &[ONE, TWO, THREE, TCP_THREE]);
    let wide = [&WIDE[..], &["--set", "train.batch=111"]].concat();
    let whole = ["--workers", "3", "--set", "train.clip_norm=1e30"];
    assert_same_weights(&Place::new(), &wide, &[ONE, TWO, &whole]);
}

#[test]
fn factors_and_whole_gradients_give_the_same_weights() {
    // A bound that is never reached changes nothing, but clipping needs the whole gradients.
    let unclipped = ["--workers", "2"];
    let clipped = ["--workers", "2", "--set", "train.clip_norm=1e30"];
    assert_same_weights(&Place::new(), &WIDE, &[&unclipped, &clipped]);
}

#[test]
fn a_first_layer_computed_by_columns_gives_the_same_weights() {
    // A last batch of 3 rows leaves three lanes of six without any.
    let lanes = [
        "--epochs",
        "1",
        "--set",
        "train.lanes=6",
        "--set",
        "train.batch=10",
    ];
    let always = [&lanes[..], &["--set", "model.hidden=[3100, 16]"]].concat();
    let six = ["--workers", "6"];
    let whole_gradients = ["--workers", "2", "--set", "train.clip_norm=1e30"];
    let variants: [&[&str]; 6] = [ONE, TWO, THREE, TCP_THREE, &six, &whole_gradients];
    assert_same_weights(&Place::new(), &always, &variants);
}

#[test]
fn a_slow_worker_is_relieved_by_the_others_where_memory_is_shared_with_the_same_weights() {
    let place = Place::new();
    let train = |transport: &[&str], failpoints: &str| {
        let job = ["run", "job.toml", "--json", "--epochs", "1"];
        let args = [&job[..], &["--set", crate::common::BY_COLUMNS], transport].concat();
        let mut command = place.command(&args);
        let output = command.env("LOCKSTEP_FAILPOINTS", failpoints).output();
        let stdout = String::from_utf8(output.unwrap().stdout).unwrap();
        let result: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        let weights = result["weights_sha256"].as_str().unwrap().to_owned();
        (weights, result["timing"]["train_s"].as_f64().unwrap())
    };
    let slow = "update.before@rank1=sleep:10";
    let (expected, plain) = train(TWO, "");
    let (relieved, fast) = train(TWO, slow);
    let (alone, slow) = train(TCP_TWO, slow);
    assert_eq!(relieved, expected);
    assert_eq!(alone, expected);
    // What the sleeps cost, without what this machine takes to compute.
    assert!(
        2.0 * (fast - plain) < slow - plain,
        "{plain:.2} s, {fast:.2} s relieved, {slow:.2} s without"
    );
}

#[test]
fn several_threads_in_a_worker_give_the_same_weights() {
    let always = [
        "--set",
        "model.hidden=[300, 300]",
        "--set",
        "train.batch=128",
        "--set",
        "train.lanes=4",
    ];
    // The default is as many as there are cores for.
    let set = |workers, threads| ["--workers", workers, "--set", threads];
    let all = [
        set("1", "train.threads=4"),
        set("2", "train.threads=2"),
        set("4", "train.threads=1"),
    ];
    let [one, two, four] = all.each_ref().map(|args| &args[..]);
    assert_same_weights(&Place::new(), &always, &[&[], one, two, four]);
}

#[test]
fn batch_norm_adam_clipping_and_a_schedule_give_the_same_weights() {
    let always = [
        "--set",
        "train.lanes=3",
        "--set",
        "model.batch_norm=true",
        "--set",
        "train.optimizer={ kind = \"adamw\", lr = 0.01 }",
        "--set",
        "train.clip_norm=0.5",
        "--set",
        "train.schedule={ kind = \"cosine\", warmup_steps = 5 }",
    ];
    assert_same_weights(&Place::new(), &always, &[ONE, THREE, TCP_TWO]);
}

#[test]
fn another_seed_and_another_number_of_lanes_give_other_weights() {
    let place = Place::new();
    let weights = place.weights(&[]);
    assert_ne!(place.weights(&["--set", "train.seed=1"]), weights);
    assert_ne!(place.weights(&["--set", "train.lanes=3"]), weights);
}

#[test]
fn eight_lanes_give_the_same_weights_on_one_to_eight_workers() {
    let always = ["--set", "train.lanes=8"];
    let workers = ["1", "2", "3", "4", "5", "8"].map(|workers| ["--workers", workers]);
    let workers = workers.each_ref().map(|args| &args[..]);
    assert_same_weights(&Place::new(), &always, &workers);
}

#[test]
fn the_loss_by_step_is_that_of_the_last_steps_and_the_same_on_any_number_of_workers() {
    let place = Place::new();
    let told = |workers: &str| {
        let args = ["run", "job.toml", "--json", "--workers", workers];
        let ran = place.succeeds(&[&args[..], &["--set", "train.lanes=6"]].concat());
        let events = ran.events();
        let of = |kind: &'static str| events.iter().filter(move |event| event["event"] == kind);
        // The last step of an epoch is always told.
        let at_ends = of("progress").filter(|told| told["step"] == told["steps"]);
        let by_step: Vec<Value> = at_ends.map(|told| told["loss"].clone()).collect();
        let by_epoch: Vec<Value> = of("epoch")
            .map(|told| told["train"]["loss"].clone())
            .collect();
        (by_step, by_epoch)
    };
    let (by_step, by_epoch) = told("1");
    assert_eq!(by_step.len(), by_epoch.len());
    let differ = |(step, epoch): (&Value, &Value)| step.is_number() && step != epoch;
    assert!(
        by_step.iter().zip(&by_epoch).all(differ),
        "{by_step:?} {by_epoch:?}"
    );
    assert_eq!(told("3"), (by_step, by_epoch));
}
