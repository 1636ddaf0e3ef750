//! A server of the real binary, and a client that says exactly what a test wants said.

use super::{LIMIT, Place, send};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What the line begins with that says that it is ready.
const READY: &str = "Lockstep serves ";

/// A server that ends with the test.
pub(crate) struct Serve {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// From the start of the command to the line that says that it is ready.
    pub(crate) started_in: Duration,
    said: Arc<Mutex<String>>,
}

impl Serve {
    /// `lockstep serve` in a place: on a free port of this machine, with the store `runs`, and these further arguments.
    pub(crate) fn start(place: &Place, args: &[&str]) -> Serve {
        Self::start_on(place, 0, args)
    }

    /// The same on this port: for one that comes after another.
    pub(crate) fn start_on(place: &Place, port: u16, args: &[&str]) -> Serve {
        let port = port.to_string();
        let first = ["serve", "--store", "runs", "--port", &port];
        Self::of(place.command(&[&first, args].concat()))
    }

    /// A server that is started by this command.
    pub(crate) fn of(mut command: Command) -> Serve {
        let began = Instant::now();
        let piped = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).unwrap();
            said += &line;
            if let Some(url) = line.trim_end().strip_prefix(READY) {
                break url.to_owned();
            }
            assert!(read > 0, "the server ended: {said}");
        };
        let started_in = began.elapsed();
        let (scheme, address) = url.split_once("://").unwrap();
        let said = Arc::new(Mutex::new(said));
        let heard = said.clone();
        thread::spawn(move || {
            let mut line = String::new();
            while matches!(lines.read_line(&mut line), Ok(1..)) {
                heard.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Serve {
            child,
            address: address.parse().unwrap(),
            scheme: scheme.to_owned(),
            started_in,
            said,
        }
    }

    /// Its address: `http://127.0.0.1:40123`.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// What it wrote to its standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        send(i32::try_from(self.pid()).unwrap(), Signal::TERM);
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < LIMIT, "it does not end: {}", self.said());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Gets something.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// Posts JSON.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let kind = [("Content-Type", "application/json")];
        self.send("POST", path, &kind, body.to_string().as_bytes())
    }

    /// Makes a run as MLflow's clients do, and returns its id.
    pub(crate) fn make_run(&self) -> String {
        let made = self.post("/api/2.0/mlflow/runs/create", &serde_json::json!({}));
        let made = made.ok().json();
        made["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    }

    /// Posts JSON as somebody with this token.
    pub(crate) fn post_as(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send_as(token, "POST", path, body.to_string().as_bytes())
    }

    /// Sends a request of somebody with this token.
    pub(crate) fn send_as(&self, token: &str, method: &str, path: &str, body: &[u8]) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        self.send(method, path, &headers, body)
    }

    /// How much memory it has, in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.unwrap().parse::<u64>().unwrap() / 1024
    }

    /// How long it takes to answer whether it is there.
    pub(crate) fn answers_in(&self) -> Duration {
        let began = Instant::now();
        assert_eq!(self.get("/healthz").status, 200);
        began.elapsed()
    }

    /// Sends one request, as it is given: the path is not encoded, and a `Host` among the headers takes the place of the
    /// right one.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |wanted: &str| {
            let mut names = headers.iter();
            names.any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        if !has("Host") {
            text += &format!("Host: {}\r\n", self.address);
        }
        if !has("Content-Length") && !has("Transfer-Encoding") && method != "GET" {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        self.send_raw(&[text.as_bytes(), body].concat())
    }

    /// Sends these bytes, and reads one answer.
    pub(crate) fn send_raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // One that refuses early may have closed its side: its answer is what counts.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::parse(&answer)
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token that `lockstep serve token add` makes.
pub(crate) fn token(place: &Place, name: &str, role: &str) -> String {
    let ran = place.succeeds(&[
        "serve", "token", "add", name, "--role", role, "--store", "runs",
    ]);
    ran.stdout.trim().to_owned()
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let split = split.unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        let mut answer = Answer {
            status: status.parse().unwrap(),
            headers: headers.collect(),
            body: bytes[split + 4..].to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunk(&answer.body);
        }
        answer
    }

    /// The first header of this name, which is written in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        let wrong = |_| panic!("{} {}", self.status, self.text());
        serde_json::from_slice(&self.body).unwrap_or_else(wrong)
    }

    /// The answer, which must be a success.
    pub(crate) fn ok(self) -> Answer {
        assert_eq!(self.status, 200, "{}", self.text());
        self
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let from = end + 2;
        if size == 0 || bytes.len() < from + size {
            break;
        }
        whole.extend(&bytes[from..from + size]);
        bytes = &bytes[(from + size + 2).min(bytes.len())..];
    }
    whole
}
