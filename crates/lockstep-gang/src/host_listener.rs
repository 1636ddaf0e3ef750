//! Where hosts find their coordinator.
//!
//! A host is a process on which workers are to be started. Other than a worker it comes by itself, again and again if
//! need be, so its key is not used up: one key admits all hosts of a run. Whoever has it can pose as any of them.

use crate::link::Link;
use crate::secure::acceptor::{Acceptor, ConnectionOutcome, Refusal};
use crate::secure::handshake::{Introduction, Purpose};
use crate::{GangError, Secret};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The coordinator's end.
pub struct HostListener {
    acceptor: Acceptor,
    address: SocketAddr,
}

/// Somebody who came to the listener, and says `H` of itself.
#[derive(Debug)]
pub enum HostConnection<H> {
    /// A host that has the key.
    Host {
        /// Its number, which it says itself.
        index: usize,
        /// How it introduced itself.
        hello: H,
        /// The link to it.
        link: Link,
    },
    /// Somebody who was not let in.
    Refused(Refusal),
}

impl HostListener {
    /// Listens at `address` for hosts that have the key.
    ///
    /// # Errors
    /// [`GangError::Io`] when the address cannot be listened at.
    pub fn bind(address: SocketAddr, key: Secret) -> Result<Self, GangError> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            bind().map_err(GangError::io(format!("listen for hosts at {address}")))?;
        let key_of = move |introduction: Introduction| match introduction.purpose {
            Purpose::Host => Ok(key.clone()),
            _ => Err("it is not a host".to_owned()),
        };
        Ok(Self {
            acceptor: Acceptor::new(listener, &[], Arc::new(key_of))?,
            address,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next who came; `None` when nobody did within `timeout`.
    ///
    /// # Errors
    /// [`GangError::Io`] when the system cannot accept; the next call may.
    pub fn accept<H: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<HostConnection<H>>, GangError> {
        let (introduction, card, channel) = match self.acceptor.accept(Instant::now() + timeout)? {
            None => return Ok(None),
            Some(ConnectionOutcome::Refused(refusal)) => {
                return Ok(Some(HostConnection::Refused(refusal)));
            }
            Some(ConnectionOutcome::Proven(introduction, card, channel)) => {
                (introduction, card, channel)
            }
        };
        Ok(Some(match serde_json::from_slice(&card) {
            Ok(hello) => HostConnection::Host {
                index: introduction.from as usize,
                hello,
                link: Link::over(channel)?,
            },
            Err(_) => HostConnection::Refused(Refusal {
                from: channel.stream.peer_addr().unwrap_or(self.address),
                reason: "it does not introduce itself as this version does".to_owned(),
            }),
        }))
    }

    /// The host's part: connects to the coordinator at `address` as host `index`, and says `hello` of itself.
    ///
    /// # Errors
    /// [`GangError::Io`] when nobody listens there, [`GangError::Handshake`] when the one who does has another key or
    /// does not answer within `timeout`.
    pub fn connect<H: Serialize>(
        address: SocketAddr,
        key: &Secret,
        index: usize,
        hello: &H,
        timeout: Duration,
    ) -> Result<Link, GangError> {
        let introduction = Introduction {
            purpose: Purpose::Host,
            from: index as u32,
            to: 0,
            number: 0,
        };
        Link::introduce(address, introduction, key, hello, timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn one_key_lets_every_host_in_as_often_as_it_comes_and_no_other_key_does() {
        let key = Secret::random().unwrap();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener = HostListener::bind(anywhere, key.clone()).unwrap();
        let address = listener.address();
        let connect = move |key: Secret, index| {
            thread::spawn(move || HostListener::connect(address, &key, index, &"me", LONG))
        };
        for index in [3, 3, 0] {
            let host = connect(key.clone(), index);
            let connection = listener.accept::<String>(LONG).unwrap().unwrap();
            let HostConnection::Host {
                index: found,
                hello,
                mut link,
            } = connection
            else {
                panic!("{connection:?}");
            };
            assert_eq!((found, hello.as_str()), (index, "me"));
            link.send(&"welcome").unwrap();
            let mut host = host.join().unwrap().unwrap();
            assert_eq!(host.recv::<String>(LONG).unwrap().unwrap(), "welcome");
        }
        let stranger = connect(Secret::random().unwrap(), 1);
        let connection = listener.accept::<String>(LONG).unwrap().unwrap();
        let HostConnection::Refused(refusal) = connection else {
            panic!("{connection:?}");
        };
        assert!(
            refusal.reason.contains("does not know the key"),
            "{refusal}"
        );
        let error = stranger.join().unwrap().unwrap_err();
        assert!(matches!(error, GangError::Handshake { .. }), "{error}");
    }
}
