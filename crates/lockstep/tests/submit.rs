//! Jobs on a real Ray cluster: the head of one comes from PyPI and runs on this machine.
//!
//! LOCKSTEP_TEST_RAY names another version than the newest that is tested.

mod common;

use common::proxy::Proxy;
use common::{Place, Ran, Running};
use lockstep_testkit::{Server, ray_version};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The token of the head that wants one.
const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A short folder, for paths of sockets; the head removes it at its end.
fn folder(name: &str) -> PathBuf {
    let pid = std::process::id();
    std::env::temp_dir().join(format!("lsr-{name}-{pid}"))
}

/// The head that most tests share. Its image, so to speak, has this program.
fn head() -> &'static str {
    static HEAD: OnceLock<Server> = OnceLock::new();
    let head = HEAD.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_lockstep"));
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let path = path.into_string().unwrap();
        Server::ray_head(&folder("a"), &[("PATH", &path)])
    });
    head.endpoint()
}

/// A head that wants a token, and whose image lacks this program.
fn guarded_head() -> &'static str {
    static HEAD: OnceLock<Server> = OnceLock::new();
    let head = HEAD.get_or_init(|| {
        let token = [("RAY_AUTH_MODE", "token"), ("RAY_AUTH_TOKEN", TOKEN)];
        Server::ray_head(&folder("b"), &token)
    });
    head.endpoint()
}

/// The binary in a place, with no word of Ray in its environment.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    for name in [
        "RAY_ADDRESS",
        "RAY_API_SERVER_ADDRESS",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
        "RAY_AUTH_TOKEN_PATH",
        "RAY_JOB_HEADERS",
    ] {
        command.env_remove(name);
    }
    command.env("HOME", place.path("home"));
    command
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(place: &Place, args: &[&str]) -> Ran {
    ran(&mut command(place, args))
}

/// The command that submits `job.toml`, to run on one worker by this program.
fn submission(place: &Place, to: &str, binary: &str, args: &[&str]) -> Command {
    let mut command = command(place, &["submit", "job.toml", "--to", to]);
    command
        .args(["--binary", binary, "--workers", "1", "--engine", "local"])
        .args(args);
    command
}

/// Submits `job.toml` to a head with the program in its image.
fn submit(place: &Place, to: &str, args: &[&str]) -> Ran {
    ran(&mut submission(place, to, "image", args))
}

/// Submits a job that no test waits for, and returns its id.
fn submit_long(place: &Place, id: &str) -> String {
    let ran = submit(
        place,
        head(),
        &["--epochs", "1000000", "--detach", "--id", id],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn status(place: &Place, id: &str) -> Value {
    let ran = run(place, &["jobs", "status", id, "--to", head(), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn start(mut command: Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(command.spawn().unwrap())
}

/// The events in a text, whatever else is in it.
fn events_of(text: &str) -> Vec<Value> {
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    events
        .filter(|event: &Value| event["event"].is_string())
        .collect()
}

#[track_caller]
fn assert_says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(
            ran.stderr.contains(part),
            "{part} is missing in {}",
            ran.stderr
        );
    }
}

#[test]
fn a_submitted_job_has_the_bits_the_events_and_the_end_of_one_that_runs_here() {
    let place = Place::new();
    let here = place.weights(&[]);

    // The program travels too, and a job in a folder beside its data finds it there as here.
    fs::create_dir(place.path("jobs")).unwrap();
    let text = common::JOB
        .replace("\"train-", "\"../train-")
        .replace("\"test-", "\"../test-");
    fs::write(place.path("jobs/job.toml"), text).unwrap();
    let args = [
        "submit",
        "jobs/job.toml",
        "--to",
        head(),
        "--json",
        "--id",
        "whole",
    ];
    let there = run(&place, &args);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here.as_str());
    assert_eq!(there.result()["status"], "succeeded");
    let kinds: Vec<Value> = there.events().iter().map(|e| e["event"].clone()).collect();
    for kind in ["started", "worker", "first_step", "epoch"] {
        assert!(
            kinds.contains(&kind.into()),
            "{kind} is missing in {kinds:?}"
        );
    }
    assert!(
        there.stderr.contains("set run.store to a URL"),
        "{}",
        there.stderr
    );
    assert!(!place.path("jobs/runs").exists());

    // Later, by its id.
    let job = status(&place, "whole");
    assert_eq!(job["status"], "SUCCEEDED");
    assert_eq!(job["metadata"]["lockstep_job"], "small");
    let shown = run(&place, &["jobs", "status", "whole", "--to", head()]);
    assert!(
        shown
            .stdout
            .contains("./lockstep run jobs/job.toml --engine ray --json"),
        "{}",
        shown.stdout
    );
    let list = run(&place, &["jobs", "list", "--to", head()]);
    assert!(list.stdout.contains("whole"), "{}", list.stdout);
    let log = run(&place, &["jobs", "logs", "whole", "--to", head()]);
    assert_eq!(events_of(&log.stdout).pop(), Some(there.result()));
    let followed = run(&place, &["jobs", "logs", "-f", "whole", "--to", head()]);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(followed.stdout, log.stdout);
    let again = run(&place, &["jobs", "wait", "whole", "--to", head()]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for part in ["first step after", "2 epochs in", &here] {
        assert!(
            again.stdout.contains(part),
            "{part} is missing in {}",
            again.stdout
        );
    }
    let twice = submit(&place, head(), &["--id", "whole"]);
    assert_says(&twice, 1, &["there is a job `whole` already", "--id"]);
    let removed = run(&place, &["jobs", "rm", "whole", "--to", head()]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    let gone = run(&place, &["jobs", "wait", "whole", "--to", head()]);
    assert_says(&gone, 1, &["there is no job `whole`"]);
}

#[test]
fn a_log_that_is_cut_is_read_on_where_it_was() {
    let place = Place::new();
    let address = head().strip_prefix("http://").unwrap();
    let proxy = Proxy::new(address, 3, 3000);
    let cut = submit(
        &place,
        &proxy.url(),
        &["--json", "--id", "cut", "--epochs", "3000"],
    );
    assert_eq!(cut.code, Some(0), "{}", cut.stderr);
    // On a quick machine the run may be over before the third.
    assert!(proxy.cuts() >= 2, "{} {}", proxy.cuts(), cut.stderr);
    let log = run(&place, &["jobs", "logs", "cut", "--to", head()]);
    let wanted = events_of(&log.stdout);
    assert!(wanted.len() > 3000, "{}", wanted.len());
    // What submit says before the run begins is no event of the run.
    let own = |event: &Value| event["event"] == "preparing" || event["event"] == "note";
    let strange = |event: &&Value| !own(event);
    let wanted: Vec<&Value> = wanted.iter().filter(strange).collect();
    let found = cut.events();
    let found: Vec<&Value> = found.iter().filter(strange).collect();
    // A warning of submit's own comes first.
    assert_eq!(found[0]["event"], "warning");
    let differs = found[1..].iter().zip(&wanted).position(|(a, b)| a != b);
    assert_eq!(differs, None, "the first event that is another one");
    assert_eq!(found.len() - 1, wanted.len());
    assert!(
        cut.stderr.contains("is lost and tried again"),
        "{}",
        cut.stderr
    );
    assert!(cut.stderr.contains("is back"), "{}", cut.stderr);
}

#[test]
fn a_lost_head_never_looks_like_success_and_the_job_is_found_again() {
    let place = Place::new();
    let address = head().strip_prefix("http://").unwrap();
    let proxy = Proxy::new(address, 0, 0);
    let (to, id) = (proxy.url(), "lost");
    let args = ["--json", "--id", id, "--patience", "2", "--epochs", "60"];
    let mut running = start(submission(&place, &to, "image", &args));
    running.wait_for("first_step");
    proxy.die();
    let (code, last, stderr) = running.finish();
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(last["status"], "failed", "{last}");
    for part in ["is not known", "lockstep jobs wait lost"] {
        assert!(stderr.contains(part), "{part} is missing in {stderr}");
    }
    let found = run(&place, &["jobs", "wait", id, "--to", head(), "--json"]);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert_eq!(found.result()["status"], "succeeded");
}

#[test]
fn one_interrupt_leaves_the_job_and_two_stop_it_in_good_order() {
    let place = Place::new();
    let id = submit_long(&place, "long");
    assert_eq!(id, "long", "--detach prints the id and nothing else");
    let wait = || {
        start(command(
            &place,
            &["jobs", "wait", "long", "--to", head(), "--json"],
        ))
    };

    let mut first = wait();
    first.wait_for("progress");
    first.signal(Signal::INT);
    let (code, _, stderr) = first.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("lockstep jobs stop long"), "{stderr}");
    assert_eq!(status(&place, "long")["status"], "RUNNING");
    let rm = run(&place, &["jobs", "rm", "long", "--to", head()]);
    assert_says(&rm, 1, &["is running; stop it first"]);

    let mut second = wait();
    second.wait_for("progress");
    second.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(600));
    second.signal(Signal::INT);
    let (code, last, stderr) = second.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(last["status"], "interrupted", "{last}");
    assert_eq!(status(&place, "long")["status"], "STOPPED");
    let stop = run(&place, &["jobs", "stop", "long", "--to", head()]);
    assert!(
        stop.stdout.contains("had stopped before"),
        "{}",
        stop.stdout
    );
}

#[test]
fn a_run_that_fails_there_fails_here_with_its_words_and_code() {
    let place = Place::new();
    let missing = "data.train={ images = \"/nowhere/images\", labels = \"/nowhere/labels\" }";
    let ran = submit(&place, head(), &["--json", "--set", missing]);
    assert_says(&ran, 1, &["/nowhere/images"]);
    assert_eq!(ran.result()["status"], "failed");
    // What is wrong with the job file is found before anything is sent.
    let wrong = submit(&place, "http://127.0.0.1:1", &["--set", "train.batch=0"]);
    assert_says(&wrong, 2, &["train.batch"]);
    let relative = submit(
        &place,
        "http://127.0.0.1:1",
        &["--set", "model.weights=w.bin"],
    );
    assert_says(
        &relative,
        1,
        &["model.weights", "does not exist", "absolute"],
    );
}

#[test]
fn a_program_that_the_node_cannot_run_is_named_as_such() {
    let place = Place::new();
    let truth = fs::read("/bin/true").unwrap();
    let with = |name: &str, program: Vec<u8>| {
        let path = place.path(name);
        fs::write(&path, program).unwrap();
        let binary = path.to_str().unwrap();
        ran(&mut submission(&place, head(), binary, &[]))
    };
    let mut foreign = truth.clone();
    let (here, elsewhere) = if cfg!(target_arch = "x86_64") {
        (62, 183)
    } else {
        (183, 62)
    };
    assert_eq!(foreign[0x12], here);
    foreign[0x12] = elsewhere;
    let ran = with("foreign", foreign);
    assert_says(&ran, 1, &["has another processor", "--binary"]);

    let mut newer = truth.clone();
    let name = b"GLIBC_2.34\0";
    let at = truth.windows(name.len()).position(|part| part == name);
    let at = at.expect("true is linked to a glibc of 2021 or later");
    newer[at..at + name.len()].copy_from_slice(b"GLIBC_2.99\0");
    let ran = with("newer", newer);
    assert_says(&ran, 1, &["needs glibc 2.99", "--binary"]);

    // It runs, and says nothing: that is no success either.
    let ran = with("silent", truth);
    assert_says(&ran, 1, &["without telling a result"]);
    let ran = with("script", b"#!/bin/sh\n".to_vec());
    assert_says(&ran, 1, &["it is no program"]);
}

#[test]
fn a_token_is_found_as_rays_client_finds_it_and_its_lack_is_told() {
    let place = Place::new();
    let to = guarded_head();
    let list = ["jobs", "list", "--to", to];
    let none = run(&place, &list);
    assert_says(
        &none,
        1,
        &["wants a token", "RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token"],
    );
    let wrong = ran(command(&place, &list).env("RAY_AUTH_TOKEN", "wrong"));
    assert_says(
        &wrong,
        1,
        &["does not accept the token from RAY_AUTH_TOKEN"],
    );
    let right = |command: &mut Command| {
        let ran = ran(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    right(command(&place, &list).env("RAY_AUTH_TOKEN", TOKEN));
    let at_once = [("RAY_AUTH_TOKEN", TOKEN), ("RAY_AUTH_MODE", "token")];
    right(command(&place, &list).envs(at_once));
    fs::write(place.path("token"), TOKEN).unwrap();
    right(command(&place, &list).env("RAY_AUTH_TOKEN_PATH", place.path("token")));
    let header = format!("{{\"Authorization\": \"Bearer {TOKEN}\"}}");
    right(command(&place, &list).env("RAY_JOB_HEADERS", &header));
    right(&mut command(
        &place,
        &[&list[..], &["--headers", &header]].concat(),
    ));
    fs::create_dir_all(place.path("home/.ray")).unwrap();
    fs::write(place.path("home/.ray/auth_token"), TOKEN).unwrap();
    // The whole way, the log's connection included. The image has no program.
    let ran = submit(&place, to, &[]);
    assert_says(&ran, 1, &["no `lockstep` in the PATH"]);
}

#[test]
fn what_is_no_head_is_told_by_what_it_is_instead() {
    let place = Place::new();
    let list = |to: &str| run(&place, &["jobs", "list", "--to", to]);
    assert_says(
        &list("head:8265"),
        1,
        &["--to", "no `http://`", "http://HOST:8265"],
    );
    assert_says(&list("ray://head:10001"), 1, &["Ray Client"]);
    let unknown = list("http://no-such-host.invalid:8265");
    assert_says(
        &unknown,
        1,
        &["the host of http://no-such-host.invalid:8265 is not known"],
    );
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let dead = list(&format!("http://127.0.0.1:{port}"));
    assert_says(
        &dead,
        1,
        &["nothing answers", "refused", "is the head running"],
    );
    let of_gcs = ran(command(&place, &["jobs", "list"]).env("RAY_ADDRESS", "10.0.0.1:6379"));
    assert_says(&of_gcs, 1, &["RAY_ADDRESS"]);

    // Some other web server.
    let mut other = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(other.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
    let port = said
        .split(" port ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let ran = list(&format!("http://127.0.0.1:{port}"));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_says(
        &ran,
        1,
        &["no Ray Jobs API", "answered with 404", "ray[default]"],
    );
}

#[test]
fn a_package_over_the_limit_is_refused_before_it_is_sent() {
    let place = Place::new();
    let mut noise = vec![0_u8; 101 << 20];
    let mut state = 1_u64;
    for bytes in noise.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.copy_from_slice(&state.to_le_bytes());
    }
    fs::write(place.path("train-images"), noise).unwrap();
    let ran = submit(&place, head(), &["--id", "large"]);
    assert_says(&ran, 1, &["100 MiB", "train-images 101.0 MiB", "s3://"]);
    let gone = run(&place, &["jobs", "status", "large", "--to", head()]);
    assert_says(&gone, 1, &["there is no job `large`"]);
}

#[test]
fn a_cluster_is_shown_with_what_is_free() {
    let place = Place::new();
    let until = |enough: &dyn Fn(&Value) -> bool| {
        let begin = Instant::now();
        loop {
            let ran = run(&place, &["cluster", "status", "--to", head(), "--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let cluster: Value = serde_json::from_str(&ran.stdout).unwrap();
            if enough(&cluster) {
                return cluster;
            }
            assert!(begin.elapsed() < common::LIMIT, "{}", ran.stdout);
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // A head that has only just begun does not know itself yet.
    let cluster = until(&|cluster| cluster["nodes"][0]["cpus"]["total"] == 4.0);
    assert_eq!(cluster["ray_version"], ray_version());
    let nodes = cluster["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0]["head"], true);
    assert_eq!(nodes[0]["state"], "alive");
    assert!(nodes[0]["memory"]["total"].as_f64().unwrap() > 1e9);
    let ran = run(&place, &["cluster", "status", "--to", head()]);
    for part in ["cores free", "of 4", "head", "1 node: "] {
        assert!(
            ran.stdout.contains(part),
            "{part} is missing in {}",
            ran.stdout
        );
    }
    // What a job takes is not free.
    submit_long(&place, "taker");
    until(&|cluster| cluster["nodes"][0]["cpus"]["free"].as_f64() < Some(4.0));
    let stop = run(&place, &["jobs", "stop", "taker", "--to", head()]);
    assert!(
        stop.stdout.contains("has stopped"),
        "{}{}",
        stop.stdout,
        stop.stderr
    );
}
