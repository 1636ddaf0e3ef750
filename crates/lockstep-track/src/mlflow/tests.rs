//! What becomes of a run in MLflow when its server is away, refuses something, or is our own.

use super::{Mlflow, MlflowSettings};
use crate::{Begun, Origin, Sink};
use lockstep_events::Recorded;
use lockstep_events::event::{Event, RunResult, Started, Status};
use lockstep_job::Track;
use lockstep_place::{Access, Place};
use lockstep_runs::{Journal, RunDir, as_json, make_store_id};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What a server was asked: the path, and the body.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A server that has the answers that this crate needs, and refuses to register models.
fn server(folder: &Path, store_id: Option<String>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let (heard, artifacts) = (asked.clone(), folder.display().to_string());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (heard, artifacts) = (heard.clone(), artifacts.clone());
            let id = store_id.clone();
            thread::spawn(move || answer(&stream, &heard, &artifacts, id.as_deref()));
        }
    });
    (url, asked)
}

fn answer(stream: &TcpStream, heard: &Asked, artifacts: &str, store_id: Option<&str>) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if lines.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, said) = match path.rsplit('/').next().unwrap_or_default() {
            "version" => (
                "200 OK",
                match store_id {
                    Some(id) => format!("{{\"lockstep_store_id\": \"{id}\"}}"),
                    None => "{}".to_owned(),
                },
            ),
            name if name.starts_with("get-by-name") => (
                "200 OK",
                r#"{"experiment": {"experiment_id": "1", "lifecycle_stage": "active"}}"#.to_owned(),
            ),
            "create" if path.contains("/runs/") => (
                "200 OK",
                format!(
                    r#"{{"run": {{"info": {{"run_id": "r", "artifact_uri": "{artifacts}"}}}}}}"#
                ),
            ),
            "logged-models" => (
                "200 OK",
                format!(
                    r#"{{"model": {{"info": {{"model_id": "m", "artifact_uri": "{artifacts}"}}}}}}"#
                ),
            ),
            "create" => (
                "400 Bad Request",
                r#"{"error_code": "INVALID_PARAMETER_VALUE", "message": "not this name"}"#
                    .to_owned(),
            ),
            _ => ("200 OK", "{}".to_owned()),
        };
        heard
            .lock()
            .unwrap()
            .push((path, String::from_utf8_lossy(&body).into_owned()));
        let mut stream = stream;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
            said.len()
        );
        stream.write_all((head + &said).as_bytes()).unwrap();
    }
}

fn store(folder: &Path) -> Place {
    Place::parse(folder.to_str().unwrap(), &Access::default()).unwrap()
}

/// A run that has succeeded.
fn begun(folder: &Path) -> Begun {
    let (run, lock) = RunDir::create(&store(folder), "digits").unwrap();
    run.job().write(b"name = \"digits\"\n").unwrap();
    let started = Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        epochs: 1,
        ..Started::default()
    };
    let result = RunResult {
        status: Status::Succeeded,
        run: Some(run.name.clone()),
        weights_sha256: Some("ab".to_owned()),
        ..RunResult::default()
    };
    run.result().write(as_json(&result).as_bytes()).unwrap();
    let events = [Event::Started(started.clone()), Event::Result(result)];
    let mut journal = Journal::open(&run).unwrap();
    journal.events(&events.map(Recorded::now)).unwrap();
    journal.finish().unwrap();
    drop(lock);
    Begun {
        run,
        started,
        origin: Origin::default(),
    }
}

fn sink(server: &str) -> Mlflow {
    let track = Track {
        mlflow: Some(server.to_owned()),
        register: Some("digits".to_owned()),
        ..Track::default()
    };
    let settings = MlflowSettings::of(&track, "digits", &|_| None);
    let settings = settings.unwrap().unwrap();
    Mlflow::new(settings, Access::default(), |_| Err("not here".to_owned()))
}

#[test]
fn a_server_that_is_away_is_waited_for_and_what_it_lacks_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begun(folder.path());
    // Nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut sink = sink(&url);
    sink.begin(&begun).unwrap_err();
    let began = Instant::now();
    let wait = Duration::from_millis(1200);
    let said = sink.finish(began + wait).unwrap_err().to_string();
    assert!(began.elapsed() >= Duration::from_millis(500));
    assert!(
        said.contains("2 events and 2 files were not sent"),
        "{said}"
    );
    let command = format!("lockstep runs push {} --store", begun.run.name);
    assert!(said.contains(&command), "{said}");
}

#[test]
fn a_run_ends_in_mlflow_also_if_its_model_cannot_be_registered() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begun(folder.path());
    let (url, asked) = server(&folder.path().join("artifacts"), None);
    let mut sink = sink(&url);
    sink.begin(&begun).unwrap();
    sink.finish(Instant::now() + Duration::from_secs(60))
        .unwrap_err();
    let asked = asked.lock().unwrap();
    let is_end = |(path, body): &(String, String)| {
        path.ends_with("runs/update") && body.contains("\"FINISHED\"")
    };
    assert!(asked.iter().any(is_end), "{asked:?}");
}

#[test]
fn a_run_is_not_sent_to_a_server_that_shows_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begun(folder.path());
    let id = make_store_id(&store(folder.path())).unwrap();
    let (url, asked) = server(&folder.path().join("artifacts"), Some(id));
    let mut sink = sink(&url);
    let said = sink.begin(&begun).unwrap_err().to_string();
    assert!(said.contains("has the run already"), "{said}");
    let result = Event::Result(RunResult::default());
    sink.event(&Recorded::now(result)).unwrap();
    sink.finish(Instant::now()).unwrap();
    let asked = asked.lock().unwrap();
    let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/api/version"]);
}

#[test]
fn a_run_is_sent_to_a_server_that_shows_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begun(folder.path());
    make_store_id(&store(folder.path())).unwrap();
    let (url, asked) = server(&folder.path().join("artifacts"), Some("another".to_owned()));
    sink(&url).begin(&begun).unwrap();
    let asked = asked.lock().unwrap();
    assert!(asked.iter().any(|(path, _)| path.ends_with("runs/create")));
}
