//! Where workers find their coordinator.
//!
//! The coordinator listens, every worker that it started connects, both prove that they know the
//! run's secret, and the worker says which rank it is. Whoever cannot prove it, or takes longer than
//! five seconds, is dropped without disturbing the others.

use crate::handshake::Acceptor;
use crate::link::PURPOSE;
use crate::{GangError, Hello, Link, Secret};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The coordinator's end of the rendezvous.
pub struct Rendezvous {
    acceptor: Acceptor,
    address: SocketAddr,
}

impl Rendezvous {
    /// Listens at `address`; port 0 takes a free one.
    pub fn bind(address: impl ToSocketAddrs, secret: &Secret) -> Result<Self, GangError> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bind().map_err(GangError::io("listen for workers"))?;
        Ok(Self {
            acceptor: Acceptor::new(listener, secret, PURPOSE, &[])?,
            address,
        })
    }

    /// Where workers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next worker; `None` when none came within `timeout`. Workers wait in line between calls.
    ///
    /// That it knows the secret is certain; that its rank makes sense is for the caller to check.
    pub fn accept(&mut self, timeout: Duration) -> Result<Option<(Hello, Link)>, GangError> {
        let by = Instant::now() + timeout;
        while let Some((card, stream)) = self.acceptor.accept(by)? {
            // One who knows the secret but not how to introduce itself is of another version.
            if let Ok(hello) = serde_json::from_slice(&card) {
                return Ok(Some((hello, Link::over(stream)?)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MAX_MESSAGE;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    const LONG: Duration = Duration::from_secs(10);
    const SHORT: Duration = Duration::from_millis(150);

    fn hello(rank: usize) -> Hello {
        Hello {
            rank,
            pid: 42,
            generation: 1,
            listener: None,
        }
    }

    fn rendezvous() -> (Rendezvous, Secret) {
        let secret = Secret::random().unwrap();
        (Rendezvous::bind("127.0.0.1:0", &secret).unwrap(), secret)
    }

    fn linked() -> (Link, Link) {
        let (mut rendezvous, secret) = rendezvous();
        let address = rendezvous.address();
        let worker = thread::spawn(move || Link::connect(address, &secret, &hello(3), LONG));
        let (hello, link) = rendezvous.accept(LONG).unwrap().unwrap();
        assert_eq!(hello.rank, 3);
        (link, worker.join().unwrap().unwrap())
    }

    #[test]
    fn messages_arrive_whole_in_order_and_both_ways() {
        let (mut coordinator, mut worker) = linked();
        let long = "x".repeat(300_000);
        let sent = long.clone();
        let sender = thread::spawn(move || {
            for number in 0..3u32 {
                worker.send(&(number, &sent)).unwrap();
            }
            worker
        });
        for number in 0..3u32 {
            let message: (u32, String) = coordinator.recv(LONG).unwrap().unwrap();
            assert_eq!(message, (number, long.clone()));
        }
        let mut worker = sender.join().unwrap();
        coordinator.send(&"stop").unwrap();
        assert_eq!(worker.recv::<String>(LONG).unwrap().unwrap(), "stop");
        assert!(worker.recv::<String>(SHORT).unwrap().is_none());
    }

    #[test]
    fn a_message_cut_by_a_timeout_is_completed_later() {
        let (mut reader, worker) = linked();
        let (_, writer) = worker.split();
        let frame = b"\x06\0\0\0\"four\"";
        let mut stream = writer.socket();
        stream.write_all(&frame[..7]).unwrap();
        assert!(reader.recv::<String>(SHORT).unwrap().is_none());
        stream.write_all(&frame[7..]).unwrap();
        assert_eq!(reader.recv::<String>(LONG).unwrap().unwrap(), "four");
    }

    #[test]
    fn the_end_of_a_link_is_an_error_of_its_own() {
        let (mut coordinator, worker) = linked();
        drop(worker);
        assert!(matches!(
            coordinator.recv::<u32>(LONG),
            Err(GangError::Closed)
        ));
    }

    #[test]
    fn an_oversized_message_is_refused_on_both_sides() {
        let (mut coordinator, mut worker) = linked();
        let error = worker.send(&"x".repeat(MAX_MESSAGE)).unwrap_err();
        assert!(matches!(error, GangError::FrameTooLarge { .. }), "{error}");
        let (_, writer) = worker.split();
        writer.socket().write_all(&u32::MAX.to_le_bytes()).unwrap();
        let error = coordinator.recv::<String>(LONG).unwrap_err();
        assert!(matches!(error, GangError::FrameTooLarge { .. }), "{error}");
    }

    #[test]
    fn a_message_of_another_type_is_an_error_and_the_link_goes_on() {
        let (mut coordinator, mut worker) = linked();
        worker.send(&"text").unwrap();
        worker.send(&7u32).unwrap();
        assert!(matches!(
            coordinator.recv::<u32>(LONG),
            Err(GangError::Message(_))
        ));
        assert_eq!(coordinator.recv::<u32>(LONG).unwrap(), Some(7));
    }

    #[test]
    fn a_worker_with_another_secret_is_refused_and_knows_why() {
        let (mut rendezvous, _) = rendezvous();
        let address = rendezvous.address();
        let stranger = thread::spawn(move || {
            Link::connect(address, &Secret::random().unwrap(), &hello(0), LONG)
        });
        assert!(rendezvous.accept(SHORT).unwrap().is_none());
        let error = stranger.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("secret"), "{error}");
    }

    #[test]
    fn garbage_and_silence_do_not_keep_an_honest_worker_waiting() {
        let (mut rendezvous, secret) = rendezvous();
        let address = rendezvous.address();
        let silent: Vec<_> = (0..80)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut garbage = TcpStream::connect(address).unwrap();
        garbage.write_all(&[0xa5; 400]).unwrap();
        let worker = thread::spawn(move || Link::connect(address, &secret, &hello(1), LONG));
        let begin = Instant::now();
        let (found, _link) = rendezvous.accept(LONG).unwrap().unwrap();
        assert_eq!(found, hello(1));
        assert!(
            begin.elapsed() < Duration::from_secs(2),
            "{:?}",
            begin.elapsed()
        );
        worker.join().unwrap().unwrap();
        drop(silent);
    }

    #[test]
    fn a_replayed_handshake_is_refused() {
        let (mut rendezvous, secret) = rendezvous();
        let address = rendezvous.address();
        // A man in the middle records what an honest worker sends.
        let middle = TcpListener::bind("127.0.0.1:0").unwrap();
        let middle_address = middle.local_addr().unwrap();
        let worker = thread::spawn(move || Link::connect(middle_address, &secret, &hello(0), LONG));
        let recorder = thread::spawn(move || {
            let (mut from_worker, _) = middle.accept().unwrap();
            let mut to_coordinator = TcpStream::connect(address).unwrap();
            let mut first = [0; 40];
            from_worker.read_exact(&mut first).unwrap();
            to_coordinator.write_all(&first).unwrap();
            let mut reply = [0; 8 + 32 + 2 + 32];
            to_coordinator.read_exact(&mut reply).unwrap();
            from_worker.write_all(&reply).unwrap();
            let mut second = vec![0; 4096];
            let length = from_worker.read(&mut second).unwrap();
            second.truncate(length);
            to_coordinator.write_all(&second).unwrap();
            (first, second, to_coordinator)
        });
        let (found, _link) = rendezvous.accept(LONG).unwrap().unwrap();
        assert_eq!(found, hello(0));
        worker.join().unwrap().unwrap();
        let (first, second, _kept_open) = recorder.join().unwrap();

        let mut replay = TcpStream::connect(address).unwrap();
        replay.write_all(&first).unwrap();
        replay.write_all(&second).unwrap();
        assert!(rendezvous.accept(SHORT).unwrap().is_none());
    }

    #[test]
    fn a_coordinators_proof_cannot_be_sent_back_to_it() {
        let (mut rendezvous, _) = rendezvous();
        let address = rendezvous.address();
        let mut ask = |nonce: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&[b"lockstp1", nonce].concat()).unwrap();
            assert!(rendezvous.accept(SHORT).unwrap().is_none());
            let mut reply = [0; 8 + 32 + 2 + 32];
            stream.read_exact(&mut reply).unwrap();
            (stream, reply)
        };
        let (mut victim, challenge) = ask(&[7; 32]);
        // A second connection makes the coordinator itself tag the first one's challenge.
        let (_oracle, answer) = ask(&challenge[8..40]);
        victim
            .write_all(&[&[0, 0], &answer[42..]].concat())
            .unwrap();
        assert!(rendezvous.accept(SHORT).unwrap().is_none());
        let mut rest = Vec::new();
        assert!(matches!(victim.read_to_end(&mut rest), Ok(0) | Err(_)));
    }
}
