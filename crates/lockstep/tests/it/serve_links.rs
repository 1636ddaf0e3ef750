//! Links, FIFOs and devices in a store: nothing outside it is read, written or removed through the server.

use crate::common::Place;
use crate::common::serve::Serve;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn no_file_outside_a_store_is_served_written_or_removed_through_a_link() {
    let place = Place::new();
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/secret"), "hunter2").unwrap();
    let serve = Serve::start(&place, &[]);
    let run = serve.make_run();
    let folder = place.path("runs").join(&run);
    let files = folder.join("artifacts");
    fs::create_dir(&files).unwrap();
    symlink(place.path("outside/secret"), files.join("file")).unwrap();
    symlink(place.path("outside"), files.join("folder")).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(files.join("fifo"))
        .status();
    assert!(fifo.unwrap().success());
    symlink("/dev/zero", files.join("zero")).unwrap();
    let at = |name: &str| format!("/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts/{name}");
    for name in ["file", "folder/secret", "fifo", "zero"] {
        let answer = serve.get(&at(name));
        assert!(
            (400..500).contains(&answer.status),
            "{name} {}",
            answer.text()
        );
        assert!(!answer.text().contains("hunter2"), "{name}");
        let other = serve.get(&format!("/get-artifact?run_uuid={run}&path={name}"));
        assert!(
            (400..500).contains(&other.status),
            "{name} {}",
            other.text()
        );
    }
    let listed = serve.get(&format!(
        "/api/2.0/mlflow/artifacts/list?run_id={run}&path=folder"
    ));
    assert!(!listed.text().contains("secret"), "{}", listed.text());
    assert_ne!(serve.send("PUT", &at("folder/new"), &[], b"x").status, 200);
    serve.send("DELETE", &at("folder/secret"), &[], b"");
    serve.send("DELETE", &at("folder"), &[], b"");
    // A file that is written over a link takes its place.
    serve.send("PUT", &at("file"), &[], b"mine").ok();
    assert_eq!(serve.get(&at("file")).ok().text(), "mine");
    assert_eq!(
        fs::read_to_string(place.path("outside/secret")).unwrap(),
        "hunter2"
    );
    assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    // Files that the server itself keeps of a run.
    for (name, path) in [
        ("result.json", ""),
        ("evaluation.json", "/evaluation"),
        ("tags.json", ""),
    ] {
        fs::write(
            place.path("outside/secret"),
            r#"{"note": "hunter2", "tags": {}}"#,
        )
        .unwrap();
        let file = folder.join(name);
        let _ = fs::remove_file(&file);
        symlink(place.path("outside/secret"), &file).unwrap();
        let answer = serve.get(&format!("/api/v1/runs/{run}{path}"));
        assert!(
            !answer.text().contains("hunter2"),
            "{name} {}",
            answer.text()
        );
    }
    let tag = json!({"run_id": run, "key": "a", "value": "b"});
    serve.post("/api/2.0/mlflow/runs/set-tag", &tag);
    let secret = fs::read_to_string(place.path("outside/secret")).unwrap();
    assert_eq!(secret, r#"{"note": "hunter2", "tags": {}}"#);
    // A run that is a link to elsewhere is none.
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere/job.toml"), "name = \"x\"\n").unwrap();
    symlink(place.path("elsewhere"), place.path("runs/linked")).unwrap();
    assert_eq!(serve.get("/api/v1/runs/linked").status, 404);
    let listed = place.succeeds(&["runs", "list", "--store", "runs"]);
    assert!(!listed.stdout.contains("linked"), "{}", listed.stdout);
}
