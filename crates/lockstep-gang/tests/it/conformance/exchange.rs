//! What every [`Collective`] promises of the exchange of chunks, and of its waits.

use super::toy::{all_ranks, chunks, reference, train, train_step};
use super::{Join, PATIENCE, gang, memberships, plan};
use lockstep_gang::{Collective, CollectiveExt, Deadline, GangError, Plan, TreeSum};
use std::thread;
use std::time::{Duration, Instant};

/// A deadline that a test can wait for.
const IMPATIENCE: Deadline = Deadline(Duration::from_secs(1));
/// What happens at once happens long before [`PATIENCE`] is at its end, on any machine.
const AT_ONCE: Duration = Duration::from_secs(PATIENCE.0.as_secs() / 2);

/// Whatever the chunks, lanes and workers are.
pub(crate) fn every_rank_ends_with_the_bits_of_the_sequential_run(join: &Join) {
    let steps = 6;
    for seed in 0..12u64 {
        let count = 1 + seed as usize * 5 % 8;
        let lengths: Vec<usize> = (0..count)
            .map(|at| 1 + (at * 37 + seed as usize * 53) % 119)
            .collect();
        for workers in [1, 2, 3, 5] {
            let lanes = workers + seed as usize % 5;
            let plan = Plan::new(chunks(&lengths), lanes, workers).unwrap();
            let expected = reference(seed, steps, lanes, plan.len());
            let ends = all_ranks(gang(join, &plan, PATIENCE), |mut rank| {
                train(rank.as_mut(), seed, steps).unwrap()
            });
            for (rank, end) in ends.iter().enumerate() {
                assert_eq!(end, &expected, "seed {seed}, rank {rank} of {workers}");
            }
        }
    }
}

/// Each round is whole before the next.
pub(crate) fn steps_gatherings_and_exchanges_can_follow_each_other_in_any_order(join: &Join) {
    for workers in [2, 3, 5] {
        let plan = plan(workers);
        let expected = reference(9, 8, plan.lanes(), plan.len());
        let ends = all_ranks(gang(join, &plan, PATIENCE), |mut rank| {
            let rank = rank.as_mut();
            let mut params = vec![1.0f32; plan.len()];
            let mut tree = TreeSum::new(rank.plan(), rank.rank());
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
        assert!(ends.iter().all(|end| *end == expected), "{workers} workers");
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

/// Waiting gives the core to others.
pub(crate) fn more_workers_than_cores_make_progress(join: &Join) {
    let workers = 4 * thread::available_parallelism().map_or(2, usize::from);
    let plan = Plan::new(chunks(&[50; 20]), workers, workers).unwrap();
    let expected = reference(3, 20, plan.lanes(), plan.len());
    let ends = all_ranks(gang(join, &plan, PATIENCE), |mut rank| {
        train(rank.as_mut(), 3, 20).unwrap()
    });
    assert!(ends.iter().all(|end| *end == expected));
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

/// Every wait has a deadline.
pub(crate) fn a_silent_peer_is_named_once_the_deadline_is_over(join: &Join) {
    for (wanted, wait) in WAITS {
        let mut gang = gang(join, &plan(2), IMPATIENCE);
        let begin = Instant::now();
        let error = wait(gang[0].as_mut()).unwrap_err();
        let waited = begin.elapsed();
        let GangError::PeerTimeout { rank: 1, what, .. } = &error else {
            panic!("{error}")
        };
        assert!(what.contains(wanted), "{what}");
        assert!(error.is_peer_lost());
        assert!(waited >= IMPATIENCE.0 && waited < PATIENCE.0, "{waited:?}");
    }
}

/// Waiting for it ends long before the deadline.
pub(crate) fn a_peer_that_leaves_is_reported_at_once(join: &Join) {
    for (_, wait) in WAITS {
        let mut gang = gang(join, &plan(2), PATIENCE);
        let leaver = gang.pop().unwrap();
        let leaving = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            drop(leaver);
        });
        let begin = Instant::now();
        let error = wait(gang[0].as_mut()).unwrap_err();
        assert!(
            matches!(error, GangError::PeerLost { rank: 1, .. }),
            "{error}"
        );
        assert!(error.is_peer_lost());
        assert!(begin.elapsed() < AT_ONCE);
        leaving.join().unwrap();
    }
}

/// What it sent is used before its absence is noticed.
pub(crate) fn what_a_peer_did_before_it_left_still_counts(join: &Join) {
    let plan = plan(2);
    let ends = all_ranks(gang(join, &plan, PATIENCE), |mut rank| {
        let mut params = vec![1.0f32; plan.len()];
        let mut tree = TreeSum::new(rank.plan(), rank.rank());
        for step in 0..3 {
            if rank.rank() == 0 {
                thread::sleep(Duration::from_millis(20)); // The other one is long gone at the end.
            }
            train_step(rank.as_mut(), &mut tree, &mut params, 5, step).unwrap();
        }
        params[0].to_bits()
    });
    assert_eq!(ends[0], ends[1]);
}

/// Whatever is waited for.
pub(crate) fn an_abort_ends_every_wait(join: &Join) {
    for (_, wait) in WAITS {
        let members = memberships(2, PATIENCE);
        let mut gang = join(&plan(2), &members);
        let abort = members[0].abort.clone();
        let aborting = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            abort.abort();
        });
        let begin = Instant::now();
        let error = wait(gang[0].as_mut()).unwrap_err();
        assert!(matches!(error, GangError::Aborted), "{error}");
        assert!(begin.elapsed() < AT_ONCE);
        let chunk = own_chunk(gang[0].as_ref());
        assert!(gang[0].arrived(chunk).is_err());
        aborting.join().unwrap();
    }
}

/// What may be asked in the midst of work returns at once.
pub(crate) fn looking_never_waits(join: &Join) {
    let mut gang = gang(join, &plan(2), PATIENCE);
    let own = own_chunk(gang[0].as_ref());
    let other = own_chunk(gang[1].as_ref());
    let begin = Instant::now();
    assert!(!gang[0].arrived(own).unwrap());
    assert!(!gang[0].published(other).unwrap());
    assert!(begin.elapsed() < AT_ONCE);
}
