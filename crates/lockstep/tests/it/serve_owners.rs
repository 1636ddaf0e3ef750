//! What a token that may submit can do with what others submitted, and what a job can reach.

use crate::common::serve::{Serve, token};
use crate::common::{LIMIT, Place};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Instant;

const MLFLOW: &str = "/api/2.0/mlflow";

/// A server that needs tokens, and those of two who may submit and of one who may do everything.
fn three(place: &Place) -> (Serve, [String; 3]) {
    let tokens = [("anna", "submit"), ("ben", "submit"), ("root", "admin")]
        .map(|(name, role)| token(place, name, role));
    (Serve::start(place, &["--require-token"]), tokens)
}

fn until_ended(serve: &Serve, token: &str, id: &str) -> Value {
    let began = Instant::now();
    loop {
        let job = serve.send_as(token, "GET", &format!("/api/jobs/{id}"), b"");
        let job = job.ok().json();
        if ["SUCCEEDED", "FAILED", "STOPPED"]
            .iter()
            .any(|end| job["status"] == *end)
        {
            return job;
        }
        assert!(began.elapsed() < LIMIT, "{job}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_job_is_submitted_once_more_by_its_owner_alone() {
    let place = Place::new();
    let (serve, [anna, ben, root]) = three(&place);
    let secret = json!({"env_vars": {"KEY": "hunter2"}});
    let job = json!({"entrypoint": "echo $KEY", "submission_id": "mine", "runtime_env": secret});
    serve.post_as(&anna, "/api/jobs/", &job).ok();
    until_ended(&serve, &anna, "mine");
    let again = json!({"action": "resubmit", "ids": ["mine"]});
    let refused = serve
        .post_as(&ben, "/api/v1/jobs/actions", &again)
        .ok()
        .json();
    assert!(
        refused[0]["error"].as_str().unwrap().contains("anna"),
        "{refused}"
    );
    assert_eq!(refused[0]["new_id"], Value::Null);
    for token in [&anna, &root] {
        let done = serve
            .post_as(token, "/api/v1/jobs/actions", &again)
            .ok()
            .json();
        let id = done[0]["new_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{done}"));
        until_ended(&serve, token, id);
    }
}

#[test]
fn only_an_admin_has_a_job_begin_before_those_of_others() {
    let place = Place::new();
    let (serve, [anna, _, root]) = three(&place);
    let submit = |token: &str, priority: &str| {
        let metadata = json!({"lockstep.priority": priority});
        let job = json!({"entrypoint": "true", "metadata": metadata});
        serve.post_as(token, "/api/jobs/", &job)
    };
    let refused = submit(&anna, "1");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(
        refused.text().contains("lockstep.priority"),
        "{}",
        refused.text()
    );
    submit(&anna, "-5").ok();
    submit(&root, "9223372036854775807").ok();
}

#[test]
fn a_package_is_its_owners_and_its_content_stays() {
    let place = Place::new();
    let (serve, [anna, ben, _]) = three(&place);
    let path = "/api/packages/gcs/_ray_pkg_0123456789abcdef.zip";
    let zip = |text: &str| {
        let file = place.path(text);
        fs::write(place.path("said"), text).unwrap();
        let made = std::process::Command::new("python3")
            .args(["-m", "zipfile", "-c"])
            .arg(&file)
            .arg("said")
            .current_dir(place.path(""))
            .status();
        assert!(made.unwrap().success());
        fs::read(file).unwrap()
    };
    let (hers, his) = (zip("hers"), zip("his"));
    serve.send_as(&anna, "PUT", path, &hers).ok();
    assert_eq!(serve.send_as(&ben, "GET", path, b"").status, 404);
    serve.send_as(&ben, "PUT", path, &his).ok();
    serve.send_as(&anna, "PUT", path, &hers).ok();
    let other = serve.send_as(&anna, "PUT", path, &his);
    assert_eq!(other.status, 409, "{}", other.text());
    for (token, said) in [(&anna, "hers"), (&ben, "his")] {
        let packed = json!({"working_dir": "gcs://_ray_pkg_0123456789abcdef.zip"});
        let job = json!({"entrypoint": "cat said", "submission_id": said, "runtime_env": packed});
        serve.post_as(token, "/api/jobs/", &job).ok();
        until_ended(&serve, token, said);
        let log = serve.send_as(token, "GET", &format!("/api/jobs/{said}/logs"), b"");
        assert_eq!(log.ok().json()["logs"], said);
    }
}

#[test]
fn runs_and_experiments_of_mlflow_are_changed_by_their_owner_and_by_admins() {
    let place = Place::new();
    let (serve, [anna, ben, root]) = three(&place);
    let post = |token: &str, path: &str, body: &Value| {
        serve.post_as(token, &format!("{MLFLOW}{path}"), body)
    };
    let made = post(&anna, "/experiments/create", &json!({"name": "digits"}))
        .ok()
        .json();
    let experiment = made["experiment_id"].as_str().unwrap();
    let run = post(&anna, "/runs/create", &json!({"experiment_id": experiment}))
        .ok()
        .json();
    let run = run["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    let file = format!("/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/a.txt");
    serve.send_as(&anna, "PUT", &file, b"hers").ok();
    let id = json!({"run_id": run});
    let of_run = |more: Value| {
        let mut body = id.as_object().unwrap().clone();
        body.extend(more.as_object().unwrap().clone());
        Value::Object(body)
    };
    let changes = [
        ("/runs/update", of_run(json!({"status": "FAILED"}))),
        ("/runs/delete", id.clone()),
        ("/runs/restore", id.clone()),
        (
            "/runs/log-metric",
            of_run(json!({"key": "loss", "value": 1})),
        ),
        (
            "/runs/log-parameter",
            of_run(json!({"key": "lr", "value": "1"})),
        ),
        (
            "/runs/log-batch",
            of_run(json!({"metrics": [{"key": "loss", "value": 1}]})),
        ),
        ("/runs/log-inputs", of_run(json!({"datasets": [{}]}))),
        ("/runs/set-tag", of_run(json!({"key": "a", "value": "b"}))),
        (
            "/runs/set-tag",
            of_run(json!({"key": "mlflow.a", "value": "b"})),
        ),
        ("/runs/delete-tag", of_run(json!({"key": "mlflow.runName"}))),
        (
            "/experiments/update",
            json!({"experiment_id": experiment, "new_name": "his"}),
        ),
        ("/experiments/delete", json!({"experiment_id": experiment})),
        (
            "/experiments/set-experiment-tag",
            json!({"experiment_id": "0", "key": "a", "value": "b"}),
        ),
    ];
    for (path, body) in &changes {
        let refused = post(&ben, path, body);
        assert_eq!(refused.status, 403, "{path} {}", refused.text());
        assert_eq!(refused.json()["error_code"], "PERMISSION_DENIED", "{path}");
    }
    assert_eq!(serve.send_as(&ben, "PUT", &file, b"his").status, 403);
    assert_eq!(serve.send_as(&ben, "DELETE", &file, b"").status, 403);
    let note = json!({"tags": {}, "note": "his"});
    let page = format!("/api/v1/runs/{run}/tags");
    assert_eq!(serve.post_as(&ben, &page, &note).status, 403);
    assert_eq!(serve.send_as(&ben, "GET", &file, b"").ok().text(), "hers");
    for token in [&anna, &root] {
        post(
            token,
            "/runs/log-metric",
            &of_run(json!({"key": "loss", "value": 1})),
        )
        .ok();
        serve.send_as(token, "PUT", &file, b"hers").ok();
        serve.post_as(token, &page, &note).ok();
    }
}

#[test]
fn models_are_changed_by_their_owner_and_by_admins() {
    let place = Place::new();
    let (serve, [anna, ben, root]) = three(&place);
    let send = |token: &str, method: &str, path: &str, body: &Value| {
        let path = format!("{MLFLOW}{path}");
        serve.send_as(token, method, &path, body.to_string().as_bytes())
    };
    let logged = send(&anna, "POST", "/logged-models", &json!({"name": "hers"}));
    let logged = logged.ok().json()["model"]["info"]["model_id"].clone();
    let logged = logged.as_str().unwrap();
    let file = format!("/api/2.0/mlflow-artifacts/artifacts/0/models/{logged}/artifacts/MLmodel");
    serve.send_as(&anna, "PUT", &file, b"hers").ok();
    let digits = json!({"name": "digits"});
    send(&anna, "POST", "/registered-models/create", &digits).ok();
    let new = json!({"name": "digits", "source": format!("models:/{logged}")});
    send(&anna, "POST", "/model-versions/create", &new).ok();
    let model = format!("/logged-models/{logged}");
    let alias = json!({"name": "digits", "alias": "champion", "version": "1"});
    let tag = json!({"name": "digits", "version": "1", "key": "a", "value": "b"});
    let version = json!({"name": "digits", "version": "1"});
    let metric = json!({"run_id": "his", "key": "a", "value": 1, "model_id": logged});
    let changes = [
        (
            "PATCH",
            model.as_str(),
            json!({"status": "LOGGED_MODEL_UPLOAD_FAILED"}),
        ),
        (
            "PATCH",
            &format!("{model}/tags"),
            json!({"tags": [{"key": "a", "value": "b"}]}),
        ),
        ("DELETE", &model, json!({})),
        ("POST", "/model-versions/create", new.clone()),
        ("POST", "/registered-models/alias", alias.clone()),
        ("POST", "/registered-models/set-tag", tag.clone()),
        ("POST", "/model-versions/set-tag", tag.clone()),
        ("DELETE", "/model-versions/delete", version.clone()),
        ("DELETE", "/registered-models/delete", digits.clone()),
        ("POST", "/runs/log-metric", metric),
    ];
    for (method, path, body) in &changes {
        let refused = send(&ben, method, path, body);
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.text());
    }
    assert_eq!(serve.send_as(&ben, "PUT", &file, b"his").status, 403);
    let copy = "/api/2.0/mlflow-artifacts/artifacts/models/digits@1/artifacts/MLmodel";
    assert_eq!(serve.send_as(&ben, "GET", copy, b"").ok().text(), "hers");
    assert_eq!(serve.send_as(&root, "PUT", copy, b"his").status, 400);
    for token in [&anna, &root] {
        send(token, "POST", "/registered-models/alias", &alias).ok();
        send(token, "POST", "/model-versions/set-tag", &tag).ok();
    }
    // So much that nobody could read it any more is refused, and the list stays.
    let long = json!({"name": "digits", "version": "1", "key": "k", "value": "x".repeat(100_001)});
    let refused = send(&anna, "POST", "/model-versions/set-tag", &long);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let local = json!({"name": "digits", "source": "/etc/passwd"});
    assert_eq!(
        send(&anna, "POST", "/model-versions/create", &local).status,
        400
    );
    send(&ben, "GET", "/registered-models/search", &json!({})).ok();
}

#[test]
fn nobody_can_be_called_as_everybody_without_a_token_is() {
    let place = Place::new();
    place.refused(
        &["serve", "token", "add", "local", "--store", "runs"],
        &["local"],
    );
}

#[test]
fn where_jobs_can_do_what_the_server_can_it_says_so_first() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let said = serve.said();
    assert!(
        said.contains("submit may do everything") && said.contains("--job-user"),
        "{said}"
    );
    drop(serve);
    let quiet = Serve::start(&place, &[]);
    assert!(!quiet.said().contains("--job-user"), "{}", quiet.said());
    place.refused(
        &["serve", "--port", "0", "--job-user", "nobody of ours"],
        &["/etc/passwd"],
    );
    place.refused(
        &["serve", "--port", "0", "--job-user", "root"],
        &["everything"],
    );
}

#[test]
fn a_job_of_another_user_reaches_its_own_folder_and_no_token_or_record() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can have jobs run as another user");
        return;
    }
    let place = Place::new();
    let open = fs::Permissions::from_mode(0o711);
    fs::set_permissions(place.path(""), open).unwrap();
    let admin = token(&place, "root", "admin");
    let serve = Serve::start(&place, &["--require-token", "--job-user", "nobody"]);
    assert!(
        !serve.said().contains("submit may do everything"),
        "{}",
        serve.said()
    );
    let server = place.path("runs/.server");
    let server = server.display();
    let command = format!(
        "id -un; echo mine > file; cat file; echo \"$HOME\"; echo err > /dev/stderr; ls {server}; ls {server}/jobs; \
         cat {server}/tokens.json {server}/audit.jsonl {server}/queue.lock {server}/jobs/one/job.json; \
         echo x > {server}/tokens.json; mv {server} {server}.gone; ls ..; true"
    );
    let job = json!({"entrypoint": command, "submission_id": "one"});
    serve.post_as(&admin, "/api/jobs/", &job).ok();
    let done = until_ended(&serve, &admin, "one");
    assert_eq!(done["status"], "SUCCEEDED", "{done}");
    let log = serve
        .send_as(&admin, "GET", "/api/jobs/one/logs", b"")
        .ok()
        .json();
    let log = log["logs"].as_str().unwrap();
    assert!(
        log.starts_with("nobody\nmine\n") && log.contains("\nerr\n"),
        "{log}"
    );
    // Nor is a model opened that a job may have written.
    let asked = json!({"inputs": [[1]]});
    let refused = serve.post_as(&admin, "/models/m@1/invocations", &asked);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("lockstep serve-model"));
    let denied = log.matches("Permission denied").count() + log.matches("cannot").count();
    assert!(denied >= 8, "{log}");
    for secret in ["sha256", "entrypoint", "\"role\"", "hunter"] {
        assert!(!log.contains(secret), "{log}");
    }
    // A Python environment is made by the job's user, and belongs to the server afterwards.
    let command = "id -un; dirname $(dirname $(dirname $(command -v python3))); touch $VIRTUAL_ENV/lib/mine; \
         find $VIRTUAL_ENV -not -type l -writable";
    let environment = json!({"pip": ["# none but what is there"]});
    let job = json!({"entrypoint": command, "submission_id": "two", "runtime_env": environment});
    serve.post_as(&admin, "/api/jobs/", &job).ok();
    let done = until_ended(&serve, &admin, "two");
    assert_eq!(done["status"], "SUCCEEDED", "{done}");
    let log = serve.send_as(&admin, "GET", "/api/jobs/two/logs", b"").ok();
    let log = log.json()["logs"].as_str().unwrap().to_owned();
    let expected = format!("nobody\n{server}/environments\ntouch: cannot touch");
    assert!(log.contains(&expected), "{log}");
    assert!(log.trim_end().ends_with("Permission denied"), "{log}");
    // Whoever could write the store could put another folder in the place of the server's.
    drop(serve);
    fs::set_permissions(place.path("runs"), fs::Permissions::from_mode(0o777)).unwrap();
    place.refused(
        &[
            "serve",
            "--store",
            "runs",
            "--port",
            "0",
            "--job-user",
            "nobody",
        ],
        &["nobody can change", "--folder"],
    );
}

#[test]
fn the_servers_folder_is_private_also_when_a_token_is_made_first() {
    let place = Place::new();
    token(&place, "anna", "submit");
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("runs/.server"), 0o700);
    assert_eq!(mode("runs/.server/tokens.lock") & 0o044, 0);
    assert_ne!(mode("runs") & 0o055, 0);
}

#[test]
fn a_reader_who_locks_a_run_keeps_its_owner_out_of_nothing() {
    let place = Place::new();
    place.train(&["--epochs", "1"]);
    let run = place.runs().remove(0);
    let reader = fs::File::open(run.join(".lock")).unwrap();
    reader.lock_shared().unwrap();
    let name = run.display().to_string();
    place.succeeds(&["run", "job.toml", "--resume", &name, "--epochs", "2"]);
    assert_eq!(fs::metadata(run.join(".hold")).unwrap().mode() & 0o044, 0);
    drop(reader);
}

#[test]
fn refusals_do_not_wash_away_what_was_done_and_a_token_is_named() {
    let place = Place::new();
    let (serve, [anna, ..]) = three(&place);
    let reader = token(&place, "reader", "read");
    let job = json!({"entrypoint": "true", "submission_id": "one"});
    serve.post_as(&anna, "/api/jobs/", &job).ok();
    let read = |name: &str| fs::read_to_string(place.path("runs/.server").join(name)).unwrap();
    let before = read("audit.jsonl");
    for _ in 0..400 {
        assert_eq!(serve.get("/api/jobs/").status, 401);
    }
    assert_eq!(serve.post_as(&reader, "/api/jobs/", &job).status, 403);
    assert_eq!(read("audit.jsonl"), before);
    let refused = read("refused.jsonl");
    let lines = refused
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (named, strangers): (Vec<Value>, Vec<Value>) =
        lines.partition(|line| line["who"] == "reader");
    assert_eq!(named.len(), 1, "{refused}");
    assert_eq!(
        (&named[0]["role"], &named[0]["status"]),
        (&json!("read"), &json!(403))
    );
    // Some at once, and two a second, on a machine that may be slow.
    assert!((100..400).contains(&strangers.len()), "{}", strangers.len());
}

#[test]
fn a_workers_log_can_be_read_in_parts() {
    let place = Place::new();
    place.train(&["--epochs", "1", "--workers", "1"]);
    let run = place.runs().remove(0);
    let name = run.file_name().unwrap().to_str().unwrap();
    fs::write(run.join("logs/worker-0.log"), "first\nsecond\nthird\n").unwrap();
    let serve = Serve::start(&place, &[]);
    let log = |rest: &str| {
        let part = serve.get(&format!("/api/v1/runs/{name}/log?rank=0{rest}"));
        part.ok().json()["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(log("&from=0"), "first\nsecond\nthird\n");
    assert_eq!(log("&from=6&to=13"), "second\n");
    assert_eq!(log("&from=6&most=3"), "sec");
    assert_eq!(log(""), "first\nsecond\nthird\n");
}
