//! The dashboard in a real Chromium: every page, both colour schemes and a phone, a curve that grows, a log that is
//! followed, jobs that are stopped, runs that are compared. The script is
//! `crates/lockstep-testkit/browser/dashboard.mjs`.

use crate::common::Place;
use crate::common::serve::Serve;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Makes a run of 64 steps last until its workers have said twice what they take of the machine, which they do every five
/// seconds.
const LONG: &str = "step.begin=sleep:170";

/// Trains two runs that differ in one parameter, the first with these failpoints, and makes a model of it; their names.
fn two_runs(place: &Place, failpoints: &str) -> Vec<String> {
    let name = |args: &[&str]| place.train(args)["run"].as_str().unwrap().to_owned();
    let mut first = place.command(&["run", "job.toml", "--json"]);
    let output = first
        .env("LOCKSTEP_FAILPOINTS", failpoints)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let result: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let runs = vec![
        result["run"].as_str().unwrap().to_owned(),
        name(&["--set", "train.optimizer.lr=0.1", "--epochs", "3"]),
    ];
    let ran = place.run(&["models", "register", "stripes", &runs[0], "--store", "runs"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    runs
}

/// Submits a job; its id.
fn submit(server: &Serve, entrypoint: &str) -> String {
    let answer = server.post("/api/jobs/", &json!({ "entrypoint": entrypoint }));
    answer.ok().json()["submission_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn settled(server: &Serve, id: &str) -> Value {
    for _ in 0..600 {
        let job = server.get(&format!("/api/v1/jobs/{id}")).ok().json();
        if job["status"] != "PENDING" && job["status"] != "RUNNING" {
            return job;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("job {id} does not end");
}

#[test]
fn people_see_runs_and_jobs_in_a_real_browser() {
    let place = Place::new();
    let runs = two_runs(&place, LONG);
    let server = Serve::start(&place, &["--cpus", "4"]);
    let job = submit(&server, "echo hello; echo 'ERROR: not really' >&2; exit 3");
    assert_eq!(settled(&server, &job)["exit_code"], 3);
    let file = place.path("job.toml");
    let told = json!({
        "url": server.url(),
        "runs": runs,
        "model": "stripes",
        "job": job,
        "slow": format!("lockstep run {} --epochs 100000", file.display()),
        "only": std::env::var("ONLY").ok(),
    });
    let said = lockstep_testkit::browse("dashboard.mjs", &told);
    print!("{said}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_pages_ask_is_answered_and_a_name_is_never_a_path() {
    let place = Place::new();
    let runs = two_runs(&place, "");
    let server = Serve::start(&place, &[]);
    let get = |path: &str| server.get(&format!("/api/v1/{path}")).ok().json();
    let list = get("runs?sort=accuracy&columns=optimizer.lr&filter=lr%20%3E%200.01");
    assert_eq!(
        (list["chosen"].as_u64(), list["total"].as_u64()),
        (Some(2), Some(2))
    );
    assert!(list["runs"][0]["values"]["optimizer.lr"].is_number());
    let curves = get(&format!(
        "curves?runs={},{}&names=train.loss&width=1",
        runs[0], runs[1]
    ));
    let loss = &curves[1]["series"][0];
    assert_eq!(
        (&loss["name"], &loss["points"]),
        (&json!("train.loss"), &json!(3))
    );
    let lists = ["x", "y", "low", "high"].map(|list| loss[list].as_array().unwrap().len());
    assert_eq!(lists, [1; 4]);
    assert!(loss["low"][0].as_f64() < loss["high"][0].as_f64());
    let run = get(&format!("runs/{}", runs[0]));
    assert_eq!(run["models"][0], "stripes@1");
    assert_eq!(run["has_evaluation"], true);
    let picture = server.get(&format!("/api/v1/runs/{}/mistakes", runs[0]));
    assert!(picture.status == 404 || picture.body.starts_with(b"\x89PNG"));
    // The words of a client become no path, and a mistake is told with what would be right.
    for path in [
        "runs/..%2F..%2Fetc",
        "runs/%2Fetc%2Fpasswd/log",
        "runs/.server",
        "runs/index.sqlite/evaluation",
        "curves?runs=../x",
        "models/..%2Fx",
        "benchmarks/..",
        "jobs/..%2Fx/log",
        "jobs/x",
        "live?job=..%2Fx",
    ] {
        let answer = server.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    let wrong = server.get("/api/v1/runs?filter=acuracy%20%3E%201");
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.text().contains("did you mean `accuracy`"),
        "{}",
        wrong.text()
    );
    // A tag is there at once, and for `lockstep runs` too.
    let said = json!({ "tags": { "good": "" }, "note": "<b>first</b>" });
    server
        .post(&format!("/api/v1/runs/{}/tags", runs[0]), &said)
        .ok();
    assert_eq!(get("runs?filter=tag.good")["chosen"], 1);
    assert!(
        place
            .run(&["runs", "list", "tag.good"])
            .stdout
            .contains(&runs[0])
    );
}

#[test]
fn files_of_pages_are_small_sent_once_and_allow_nothing_from_elsewhere() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let document = server.get("/runs/any").ok();
    let policy = document
        .header("content-security-policy")
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(!document.text().contains("//cdn") && !document.text().contains("<style"));
    let mut paths = vec!["/".to_owned()];
    let text = document.text();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\"/assets/") {
        rest = &rest[at + 1..];
        paths.push(rest[..rest.find('"').unwrap()].to_owned());
    }
    // What the overview brings beside what the document names.
    paths.extend(
        [
            "pages/overview",
            "curve/chart",
            "curve/series",
            "curve/scale",
            "machine",
        ]
        .map(|name| format!("/assets/js/{name}.js")),
    );
    paths.push("/api/v1/overview".to_owned());
    let mut bytes = 0;
    for path in &paths {
        let answer = server.send("GET", path, &[("Accept-Encoding", "gzip")], b"");
        bytes += answer.ok().body.len();
    }
    assert!(bytes < 150_000, "the first page has {bytes} bytes");
    println!("the first page: {bytes} bytes in {} files", paths.len());
    let tag = document.header("etag").unwrap().to_owned();
    let again = server.send("GET", "/", &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    for path in [
        "/assets/../Cargo.toml",
        "/assets/index.html",
        "/assets/%2e%2e/x",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn news_are_pushed_and_a_server_with_open_pages_still_ends() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let mut page = server.connect();
    let ask = format!(
        "GET /api/v1/live?machine=true HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    std::io::Write::write_all(&mut page, ask.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut wait_for = |words: &str| {
        let mut piece = [0; 65536];
        while !heard.contains(words) {
            let read = page.read(&mut piece).unwrap();
            assert!(read > 0, "{words:?} did not come: {heard}");
            heard += &String::from_utf8_lossy(&piece[..read]);
        }
    };
    wait_for("event: hello");
    wait_for("event: machine");
    submit(&server, "true");
    wait_for("event: jobs");
    place.train(&[]);
    wait_for("event: runs");
    assert_eq!(server.stop(), Some(0));
}

/// Fashion-MNIST, as far as a picture needs it.
const FASHION: &str = r#"
name = "fashion"

[data]
train = "fashion-mnist:train"
test = "fashion-mnist:test"
val_split = 0.1

[model]
kind = "mlp"
hidden = [256, 128]
dropout = 0.2

[train]
epochs = 6
batch = 128
optimizer = { kind = "sgd", lr = 0.02, momentum = 0.9 }
workers = 2
lanes = 2

[run]
store = "runs"
"#;

#[test]
#[ignore = "takes pictures of real runs: `make screenshots`"]
fn screenshots() {
    let place = Place::new();
    let sets = crate::common::fashion_mnist();
    std::fs::create_dir_all(place.path("cache")).unwrap();
    std::os::unix::fs::symlink(sets.parent().unwrap(), place.path("cache/datasets")).unwrap();
    place.write_job(FASHION);
    let name = |args: &[&str]| place.train(args)["run"].as_str().unwrap().to_owned();
    let runs = vec![
        name(&[]),
        name(&["--set", "train.optimizer.lr=0.1"]),
        name(&[
            "--set",
            "train.batch=32",
            "--set",
            "train.optimizer.lr=0.005",
        ]),
    ];
    for run in &runs[..2] {
        let ran = place.run(&["models", "register", "fashion", run, "--store", "runs"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    place.run(&["models", "promote", "fashion@2", "--store", "runs"]);
    place.run(&["runs", "tag", &runs[1], "good", "--store", "runs"]);
    let server = Serve::start(&place, &["--cpus", "3"]);
    settled(&server, &submit(&server, "echo failing; exit 3"));
    settled(&server, &submit(&server, "echo done"));
    let file = place.path("job.toml");
    let long = |lr: &str| {
        let file = file.display();
        format!("lockstep run {file} --epochs 60 --set train.optimizer.lr={lr}")
    };
    let job = submit(&server, &long("0.02"));
    submit(&server, &long("0.05"));
    for _ in 0..4 {
        submit(&server, &long("0.01"));
    }
    let live = (0..600)
        .find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            let job = server.get(&format!("/api/v1/jobs/{job}")).ok().json();
            job["runs"][0].as_str().map(str::to_owned)
        })
        .expect("a run that was submitted");
    std::thread::sleep(Duration::from_secs(20));
    let out = std::env::var("OUT").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&out).unwrap();
    let told = json!({
        "url": server.url(), "runs": runs, "live": live, "job": job, "model": "fashion", "out": out,
        "only": std::env::var("ONLY").ok(),
    });
    print!("{}", lockstep_testkit::browse("screenshots.mjs", &told));
    for job in server.get("/api/v1/jobs").ok().json()["jobs"]
        .as_array()
        .unwrap()
    {
        let ids = json!({ "action": "stop", "ids": [job["id"]] });
        server.post("/api/v1/jobs/actions", &ids).ok();
    }
    settled(&server, &job);
}
