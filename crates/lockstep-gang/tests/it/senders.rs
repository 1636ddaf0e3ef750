//! A peer that reads slowly, or not at all, holds up nobody but those who need what it has not done.

use crate::conformance::toy::chunks;
use crate::conformance::{PATIENCE, memberships};
use crate::gangs::*;
use lockstep_gang::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const CHUNKS: usize = 12;

/// More than any socket's buffers hold: 12 chunks of 4 MB, a third of them each rank's.
fn plan() -> Plan {
    Plan::new(chunks(&[1 << 20; CHUNKS]), 3, 3).unwrap()
}

/// Stands before a rank's address and passes everything on to it, but while it is stopped takes in
/// nothing that comes from those who connected.
struct Gate {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Gate {
    fn before(address: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Self {
            address: listener.local_addr().unwrap(),
            stopped: Arc::default(),
        };
        let stopped = gate.stopped.clone();
        thread::spawn(move || {
            for outside in listener.incoming() {
                let outside = outside.unwrap();
                let inside = TcpStream::connect(address).unwrap();
                let (from, to) = (outside.try_clone().unwrap(), inside.try_clone().unwrap());
                let stopped = stopped.clone();
                thread::spawn(move || pass(from, to, &stopped));
                thread::spawn(move || pass(inside, outside, &AtomicBool::new(false)));
            }
        });
        gate
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, stopped: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        while stopped.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        match from.read(&mut bytes) {
            Ok(read) if read > 0 && to.write_all(&bytes[..read]).is_ok() => {}
            _ => return,
        }
    }
}

/// A gang of three whose rank 0 can be reached through a gate only.
fn gated_gang(encrypt: bool) -> (Gate, Vec<TcpCollective>) {
    let (gate, gang, _) = gated_gang_of(encrypt, memberships(3, PATIENCE));
    (gate, gang)
}

fn gated_gang_of(
    encrypt: bool,
    members: Vec<Membership>,
) -> (Gate, Vec<TcpCollective>, Vec<Membership>) {
    let (listeners, mut addresses) = listeners(3);
    let gate = Gate::before(addresses[0]);
    addresses[0] = gate.address;
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let gang = thread::scope(|scope| {
        let joining: Vec<_> = (0..3)
            .map(|rank| {
                let (listener, peers, member) = (&listeners[rank], &peers[rank], &members[rank]);
                scope.spawn(move || {
                    let mesh = Mesh {
                        listener,
                        peers,
                        encrypt,
                        keepers: &[],
                        refused: &|refusal| eprintln!("{refusal}"),
                    };
                    TcpCollective::join(&mesh, plan(), member).unwrap()
                })
            })
            .collect();
        joining
            .into_iter()
            .map(|rank| rank.join().unwrap())
            .collect()
    });
    (gate, gang, members)
}

/// Posts every chunk that others own.
fn post_all(rank: &mut TcpCollective) {
    for chunk in (0..CHUNKS).rev() {
        if rank.plan().owner(chunk) != rank.rank() {
            let number = (100 * rank.rank() + chunk) as f32;
            rank.outbox(chunk, 0).fill(number);
            rank.post(chunk).unwrap();
        }
    }
}

/// Looks at what all others posted of the rank's own chunks.
fn take_all(rank: &mut TcpCollective) {
    let own = |chunk: &usize| rank.plan().owner(*chunk) == rank.rank();
    for chunk in (0..CHUNKS).filter(own).collect::<Vec<_>>() {
        rank.wait_arrived(chunk).unwrap();
        for from in (0..3).filter(|&from| from != rank.rank()) {
            let number = (100 * from + chunk) as f32;
            let inbox = rank.inbox(chunk, from, 0);
            assert!(inbox.iter().all(|found| *found == number));
        }
    }
}

#[test]
fn a_peer_that_reads_nothing_delays_neither_the_sender_nor_what_others_get() {
    for encrypt in [false, true] {
        let (gate, mut gang) = gated_gang(encrypt);
        let mut reads_nothing = gang.remove(0);
        gate.stopped.store(true, Ordering::Release);
        let (report, done) = mpsc::channel();
        thread::scope(|scope| {
            let others: Vec<_> = gang
                .into_iter()
                .map(|mut rank| {
                    let report = report.clone();
                    scope.spawn(move || {
                        // Whoever computes gradients goes on, with 16 MB for rank 0 under way, ...
                        post_all(&mut rank);
                        report.send(()).unwrap();
                        // ... and gets all that it needs of those who are not slow.
                        take_all(&mut rank);
                        report.send(()).unwrap();
                        rank
                    })
                })
                .collect();
            post_all(&mut reads_nothing);
            for _ in 0..4 {
                done.recv_timeout(PATIENCE.0 / 2)
                    .expect("one rank holds up the others");
            }
            // The slow one has lost nothing.
            gate.stopped.store(false, Ordering::Release);
            take_all(&mut reads_nothing);
            drop(others);
        });
    }
}

#[test]
fn what_was_queued_for_a_slow_peer_reaches_it_though_the_sender_has_left() {
    let (gate, mut gang) = gated_gang(true);
    let mut staying = gang.remove(2);
    let mut leaving = gang.remove(1);
    let mut slow = gang.remove(0);
    gate.stopped.store(true, Ordering::Release);
    post_all(&mut staying);
    thread::scope(|scope| {
        scope.spawn(move || {
            post_all(&mut leaving);
            drop(leaving);
        });
        thread::sleep(Duration::from_millis(50));
        gate.stopped.store(false, Ordering::Release);
        take_all(&mut slow);
    });
}

#[test]
fn leaving_does_not_wait_for_a_peer_that_reads_nothing_once_it_is_called_off() {
    let (gate, mut gang, members) = gated_gang_of(true, memberships(3, PATIENCE));
    gate.stopped.store(true, Ordering::Release);
    let mut leaving = gang.remove(1);
    post_all(&mut leaving);
    members[1].abort.abort();
    let begin = Instant::now();
    drop(leaving);
    assert!(begin.elapsed() < PATIENCE.0 / 2, "{:?}", begin.elapsed());
}

#[test]
fn a_peer_that_reads_nothing_is_named_once_the_deadline_is_over() {
    let deadline = Deadline(Duration::from_secs(2));
    let (gate, mut gang, _) = gated_gang_of(false, memberships(3, deadline));
    gate.stopped.store(true, Ordering::Release);
    let mut rank = gang.remove(1);
    post_all(&mut rank);
    let begin = Instant::now();
    let own = (0..CHUNKS)
        .find(|&chunk| rank.plan().owner(chunk) == 1)
        .unwrap();
    let error = loop {
        match rank.arrived(own) {
            Ok(_) => thread::sleep(Duration::from_millis(5)),
            Err(error) => break error,
        }
        assert!(begin.elapsed() < PATIENCE.0);
    };
    let GangError::PeerTimeout { rank: 0, what, .. } = &error else {
        panic!("{error}")
    };
    assert!(what.contains("take in"), "{what}");
}
