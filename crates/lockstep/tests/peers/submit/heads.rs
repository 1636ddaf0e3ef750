//! The heads that the tests share, and the commands that are sent to them.

use crate::common::{Place, Ran};
use lockstep_testkit::Server;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The token of the head that wants one.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A short folder, for paths of sockets; the head removes it at its end.
pub(crate) fn folder(name: &str) -> PathBuf {
    let pid = std::process::id();
    std::env::temp_dir().join(format!("lsr-{name}-{pid}"))
}

/// The head that most tests share. Its image, so to speak, has this program.
pub(crate) fn head() -> &'static str {
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
pub(crate) fn guarded_head() -> &'static str {
    static HEAD: OnceLock<Server> = OnceLock::new();
    let head = HEAD.get_or_init(|| {
        let token = [("RAY_AUTH_MODE", "token"), ("RAY_AUTH_TOKEN", TOKEN)];
        Server::ray_head(&folder("b"), &token)
    });
    head.endpoint()
}

/// The binary in a place, with no word of Ray in its environment.
pub(crate) fn command(place: &Place, args: &[&str]) -> Command {
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

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran::from(output)
}

pub(crate) fn run(place: &Place, args: &[&str]) -> Ran {
    ran(&mut command(place, args))
}

/// The command that submits `job.toml`, to run on one worker by this program.
pub(crate) fn submission(place: &Place, to: &str, binary: &str, args: &[&str]) -> Command {
    let mut command = command(place, &["submit", "job.toml", "--to", to]);
    command
        .args(["--binary", binary, "--workers", "1", "--engine", "local"])
        .args(args);
    command
}

/// Submits `job.toml` to a head with the program in its image.
pub(crate) fn submit(place: &Place, to: &str, args: &[&str]) -> Ran {
    ran(&mut submission(place, to, "image", args))
}

/// Submits a job that no test waits for, and returns its id.
pub(crate) fn submit_long(place: &Place, id: &str) -> String {
    let ran = submit(
        place,
        head(),
        &["--epochs", "1000000", "--detach", "--id", id],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

pub(crate) fn status(place: &Place, id: &str) -> Value {
    let ran = run(place, &["jobs", "status", id, "--to", head(), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The events in a text, whatever else is in it.
pub(crate) fn events_of(text: &str) -> Vec<Value> {
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    events
        .filter(|event: &Value| event["event"].is_string())
        .collect()
}

#[track_caller]
pub(crate) fn assert_says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(
            ran.stderr.contains(part),
            "{part} is missing in {}",
            ran.stderr
        );
    }
}
