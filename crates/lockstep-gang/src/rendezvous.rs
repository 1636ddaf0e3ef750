//! Where workers find their coordinator.
//!
//! The coordinator listens, every worker that it started connects with the token that it was given, and
//! both prove themselves. Whoever cannot, or takes longer than five seconds, is refused without
//! disturbing the others, and the refusal is reported.

use crate::link::{Hello, Link};
use crate::secure::acceptor::{Acceptor, ConnectionOutcome, Refusal};
use crate::secure::handshake::{Introduction, Purpose};
use crate::{Admissions, GangError};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The coordinator's end of the rendezvous.
pub struct Rendezvous {
    acceptor: Acceptor,
    address: SocketAddr,
    admissions: Admissions,
}

/// Somebody who came to the rendezvous.
#[derive(Debug)]
pub enum Arrival {
    /// A worker with a token that was not used before.
    Worker {
        /// The seat that the token is for.
        seat: usize,
        /// The incarnation that the token is for.
        incarnation: u32,
        /// How it introduced itself.
        hello: Hello,
        /// The link to it.
        link: Link,
    },
    /// Somebody who was not let in.
    Refused(Refusal),
}

impl Rendezvous {
    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// [`GangError::Io`] when the address cannot be listened at.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self, GangError> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bind().map_err(GangError::io("listen for workers"))?;
        let admissions = Admissions::default();
        let tokens = admissions.clone();
        let key_of = move |introduction: Introduction| {
            let Introduction {
                from: seat, number, ..
            } = introduction;
            let key = tokens.key(seat as usize, number);
            key.filter(|_| introduction.purpose == Purpose::Control)
                .ok_or_else(|| format!("no unused token for worker {seat}, start {number}"))
        };
        Ok(Self {
            acceptor: Acceptor::new(listener, &[], Arc::new(key_of))?,
            address,
            admissions,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The tokens of those who are to come.
    pub fn admissions(&self) -> Admissions {
        self.admissions.clone()
    }

    /// The next who came; `None` when nobody did within `timeout`. Workers wait in line between calls.
    ///
    /// # Errors
    /// [`GangError::Io`] when the system cannot accept; the next call may.
    pub fn accept(&mut self, timeout: Duration) -> Result<Option<Arrival>, GangError> {
        let by = Instant::now() + timeout;
        Ok(match self.acceptor.accept(by)? {
            None => None,
            Some(ConnectionOutcome::Refused(refusal)) => Some(Arrival::Refused(refusal)),
            Some(ConnectionOutcome::Proven(introduction, card, channel)) => {
                let (seat, incarnation) = (introduction.from as usize, introduction.number);
                let refused = |reason: &str| {
                    let from = channel.stream.peer_addr().unwrap_or(self.address);
                    let reason = reason.to_owned();
                    Ok(Some(Arrival::Refused(Refusal { from, reason })))
                };
                // Of two who prove themselves with one token at the same time the first is let in.
                if !self.admissions.spend(seat, incarnation) {
                    return refused(&format!("the token of worker {seat} was used already"));
                }
                let Ok(hello) = serde_json::from_slice(&card) else {
                    return refused("it does not introduce itself as this version does");
                };
                let link = Link::over(channel)?;
                Some(Arrival::Worker {
                    seat,
                    incarnation,
                    hello,
                    link,
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MAX_MESSAGE;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(150);

    const HELLO: Hello = Hello {
        pid: 42,
        listener: None,
        memory_domain: None,
    };

    fn rendezvous() -> Rendezvous {
        Rendezvous::bind("127.0.0.1:0").unwrap()
    }

    fn linked() -> (Link, Link) {
        let mut rendezvous = rendezvous();
        let address = rendezvous.address();
        let token = rendezvous.admissions().admit(3, 7).unwrap();
        let worker = thread::spawn(move || Link::connect(address, &token, &HELLO, LONG));
        let arrival = rendezvous.accept(LONG).unwrap().unwrap();
        let Arrival::Worker {
            seat: 3,
            incarnation: 7,
            hello,
            link,
        } = arrival
        else {
            panic!("{arrival:?}")
        };
        assert_eq!(hello, HELLO);
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
    fn the_end_of_a_link_is_an_error_of_its_own() {
        let (mut coordinator, worker) = linked();
        drop(worker);
        assert!(matches!(
            coordinator.recv::<u32>(LONG),
            Err(GangError::Closed)
        ));
    }

    #[test]
    fn an_oversized_message_is_refused_and_the_link_goes_on() {
        let (mut coordinator, mut worker) = linked();
        let error = worker.send(&"x".repeat(MAX_MESSAGE)).unwrap_err();
        assert!(matches!(error, GangError::FrameTooLarge { .. }), "{error}");
        assert!(coordinator.recv::<String>(SHORT).unwrap().is_none());
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
}
