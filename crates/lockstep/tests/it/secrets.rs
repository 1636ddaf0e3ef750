//! What signs a URL is a password: it is used, and it is shown and written nowhere. A signature lasts for
//! hours and a run for longer, so a run goes on with another one.

use crate::common::{Place, Ran};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

/// A web server with one file, which it gives to those whose query has the right signature.
struct Server {
    address: String,
    signature: Arc<Mutex<&'static str>>,
}

impl Server {
    fn new(content: String) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let signature = Arc::new(Mutex::new(""));
        let right = Arc::clone(&signature);
        let content = Arc::new(content);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (right, content) = (Arc::clone(&right), Arc::clone(&content));
                thread::spawn(move || answer(stream.unwrap(), &right, content.as_bytes()));
            }
        });
        Server { address, signature }
    }

    /// Lets only those in who know this signature, and returns the file's URL with it.
    fn sign(&self, signature: &'static str) -> String {
        *self.signature.lock().unwrap() = signature;
        let address = &self.address;
        format!("http://{address}/table.csv?X-Amz-Credential=someone&X-Amz-Signature={signature}")
    }
}

/// Answers one request, whole or for a range.
fn answer(mut stream: TcpStream, signature: &Mutex<&'static str>, content: &[u8]) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let signed = format!("X-Amz-Signature={} ", signature.lock().unwrap());
    let lines = request.lines().map(str::to_lowercase);
    let range = lines.into_iter().find_map(|line| {
        let (start, end) = line.strip_prefix("range: bytes=")?.trim().split_once('-')?;
        let end = end.parse().map_or(content.len(), |end: usize| end + 1);
        Some((start.parse().ok()?, end.min(content.len())))
    });
    let (status, part) = match range {
        _ if !request.contains(&signed) => ("403 Forbidden".to_owned(), &[][..]),
        Some((start, end)) => {
            let (last, all) = (end - 1, content.len());
            let status =
                format!("206 Partial Content\r\ncontent-range: bytes {start}-{last}/{all}");
            (status, &content[start..end])
        }
        None => ("200 OK".to_owned(), content),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: \"1\"\r\nconnection: close\r\n\r\n",
        part.len()
    );
    let body = match request.starts_with("HEAD") {
        true => &[][..],
        false => part,
    };
    // Whoever hangs up early has seen enough.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// A table of two numbers and the class that follows from them.
fn table() -> String {
    let rows = (0..96).map(|i| {
        let (a, b) = (i % 7, i % 5);
        format!("{a},{b},{}\n", if a > b { "yes" } else { "no" })
    });
    rows.fold("a,b,label\n".to_owned(), |text, row| text + &row)
}

fn job(url: &str) -> String {
    format!(
        r#"name = "signed"
[data]
train = {{ csv = "{url}" }}
[model]
kind = "mlp"
hidden = [8]
[train]
epochs = 1
batch = 16
optimizer = {{ kind = "sgd", lr = 0.1 }}
workers = 2
[run]
store = "runs"
"#
    )
}

/// Fails if the secret stands in what was said, or in any file below `folder` but the job that has it.
fn assert_unseen(secret: &str, ran: &Ran, folder: &Path) {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(secret), "{said}");
    let mut folders = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != folder.join("job.toml") {
                let bytes = fs::read(&path).unwrap();
                let found = bytes
                    .windows(secret.len())
                    .any(|at| at == secret.as_bytes());
                assert!(!found, "it stands in {}", path.display());
                assert!(!path.to_str().unwrap().contains(secret));
                files += 1;
            }
        }
    }
    assert!(files > 5, "only {files} files were looked at");
}

#[test]
fn a_signature_is_shown_and_written_nowhere_and_a_run_goes_on_with_a_renewed_one() {
    let place = Place::new();
    let server = Server::new(table());
    place.write_job(&job(&server.sign("hunter2hunter2")));
    let folder = place.path("");

    let plain = place.run(&["run", "job.toml"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    assert_unseen("hunter2hunter2", &plain, &folder);
    let first = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_unseen("hunter2hunter2", &first, &folder);

    // The old one is not let in any more, and the run goes on with the new one.
    place.write_job(&job(&server.sign("renewed3renewed3")));
    let run = first.result()["run_dir"].as_str().unwrap().to_owned();
    let args = [
        "run", "job.toml", "--json", "--epochs", "3", "--resume", &run,
    ];
    let resumed = place.run(&args);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_unseen("renewed3renewed3", &resumed, &folder);
    let whole = place.weights(&["--epochs", "3"]);
    assert_eq!(resumed.result()["weights_sha256"], whole.as_str());
}

#[test]
fn a_signature_that_is_refused_is_shown_nowhere_either() {
    let place = Place::new();
    let server = Server::new(table());
    let url = server.sign("hunter2hunter2");
    server.sign("another");
    place.write_job(&job(&url));
    let ran = place.run(&["run", "job.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("403"), "{}", ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains("hunter2"), "{said}");
    assert!(place.runs().is_empty());
}
