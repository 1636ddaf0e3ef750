//! What the server says of itself: its description, which a fuzzer tries to break it by, and its metrics.

use crate::common::Place;
use crate::common::serve::Serve;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

fn python() -> PathBuf {
    lockstep_testkit::python(
        "schemathesis",
        &["schemathesis==4.32.5", "prometheus-client==0.26.0"],
    )
}

#[test]
fn a_real_parser_reads_the_metrics() {
    let place = Place::new();
    place.train(&[]);
    let serve = Serve::start(&place, &[]);
    serve.get("/nothing");
    let answer = serve.get("/metrics").ok();
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    let file = place.path("metrics.txt");
    std::fs::write(&file, &answer.body).unwrap();
    let script = "import json,sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as p; \
        print(json.dumps({s.name + str(sorted(s.labels.items())): s.value for f in p(open(sys.argv[1]).read()) for s in f.samples}))";
    let said = lockstep_testkit::succeed(Command::new(python()).args(["-c", script]).arg(file));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["lockstep_runs[('state', 'succeeded')]"], 1.0, "{said}");
    assert_eq!(said["lockstep_jobs[('status', 'running')]"], 0.0);
    assert_eq!(said["lockstep_http_requests_total[('code', '404')]"], 1.0);
    assert!(said["process_resident_memory_bytes[]"].as_f64().unwrap() > 1e6);
    assert!(said["process_start_time_seconds[]"].as_f64().unwrap() > 1.7e9);
}

/// Fuzzes all operations with so many examples each, and fails if any answer is the server's fault.
fn fuzz(examples: &str) {
    let place = Place::new();
    place.train(&[]);
    // Jobs are accepted and wait for ever: a fuzzer's commands are not run.
    let serve = Serve::start(&place, &["--cpus", "0"]);
    let made = serve.post("/api/2.0/mlflow/runs/create", &json!({})).ok();
    assert!(made.json()["run"]["info"]["run_id"].is_string());
    let schemathesis = python().with_file_name("schemathesis");
    let out = Command::new(schemathesis)
        .args([
            "run",
            "--checks",
            "not_a_server_error",
            "--max-examples",
            examples,
            "--phases",
            "examples,coverage,fuzzing",
        ])
        .args([
            // Long enough for a machine that does much else.
            "--request-timeout",
            "100",
            "--workers",
            "2",
            "--seed",
            "1",
            "--generation-database",
            "none",
        ])
        // News and logs that grow do not end.
        .args([
            "--exclude-path",
            "/api/v1/live",
            "--exclude-path",
            "/api/jobs/{id}/logs/tail",
        ])
        .args(["--no-color", "--url"])
        .arg(serve.url())
        .arg(format!("{}/api/openapi.json", serve.url()))
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success(),
        "{said}{}{}",
        String::from_utf8_lossy(&out.stderr),
        serve.said()
    );
    assert!(
        said.contains("passed") && !said.contains("Server error"),
        "{said}"
    );
    assert_eq!(serve.get("/healthz").status, 200);
}

#[test]
fn a_fuzzer_finds_no_answer_that_is_the_servers_fault() {
    fuzz("3");
}

#[test]
#[ignore = "it takes minutes"]
fn a_patient_fuzzer_finds_none_either() {
    fuzz("100");
}
