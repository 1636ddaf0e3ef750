//! What no friendly client would say, and what all clients rely on.

use crate::common::Place;
use crate::common::serve::Serve;
use crate::common::serve_jobs::{ended, submit};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

#[test]
fn answers_are_as_rays_clients_read_them() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let version = serve.get("/api/version").ok().json();
    assert_eq!(version["version"], "4");
    assert!(version["ray_version"].as_str().unwrap().starts_with("2."));
    let asked =
        json!({"entrypoint": "echo hi", "submission_id": "a", "of_a_later_version": {"x": 1}});
    let submitted = serve.post("/api/jobs/", &asked).ok();
    let kind = submitted.header("content-type").unwrap().to_owned();
    assert!(kind.starts_with("application/json"), "{kind}");
    assert_eq!(
        submitted.json(),
        json!({"job_id": "a", "submission_id": "a"})
    );
    let told = ended(&serve, "a");
    assert_eq!(told["type"], "SUBMISSION");
    assert_eq!(told["message"], "Job finished successfully.");
    assert!(told["end_time"].as_u64() >= told["start_time"].as_u64());
    assert_eq!(
        serve.get("/api/jobs/a/logs").ok().json(),
        json!({"logs": "hi\n"})
    );
    let stop = serve.post("/api/jobs/a/stop", &json!({})).ok();
    assert_eq!(stop.json(), json!({"stopped": false}));
    let twice = serve.post("/api/jobs/", &asked);
    assert_eq!(twice.status, 409);
    let kind = twice.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain"), "{kind}");
    let generated = serve.post("/api/jobs", &json!({"entrypoint": "true"})).ok();
    let id = generated.json()["submission_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(id.starts_with("raysubmit_"), "{id}");
    ended(&serve, &id);
    let deleted = serve.send("DELETE", "/api/jobs/a", &[], b"").ok();
    assert_eq!(deleted.json(), json!({"deleted": true}));
    for (method, path) in [
        ("GET", "/api/jobs/a"),
        ("GET", "/api/jobs/a/logs"),
        ("GET", "/api/jobs/a/logs/tail"),
        ("POST", "/api/jobs/a/stop"),
        ("DELETE", "/api/jobs/a"),
    ] {
        let answer = serve.send(method, path, &[], b"");
        assert_eq!(answer.status, 404, "{method} {path}");
        assert_eq!(answer.text(), "Job a does not exist", "{method} {path}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--cpus", "2"]);
    for (body, word) in [
        ("{", "JSON"),
        ("[]", "JSON object"),
        ("{}", "entrypoint is missing"),
        (r#"{"entrypoint": ""}"#, "entrypoint must be a command"),
        (
            r#"{"entrypoint": "a", "submission_id": "../a"}"#,
            "submission_id",
        ),
        (
            r#"{"entrypoint": "a", "submission_id": "/etc/a"}"#,
            "submission_id",
        ),
        (
            r#"{"entrypoint": "a", "entrypoint_num_cpus": 3}"#,
            "asks for 3, and the machine has 2",
        ),
        (
            r#"{"entrypoint": "a", "entrypoint_num_cpus": -1}"#,
            "is no amount",
        ),
        (
            r#"{"entrypoint": "a", "metadata": {"lockstep.retries": "x"}}"#,
            "lockstep.retries",
        ),
    ] {
        let answer = serve.send("POST", "/api/jobs/", &[], body.as_bytes());
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert!(answer.text().contains(word), "{body}: {}", answer.text());
    }
    let long = format!(r#"{{"entrypoint": "{}"}}"#, "a".repeat(3 << 20));
    let answer = serve.send("POST", "/api/jobs/", &[], long.as_bytes());
    assert_eq!(answer.status, 413);
    assert_eq!(serve.get("/api/jobs/").ok().json(), json!([]));
}

#[test]
fn packages_are_bounded_and_their_names_are_no_paths() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--package-limit", "1MiB"]);
    let path = |name: &str| format!("/api/packages/gcs/{name}");
    let put = |name: &str, bytes: &[u8]| serve.send("PUT", &path(name), &[], bytes);
    let missing = serve.get(&path("_ray_pkg_0123456789abcdef.zip"));
    assert_eq!(missing.status, 404);
    assert_eq!(
        missing.text(),
        "Package gcs://_ray_pkg_0123456789abcdef.zip does not exist"
    );
    for name in [
        "..%2F..%2Fa.zip",
        "%2Fetc%2Fa.zip",
        ".a.zip",
        "a",
        "a%00.zip",
    ] {
        let answer = put(name, b"x");
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    }
    let large = put("large.zip", &vec![0; (1 << 20) + 1]);
    assert_eq!(large.status, 413);
    assert_eq!(large.text(), "Maximum request body size 1048576 exceeded.");
    // Without a length, it is known only while it comes.
    let mut chunked = format!(
        "PUT {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        path("large.zip"),
        serve.address
    )
    .into_bytes();
    for _ in 0..3 {
        chunked.extend(b"80000\r\n");
        chunked.extend(vec![0; 0x80000]);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    assert_eq!(serve.send_raw(&chunked).status, 413);
    // One that breaks off leaves nothing.
    let mut stream = serve.connect();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\nhalf",
        path("half.zip"),
        serve.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    put("good.zip", b"x").ok();
    serve.get(&path("good.zip")).ok();
    for name in ["large.zip", "half.zip"] {
        assert_eq!(serve.get(&path(name)).status, 404, "{name}");
    }
}

#[test]
fn a_job_whose_package_would_leave_its_folder_fails_and_nothing_is_written() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let evil = zip(&place.path("evil.zip"), "../../../evil");
    serve
        .send("PUT", "/api/packages/gcs/evil.zip", &[], &evil)
        .ok();
    let asked = json!({
        "entrypoint": "true", "submission_id": "a", "runtime_env": {"working_dir": "gcs://evil.zip"},
    });
    serve.post("/api/jobs/", &asked).ok();
    let told = ended(&serve, "a");
    assert_eq!(told["error_type"], "RUNTIME_ENV_SETUP_FAILURE");
    assert!(told["message"].as_str().unwrap().contains("evil"), "{told}");
    let left = crate::common::files(&place.path("runs"));
    assert!(!left.keys().any(|path| path.ends_with("evil")));
}

#[test]
fn a_log_is_not_sent_to_pages_of_other_sites() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    submit(&serve, "a", "echo secret");
    ended(&serve, "a");
    let ask = |origin: &str| {
        let mut stream = serve.connect();
        let head = format!(
            "GET /api/jobs/a/logs/tail HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{origin}\r\n",
            serve.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(ask(""), "HTTP/1.1 101");
    assert_eq!(ask(&format!("Origin: {}\r\n", serve.url())), "HTTP/1.1 101");
    assert_eq!(ask("Origin: http://evil.example\r\n"), "HTTP/1.1 403");
    assert_eq!(ask("Origin: null\r\n"), "HTTP/1.1 403");
}

/// An archive of one file, made by Python, which writes any name.
fn zip(path: &Path, name: &str) -> Vec<u8> {
    let script =
        "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').writestr(sys.argv[2], 'x')";
    let mut python = Command::new("python3");
    lockstep_testkit::succeed(python.args(["-c", script]).arg(path).arg(name));
    fs::read(path).unwrap()
}
