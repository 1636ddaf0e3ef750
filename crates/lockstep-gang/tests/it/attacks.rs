//! What somebody on the network can try: read, alter, repeat, cut, reorder, and pose as another. Each is
//! noticed, none gets a message through that was not sent, and whoever is honest goes on.

use crate::conformance::toy::{all_ranks, chunks, reference, train};
use crate::conformance::{PATIENCE, memberships};
use crate::gangs::*;
use lockstep_gang::*;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What succeeds may take as long on a machine that is busy.
const LONG: Duration = Duration::from_secs(60);
/// How long those wait for whom an attack lets nothing come. Whatever else a slow machine does not do in that time is no
/// part of what is checked.
const SHORT: Duration = Duration::from_millis(200);
/// The same for ranks.
const IMPATIENCE: Deadline = Deadline(Duration::from_millis(400));
/// How long a rank waits for one that does not come, where the others must come in time.
const ABSENCE: Deadline = Deadline(Duration::from_secs(3));
const HELLO: Hello = Hello {
    pid: 42,
    listener: None,
    memory_domain: None,
};

/// Bytes that a worker sends before its first message.
const HANDSHAKE: usize = 8 + 13 + 2 + (32 + 26 + 16) + 16;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToListener,
    ToCaller,
}

/// What the one in the middle does to the bytes that it has seen so many of before.
type Tamper = Arc<dyn Fn(Way, usize, &mut Vec<u8>) + Send + Sync>;

/// Listens in the place of `address` and passes everything on, tampered with.
fn man_in_the_middle(address: SocketAddr, tamper: Tamper) -> SocketAddr {
    let middle = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = middle.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((caller, _)) = middle.accept() {
            let Ok(listener) = TcpStream::connect(address) else {
                return;
            };
            let ends = [
                (&caller, &listener, Way::ToListener),
                (&listener, &caller, Way::ToCaller),
            ];
            for (from, to, way) in ends {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let tamper = tamper.clone();
                thread::spawn(move || pass_on(from, to, way, &tamper));
            }
        }
    });
    place
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, way: Way, tamper: &Tamper) {
    let mut seen = 0;
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let mut bytes = buffer[..read].to_vec();
        tamper(way, seen, &mut bytes);
        seen += read;
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Flips one bit of the byte at `at`.
fn flip(wanted: Way, at: usize) -> Tamper {
    Arc::new(move |way, seen, bytes| {
        if way == wanted && (seen..seen + bytes.len()).contains(&at) {
            bytes[at - seen] ^= 1 << (at % 8);
        }
    })
}

/// A worker that connects through the middle and exchanges two messages with the coordinator. Returns
/// what each received.
fn talk(tamper: Tamper, patience: Duration) -> [Vec<String>; 2] {
    let mut rendezvous = Rendezvous::bind("127.0.0.1:0").unwrap();
    let token = rendezvous.admissions().admit(1, 1).unwrap();
    let middle = man_in_the_middle(rendezvous.address(), tamper);
    let worker = thread::spawn(move || {
        let mut heard = Vec::new();
        if let Ok(mut link) = Link::connect(middle, &token, &HELLO, patience) {
            for message in ["first", "second"] {
                let _ = link.send(&message);
                match link.recv::<String>(patience) {
                    Ok(Some(message)) => heard.push(message),
                    _ => break,
                }
            }
        }
        heard
    });
    let mut heard = Vec::new();
    if let Ok(Some(Arrival::Worker {
        seat: 1, mut link, ..
    })) = rendezvous.accept(2 * patience)
    {
        while let Ok(Some(message)) = link.recv::<String>(patience) {
            let _ = link.send(&format!("heard {message}"));
            heard.push(message);
        }
    }
    [heard, worker.join().unwrap()]
}

#[test]
fn any_byte_altered_on_a_control_link_is_noticed_and_what_came_before_it_stands() {
    let whole = [
        vec!["first".to_owned(), "second".to_owned()],
        vec!["heard first".to_owned(), "heard second".to_owned()],
    ];
    let sent = Arc::new(Mutex::new([0; 2]));
    let counting = sent.clone();
    let count: Tamper = Arc::new(move |way, _, bytes| {
        counting.lock().unwrap()[way as usize] += bytes.len();
    });
    assert_eq!(talk(count, LONG), whole);
    let sent = *sent.lock().unwrap();
    // From the first byte of the handshake to the last tag; coarse in the midst of long parts.
    let places = (0..sent[0]).filter(|at| at % 3 == 0 || *at < 30);
    let attacks = places.flat_map(|at| [(Way::ToListener, at), (Way::ToCaller, at)]);
    let attacks = attacks.filter(|&(way, at)| at < sent[way as usize]);
    let attacks: Vec<_> = attacks.collect();
    for some in attacks.chunks(12) {
        thread::scope(|scope| {
            for &(way, at) in some {
                let whole = &whole;
                scope.spawn(move || {
                    let heard = talk(flip(way, at), SHORT);
                    for (heard, sent) in heard.iter().zip(whole) {
                        assert!(sent.starts_with(heard), "{way:?} {at}: {heard:?}");
                    }
                    assert_ne!(heard, *whole, "{way:?} {at}");
                });
            }
        });
    }
}

#[test]
fn a_control_message_that_is_repeated_left_out_or_swapped_is_noticed() {
    let first = HANDSHAKE..HANDSHAKE + 4 + 7 + 16;
    let in_these = move |way, seen: usize, bytes: &[u8]| {
        let whole = seen <= first.start && first.end <= seen + bytes.len();
        (way == Way::ToListener && whole).then(|| first.start - seen..first.end - seen)
    };
    let find = in_these;
    let repeat: Tamper = Arc::new(move |way, seen, bytes| {
        if let Some(first) = find(way, seen, bytes) {
            let copy = bytes[first.clone()].to_vec();
            bytes.splice(first.end..first.end, copy);
        }
    });
    let [coordinator, _] = talk(repeat, LONG);
    assert_eq!(
        coordinator,
        ["first"],
        "a repeated message is not heard twice"
    );
    let leave_out: Tamper = Arc::new(move |way, seen, bytes| {
        if let Some(first) = in_these(way, seen, bytes) {
            bytes.drain(first);
        }
    });
    let [coordinator, _] = talk(leave_out, SHORT);
    assert_eq!(coordinator, [] as [String; 0], "a gap is noticed");
    let kept = Mutex::new(Vec::new());
    let swap: Tamper = Arc::new(move |way, _, bytes| {
        if way == Way::ToCaller && bytes.len() < 40 {
            let mut kept = kept.lock().unwrap();
            match kept.is_empty() {
                true => kept.append(bytes),
                false => bytes.append(&mut kept),
            }
        }
    });
    let [_, worker] = talk(swap, SHORT);
    assert_eq!(worker, [] as [String; 0], "swapped messages are noticed");
}

#[test]
fn what_goes_over_a_control_link_cannot_be_read() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let listening = seen.clone();
    let listen: Tamper = Arc::new(move |_, _, bytes| {
        listening.lock().unwrap().extend_from_slice(bytes);
    });
    talk(listen, LONG);
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 200);
    for word in ["first", "second", "heard", "pid"] {
        let found = seen.windows(word.len()).any(|w| w == word.as_bytes());
        assert!(!found, "{word}");
    }
}

fn refusal(rendezvous: &mut Rendezvous) -> String {
    match rendezvous.accept(LONG).unwrap() {
        Some(Arrival::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stranger_a_worker_on_anothers_seat_and_a_used_token_are_refused_and_named() {
    let mut rendezvous = Rendezvous::bind("127.0.0.1:0").unwrap();
    let (address, admissions) = (rendezvous.address(), rendezvous.admissions());
    let token = |seat| admissions.admit(seat, 1).unwrap();
    let connect = |token: &SeatToken| {
        let token = token.clone();
        thread::spawn(move || Link::connect(address, &token, &HELLO, LONG))
    };
    let (first, second) = (token(1), token(2));

    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(&[0xa5; 400]).unwrap();
    let from = stranger.local_addr().unwrap().to_string();
    let words = refusal(&mut rendezvous);
    assert!(
        words.contains(&from) && words.contains("version"),
        "{words}"
    );

    // Worker 1 says that it is worker 2.
    let mut posing = serde_json::to_value(&first).unwrap();
    posing["seat"] = 2.into();
    let posing: SeatToken = serde_json::from_value(posing).unwrap();
    let outcome = connect(&posing);
    assert!(refusal(&mut rendezvous).contains("does not know the key"));
    assert!(outcome.join().unwrap().is_err());

    // Somebody comes for a seat, or as a start, that nobody was started for.
    for (seat, incarnation) in [(3, 1), (1, 2)] {
        let mut nobody = serde_json::to_value(&first).unwrap();
        nobody["seat"] = seat.into();
        nobody["incarnation"] = incarnation.into();
        let nobody: SeatToken = serde_json::from_value(nobody).unwrap();
        let outcome = connect(&nobody);
        let words = refusal(&mut rendezvous);
        assert!(
            words.contains(&format!("no unused token for worker {seat}")),
            "{words}"
        );
        assert!(outcome.join().unwrap().is_err());
    }

    // Those who were refused have used up nobody's token.
    for (seat, token) in [(1, &first), (2, &second)] {
        let worker = connect(token);
        let arrival = rendezvous.accept(LONG).unwrap();
        assert!(
            matches!(&arrival, Some(Arrival::Worker { seat: found, .. }) if *found == seat),
            "{arrival:?}"
        );
        worker.join().unwrap().unwrap();
    }
    let again = connect(&first);
    assert!(refusal(&mut rendezvous).contains("no unused token for worker 1"));
    assert!(again.join().unwrap().is_err());
    assert!(rendezvous.accept(SHORT).unwrap().is_none());
}

#[test]
fn a_recorded_handshake_lets_nobody_in_before_or_after_the_token_is_used() {
    let mut rendezvous = Rendezvous::bind("127.0.0.1:0").unwrap();
    let address = rendezvous.address();
    let token = rendezvous.admissions().admit(1, 1).unwrap();
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let recorder = recorded.clone();
    // The first time nothing gets past the middle: the token stays unused.
    let blocking = man_in_the_middle(
        address,
        Arc::new(move |way, _, bytes| {
            if way == Way::ToListener {
                recorder.lock().unwrap().append(bytes);
            }
        }),
    );
    assert!(Link::connect(blocking, &token, &HELLO, ABSENCE.0).is_err());
    let first = recorded.lock().unwrap().clone();
    assert!(first.len() > 90);
    let mut replay = TcpStream::connect(address).unwrap();
    replay.write_all(&first).unwrap();
    replay.write_all(&[7; 16]).unwrap();
    assert!(refusal(&mut rendezvous).contains("does not know the key"));

    let all = Arc::new(Mutex::new(Vec::new()));
    let recorder = all.clone();
    let middle = man_in_the_middle(
        address,
        Arc::new(move |way, _, bytes| {
            if way == Way::ToListener {
                recorder.lock().unwrap().extend_from_slice(bytes);
            }
        }),
    );
    let worker = thread::spawn(move || Link::connect(middle, &token, &HELLO, LONG));
    assert!(matches!(
        rendezvous.accept(LONG).unwrap(),
        Some(Arrival::Worker { .. })
    ));
    let _link = worker.join().unwrap().unwrap();
    // The same bytes again: while the token is known as used, and when the seat has a new one.
    for _ in 0..2 {
        let mut replay = TcpStream::connect(address).unwrap();
        replay.write_all(&all.lock().unwrap()).unwrap();
        let words = refusal(&mut rendezvous);
        assert!(words.contains("token") || words.contains("key"), "{words}");
        rendezvous.admissions().admit(1, 1).unwrap();
    }
}

#[test]
fn garbage_and_silence_do_not_keep_an_honest_worker_waiting() {
    let mut rendezvous = Rendezvous::bind("127.0.0.1:0").unwrap();
    let address = rendezvous.address();
    let silent: Vec<_> = (0..80)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let token = rendezvous.admissions().admit(1, 1).unwrap();
    let worker = thread::spawn(move || Link::connect(address, &token, &HELLO, LONG));
    let begin = std::time::Instant::now();
    let arrival = rendezvous.accept(LONG).unwrap();
    assert!(
        matches!(arrival, Some(Arrival::Worker { .. })),
        "{arrival:?}"
    );
    assert!(begin.elapsed() < LONG / 2);
    worker.join().unwrap().unwrap();
    drop(silent);
}

fn plan() -> Plan {
    Plan::new(chunks(&[40, 7, 300, 1, 30_000]), 3, 2).unwrap()
}

/// Two ranks train with somebody between them. Returns what each ends with.
fn train_through(tamper: Tamper, patience: Deadline) -> Vec<Result<Vec<u32>, GangError>> {
    let (listeners, mut addresses) = listeners(2);
    addresses[0] = man_in_the_middle(addresses[0], tamper);
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let members = memberships(2, patience);
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..2)
            .map(|rank| {
                let (member, listener, peers) = (&members[rank], &listeners[rank], &peers[rank]);
                scope.spawn(move || {
                    let mut gang = join_mesh(&plan(), member, listener, peers)?;
                    train(&mut gang, 3, 4)
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn whatever_is_altered_between_two_ranks_no_number_is_wrong_and_the_next_generation_goes_on() {
    let expected = reference(3, 4, 3, plan().len());
    let untouched = train_through(Arc::new(|_, _, _| ()), PATIENCE);
    assert!(
        untouched
            .iter()
            .all(|end| end.as_ref().unwrap() == &expected)
    );
    // The introduction, each part of the handshake, the first frame's header, its tag, its numbers, and
    // somewhere far behind.
    let places = [
        0, 9, 15, 22, 30, 60, 90, 95, 110, 125, 140, 170, 5_000, 200_000,
    ];
    let mut attacks: Vec<(String, Tamper)> = Vec::new();
    for at in places {
        for way in [Way::ToListener, Way::ToCaller] {
            attacks.push((format!("{way:?} {at}"), flip(way, at)));
        }
    }
    let cut: Tamper = Arc::new(|_, seen, bytes| {
        if seen > 50_000 {
            bytes.clear();
        }
    });
    attacks.push(("cut".to_owned(), cut));
    let repeat: Tamper = Arc::new(|_, seen, bytes| {
        if seen > 50_000 {
            bytes.extend_from_within(..);
        }
    });
    attacks.push(("repeat".to_owned(), repeat));
    let reorder: Tamper = Arc::new(|_, seen, bytes| {
        if seen > 50_000 {
            let half = bytes.len() / 2;
            bytes.rotate_left(half);
        }
    });
    attacks.push(("reorder".to_owned(), reorder));
    for (name, tamper) in attacks {
        let ends = train_through(tamper, IMPATIENCE);
        assert!(ends.iter().any(Result::is_err), "{name}");
        for end in ends {
            match end {
                Ok(bits) => assert_eq!(bits, expected, "{name}"),
                Err(error) => assert!(error.is_peer_lost(), "{name}: {error}"),
            }
        }
    }
}

#[test]
fn a_rank_cannot_pose_as_another_to_a_third() {
    let (listeners, addresses) = listeners(3);
    let mut peers = MeshPeer::for_all(&addresses).unwrap();
    let plan = Plan::new(chunks(&[40, 7, 300]), 4, 3).unwrap();
    // Rank 2 does not come. Rank 1 poses as rank 2 to rank 0, with all the keys that it has.
    let posing = Membership {
        rank: 2,
        ..memberships(3, ABSENCE)[1].clone()
    };
    let keys = peers[1].clone();
    let mut stolen = keys.clone();
    stolen[0].key = keys[0].key.clone();
    stolen[1].key = keys[2].key.clone();
    peers[2] = stolen;
    let named = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let victim = scope.spawn(|| {
            let mesh = Mesh {
                listener: &listeners[0],
                peers: &peers[0],
                encrypt: true,
                keepers: &[],
                refused: &|refusal| named.lock().unwrap().push(refusal.to_string()),
            };
            TcpCollective::join(&mesh, plan.clone(), &memberships(3, ABSENCE)[0])
        });
        let posing = join_mesh(&plan, &posing, &listeners[2], &peers[2]);
        assert!(
            matches!(posing, Err(GangError::PeerLost { .. })),
            "{posing:?}"
        );
        let victim = victim.join().unwrap();
        assert!(
            matches!(victim, Err(GangError::PeerTimeout { .. })),
            "{victim:?}"
        );
    });
    let named = named.into_inner().unwrap();
    assert!(
        named.iter().any(|n| n.contains("does not know the key")),
        "{named:?}"
    );
}

#[test]
fn without_encryption_ranks_still_prove_themselves() {
    let (listeners, addresses) = listeners(2);
    let told = MeshPeer::for_all(&addresses).unwrap();
    let strange = MeshPeer::for_all(&addresses).unwrap();
    let join = |rank: usize, peers: &[MeshPeer], patience: Deadline| {
        let mesh = Mesh {
            listener: &listeners[rank],
            peers,
            encrypt: false,
            keepers: &[],
            refused: &|_| (),
        };
        TcpCollective::join(&mesh, plan(), &memberships(2, patience)[rank])
    };
    thread::scope(|scope| {
        let victim = scope.spawn(|| join(0, &told[0], IMPATIENCE));
        assert!(join(1, &strange[1], IMPATIENCE).is_err());
        assert!(victim.join().unwrap().is_err());
    });
    thread::scope(|scope| {
        let first = scope.spawn(|| join(0, &told[0], PATIENCE));
        let second = join(1, &told[1], PATIENCE).unwrap();
        let gang: Vec<Box<dyn SharingCollective>> =
            vec![Box::new(first.join().unwrap().unwrap()), Box::new(second)];
        let ends = all_ranks(gang, |mut rank| train(rank.as_mut(), 3, 4).unwrap());
        assert_eq!(ends, vec![reference(3, 4, 3, plan().len()); 2]);
    });
}
