//! Jobs of a server, by plain requests.

use super::LIMIT;
use super::serve::Serve;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Submits a command under an id.
pub(crate) fn submit(serve: &Serve, id: &str, command: &str) {
    let body = json!({"entrypoint": command, "submission_id": id});
    serve.post("/api/jobs/", &body).ok();
}

/// A job as the server tells of it.
pub(crate) fn job(serve: &Serve, id: &str) -> Value {
    serve.get(&format!("/api/jobs/{id}")).ok().json()
}

/// Waits until a job has one of these statuses.
pub(crate) fn until(serve: &Serve, id: &str, wanted: &[&str]) -> Value {
    let began = Instant::now();
    loop {
        let job = job(serve, id);
        if wanted.iter().any(|status| job["status"] == *status) {
            return job;
        }
        assert!(began.elapsed() < LIMIT, "{job}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a job's end.
pub(crate) fn ended(serve: &Serve, id: &str) -> Value {
    until(serve, id, &["SUCCEEDED", "FAILED", "STOPPED"])
}
