//! Pictures and vectors in a bucket of a real S3 server, from the job file to the result.

use crate::common::recorder::Recorder;
use crate::common::{Place, Ran};
use lockstep_testkit::Server;
use serde_json::Value;

/// A CLIP that is small enough for tests, with random weights.
const CLIP: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lockstep-nn/tests/clip/quick"
);

const JOB: &str = r#"
name = "bucket"

[data]
train = "s3://data/photos/train"
val_split = 0.25
test = "s3://data/photos/test"

[storage]
endpoint = "ENDPOINT"
retries = 2
timeout_s = 20

[embed]
model = "CLIP"
store = "s3://data/vectors"
part = 16

[model]
kind = "head"
hidden = 16

[train]
epochs = 40
batch = 12
optimizer = { kind = "adam", lr = 0.01 }
workers = 2

[run]
store = "runs"
"#;

/// Runs the binary with keys for the server, or without.
fn run(place: &Place, args: &[&str], keys: Option<[&str; 2]>) -> Ran {
    let mut command = place.command(args);
    for name in [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
    ] {
        command.env_remove(name);
    }
    if let Some([id, secret]) = keys {
        command
            .env("AWS_ACCESS_KEY_ID", id)
            .env("AWS_SECRET_ACCESS_KEY", secret);
    }
    let output = command.output().unwrap();
    Ran::from(output)
}

const KEYS: Option<[&str; 2]> = Some(["AKIAEXAMPLE", "hunter2"]);

/// Puts striped pictures of two classes into the bucket.
fn upload(server: &Server) {
    for (set, count) in [("train", 20), ("test", 8)] {
        for (class, name) in ["wide", "tall"].into_iter().enumerate() {
            for number in 0..count {
                let url = format!(
                    "{}/data/photos/{set}/{name}/{number:02}.bmp",
                    server.endpoint()
                );
                let picture =
                    crate::common::bitmap::bitmap(44 + number % 5, 40, class as u32, number);
                crate::common::bitmap::put(server.address(), &url, &picture);
            }
        }
    }
}

#[test]
fn a_job_reads_pictures_from_a_bucket_and_keeps_their_vectors_there() {
    let server = Server::moto(&[]).quiet();
    upload(&server);
    let place = Place::new();
    place.write_job(
        &JOB.replace("CLIP", CLIP)
            .replace("ENDPOINT", server.endpoint()),
    );

    let ran = run(&place, &["run", "job.toml", "--json"], KEYS);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let accuracy = ran.result()["metrics"]["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.9, "stripes are told apart: {accuracy}");
    let again = run(&place, &["embed", "job.toml", "--json"], KEYS);
    let made: Vec<Value> = again
        .events()
        .into_iter()
        .filter(|event| event["event"] == "embedded")
        .collect();
    assert_eq!(made.len(), 2);
    assert!(made.iter().all(|set| set["parts_made"] == 0), "{made:?}");

    let name = "AKIAEXAMPLE";
    let missing = [
        "embed",
        "job.toml",
        "--set",
        "data.train=s3://nowhere/photos",
    ];
    let refused = run(&place, &missing, KEYS);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("no bucket `nowhere`"),
        "{}",
        refused.stderr
    );
    assert!(
        !refused.stderr.contains("hunter2") && !refused.stderr.contains(name),
        "no secret is told"
    );
}

/// Pictures that are trained on as they are.
const PIXELS: &str = r#"
name = "pixels"

[data]
train = "s3://data/photos/train"
test = "s3://data/photos/test"
transform = { resize = 16, crop = 16 }

[storage]
endpoint = "ENDPOINT"

[model]
kind = "mlp"
hidden = [8]

[train]
epochs = 2
batch = 8
optimizer = { kind = "sgd", lr = 0.01 }
workers = 3

[run]
store = "runs"
"#;

#[test]
fn a_set_in_a_bucket_is_listed_once_a_run_whatever_the_number_of_workers() {
    let server = Server::moto(&[]).quiet();
    upload(&server);
    let recorder = Recorder::new(server.address());
    let place = Place::new();
    place.write_job(&PIXELS.replace("ENDPOINT", &recorder.endpoint()));
    let listed = |set: &str| {
        let requests = recorder.requests();
        let of_set = |line: &&String| {
            let prefix = format!("prefix=photos%2F{set}");
            line.starts_with("GET ") && line.contains("list-type=2") && line.contains(&prefix)
        };
        requests.iter().filter(of_set).count()
    };
    for run_number in 1..=2 {
        let ran = run(&place, &["run", "job.toml", "--json"], KEYS);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(
            [listed("train"), listed("test")],
            [run_number; 2],
            "{:#?}",
            recorder.requests()
        );
    }
}

#[test]
fn wrong_keys_and_a_server_that_is_down_are_told_plainly() {
    let server = Server::moto(&["--auth"]).quiet();
    let place = Place::new();
    place.write_job(
        &JOB.replace("CLIP", CLIP)
            .replace("ENDPOINT", server.endpoint()),
    );
    let refused = run(&place, &["embed", "job.toml"], KEYS);
    assert_eq!(refused.code, Some(1));
    for part in ["s3://data/photos/train", "refused", "AWS_ACCESS_KEY_ID"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    drop(server);
    let down = run(&place, &["embed", "job.toml"], KEYS);
    assert_eq!(down.code, Some(1));
    assert!(down.stderr.contains("failed 3 times"), "{}", down.stderr);
}
