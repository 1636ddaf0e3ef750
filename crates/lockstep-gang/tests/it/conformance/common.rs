//! Common chunks: any rank may work on them, and no number is lost or made twice.

use super::toy::all_ranks;
use super::{Join, PATIENCE, gang};
use lockstep_gang::{Plan, SharingCollective};
use std::thread;
use std::time::Duration;

/// Chunks 1 to 3 make products and live at home, chunk 4 is published; chunk 0 is not in common.
fn plan(workers: usize) -> Plan {
    super::plan(workers)
        .with_shares(&[3])
        .with_products(1..4, &[5, 1, 90])
        .with_common(1..5, 1)
}

/// One rank's vectors, as far as they are not at home.
struct RankVectors {
    values: Vec<f32>,
    plane: Vec<f32>,
}

/// What happens to a number of a chunk in a step; each depends on the one before.
fn next(value: &mut f32, plane: &mut f32, chunk: usize, shares: f32) {
    *plane = *plane * 0.5 + shares;
    *value = *value * 0.25 + *plane + chunk as f32;
}

/// Works on a chunk that this rank holds.
fn update(gang: &mut dyn SharingCollective, own: &mut RankVectors, chunk: usize, shares: f32) {
    let range = gang.plan().chunk(chunk);
    let (mut values, mut plane) = (
        &mut own.values[range.clone()],
        &mut own.plane[range.clone()],
    );
    if let Some(home) = gang.home(chunk) {
        values = home.values.unwrap_or(values);
        let [first, second] = home.planes;
        assert!(second.is_empty());
        plane = first;
    }
    for (value, plane) in values.iter_mut().zip(plane) {
        next(value, plane, chunk, shares);
    }
    if !gang.plan().producing().contains(&chunk) {
        gang.publish(chunk, &own.values[range]).unwrap();
    }
}

/// Makes and fetches the products of a step: the first value of their chunk.
fn products(gang: &mut dyn SharingCollective, own: &RankVectors, expected: &[f32]) {
    let plan = gang.plan().clone();
    let is_own = |lane: usize| plan.lanes_of(gang.rank()).contains(&lane);
    let lanes: Vec<(usize, bool)> = (0..plan.lanes()).map(|lane| (lane, is_own(lane))).collect();
    for making in [true, false] {
        for chunk in plan.producing() {
            for &(lane, is_own) in &lanes {
                let product = plan.product(chunk, lane);
                let mut values = vec![f32::NAN; plan.chunk(product).len()];
                if making && gang.holds(product) && !is_own {
                    let first = match gang.home(chunk) {
                        Some(home) => home.values.unwrap()[0],
                        None => own.values[plan.chunk(chunk).start],
                    };
                    values.fill(first);
                    gang.publish(product, &values).unwrap();
                } else if !making && !gang.holds(product) && is_own {
                    gang.fetch(product, &mut values).unwrap();
                    assert!(values.iter().all(|value| *value == expected[chunk]));
                }
            }
        }
    }
}

/// Shares a number for each lane and returns the sum of all.
fn shares(gang: &mut dyn SharingCollective, step: usize) -> f32 {
    let (rank, plan) = (gang.rank(), gang.plan().clone());
    let number = |lane: usize| (step * 10 + lane) as f32;
    for lane in plan.lanes_of(rank) {
        let share = plan.share(0, lane);
        gang.draft(share).unwrap().fill(number(lane));
        gang.announce(share).unwrap();
    }
    for lane in 0..plan.lanes() {
        let share = plan.share(0, lane);
        if plan.owner(share) != rank {
            gang.accept(share).unwrap();
        }
        assert_eq!(gang.view(share), [number(lane); 3]);
    }
    (0..plan.lanes()).map(number).sum()
}

/// Each is taken once a step, and where ranks share memory some are taken over from their owners.
pub(crate) fn every_common_chunk_is_worked_on_by_one_rank_a_step_whoever_it_is(join: &Join) {
    for workers in [2, 3, 5] {
        let plan = plan(workers);
        let taken = all_ranks(gang(join, &plan, PATIENCE), |mut gang| {
            let own = (1..5).find(|&chunk| gang.holds(chunk));
            let shares_memory = own.is_some_and(|chunk| gang.home(chunk).is_some());
            (run(&mut *gang), shares_memory)
        });
        let all: usize = taken.iter().map(|((all, _), _)| all).sum();
        assert_eq!(all, STEPS * 4, "each chunk is taken once a step");
        let others: usize = taken.iter().map(|((_, others), _)| others).sum();
        let shares_memory = taken.iter().any(|(_, shares)| *shares);
        assert_eq!(others > 0, shares_memory, "{others} from others");
    }
}

const STEPS: usize = 60;

/// Trains, looks at every number of every step, and returns how many chunks this rank took and how many
/// of those were others'.
fn run(gang: &mut dyn SharingCollective) -> (usize, usize) {
    let (rank, plan) = (gang.rank(), gang.plan().clone());
    let mut own = RankVectors {
        values: vec![0.0; plan.len()],
        plane: vec![0.0; plan.len()],
    };
    // All numbers of a chunk are the same.
    let mut expected = [(0.0, 0.0); 5];
    let (mut taken, mut from_others) = (0, 0);
    for step in 0..STEPS {
        products(gang, &own, &expected.map(|(value, _)| value));
        let sum = shares(gang, step);
        gang.cast(0).unwrap();
        let is_own = |chunk: &usize| plan.owner(*chunk) == rank;
        let (first, then): (Vec<_>, Vec<_>) = (1..5).rev().partition(is_own);
        let mut missing = Vec::new();
        // Now one rank is late, now another.
        if step / 7 % plan.workers() == rank {
            thread::sleep(Duration::from_millis(1));
        }
        for chunk in first.into_iter().chain(then.into_iter().rev()) {
            if gang.take(chunk).unwrap() {
                update(gang, &mut own, chunk, sum);
                taken += 1;
                from_others += usize::from(!is_own(&chunk));
            } else if !plan.producing().contains(&chunk) {
                missing.push(chunk);
            }
        }
        for chunk in missing {
            gang.fetch(chunk, &mut own.values[plan.chunk(chunk)])
                .unwrap();
        }
        for (chunk, (value, plane)) in expected.iter_mut().enumerate().skip(1) {
            next(value, plane, chunk, sum);
        }
        let published = &own.values[plan.chunk(4)];
        assert!(published.iter().all(|value| *value == expected[4].0));
        gang.end_step().unwrap();
        if step % 10 == 9 {
            check_homes(gang, &mut own, &expected);
        }
    }
    (taken, from_others)
}

/// Gives everything back to its owner, who finds all of its numbers.
fn check_homes(gang: &mut dyn SharingCollective, own: &mut RankVectors, expected: &[(f32, f32)]) {
    gang.recall().unwrap();
    for (chunk, &(value, plane)) in expected.iter().enumerate().skip(1) {
        assert_eq!(gang.holds(chunk), gang.plan().owner(chunk) == gang.rank());
        if !gang.holds(chunk) {
            continue;
        }
        let range = gang.plan().chunk(chunk);
        if let Some(home) = gang.home(chunk) {
            own.plane[range.clone()].copy_from_slice(home.planes[0]);
            if let Some(values) = home.values {
                own.values[range.clone()].copy_from_slice(values);
            }
        }
        assert!(
            own.values[range.clone()]
                .iter()
                .all(|found| *found == value)
        );
        assert!(own.plane[range].iter().all(|found| *found == plane));
    }
}
