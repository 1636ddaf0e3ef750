//! A connection between every two ranks of a gang.
//!
//! Rank i connects to all ranks below it and is connected to by all above. Both ends prove that they
//! know the run's secret and show a card with their rank, generation and plan; who shows the wrong
//! one is not let in.

use crate::handshake::{self, Acceptor};
use crate::{Deadline, GangError, Membership, Plan, Secret};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PURPOSE: &str = "mesh";
/// How long to wait before trying again to reach a peer that does not listen yet.
const RETRY: Duration = Duration::from_millis(10);

/// How a rank introduces itself to its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) rank: u32,
    pub(crate) generation: u16,
    pub(crate) fingerprint: u64,
}

impl Card {
    fn encode(self) -> [u8; 14] {
        let mut bytes = [0; 14];
        bytes[..4].copy_from_slice(&self.rank.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.generation.to_le_bytes());
        bytes[6..].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 14] = bytes.try_into().ok()?;
        let (rank, rest) = bytes.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        Some(Self {
            rank: u32::from_le_bytes(*rank),
            generation: u16::from_le_bytes(*generation),
            fingerprint: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }

    /// Whether the one who shows `theirs` belongs to the same gang.
    fn check(self, theirs: Self) -> Result<(), GangError> {
        if theirs.generation > self.generation {
            return Err(GangError::Replaced {
                mine: self.generation,
                current: theirs.generation,
            });
        }
        let differs = |what, mine: String, theirs: String| {
            Err(GangError::Mismatch {
                what,
                found: mine,
                expected: theirs,
            })
        };
        if theirs.generation != self.generation {
            return differs(
                "the generation of the gang",
                self.generation.to_string(),
                theirs.generation.to_string(),
            );
        }
        if theirs.fingerprint != self.fingerprint {
            return differs(
                "the plan of the exchange",
                format!("{:016x}", self.fingerprint),
                format!("{:016x}", theirs.fingerprint),
            );
        }
        Ok(())
    }
}

/// Connects a rank with all its peers, whose listeners are at `addresses`, by rank. Returns the
/// connections by rank, `None` for this rank itself.
pub(crate) fn connect(
    listener: &TcpListener,
    addresses: &[SocketAddr],
    secret: &Secret,
    plan: &Plan,
    membership: &Membership,
) -> Result<Vec<Option<TcpStream>>, GangError> {
    let (rank, deadline) = (membership.rank, membership.deadline);
    let by = Instant::now() + deadline.0;
    let card = Card {
        rank: rank as u32,
        generation: membership.generation,
        fingerprint: plan.fingerprint(),
    };
    let mut streams: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
    for (peer, address) in addresses.iter().enumerate().take(rank) {
        let stream = reach(peer, *address, by, deadline)?;
        let shown = handshake::initiate(&stream, secret, PURPOSE, &card.encode(), by)?;
        match Card::decode(&shown) {
            Some(theirs) if theirs.rank as usize == peer => card.check(theirs)?,
            _ => {
                let what = format!("another rank answered at {address}");
                return Err(GangError::Protocol { rank: peer, what });
            }
        }
        streams[peer] = Some(stream);
    }

    let listener = listener
        .try_clone()
        .map_err(GangError::io("listen for peers"))?;
    let mut acceptor = Acceptor::new(listener, secret, PURPOSE, &card.encode())?;
    while let Some(missing) = (rank + 1..streams.len()).find(|peer| streams[*peer].is_none()) {
        let Some((shown, stream)) = acceptor.accept(by)? else {
            return Err(timeout(missing, deadline));
        };
        // A leftover of an earlier generation, or a second one of the same rank, is not let in; it
        // reads the reason off the card that it was shown.
        let Some(theirs) = Card::decode(&shown) else {
            continue;
        };
        let peer = theirs.rank as usize;
        if card.check(theirs).is_ok() && peer > rank && peer < streams.len() {
            streams[peer].get_or_insert(stream);
        }
    }
    Ok(streams)
}

fn reach(
    peer: usize,
    address: SocketAddr,
    by: Instant,
    deadline: Deadline,
) -> Result<TcpStream, GangError> {
    loop {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(timeout(peer, deadline));
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                    std::thread::sleep(RETRY);
                }
                ErrorKind::TimedOut => return Err(timeout(peer, deadline)),
                _ => {
                    return Err(GangError::io(format!("reach rank {peer} at {address}"))(
                        error,
                    ));
                }
            },
        }
    }
}

fn timeout(rank: usize, deadline: Deadline) -> GangError {
    let seconds = deadline.0.as_secs_f64();
    GangError::PeerTimeout {
        rank,
        what: "connect".to_owned(),
        seconds,
    }
}
