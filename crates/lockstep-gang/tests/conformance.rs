//! What every [`Collective`] promises, checked on every implementation.

mod common;

use common::*;
use lockstep_gang::*;
use proptest::prelude::*;
use std::thread;
use std::time::{Duration, Instant};

/// A deadline that a test can wait for.
const IMPATIENCE: Deadline = Deadline(Duration::from_millis(300));

fn plan(workers: usize) -> Plan {
    Plan::new(chunks(&[40, 7, 300, 1, 64]), workers + 1, workers).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_rank_ends_with_the_bits_of_the_sequential_run(
        lengths in prop::collection::vec(1usize..120, 1..9), extra in 0usize..5, seed: u64,
    ) {
        let steps = 6;
        for workers in [1, 2, 3, 5] {
            let plan = Plan::new(chunks(&lengths), workers + extra, workers).unwrap();
            let expected = reference(seed, steps, plan.lanes(), plan.len());
            for transport in TRANSPORTS {
                let ends = all_ranks(gang(transport, &plan, PATIENCE), |mut rank| {
                    train(rank.as_mut(), seed, steps).unwrap()
                });
                for (rank, end) in ends.iter().enumerate() {
                    prop_assert_eq!(end, &expected, "{:?}, rank {} of {}", transport, rank, workers);
                }
            }
            if workers == 1 {
                let mut solo = Solo::new(plan).unwrap();
                prop_assert_eq!(&train(&mut solo, seed, steps).unwrap(), &expected);
            }
        }
    }
}

#[test]
fn steps_gatherings_and_exchanges_can_follow_each_other_in_any_order() {
    for transport in TRANSPORTS {
        for workers in [2, 3, 5] {
            let plan = plan(workers);
            let expected = reference(9, 8, plan.lanes(), plan.len());
            let ends = all_ranks(gang(transport, &plan, PATIENCE), |mut rank| {
                let rank = rank.as_mut();
                let mut params = vec![1.0f32; plan.len()];
                let mut tree = TreeSum::new(&plan);
                for step in 0..8 {
                    train_step(rank, &mut tree, &mut params, 9, step).unwrap();
                    for round in 0..step % 3 {
                        check_exchange(rank, (step * 10 + round) as f32);
                        check_gather(rank, [3, 0, 700][round as usize]);
                    }
                }
                params
                    .iter()
                    .map(|param| param.to_bits())
                    .collect::<Vec<_>>()
            });
            assert!(
                ends.iter().all(|end| *end == expected),
                "{transport:?}, {workers} workers"
            );
        }
    }
}

/// A step whose chunks follow from shares: each lane shares one number and its chunk's values are
/// sums over all lanes' numbers.
fn shared_step(gang: &mut dyn Collective, step: u64) -> Result<Vec<f32>, GangError> {
    let (rank, plan) = (gang.rank(), gang.plan().clone());
    let number = |kind: usize, lane: usize| (step * 100 + kind as u64 * 10 + lane as u64) as f32;
    let mut sums = [0.0; 2];
    for (kind, len) in [3, 200].into_iter().enumerate() {
        for lane in plan.lanes_of(rank) {
            let share = plan.share(kind, lane);
            gang.draft(share)?
                .copy_from_slice(&vec![number(kind, lane); len]);
            gang.announce(share)?;
        }
    }
    for (kind, sum) in sums.iter_mut().enumerate() {
        for lane in 0..plan.lanes() {
            let share = plan.share(kind, lane);
            if plan.owner(share) != rank {
                gang.accept(share)?;
            }
            let values = gang.view(share);
            assert_eq!(values, vec![number(kind, lane); plan.chunk(share).len()]);
            *sum += values[0];
        }
    }
    gang.cast(0)?;
    let mut vector = vec![0.0; plan.len()];
    for own in [true, false] {
        for chunk in (0..plan.chunks()).rev() {
            let range = plan.chunk(chunk);
            if plan.owner(chunk) == rank && own {
                vector[range.clone()].fill(sums[chunk % 2]);
                gang.publish(chunk, &vector[range])?;
            } else if plan.owner(chunk) != rank && !own {
                gang.fetch(chunk, &mut vector[range])?;
            }
        }
    }
    gang.end_step()?;
    Ok(vector)
}

/// Every owner makes something for every lane, and every lane's rank gets it.
fn check_products(gang: &mut dyn Collective, step: u64) {
    let (rank, plan) = (gang.rank(), gang.plan().clone());
    let number = |chunk: usize, lane: usize| (step * 100 + (chunk * 10 + lane) as u64) as f32;
    for making in [true, false] {
        for chunk in plan.producing() {
            for lane in 0..plan.lanes() {
                let (mine, is_for_me) = (
                    plan.owner(chunk) == rank,
                    plan.lanes_of(rank).contains(&lane),
                );
                let product = plan.product(chunk, lane);
                let mut values = vec![number(chunk, lane); plan.chunk(product).len()];
                if making && mine && !is_for_me {
                    gang.publish(product, &values).unwrap();
                } else if !making && !mine && is_for_me {
                    values.fill(f32::NAN);
                    gang.fetch(product, &mut values).unwrap();
                    assert!(values.iter().all(|value| *value == number(chunk, lane)));
                }
            }
        }
    }
}

#[test]
fn products_and_chunks_that_follow_from_shares_arrive_in_every_step() {
    for transport in TRANSPORTS {
        for workers in [2, 3, 5] {
            let plan = plan(workers)
                .with_shares(&[3, 200])
                .with_products(1..4, &[5, 1, 90]);
            all_ranks(gang(transport, &plan, PATIENCE), |mut rank| {
                for step in 0..50 {
                    check_products(rank.as_mut(), step);
                    let vector = shared_step(rank.as_mut(), step).unwrap();
                    for chunk in 0..plan.chunks() {
                        let lanes = 0..plan.lanes() as u64;
                        let first = step * 100 + (chunk as u64 % 2) * 10;
                        let expected: u64 = lanes.map(|lane| first + lane).sum();
                        let values = &vector[plan.chunk(chunk)];
                        assert!(values.iter().all(|value| *value == expected as f32));
                    }
                }
            });
        }
    }
}

/// Each rank knows its own chunks only, and all know all afterwards.
fn check_exchange(gang: &mut dyn Collective, salt: f32) {
    let value = |at: usize| at as f32 + salt;
    let mut vector = vec![f32::NAN; gang.plan().len()];
    for chunk in 0..gang.plan().chunks() {
        if gang.plan().owner(chunk) == gang.rank() {
            gang.plan()
                .chunk(chunk)
                .for_each(|at| vector[at] = value(at));
        }
    }
    gang.exchange_owned(&mut vector).unwrap();
    assert!(
        vector
            .iter()
            .enumerate()
            .all(|(at, found)| *found == value(at))
    );
}

fn check_gather(gang: &mut dyn Collective, len: usize) {
    let number = |rank: usize, at: usize| (rank * 1000 + at) as f64 + 0.1;
    let mine: Vec<f64> = (0..len).map(|at| number(gang.rank(), at)).collect();
    let mut all = vec![f64::NAN; len * gang.plan().workers()];
    gang.all_gather(&mine, &mut all).unwrap();
    for (index, found) in all.iter().enumerate() {
        assert_eq!(*found, number(index / len, index % len));
    }
}

#[test]
fn more_workers_than_cores_make_progress() {
    let workers = 4 * thread::available_parallelism().map_or(2, usize::from);
    let plan = Plan::new(chunks(&[50; 20]), workers, workers).unwrap();
    let expected = reference(3, 20, plan.lanes(), plan.len());
    for transport in TRANSPORTS {
        let ends = all_ranks(gang(transport, &plan, PATIENCE), |mut rank| {
            train(rank.as_mut(), 3, 20).unwrap()
        });
        assert!(ends.iter().all(|end| *end == expected), "{transport:?}");
    }
}

/// Every way of waiting for another rank, by name.
type Wait = fn(&mut dyn Collective) -> Result<(), GangError>;
const WAITS: [(&str, Wait); 4] = [
    ("post chunk", |gang| gang.wait_arrived(own_chunk(gang))),
    ("publish chunk", |gang| {
        let chunk = (0..gang.plan().chunks())
            .find(|c| gang.plan().owner(*c) != gang.rank())
            .unwrap();
        let mut into = vec![0.0; gang.plan().chunk(chunk).len()];
        gang.fetch(chunk, &mut into)
    }),
    ("end the step", |gang| {
        gang.cast(0)?;
        gang.end_step().map(drop)
    }),
    ("take part in a gathering", |gang| gang.barrier()),
];

fn own_chunk(gang: &dyn Collective) -> usize {
    (0..gang.plan().chunks())
        .find(|chunk| gang.plan().owner(*chunk) == gang.rank())
        .unwrap()
}

#[test]
fn a_silent_peer_is_named_once_the_deadline_is_over() {
    for transport in TRANSPORTS {
        for (wanted, wait) in WAITS {
            let mut gang = gang(transport, &plan(2), IMPATIENCE);
            let begin = Instant::now();
            let error = wait(gang[0].as_mut()).unwrap_err();
            let waited = begin.elapsed();
            let GangError::PeerTimeout { rank: 1, what, .. } = &error else {
                panic!("{transport:?}: {error}")
            };
            assert!(what.contains(wanted), "{transport:?}: {what}");
            assert!(error.is_peer_lost());
            assert!(
                waited >= IMPATIENCE.0 && waited < IMPATIENCE.0 * 5,
                "{transport:?}: {waited:?}"
            );
        }
    }
}

#[test]
fn a_peer_that_leaves_is_reported_at_once() {
    for transport in TRANSPORTS {
        for (_, wait) in WAITS {
            let mut gang = gang(transport, &plan(2), PATIENCE);
            let leaver = gang.pop().unwrap();
            let leaving = thread::spawn(move || {
                thread::sleep(Duration::from_millis(30));
                drop(leaver);
            });
            let begin = Instant::now();
            let error = wait(gang[0].as_mut()).unwrap_err();
            assert!(
                matches!(error, GangError::PeerLost { rank: 1, .. }),
                "{transport:?}: {error}"
            );
            assert!(error.is_peer_lost());
            assert!(begin.elapsed() < Duration::from_secs(2), "{transport:?}");
            leaving.join().unwrap();
        }
    }
}

#[test]
fn what_a_peer_did_before_it_left_still_counts() {
    for transport in TRANSPORTS {
        let plan = plan(2);
        let ends = all_ranks(gang(transport, &plan, PATIENCE), |mut rank| {
            let mut params = vec![1.0f32; plan.len()];
            let mut tree = TreeSum::new(&plan);
            for step in 0..3 {
                if rank.rank() == 0 {
                    thread::sleep(Duration::from_millis(20)); // The other one is long gone at the end.
                }
                train_step(rank.as_mut(), &mut tree, &mut params, 5, step).unwrap();
            }
            params[0].to_bits()
        });
        assert_eq!(ends[0], ends[1], "{transport:?}");
    }
}

#[test]
fn an_abort_ends_every_wait() {
    for transport in TRANSPORTS {
        for (_, wait) in WAITS {
            let mut gang = gang(transport, &plan(2), PATIENCE);
            let abort = gang[0].abort_handle();
            let aborting = thread::spawn(move || {
                thread::sleep(Duration::from_millis(30));
                abort.abort();
            });
            let begin = Instant::now();
            let error = wait(gang[0].as_mut()).unwrap_err();
            assert!(
                matches!(error, GangError::Aborted),
                "{transport:?}: {error}"
            );
            assert!(begin.elapsed() < Duration::from_secs(2), "{transport:?}");
            let chunk = own_chunk(gang[0].as_ref());
            assert!(gang[0].arrived(chunk).is_err(), "{transport:?}");
            aborting.join().unwrap();
        }
    }
}

#[test]
fn looking_never_waits() {
    for transport in TRANSPORTS {
        let mut gang = gang(transport, &plan(2), PATIENCE);
        let own = own_chunk(gang[0].as_ref());
        let other = own_chunk(gang[1].as_ref());
        let begin = Instant::now();
        assert!(!gang[0].arrived(own).unwrap());
        assert!(!gang[0].published(other).unwrap());
        assert!(begin.elapsed() < Duration::from_millis(100));
    }
}
