//! A way to a server on which things go wrong, each at the connection that it is planned for.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to one connection.
pub enum Fault {
    /// Nothing.
    None,
    /// The answer ends after so many bytes.
    CutAnswer(usize),
    /// The same, and something is done before the client sees the end.
    CutAnswerThen(usize, Box<dyn FnOnce() + Send>),
    /// The request ends after so many bytes.
    CutRequest(usize),
    /// The answer comes in pieces of so many bytes, with a pause after each.
    Drip(usize, Duration),
    /// Nothing comes after so many bytes of the answer, and the connection stays.
    Hang(usize),
    /// The server is not asked: this is the answer.
    Say(Vec<u8>),
}

/// Listens in front of a server.
pub struct Proxy {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: String,
    plan: Mutex<VecDeque<Fault>>,
    /// What is done when the plan is at its end.
    after: Mutex<Box<dyn FnMut() -> Fault + Send>>,
    connections: AtomicUsize,
    /// The first lines and headers of the requests that were not passed on.
    heads: Mutex<Vec<String>>,
}

impl Proxy {
    /// In front of `upstream` (`host:port`): the faults of `plan`, one a connection, and then none.
    pub fn new(upstream: &str, plan: impl IntoIterator<Item = Fault>) -> Proxy {
        Proxy::forever(upstream, plan, || Fault::None)
    }

    /// The same, with `after` for every connection after the plan.
    pub fn forever(
        upstream: &str,
        plan: impl IntoIterator<Item = Fault>,
        after: impl FnMut() -> Fault + Send + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            upstream: upstream.into(),
            plan: Mutex::new(plan.into_iter().collect()),
            after: Mutex::new(Box::new(after)),
            connections: AtomicUsize::new(0),
            heads: Mutex::default(),
        });
        let listening = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                listening.connections.fetch_add(1, Ordering::SeqCst);
                let fault = listening.plan.lock().unwrap().pop_front();
                let fault = fault.unwrap_or_else(|| listening.after.lock().unwrap()());
                let serving = listening.clone();
                thread::spawn(move || serve(client, &serving, fault));
            }
        });
        Proxy { address, shared }
    }

    /// Its address: `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The first lines and headers of the requests that it answered itself.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap().clone()
    }

    /// How often it was connected to.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

/// Serves one connection. Whatever goes wrong ends it, which is what the peers are tested for.
fn serve(mut client: TcpStream, shared: &Shared, fault: Fault) {
    if let Fault::Say(answer) = fault {
        let head = read_head(&mut client);
        shared.heads.lock().unwrap().push(head);
        let _ = client.write_all(&answer);
        let _ = client.shutdown(Shutdown::Write);
        // Closing with unread bytes would reset the connection and take the answer with it.
        let _ = client.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = client.read(&mut [0; 65536]);
        return;
    }
    let Ok(server) = TcpStream::connect(&shared.upstream) else {
        return;
    };
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let limit = match fault {
        Fault::CutRequest(limit) => limit,
        _ => usize::MAX,
    };
    let up = thread::spawn(move || {
        let whole = copy(&mut from, &mut to, limit, usize::MAX, Duration::ZERO);
        if !whole {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    });
    let mut server = server;
    match fault {
        Fault::CutAnswer(limit) => {
            copy(&mut server, &mut client, limit, usize::MAX, Duration::ZERO);
        }
        Fault::CutAnswerThen(limit, then) => {
            copy(&mut server, &mut client, limit, usize::MAX, Duration::ZERO);
            then();
        }
        Fault::Drip(piece, pause) => {
            copy(&mut server, &mut client, usize::MAX, piece, pause);
        }
        Fault::Hang(limit) => {
            copy(&mut server, &mut client, limit, usize::MAX, Duration::ZERO);
            thread::sleep(Duration::from_secs(60));
        }
        _ => {
            copy(
                &mut server,
                &mut client,
                usize::MAX,
                usize::MAX,
                Duration::ZERO,
            );
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = up.join();
}

/// Copies up to `limit` bytes in pieces; whether it came to the end before the limit.
fn copy(
    from: &mut TcpStream,
    to: &mut TcpStream,
    limit: usize,
    piece: usize,
    pause: Duration,
) -> bool {
    let mut buffer = vec![0; piece.min(16 * 1024)];
    let mut left = limit;
    while left > 0 {
        let room = buffer.len().min(left);
        match from.read(&mut buffer[..room]) {
            Ok(0) | Err(_) => return true,
            Ok(got) => {
                if to.write_all(&buffer[..got]).is_err() {
                    return true;
                }
                left -= got;
            }
        }
        thread::sleep(pause);
    }
    false
}

/// Reads a request up to its empty line.
fn read_head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(client.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// An answer with a status line, headers and a body.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}
