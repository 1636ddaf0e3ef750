//! A connection between every two ranks of a gang.
//!
//! Two ranks may have several connections, or *streams*, where few peers would keep only a few cores and a part of
//! the network busy. Rank i connects to all ranks below it and is connected to by all above, all at the same time, so that
//! one that is lost hides no other. Both ends of a connection prove that they hold the key of this pair
//! of ranks in this generation, and show each other their plan. Forming the mesh can be called off at
//! any moment; the listener stays as it was, for the next generation.

use crate::keepers::are_linked;
use crate::secure::acceptor::{Acceptor, ConnectionOutcome, KeyOf, Refusal};
use crate::secure::handshake::{self, HandshakeFailure, Introduction, Purpose, SecureChannel};
use crate::{AbortSwitch, Deadline, GangError, Membership, Plan, Secret};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How often one who waits for peers looks whether it was called off.
const LOOK: Duration = Duration::from_millis(10);

/// Longer than anybody waits.
const NEVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// How a rank reaches one of its peers in one generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeshPeer {
    /// Where it listens.
    pub address: SocketAddr,
    /// What the two of them alone know; new in every generation.
    pub key: Secret,
}

impl MeshPeer {
    /// What each rank of a new generation is told of all ranks, by rank: their addresses, and a new key
    /// for each pair. A rank gets the keys of its own pairs alone, so that it cannot pose as another.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn for_all(addresses: &[SocketAddr]) -> Result<Vec<Vec<Self>>, GangError> {
        let mut told: Vec<Vec<Self>> = addresses.iter().map(|_| Vec::new()).collect();
        for (rank, &address) in addresses.iter().enumerate() {
            // Those before it have told it their keys already.
            let known: Vec<Secret> = told[rank].iter().map(|peer| peer.key.clone()).collect();
            for (other, peers) in told.iter_mut().enumerate() {
                let key = match known.get(other) {
                    Some(key) => key.clone(),
                    None => Secret::random()?,
                };
                peers.push(Self { address, key });
            }
        }
        Ok(told)
    }
}

/// What a rank needs to meet its peers over TCP.
pub struct Mesh<'a> {
    /// Where its peers reach it; it stays open, for the next generation's.
    pub listener: &'a TcpListener,
    /// All ranks by rank; its own entry is not used.
    pub peers: &'a [MeshPeer],
    /// Whether what ranks send each other is sealed. If not, they still prove themselves to each other,
    /// and the network must be one where nobody can read or take over a connection.
    pub encrypt: bool,
    /// Which rank keeps the share of the state of each, if any does: those have a connection of their own for that.
    pub keepers: &'a [usize],
    /// Told of everybody who was not let in.
    pub refused: &'a dyn Fn(Refusal),
}

/// A connection to a peer by its number, or why there is none.
type Dialed = (usize, usize, Result<SecureChannel, GangError>);

/// Connections that a rank has to all peers together, if they are few.
const STREAMS: usize = 2;

/// Bits of the number in an introduction that are the generation; those above are the stream.
const GENERATION_BITS: u32 = 16;

/// How many connections two ranks have. Both find the same, since it depends on the plan alone.
fn streams_to_a_peer(plan: &Plan) -> usize {
    let peers = plan.posting().saturating_sub(1).max(1);
    (STREAMS / peers).max(1)
}

/// A rank's connections, by the rank at the other end.
pub(super) struct Connections {
    /// Those for the exchange; `None` where there are none.
    pub(super) streams: Vec<Option<Vec<SecureChannel>>>,
    /// Those to its keeper and its wards.
    pub(super) keeping: Vec<(usize, SecureChannel)>,
}

/// Connects a rank with all that the plan links it with, and with its keeper and its wards.
pub(super) fn connect(
    mesh: &Mesh<'_>,
    plan: &Plan,
    membership: &Membership,
) -> Result<Connections, GangError> {
    let streams = streams_to_a_peer(plan);
    let (rank, deadline) = (membership.rank, membership.deadline);
    let begin = Instant::now();
    let ranks = 0..mesh.peers.len();
    // Which connections there are to each rank; the last one is to a keeper.
    let wanted = |peer| {
        let linked = plan.are_linked(rank, peer);
        let keeps = peer != rank && are_linked(mesh.keepers, rank, peer);
        let exchange = std::iter::repeat_n(linked, streams);
        exchange.chain([keeps]).collect()
    };
    let wanted: Vec<Vec<bool>> = ranks.map(wanted).collect();
    let fingerprint = plan.fingerprint();
    let listener = mesh
        .listener
        .try_clone()
        .map_err(GangError::io("listen for peers"))?;
    lockstep_base::failpoint::reach("mesh.begin");
    let mut acceptor = Acceptor::new(
        listener,
        &fingerprint.to_le_bytes(),
        key_of(mesh, membership, &wanted),
    )?;
    let over = Over::default();
    let dialed = dial(mesh, fingerprint, membership, &wanted, &over.0)?;
    let of_a_peer = || (0..=streams).map(|_| None).collect();
    let mut channels: Vec<Vec<Option<SecureChannel>>> =
        mesh.peers.iter().map(|_| of_a_peer()).collect();
    let missing = |channels: &[Vec<Option<SecureChannel>>]| {
        let is_missing = |(&wanted, channel): (&bool, &Option<_>)| wanted && channel.is_none();
        let of_peer = |peer: usize| wanted[peer].iter().zip(&channels[peer]);
        (0..channels.len()).find(|&peer| of_peer(peer).any(is_missing))
    };
    while let Some(awaited) = missing(&channels) {
        if membership.abort.is_aborted() {
            return Err(GangError::Aborted);
        }
        while let Ok((peer, stream, result)) = dialed.try_recv() {
            channels[peer][stream] = Some(result?);
        }
        if membership.abort.in_vain(begin.elapsed()) > deadline.0 {
            return Err(timeout(awaited, deadline));
        }
        match acceptor.accept(Instant::now() + LOOK)? {
            None => {}
            Some(ConnectionOutcome::Refused(refusal)) => (mesh.refused)(refusal),
            Some(ConnectionOutcome::Proven(introduction, card, channel)) => {
                let peer = introduction.from as usize;
                // One that follows another plan reads so off the card that it was shown.
                if card == fingerprint.to_le_bytes() {
                    let stream = (introduction.number >> GENERATION_BITS) as usize;
                    channels[peer][stream].get_or_insert(channel);
                }
            }
        }
    }
    lockstep_base::failpoint::reach("mesh.formed");
    let mut keeping = Vec::new();
    let all = channels
        .into_iter()
        .enumerate()
        .map(|(peer, mut channels)| {
            let keeper = channels.pop().flatten();
            keeping.extend(keeper.map(|channel| (peer, channel)));
            let streams: Vec<SecureChannel> = channels.into_iter().flatten().collect();
            wanted[peer][0].then_some(streams)
        });
    Ok(Connections {
        streams: all.collect(),
        keeping,
    })
}

/// Ends the threads that connect, however forming the mesh ends.
#[derive(Default)]
struct Over(AbortSwitch);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Which key one who connects must know.
fn key_of(mesh: &Mesh<'_>, membership: &Membership, wanted: &[Vec<bool>]) -> KeyOf {
    let keys: Vec<Secret> = mesh.peers.iter().map(|peer| peer.key.clone()).collect();
    let (rank, generation) = (membership.rank, membership.generation);
    let wanted = wanted.to_vec();
    Arc::new(move |introduction: Introduction| {
        let Introduction {
            purpose,
            from,
            to,
            number,
        } = introduction;
        let peer = from as usize;
        if purpose != Purpose::Mesh || to as usize != rank || peer <= rank || peer >= keys.len() {
            return Err(format!("rank {rank} does not expect it"));
        }
        let (stream, theirs) = (number >> GENERATION_BITS, number as u16);
        if theirs != generation {
            return Err(format!(
                "it is of generation {theirs}, and this gang of generation {generation}"
            ));
        }
        let wanted = &wanted[peer];
        if wanted.get(stream as usize) != Some(&true) {
            return Err(format!("it is connection {stream}, which is not expected"));
        }
        Ok(keys[peer].clone())
    })
}

/// Connects to all ranks below, each on a thread of its own that ends by itself when it is `over`.
fn dial(
    mesh: &Mesh<'_>,
    fingerprint: u64,
    membership: &Membership,
    wanted: &[Vec<bool>],
    over: &AbortSwitch,
) -> Result<Receiver<Dialed>, GangError> {
    let (report, dialed) = channel();
    let below = mesh.peers.iter().enumerate().take(membership.rank);
    for (peer, MeshPeer { address, key }) in below {
        let streams = wanted[peer].iter().enumerate();
        let streams = streams.filter_map(|(stream, &wanted)| wanted.then_some(stream));
        let streams: Vec<usize> = streams.collect();
        if streams.is_empty() {
            continue;
        }
        let (report, member, address) = (report.clone(), membership.clone(), *address);
        let (key, over) = (key.clone(), over.clone());
        let dial = move || {
            for stream in streams {
                let result = reach((peer, stream), address, &key, fingerprint, &member, &over);
                let failed = result.is_err();
                // Nobody listens any more when the mesh was called off: then the connection is dropped.
                if report.send((peer, stream, result)).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name(format!("to-rank-{peer}"))
            .spawn(dial)
            .map_err(GangError::io("start a thread to connect"))?;
    }
    Ok(dialed)
}

/// Makes one connection to a rank and proves to be this one.
fn reach(
    (peer, stream): (usize, usize),
    address: SocketAddr,
    key: &Secret,
    fingerprint: u64,
    member: &Membership,
    over: &AbortSwitch,
) -> Result<SecureChannel, GangError> {
    let lost = |reason: String| GangError::PeerLost { rank: peer, reason };
    let patience = member.deadline.0.max(LOOK);
    let connection = TcpStream::connect_timeout(&address, patience).map_err(|error| {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => timeout(peer, member.deadline),
            // It has listened since before its address was known.
            _ => lost(format!("it cannot be reached at {address}: {error}")),
        }
    })?;
    lockstep_base::failpoint::reach("mesh.dialed");
    let introduction = Introduction {
        purpose: Purpose::Mesh,
        from: member.rank as u32,
        to: peer as u32,
        number: u32::from(member.generation) | (stream as u32) << GENERATION_BITS,
    };
    let mine = fingerprint.to_le_bytes();
    // The peer may answer late, for as long as the one who forms the mesh waits for it.
    let never = Instant::now() + NEVER;
    let (theirs, channel) = handshake::initiate(connection, introduction, key, &mine, never, over)
        .map_err(|failure| match failure {
            HandshakeFailure::Aborted => GangError::Aborted,
            HandshakeFailure::Late => timeout(peer, member.deadline),
            HandshakeFailure::Ended => lost("it hung up while the gang formed".to_owned()),
            HandshakeFailure::Refused(reason) => {
                lost(format!("at {address} is somebody else: {reason}"))
            }
            HandshakeFailure::Io(error) => lost(format!("its connection failed: {error}")),
        })?;
    match <[u8; 8]>::try_from(&theirs[..]) {
        Ok(bytes) if bytes == mine => Ok(channel),
        theirs => Err(GangError::Mismatch {
            what: "the plan of the exchange",
            found: format!("{fingerprint:016x}"),
            expected: format!("{:016x}", theirs.map_or(0, u64::from_le_bytes)),
        }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ranks_of_a_pair_get_its_key_and_no_other_pair_has_it() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let told = MeshPeer::for_all(&[address; 4]).unwrap();
        let key = |rank: usize, peer: usize| *told[rank][peer].key.bytes();
        let mut seen = std::collections::BTreeSet::new();
        for rank in 0..4 {
            for peer in 0..rank {
                assert_eq!(key(rank, peer), key(peer, rank));
                assert!(seen.insert(key(rank, peer)));
            }
        }
    }
}
