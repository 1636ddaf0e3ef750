//! Connections, and how many of them there are: in all, of each network, and of those that last.
//!
//! One network can have only a part of all, so that two cannot keep all others out. Of that part, what lasts (pages that
//! listen, logs that are followed) is again only a part, so that there is always room for requests. Of IPv6 a network is a
//! /64, since whoever has one of its addresses has all.

use crate::Refusal;
use http::StatusCode;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedSemaphorePermit;

/// Connections at a time.
pub(super) const MOST: usize = 512;
/// Of one network.
const MOST_OF_ONE: usize = 192;
/// Those that last.
const LASTING: usize = 320;
/// Of one network.
const LASTING_OF_ONE: usize = 128;

/// How many connections each network has.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Arc<Mutex<HashMap<IpAddr, Count>>>);

#[derive(Debug, Default)]
struct Count {
    all: usize,
    lasting: usize,
}

/// A connection, for as long as anybody has a clone of this: also when it is no longer one of requests and answers.
#[derive(Debug, Clone)]
pub(crate) struct Connection(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    counts: Counts,
    network: IpAddr,
    _place: OwnedSemaphorePermit,
}

/// A connection that lasts.
#[derive(Debug)]
pub(crate) struct Lasting(Connection);

impl Counts {
    /// Counts a connection from this address; nothing if its network has enough.
    pub(super) fn one_more(
        &self,
        address: IpAddr,
        place: OwnedSemaphorePermit,
    ) -> Option<Connection> {
        let network = network(address);
        let mut counts = self.lock();
        let count = counts.entry(network).or_default();
        if count.all >= MOST_OF_ONE {
            return None;
        }
        count.all += 1;
        drop(counts);
        Some(Connection(Arc::new(Counted {
            counts: self.clone(),
            network,
            _place: place,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Says that this connection will last.
    ///
    /// # Errors
    /// When too many do: 503.
    pub(crate) fn last(&self) -> Result<Lasting, Refusal> {
        let mut counts = self.0.counts.lock();
        let all: usize = counts.values().map(|count| count.lasting).sum();
        let own = counts.entry(self.0.network).or_default();
        if all >= LASTING || own.lasting >= LASTING_OF_ONE {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many pages are open and logs are followed; close some",
            ));
        }
        own.lasting += 1;
        drop(counts);
        Ok(Lasting(self.clone()))
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let counted = &self.0.0;
        if let Some(count) = counted.counts.lock().get_mut(&counted.network) {
            count.lasting -= 1;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.network) {
            count.all -= 1;
            if count.all == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    #[test]
    fn two_networks_leave_room_and_what_lasts_leaves_room_to_its_own_network() {
        let room = Arc::new(Semaphore::new(MOST));
        let counts = Counts::default();
        let take = |address: &str| {
            let place = room.clone().try_acquire_owned().ok()?;
            counts.one_more(address.parse().unwrap(), place)
        };
        // All addresses of a /64 are one network, and an IPv4 address is the same written as one of IPv6.
        let six = (0..MOST).map_while(|n| take(&format!("2001:db8:0:1::{n:x}")));
        let six: Vec<Connection> = six.collect();
        let four = (0..MOST).map_while(|n| take(["10.0.0.1", "::ffff:10.0.0.1"][n % 2]));
        let four: Vec<Connection> = four.collect();
        assert_eq!((six.len(), four.len()), (MOST_OF_ONE, MOST_OF_ONE));
        assert!(take("2001:db8:0:2::1").is_some() && take("10.0.0.2").is_some());
        let lasting: Vec<Lasting> = six.iter().map_while(|one| one.last().ok()).collect();
        assert_eq!(lasting.len(), LASTING_OF_ONE);
        let refused = six[0].last().unwrap_err();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(six);
        // Those that last are connections still.
        let more = (0..MOST).map_while(|_| take("2001:db8:0:1::"));
        assert_eq!(more.collect::<Vec<_>>().len(), MOST_OF_ONE - LASTING_OF_ONE);
        drop(lasting);
        assert!(take("2001:db8:0:1::").is_some_and(|one| one.last().is_ok()));
    }
}
