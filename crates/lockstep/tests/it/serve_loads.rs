//! What the server has in memory, and how soon it answers, while somebody tries to use it up.

use crate::common::serve::{Serve, token};
use crate::common::serve_jobs::{ended, submit, until};
use crate::common::{AT_ONCE, LIMIT, Place};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The most memory that the server may have, in MiB.
const MOST_MIB: u64 = 256;

/// Says what was measured, for whoever wants the figures, and that it is within its bounds.
fn check(serve: &Serve, load: &str) {
    let (memory, answer) = (serve.memory_mib(), serve.answers_in());
    println!(
        "{load}: {memory} MiB, /healthz in {:.0} ms",
        answer.as_secs_f64() * 1e3
    );
    assert!(memory < MOST_MIB, "{load}: {memory} MiB");
    assert!(answer < AT_ONCE, "{load}: {answer:?}");
}

/// Waits until a condition holds.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends the head of a request and a part of its body, and nothing more.
fn unfinished(serve: &Serve, path: &str, headers: &str, sent: usize, of: usize) -> TcpStream {
    let mut stream = serve.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {of}\r\n\r\n",
        serve.address
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&vec![b'a'; sent]);
    stream
}

#[test]
fn bodies_that_never_end_take_little_memory() {
    let place = Place::new();
    let anna = token(&place, "anna", "submit");
    let serve = Serve::start(&place, &["--require-token"]);
    let (most, almost) = (16 << 20, (16 << 20) - 1);
    let door: Vec<_> = (0..40)
        .map(|_| unfinished(&serve, "/login", "", almost, most))
        .collect();
    check(&serve, "40 unfinished bodies of 16 MiB to /login");
    let bearer = format!("Authorization: Bearer {anna}\r\n");
    let (most, almost) = (2 << 20, (2 << 20) - 1);
    let jobs: Vec<_> = (0..100)
        .map(|_| unfinished(&serve, "/api/jobs/", &bearer, almost, most))
        .collect();
    check(&serve, "100 unfinished jobs of 2 MiB");
    drop((door, jobs));
    wait("a job is taken", || {
        serve
            .post_as(&anna, "/api/jobs/", &json!({"entrypoint": "true"}))
            .status
            == 200
    });
}

#[test]
fn a_search_is_no_larger_in_memory_than_it_may_be() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let search = "/api/2.0/mlflow/runs/search";
    let large = format!("{{\"experiment_ids\":[{}[]]}}", "[],".repeat(5 << 20));
    assert_eq!(
        serve.send("POST", search, &[], large.as_bytes()).status,
        413
    );
    let dense = format!("{{\"x\":[{}[]]}}", "[],".repeat(80_000));
    let kind = [("Content-Type", "application/json")];
    let refused = serve.send("POST", search, &kind, dense.as_bytes());
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("values"), "{}", refused.text());
    let batch = "/api/2.0/mlflow/runs/log-batch";
    let dense = format!("{{\"x\":[{}[]]}}", "[],".repeat(690_000));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| serve.send("POST", batch, &kind, dense.as_bytes()));
        }
    });
    check(&serve, "20 dense bodies of 2 MiB at once");
}

#[test]
fn logs_that_nobody_reads_stay_on_the_disk() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    // Each byte becomes six in JSON.
    submit(&serve, "one", "head -c 16000000 /dev/zero");
    assert_eq!(ended(&serve, "one")["status"], "SUCCEEDED");
    let ask = |path: &str| {
        let mut stream = serve.connect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", serve.address);
        stream.write_all(head.as_bytes()).unwrap();
        // It has begun to answer.
        stream.read_exact(&mut [0; 1]).unwrap();
        stream
    };
    let whole: Vec<_> = (0..30).map(|_| ask("/api/jobs/one/logs")).collect();
    check(&serve, "30 unread logs of 16 MB");
    let parts: Vec<_> = (0..60)
        .map(|_| ask("/api/v1/jobs/one/log?most=4194304"))
        .collect();
    check(&serve, "60 unread parts of a log");
    drop((whole, parts));
    let all = serve.get("/api/jobs/one/logs").ok().json();
    let text = all["logs"].as_str().unwrap();
    assert!(text.len() == 16_000_000 && text.bytes().all(|byte| byte == 0));
    wait("memory comes back", || serve.memory_mib() < 128);
}

#[test]
fn huge_files_in_a_runs_folder_are_not_read() {
    let place = Place::new();
    place.train(&["--epochs", "1"]);
    let run = place.runs().remove(0);
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let serve = Serve::start(&place, &[]);
    for file in [
        "job.toml",
        "origin.json",
        "result.json",
        "tags.json",
        "evaluation.json",
        ".lock",
        "mlflow-run.json",
    ] {
        let path = run.join(file);
        let kept = fs::read(&path).ok();
        let sparse = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        sparse.set_len(2 << 30).unwrap();
        for page in [
            "/api/v1/overview",
            "/api/v1/runs",
            &format!("/api/v1/runs/{name}"),
            "/metrics",
        ] {
            serve.get(page);
        }
        let search = json!({"experiment_ids": ["0"]});
        serve.post("/api/2.0/mlflow/runs/search", &search);
        check(&serve, &format!("{file} of 2 GiB"));
        match kept {
            Some(kept) => fs::write(&path, kept).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    let events = File::options()
        .append(true)
        .open(run.join("events.jsonl"))
        .unwrap();
    events.set_len(2 << 30).unwrap();
    serve.get(&format!("/api/v1/runs/{name}"));
    check(&serve, "events.jsonl of 2 GiB");
    let folder = place.path("runs/comparison-1");
    fs::create_dir(&folder).unwrap();
    File::create(folder.join("comparison.json"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    serve.get("/api/v1/benchmarks").ok();
    check(&serve, "comparison.json of 2 GiB");
}

/// A websocket that follows a job's log.
fn follow(serve: &Serve, id: &str) -> Option<TcpStream> {
    let mut stream = serve.connect();
    let head = format!(
        "GET /api/jobs/{id}/logs/tail HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        serve.address
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).ok()?;
    status.ends_with(b"101").then_some(stream)
}

#[test]
fn logs_that_are_followed_are_connections_and_leave_room_for_jobs() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    submit(&serve, "long", "echo begun; sleep 600");
    until(&serve, "long", &["RUNNING"]);
    let followed: Vec<_> = (0..200).map_while(|_| follow(&serve, "long")).collect();
    println!("{} logs are followed", followed.len());
    assert!((64..=128).contains(&followed.len()), "{}", followed.len());
    let watches = fs::read_dir(format!("/proc/{}/fd", serve.pid())).unwrap();
    let watches = watches.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let watches = watches
        .filter(|to| to.to_str() == Some("anon_inode:inotify"))
        .count();
    assert!(watches <= 4, "{watches} inotify descriptors");
    check(&serve, "128 logs are followed");
    // Pages that listen count as well.
    assert_eq!(serve.get("/api/v1/live").status, 503);
    submit(&serve, "short", "true");
    assert_eq!(ended(&serve, "short")["status"], "SUCCEEDED");
    serve.post("/api/jobs/long/stop", &json!({})).ok();
    ended(&serve, "long");
    drop(followed);
    wait("others may follow", || follow(&serve, "long").is_some());
}

#[test]
fn many_small_jobs_at_once_all_succeed() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--cpus", "200"]);
    // Whoever opens it waits for one who writes.
    let go = place.path("go");
    lockstep_testkit::succeed(Command::new("mkfifo").arg(&go));
    for number in 0..135 {
        let waits = format!(": < {}", go.display());
        submit(&serve, &format!("j{number}"), &waits);
    }
    wait("all run", || {
        let jobs = serve.get("/api/v1/jobs").ok().json();
        jobs["counts"]["running"] == 135 || jobs["counts"]["failed"] != 0
    });
    let written = File::options().write(true).open(&go).unwrap();
    for number in 0..135 {
        let job = ended(&serve, &format!("j{number}"));
        assert_eq!(job["status"], "SUCCEEDED", "{job}");
    }
    drop(written);
}

#[test]
fn two_addresses_do_not_keep_all_others_out() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let script = "import socket,sys\nheld=[]\nfor n in range(600):\n s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),60,\
                  ('127.0.0.%d'%(2+n%2),0))\n try: s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: loc')\n except OSError: pass\n \
                  held.append(s)\nprint('ready',flush=True)\nsys.stdin.read()";
    let mut held = Command::new("python3")
        .args(["-c", script])
        .arg(serve.address.port().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    held.stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 5])
        .unwrap();
    check(&serve, "600 connections of two addresses that say nothing");
    drop(held.stdin.take());
    held.wait().unwrap();
}

#[test]
fn a_slow_disk_holds_up_only_those_who_wait_for_it() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--store", "runs", "--port", "0"]);
    command.env("LOCKSTEP_FAILPOINTS", "fs.sync=sleep:1000000");
    let serve = Serve::of(command);
    let (body, run) = (json!({"entrypoint": "true"}), json!({}));
    std::thread::scope(|scope| {
        let jobs = (0..4).map(|_| scope.spawn(|| serve.post("/api/jobs/", &body).status));
        let jobs: Vec<_> = jobs.collect();
        let runs =
            (0..4).map(|_| scope.spawn(|| serve.post("/api/2.0/mlflow/runs/create", &run).status));
        let runs: Vec<_> = runs.collect();
        for _ in 0..20 {
            serve.answers_in();
            serve.get("/api/v1/jobs").ok();
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(!jobs.iter().chain(&runs).any(|one| one.is_finished()));
        place.wake();
        for one in jobs.into_iter().chain(runs) {
            assert_eq!(one.join().unwrap(), 200);
        }
    });
    // Whoever still wrote when the file that wakes is removed would sleep again.
    wait("all jobs have ended", || {
        serve.get("/api/v1/jobs").ok().json()["counts"]["succeeded"] == 4
    });
}

#[test]
fn a_download_is_of_one_version() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let run = serve.make_run();
    let path = format!("/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts/large");
    let size = 64 << 20;
    serve.send("PUT", &path, &[], &vec![b'a'; size]).ok();
    let mut stream = serve.connect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        serve.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut begun = vec![0; 4096];
    stream.read_exact(&mut begun).unwrap();
    serve.send("PUT", &path, &[], &vec![b'b'; size]).ok();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let body = rest.iter().filter(|byte| **byte == b'b').count();
    assert_eq!(body, 0, "{body} bytes are of another version");
    assert!(rest.len() > size - 4096);
}

#[test]
fn a_run_whose_end_could_not_be_written_in_full_is_over_for_everybody() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let run = serve.make_run();
    let record = place.path("runs").join(&run).join("mlflow-run.json");
    let before = fs::read(&record).unwrap();
    let end = json!({"run_id": run, "status": "FINISHED"});
    serve.post("/api/2.0/mlflow/runs/update", &end).ok();
    // As a full disk leaves it: what MLflow keeps is what was there before.
    fs::write(&record, before).unwrap();
    serve.kill();
    let serve = Serve::start(&place, &[]);
    let page = serve.get(&format!("/api/v1/runs/{run}")).ok().json();
    let told: Value = serve
        .get(&format!("/api/2.0/mlflow/runs/get?run_id={run}"))
        .ok()
        .json();
    assert_eq!(page["state"], "succeeded", "{page}");
    assert_eq!(told["run"]["info"]["status"], "FINISHED", "{told}");
}
