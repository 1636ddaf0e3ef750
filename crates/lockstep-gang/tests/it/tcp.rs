//! What TCP alone has to stand: strangers, leftovers, and peers that send anything.

use crate::conformance::toy::*;
use crate::conformance::{PATIENCE, memberships};
use crate::gangs::*;
use lockstep_gang::*;
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// A deadline that a test can wait for.
const IMPATIENCE: Deadline = Deadline(Duration::from_secs(3));
/// What happens at once happens long before the deadline, on any machine.
const AT_ONCE: Duration = Duration::from_secs(PATIENCE.0.as_secs() / 2);

fn plan(workers: usize) -> Plan {
    Plan::new(chunks(&[40, 7, 300]), 4, workers).unwrap()
}

#[test]
fn a_leftover_of_an_earlier_generation_is_refused() {
    let (listeners, addresses) = listeners(2);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let mut members = memberships(2, IMPATIENCE);
    members[0].generation = 4;
    members[1].generation = 3;
    let [current, leftover] = &meet(&plan(2), &members, &listeners, &peers)[..] else {
        panic!("two ranks")
    };
    assert!(
        matches!(leftover, Err(GangError::PeerLost { rank: 0, .. })),
        "{leftover:?}"
    );
    assert!(
        matches!(current, Err(GangError::PeerTimeout { rank: 1, .. })),
        "{current:?}"
    );
}

#[test]
fn a_peer_with_another_plan_is_refused() {
    let (listeners, addresses) = listeners(2);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let members = memberships(2, IMPATIENCE);
    let another_plan = Plan::new(chunks(&[347]), 4, 2).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| join_mesh(&plan(2), &members[0], &listeners[0], &peers[0]));
        let differing = join_mesh(&another_plan, &members[1], &listeners[1], &peers[1]);
        assert!(
            matches!(differing, Err(GangError::Mismatch { .. })),
            "{differing:?}"
        );
    });
}

#[test]
fn strangers_who_connect_do_not_keep_a_gang_from_meeting() {
    let (listeners, addresses) = listeners(3);
    let mut strangers: Vec<_> = addresses
        .iter()
        .map(|address| TcpStream::connect(address).unwrap())
        .collect();
    strangers[0].write_all(&[0x55; 1000]).unwrap();
    let begin = Instant::now();
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let gang = meet(&plan(3), &memberships(3, PATIENCE), &listeners, &peers);
    assert!(gang.iter().all(Result::is_ok), "{gang:?}");
    assert!(begin.elapsed() < AT_ONCE);
}

#[test]
fn a_mesh_that_forms_is_called_off_at_once_and_the_next_generation_forms() {
    let (listeners, addresses) = listeners(3);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let members = memberships(3, PATIENCE);
    // Rank 1 never comes; the others are told so after a moment.
    let begin = Instant::now();
    thread::scope(|scope| {
        let waiting = [0, 2].map(|rank| {
            let (member, listener, peers) = (&members[rank], &listeners[rank], &peers[rank]);
            scope.spawn(move || join_mesh(&plan(3), member, listener, peers))
        });
        thread::sleep(Duration::from_millis(100));
        members.iter().for_each(|member| member.abort.abort());
        for waiting in waiting {
            let outcome = waiting.join().unwrap();
            assert!(matches!(outcome, Err(GangError::Aborted)), "{outcome:?}");
        }
    });
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    let mut members = memberships(3, PATIENCE);
    members.iter_mut().for_each(|member| member.generation = 2);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let gang = meet(&plan(3), &members, &listeners, &peers);
    let gang = gang
        .into_iter()
        .map(|rank| Box::new(rank.unwrap()) as Box<dyn SharingCollective>);
    let ends = all_ranks(gang.collect(), |mut rank| {
        train(rank.as_mut(), 5, 4).unwrap()
    });
    assert_eq!(ends, vec![reference(5, 4, 4, plan(3).len()); 3]);
}

#[test]
fn of_all_ranks_only_those_that_do_not_come_are_named() {
    thread::scope(|scope| {
        for silent in 0..4 {
            scope.spawn(move || only_this_one_is_named(silent));
        }
    });
}

/// Lets all ranks but one meet.
fn only_this_one_is_named(silent: usize) {
    let (listeners, addresses) = listeners(4);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let members = memberships(4, IMPATIENCE);
    thread::scope(|scope| {
        let waiting = (0..4).filter(|&rank| rank != silent).map(|rank| {
            let (member, listener, peers) = (&members[rank], &listeners[rank], &peers[rank]);
            scope.spawn(move || join_mesh(&plan(4), member, listener, peers))
        });
        for waiting in waiting.collect::<Vec<_>>() {
            let outcome = waiting.join().unwrap();
            let Err(GangError::PeerTimeout { rank, .. }) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(rank, silent);
        }
    });
}

#[test]
fn a_peer_whose_process_is_gone_is_lost_at_once() {
    let (mut listeners, addresses) = listeners(2);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    drop(listeners.remove(0));
    let begin = Instant::now();
    let outcome = join_mesh(
        &plan(2),
        &memberships(2, PATIENCE)[1],
        &listeners[0],
        &peers[1],
    );
    assert!(
        matches!(outcome, Err(GangError::PeerLost { rank: 0, .. })),
        "{outcome:?}"
    );
    assert!(begin.elapsed() < AT_ONCE);
}

#[test]
fn a_peer_that_dies_is_reported_at_once_to_ranks_that_wait_for_another() {
    let mut gang = tcp_gang(&plan(3), &memberships(3, PATIENCE));
    let dying = gang.pop().unwrap();
    let silent = gang.pop().unwrap();
    let mut waiting = gang.pop().unwrap();
    let death = thread::spawn(move || {
        let _dying = dying;
        thread::sleep(Duration::from_millis(30));
        std::panic::resume_unwind(Box::new("a worker dies"));
    });
    let chunk = (0..3)
        .find(|chunk| waiting.plan().owner(*chunk) == 1)
        .unwrap();
    let mut into = vec![0.0; waiting.plan().chunk(chunk).len()];
    let begin = Instant::now();
    let error = waiting.fetch(chunk, &mut into).unwrap_err();
    assert!(
        matches!(error, GangError::PeerLost { rank: 2, .. }),
        "{error}"
    );
    assert!(begin.elapsed() < AT_ONCE);
    assert!(death.join().is_err());
    drop(silent);
}
