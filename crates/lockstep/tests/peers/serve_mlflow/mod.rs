//! MLflow's own client logs into the server's store, and Lockstep's commands have it.

use crate::common::Place;
use crate::common::serve::Serve;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn python(script: &str, words: &[&str], variables: &[(&str, &str)]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers/serve_mlflow")
        .join(script);
    let said = lockstep_testkit::succeed(
        Command::new(lockstep_testkit::python_with_mlflow())
            .arg(script)
            .args(words)
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "true")
            .env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
            .env_remove("MLFLOW_TRACKING_URI")
            .envs(variables.iter().copied()),
    );
    serde_json::from_str(said.lines().last().unwrap()).unwrap_or_else(|_| panic!("{said}"))
}

fn shown(place: &Place, run: &str) -> Value {
    let ran = place.run(&["runs", "show", run, "--store", "runs", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn the_real_client_logs_runs_that_lockstep_shows_finds_and_compares() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let said = python("log_run.py", &[&serve.url()], &[]);
    assert_eq!(said["experiment"], true);
    assert_eq!(said["no_experiment"], Value::Null);
    assert_eq!(said["experiments"], json!(["digits & co"]));
    assert_eq!(
        (&said["status"], &said["name"]),
        (&json!("FINISHED"), &json!("first"))
    );
    assert_eq!(
        said["params"],
        json!({ "lr": "1e-05", "optimizer.kind": "adam", "epochs": "3" })
    );
    assert_eq!(said["metrics"]["loss"], 0.01);
    assert_eq!(said["metrics"]["val/accuracy"], 0.75);
    assert_eq!(said["metrics"]["odd"], "nan");
    assert_eq!(said["metrics"]["far"], "inf");
    for thread in 0..4 {
        assert_eq!(said["metrics"][format!("thread{thread}")], 19.0);
    }
    assert_eq!(said["tags"], json!({ "good": "yes", "paper": "figure 3" }));
    assert_eq!(
        (&said["custom"], &said["user"]),
        (&json!("x"), &json!(true))
    );
    assert_eq!(
        (&said["note"], &said["parent"]),
        (&json!("the one with the right labels"), &json!(true))
    );
    assert_eq!(
        said["history"],
        json!([[0, 1.0], [1, 0.5], [2, 1.0 / 3.0], 100])
    );
    assert_eq!(
        said["artifacts"],
        json!(["a file.txt", "conf", "many", "page.html"])
    );
    assert_eq!(said["inner_artifacts"], json!(["many/files/a file.txt"]));
    assert_eq!(
        (&said["text"], &said["dict"]),
        (&json!("<script>alert(1)</script>"), &json!({ "a": [1, 2] }))
    );
    let search = json!({
        "metric": ["first"], "param": ["second"], "like": ["first"], "tag": ["first"],
        "ordered": ["inner", "second", "first"], "one": ["first"], "children": ["inner"],
    });
    assert_eq!(said["search"], search);
    let refused = json!({
        "changed_param": "INVALID_PARAMETER_VALUE", "no_run": "RESOURCE_DOES_NOT_EXIST",
        "bad_filter": "INVALID_PARAMETER_VALUE", "same_name": "RESOURCE_ALREADY_EXISTS", "model": "RESOURCE_DOES_NOT_EXIST",
    });
    assert_eq!(said["refused"], refused);
    assert_eq!(
        (&said["broken"], &said["again"]),
        (&json!("FAILED"), &json!(0.4))
    );
    assert_eq!(
        (&said["deleted"], &said["restored"]),
        (&json!(["broken", "inner", "first"]), &json!(4))
    );
    assert_eq!(said["inputs"], json!(["zeros"]));

    let run = said["run_id"].as_str().unwrap();
    let first = shown(&place, run);
    assert_eq!(
        (&first["status"], &first["job"]),
        (&json!("succeeded"), &json!("digits & co"))
    );
    assert_eq!(first["params"]["params.lr"], 1e-5);
    assert_eq!(first["metrics"]["loss"], 0.01);
    assert_eq!(
        (&first["tags"]["good"], &first["note"]),
        (&json!("yes"), &said["note"])
    );
    let series = first["series"].as_array().unwrap();
    let loss = series
        .iter()
        .find(|series| series["name"] == "loss")
        .unwrap();
    assert_eq!(loss["points"], 100);
    let open = said["open_id"].as_str().unwrap();
    assert_eq!(shown(&place, open)["status"], "running");
    let listed = place.run(&[
        "runs",
        "list",
        "lr < 0.01 and loss < 0.1",
        "--store",
        "runs",
        "--json",
    ]);
    assert!(
        listed.stdout.contains(run) && !listed.stdout.contains(open),
        "{}",
        listed.stdout
    );
    let inner = said["inner_id"].as_str().unwrap();
    let compared = place.run(&["runs", "compare", run, inner, "--store", "runs"]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(compared.stdout.contains("loss"), "{}", compared.stdout);
    // What a user uploads is never a page of this server.
    let experiment = serve.post(
        "/api/2.0/mlflow/runs/search",
        &json!({ "experiment_ids": ["x"] }),
    );
    assert_eq!(experiment.ok().json(), json!({ "runs": [] }));
    let page = serve
        .get(&format!("/get-artifact?run_uuid={run}&path=page.html"))
        .ok();
    assert_eq!(page.header("content-disposition"), Some("attachment"));
    assert_eq!(
        page.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("sandbox")
    );
    // Killed without a word: the run counts as lost, until its client writes again, and has all that was confirmed.
    serve.kill();
    assert_eq!(shown(&place, open)["status"], "lost");
    let serve = Serve::start(&place, &[]);
    let kept = serve
        .get(&format!("/api/2.0/mlflow/runs/get?run_id={open}"))
        .ok()
        .json();
    let metric = &kept["run"]["data"]["metrics"][0];
    assert_eq!(
        (&metric["step"], &kept["run"]["info"]["status"]),
        (&json!(999), &json!("RUNNING"))
    );
    let point =
        json!({ "run_id": open, "key": "loss", "value": 5, "timestamp": 2_000_000, "step": 1000 });
    serve.post("/api/2.0/mlflow/runs/log-metric", &point).ok();
    assert_eq!(shown(&place, open)["status"], "running");
    let history = format!("/api/2.0/mlflow/metrics/get-history?run_id={open}&metric_key=loss");
    assert_eq!(
        serve.get(&history).ok().json()["metrics"]
            .as_array()
            .unwrap()
            .len(),
        1001
    );
}

#[test]
fn the_real_client_keeps_models_registers_them_and_loads_them_again() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let said = python("probes.py", &[&serve.url(), "--own"], &[]);
    println!("{} probes of MLflow's client passed", said["passed"]);
    assert_eq!(said["failed"], json!({}));
    // What the client registered is what the commands show.
    let listed = place.run(&["models", "show", "digits@champion", "--store", "runs"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains("digits@1"), "{}", listed.stdout);
}

#[test]
fn files_of_runs_cannot_be_reached_from_outside_of_them() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--upload-limit", "1MiB"]);
    fs::write(place.path("secret"), "hunter2").unwrap();
    let made = serve
        .post(
            "/api/2.0/mlflow/runs/create",
            &json!({ "experiment_id": "0" }),
        )
        .ok()
        .json();
    let run = made["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    let base = format!("/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts");
    assert_eq!(
        serve
            .send("PUT", &format!("{base}/a/b.txt"), &[], b"x")
            .status,
        200
    );
    let attacks = [
        "../job.toml",
        "..%2fjob.toml",
        "%2e%2e/job.toml",
        "..%2F..%2F..%2Fsecret",
        "a/../../job.toml",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "a%00b",
        "a//b",
        ".",
        "a/..",
        "..",
        "%2e%2e%2f%2e%2e%2f%2e%2e%2fsecret",
    ];
    for attack in attacks {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = serve.send(method, &format!("{base}/{attack}"), &[], b"evil");
            assert!(
                (400..500).contains(&answer.status),
                "{method} {attack}: {}",
                answer.status
            );
            assert!(!answer.text().contains("hunter2") && !answer.text().contains("[params]"));
        }
        let listed = serve.get(&format!(
            "/api/2.0/mlflow/artifacts/list?run_id={run}&path={attack}"
        ));
        assert!(
            listed.status == 400 || listed.json()["files"] == json!([]),
            "{attack} {}",
            listed.text()
        );
    }
    for id in [
        "..", ".server", "../runs", "%2e%2e", "a/b", "", "%00", "x\u{7f}",
    ] {
        let answer = serve.get(&format!("/api/2.0/mlflow/runs/get?run_id={id}"));
        assert!(
            (400..500).contains(&answer.status),
            "{id}: {}",
            answer.status
        );
        let answer = serve.send(
            "PUT",
            &format!("/api/2.0/mlflow-artifacts/artifacts/0/{id}/artifacts/x"),
            &[],
            b"evil",
        );
        assert!(
            (400..500).contains(&answer.status),
            "{id}: {}",
            answer.status
        );
    }
    assert_eq!(fs::read_to_string(place.path("secret")).unwrap(), "hunter2");
    let job = fs::read_to_string(place.path("runs").join(&run).join("job.toml")).unwrap();
    assert!(
        job.contains("name = \"Default\"") && !job.contains("evil"),
        "{job}"
    );
    for odd in [
        "a/b.txt/c",
        "a",
        &"x".repeat(300),
        &format!("{}y", "y/".repeat(3000)),
    ] {
        for method in ["PUT", "GET"] {
            let answer = serve.send(method, &format!("{base}/{odd}"), &[], b"x");
            let status = answer.status;
            assert!((400..500).contains(&status), "{method} {odd:.20}: {status}");
        }
    }
    let large = serve.send(
        "PUT",
        &format!("{base}/large"),
        &[],
        &vec![0; (1 << 20) + 1],
    );
    assert_eq!(large.status, 413);
    // A file whose client breaks off is not kept.
    let half =
        format!("PUT {base}/half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf");
    let mut stream = serve.connect();
    std::io::Write::write_all(&mut stream, half.as_bytes()).unwrap();
    drop(stream);
    std::thread::sleep(Duration::from_millis(300));
    let files = serve
        .get(&format!("/api/2.0/mlflow/artifacts/list?run_id={run}"))
        .ok()
        .json();
    assert_eq!(files["files"], json!([{ "path": "a", "is_dir": true }]));
    assert_eq!(serve.get(&format!("{base}/a/b.txt")).ok().text(), "x");
}

#[test]
fn runs_of_lockstep_itself_are_experiments_and_runs_for_mlflow() {
    let place = Place::new();
    let result = place.train(&[]);
    let name = result["run"].as_str().unwrap();
    let serve = Serve::start(&place, &[]);
    let found = serve
        .get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=small")
        .ok()
        .json();
    let id = &found["experiment"]["experiment_id"];
    let search = json!({ "experiment_ids": [id], "filter": "params.`train.batch` = '32'" });
    let runs = serve
        .post("/api/2.0/mlflow/runs/search", &search)
        .ok()
        .json();
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["info"]["run_id"], &run["info"]["status"]),
        (&json!(name), &json!("FINISHED"))
    );
    let tag = json!({ "run_id": name, "key": "good", "value": "yes" });
    serve.post("/api/2.0/mlflow/runs/set-tag", &tag).ok();
    assert_eq!(shown(&place, name)["tags"]["good"], "yes");
    let metric = json!({ "run_id": name, "key": "loss", "value": 0 });
    assert_eq!(
        serve
            .post("/api/2.0/mlflow/runs/log-metric", &metric)
            .status,
        400
    );
    let history =
        format!("/api/2.0/mlflow/metrics/get-history?run_id={name}&metric_key=test.accuracy");
    assert_eq!(
        serve.get(&history).ok().json()["metrics"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let files = serve
        .get(&format!("/api/2.0/mlflow/artifacts/list?run_id={name}"))
        .ok()
        .json();
    let files: Vec<_> = files["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert!(
        files.contains(&"job.toml") && !files.contains(&".lock"),
        "{files:?}"
    );
    let base = format!("/api/2.0/mlflow-artifacts/artifacts/1/{name}/artifacts");
    assert_eq!(serve.get(&format!("{base}/.lock")).status, 404);
    assert_eq!(serve.get(&format!("{base}/job.toml")).status, 200);
    assert_eq!(
        serve
            .send("PUT", &format!("{base}/job.toml"), &[], b"evil")
            .status,
        400
    );
    assert_eq!(
        serve
            .send("DELETE", &format!("{base}/model"), &[], b"")
            .status,
        400
    );
}

#[test]
fn with_tokens_a_reader_searches_and_only_a_submitter_logs() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let token = |name: &str| {
        let ran = place.run(&[
            "serve", "token", "add", name, "--role", name, "--store", "runs",
        ]);
        format!("Bearer {}", ran.stdout.trim())
    };
    let (reader, submitter) = (token("read"), token("submit"));
    let send = |who: &str, path: &str, body: Value| {
        let headers = [("Authorization", who), ("Content-Type", "application/json")];
        serve
            .send(
                "POST",
                &format!("/api/2.0/mlflow/{path}"),
                &headers,
                body.to_string().as_bytes(),
            )
            .status
    };
    assert_eq!(
        send(&reader, "runs/search", json!({ "experiment_ids": ["0"] })),
        200
    );
    assert_eq!(send(&reader, "runs/create", json!({})), 403);
    assert_eq!(send(&submitter, "runs/create", json!({})), 200);
    assert_eq!(place.runs().len(), 1);
}
