//! A way to a server on which all that is asked is written down.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens in front of a server and passes everything on.
pub(crate) struct Recorder {
    address: String,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    /// In front of `upstream` (`host:port`).
    pub(crate) fn new(upstream: &str) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, upstream) = (asked.clone(), upstream.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(&upstream).unwrap();
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let heard = heard.clone();
                thread::spawn(move || {
                    pass(up, server, |bytes| heard.lock().unwrap().extend(bytes))
                });
                thread::spawn(move || pass(down, client, |_| {}));
            }
        });
        Recorder { address, asked }
    }

    /// Its address: `http://127.0.0.1:40123`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The first lines of all requests, in their order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lines(|line| line.ends_with(" HTTP/1.1"))
    }

    /// Those lines of all requests that are wanted, in their order.
    pub(crate) fn lines(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let text = String::from_utf8_lossy(&asked);
        let lines = text.lines().filter(|line| is_wanted(line));
        lines.map(str::to_owned).collect()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut hear: impl FnMut(&[u8])) {
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        hear(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
