//! Real servers of object stores.
//!
//! A server that cannot be brought or started fails the test with what was missing: none is skipped.

use crate::kept::Kept;
use crate::{python, succeed};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

const MOTO: &str = "5.2.5";
const AZURITE: &str = "3.37.0";
const AZURITE_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/azurite.js");

/// A server in a process of its own, which ends with this one at the latest.
pub struct Server {
    child: Child,
    /// The server ends when this does.
    stdin: Option<ChildStdin>,
    /// What it said of itself.
    pub said: BTreeMap<String, String>,
    /// How long it may take to end by itself once its standard input has.
    pub(crate) patience: Duration,
}

impl Server {
    /// S3, STS and IAM by moto; `arguments` are those of `s3_server.py`.
    ///
    /// # Panics
    /// When it cannot be brought or does not start.
    pub fn moto(arguments: &[&str]) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/s3_server.py");
        let mut command = Command::new(python_with_moto());
        command.arg(script).args(arguments);
        // Those of the machine must not reach the server's own clients.
        for name in [
            "AWS_PROFILE",
            "AWS_ENDPOINT_URL",
            "AWS_SESSION_TOKEN",
            "HTTP_PROXY",
            "http_proxy",
        ] {
            command.env_remove(name);
        }
        Server::introduced(command, "moto")
    }

    /// A proxy that speaks TLS, in front of the server at `to`, HOST:PORT. Its certificate is for 127.0.0.1 alone;
    /// that of its authority is written to `ca.pem` in `folder`.
    ///
    /// # Panics
    /// When it cannot be brought or does not start.
    pub fn tls_proxy(to: &str, folder: &Path) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/tls_proxy.py");
        let mut command = Command::new(python_with_moto());
        command.arg(script).arg(to).arg(folder);
        Server::introduced(command, "the proxy").quiet()
    }

    /// A server that says what it is in a line of JSON.
    pub(crate) fn introduced(command: Command, name: &str) -> Server {
        let mut server = Server::start(command);
        let mut line = String::new();
        server.read_line(&mut line);
        server.said = serde_json::from_str(&line).unwrap_or_else(|_| {
            let words = server.last_words();
            panic!("{name} did not start; it said {line:?} and {words}")
        });
        server
    }

    /// Azure's blobs by Azurite, in `folder`.
    ///
    /// # Panics
    /// When it cannot be brought or does not start.
    pub fn azurite(folder: &Path) -> Server {
        let mut command = Command::new("node");
        command.arg(AZURITE_SCRIPT);
        command.arg(azurite_program()).args([
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            "0",
            "--silent",
        ]);
        command
            .args(["--skipApiVersionCheck", "--disableTelemetry", "--location"])
            .arg(folder);
        let mut server = Server::start(command);
        // It says: "Azurite Blob service successfully listens on http://127.0.0.1:40123"
        let mut line = String::new();
        while !line.contains(" on http://") {
            line.clear();
            if server.read_line(&mut line) == 0 {
                panic!("Azurite did not start: {}", server.last_words());
            }
        }
        let address = line.split_whitespace().last().unwrap().to_owned();
        server.said.insert("endpoint".into(), address);
        server
    }

    /// Makes a container of Azurite.
    pub fn make_container(&self, account: &str, key: &str, name: &str) {
        let mut node = Command::new("node");
        node.args([
            AZURITE_SCRIPT,
            "container",
            self.endpoint(),
            account,
            key,
            name,
        ]);
        succeed(&mut node);
    }

    pub(crate) fn start(mut command: Command) -> Server {
        let pipes = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = pipes
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
        let stdin = child.stdin.take();
        Server {
            child,
            stdin,
            said: BTreeMap::new(),
            patience: Duration::ZERO,
        }
    }

    pub(crate) fn read_line(&mut self, line: &mut String) -> usize {
        BufReader::with_capacity(1, self.child.stdout.as_mut().unwrap())
            .read_line(line)
            .unwrap()
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    pub(crate) fn last_words(&mut self) -> String {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let mut words = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut words);
        words
    }

    /// Its address: `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> &str {
        &self.said["endpoint"]
    }

    /// Its address without the scheme.
    pub fn address(&self) -> &str {
        self.endpoint().split_once("://").unwrap().1
    }

    /// Lets it write on without anyone reading, so that it never waits for this process.
    pub fn quiet(mut self) -> Server {
        let mut stderr = self.child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let mut stdout = self.child.stdout.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let began = Instant::now();
        while began.elapsed() < self.patience && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python that has moto.
pub(crate) fn python_with_moto() -> PathBuf {
    let moto = format!("moto[s3]=={MOTO}");
    python("moto", &[&moto, "flask", "flask-cors"])
}

/// The folder of Azurite and what it needs.
pub(crate) fn azurite() -> Kept {
    Kept::new("azurite", AZURITE)
}

/// Azurite's program for node, brought once.
fn azurite_program() -> PathBuf {
    let home = azurite().folder(|home| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(home);
        succeed(npm.arg(format!("azurite@{AZURITE}")));
    });
    home.join("node_modules/azurite/dist/src/blob/main.js")
}
