//! `lockstep kube forward`, as tests use it.

use crate::common::{LIMIT, Place};
use lockstep_testkit::KubeCluster;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A port of the cluster that is forwarded, until it goes out of scope.
pub(crate) struct Forwarded {
    child: Child,
    address: String,
}

impl Forwarded {
    /// Starts `lockstep kube WORDS` on a free port.
    pub(crate) fn start(place: &Place, cluster: &KubeCluster, words: &[&str]) -> Forwarded {
        let mut command = place.command(&[&["kube"], words, &["--local", "0"]].concat());
        command.env("KUBECONFIG", cluster.kubeconfig());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.split(' ').next().unwrap().to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{line}");
        Forwarded { child, address }
    }

    /// The answer to a request, with its head; nothing if there is none.
    pub(crate) fn get(&self, path: &str, token: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// The same, until it is a success.
    pub(crate) fn get_at_last(&self, path: &str, token: &str) -> String {
        let began = Instant::now();
        loop {
            let answer = self.get(path, token);
            if answer.starts_with("HTTP/1.1 200") {
                return answer;
            }
            assert!(began.elapsed() < LIMIT, "{path}: {answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
