//! A proxy between a client and a head, which cuts or refuses connections as a test wants it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A proxy, which ends with the test's process.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// Bytes after which the first connection of a log is cut; the second after twice as many, and so on.
    after: usize,
    /// Connections of a log that are still to be cut.
    left: AtomicUsize,
    /// Connections of a log that were cut.
    cut: AtomicUsize,
    /// What is answered to a log's connection instead of passing it on.
    answer: Option<&'static str>,
    /// Connections of a log that were refused.
    refused: AtomicUsize,
    /// Nothing gets through any more.
    dead: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// To the server at `to`. The first `cuts` connections of a log are cut, the first after `after` bytes of
    /// answer, the second after twice as many, and so on: each gets a little further.
    pub(crate) fn new(to: &str, cuts: usize, after: usize) -> Self {
        Self::with(to, cuts, after, None)
    }

    /// To the server at `to`. No connection of a log comes about: it is answered with `status`, as in `404 Not Found`.
    pub(crate) fn refusing_logs(to: &str, status: &'static str) -> Self {
        Self::with(to, 0, 0, Some(status))
    }

    fn with(to: &str, cuts: usize, after: usize, answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            after,
            left: AtomicUsize::new(cuts),
            cut: AtomicUsize::new(0),
            answer,
            refused: AtomicUsize::new(0),
            dead: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let (to, shared) = (to.to_owned(), state.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (to, state) = (to.clone(), shared.clone());
                thread::spawn(move || state.serve(client, &to));
            }
        });
        Self { address, state }
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections of a log were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.state.cut.load(Ordering::SeqCst)
    }

    /// How many connections of a log were refused.
    pub(crate) fn refusals(&self) -> usize {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// Cuts all connections, and accepts none any more.
    pub(crate) fn die(&self) {
        self.state.dead.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn serve(&self, mut client: TcpStream, to: &str) {
        let mut request = vec![0; 64 << 10];
        let Ok(length) = client.read(&mut request) else {
            return;
        };
        if self.dead.load(Ordering::SeqCst) {
            return;
        }
        let begin = String::from_utf8_lossy(&request[..length.min(512)]).into_owned();
        let of_log = begin
            .lines()
            .next()
            .unwrap_or_default()
            .contains("/logs/tail");
        if let Some(status) = self.answer.filter(|_| of_log) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            let _ = write!(client, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        let less = |left: usize| left.checked_sub(1);
        let is_cut = of_log
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                .is_ok();
        let Ok(mut server) = TcpStream::connect(to) else {
            return;
        };
        server.write_all(&request[..length]).unwrap();
        for stream in [&client, &server] {
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let (mut from, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let upwards = thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut into);
            let _ = into.shutdown(Shutdown::Write);
        });
        let before = self.cut.load(Ordering::SeqCst);
        let limit = match is_cut {
            true => self.after * (before + 1),
            false => usize::MAX,
        };
        let mut passed = 0;
        let mut block = vec![0; 4096];
        while passed < limit {
            let room = block.len().min(limit - passed);
            match server.read(&mut block[..room]) {
                Ok(count) if count > 0 && client.write_all(&block[..count]).is_ok() => {
                    passed += count;
                }
                _ => break,
            }
        }
        if is_cut && passed >= limit {
            self.cut.fetch_add(1, Ordering::SeqCst);
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
        let _ = upwards.join();
    }
}
