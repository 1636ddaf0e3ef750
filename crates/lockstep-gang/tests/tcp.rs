//! What TCP alone has to stand: strangers, leftovers, and peers that send anything.

mod gangs;

use gangs::*;
use lockstep_gang::conformance::toy::*;
use lockstep_gang::conformance::{PATIENCE, memberships};
use lockstep_gang::*;
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

fn plan(workers: usize) -> Plan {
    Plan::new(chunks(&[40, 7, 300]), 4, workers).unwrap()
}

/// Two ranks that join with their own idea of the gang; what each comes to.
fn join_as(
    secrets: [&Secret; 2],
    plans: [Plan; 2],
    generations: [u16; 2],
) -> [Result<TcpCollective, GangError>; 2] {
    let deadline = Deadline(Duration::from_millis(500));
    let (mut listeners, addresses) = listeners(2);
    let (second, first) = (listeners.pop().unwrap(), listeners.pop().unwrap());
    let [one, two] = plans;
    let mut members = memberships(2, deadline);
    members[0].generation = generations[0];
    members[1].generation = generations[1];
    let members = &members;
    thread::scope(|scope| {
        let addresses = &addresses;
        let first = scope
            .spawn(move || TcpCollective::join(&first, addresses, secrets[0], one, &members[0]));
        let second = TcpCollective::join(&second, addresses, secrets[1], two, &members[1]);
        [first.join().unwrap(), second]
    })
}

#[test]
fn a_leftover_of_an_earlier_generation_is_refused_and_told_so() {
    let secret = Secret::random().unwrap();
    let [current, leftover] = join_as([&secret; 2], [plan(2), plan(2)], [4, 3]);
    assert!(
        matches!(
            leftover,
            Err(GangError::Replaced {
                mine: 3,
                current: 4
            })
        ),
        "{leftover:?}"
    );
    assert!(
        matches!(current, Err(GangError::PeerTimeout { rank: 1, .. })),
        "{current:?}"
    );
}

#[test]
fn a_peer_with_another_secret_or_plan_is_refused() {
    let secret = Secret::random().unwrap();
    let other = Secret::random().unwrap();
    let [_, stranger] = join_as([&secret, &other], [plan(2), plan(2)], [1, 1]);
    assert!(
        matches!(stranger, Err(GangError::Handshake { .. })),
        "{stranger:?}"
    );
    let another_plan = Plan::new(chunks(&[347]), 4, 2).unwrap();
    let [_, differing] = join_as([&secret; 2], [plan(2), another_plan], [1, 1]);
    assert!(
        matches!(differing, Err(GangError::Mismatch { .. })),
        "{differing:?}"
    );
}

#[test]
fn strangers_at_the_door_do_not_keep_a_gang_from_meeting() {
    let secret = Secret::random().unwrap();
    let (listeners, addresses) = listeners(3);
    let mut strangers: Vec<_> = addresses
        .iter()
        .map(|address| TcpStream::connect(address).unwrap())
        .collect();
    strangers[0].write_all(&[0x55; 1000]).unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        for (listener, member) in listeners.into_iter().zip(memberships(3, PATIENCE)) {
            let (addresses, secret) = (&addresses, &secret);
            scope.spawn(move || {
                TcpCollective::join(&listener, addresses, secret, plan(3), &member).unwrap()
            });
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(2));
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
    assert!(begin.elapsed() < Duration::from_secs(2));
    assert!(death.join().is_err());
    drop(silent);
}
