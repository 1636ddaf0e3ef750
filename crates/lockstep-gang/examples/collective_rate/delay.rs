//! A delay on the way to a rank and back, where the kernel has none to offer: whoever connects reaches
//! the rank through a relay that holds every byte back for a while, both ways, without limiting the rate.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are held back as one.
const PIECE: usize = 64 << 10;

/// Starts a relay before `rank`; returns where it listens.
pub(crate) fn before(rank: SocketAddr, delay: Duration) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(SocketAddr::new(rank.ip(), 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for outside in listener.incoming().flatten() {
            let Ok(inside) = TcpStream::connect(rank) else {
                return;
            };
            let ends = [(&outside, &inside), (&inside, &outside)];
            for (from, to) in ends {
                if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                    // A vote must not wait for what follows it.
                    let _ = to.set_nodelay(true);
                    hold_back(from, to, delay);
                }
            }
        }
    });
    Ok(address)
}

fn hold_back(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, held) = channel();
    thread::spawn(move || {
        loop {
            let mut bytes = vec![0; PIECE];
            let read = from.read(&mut bytes).unwrap_or(0);
            bytes.truncate(read);
            if sender.send((Instant::now() + delay, bytes)).is_err() || read == 0 {
                return;
            }
        }
    });
    thread::spawn(move || pass_on(to, &held));
}

fn pass_on(mut to: TcpStream, held: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in held {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
    }
}
