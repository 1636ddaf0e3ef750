//! Gangs of several hosts with several workers each: the bits are those of one worker, wherever workers are.

use crate::conformance::toy::{all_ranks, chunks, reference, train};
use crate::conformance::{PATIENCE, memberships};
use crate::gangs::on_hosts;
use lockstep_gang::*;

#[test]
fn the_bits_are_those_of_one_worker_for_any_hosts_workers_and_lanes() {
    let shapes: [&[usize]; 7] = [
        &[1, 1],
        &[2, 2],
        &[3, 1],
        &[4, 2],
        &[2, 1, 2],
        &[2, 2, 2],
        &[1, 2, 1, 2],
    ];
    for (seed, hosts) in shapes.iter().enumerate() {
        let workers: usize = hosts.iter().sum();
        // As many lanes as workers, and more, that do and do not make whole subtrees of hosts.
        for lanes in [workers, workers + 1, workers.next_power_of_two() * 2] {
            let lengths = [70, 1, 300, 5, 64, 64, 9];
            let plan = Plan::new(chunks(&lengths), lanes, workers).unwrap();
            let plan = plan.on_hosts(hosts).unwrap();
            let expected = reference(seed as u64, 5, lanes, plan.len());
            let gang = on_hosts(&plan, &memberships(workers, PATIENCE));
            let ends = all_ranks(gang, |mut rank| {
                train(rank.as_mut(), seed as u64, 5).unwrap()
            });
            assert!(
                ends.iter().all(|end| *end == expected),
                "{hosts:?}, {lanes} lanes"
            );
        }
    }
}

#[test]
fn more_numbers_than_fit_a_round_are_gathered_from_hosts_of_different_sizes() {
    let plan = Plan::new(chunks(&[4, 4]), 6, 6).unwrap();
    let plan = plan.on_hosts(&[3, 2, 1]).unwrap();
    for len in [0, 1, 85, 86, 700] {
        let gang = on_hosts(&plan, &memberships(6, PATIENCE));
        all_ranks(gang, |mut gang| {
            for round in 0..3 {
                let number = |rank: usize, at: usize| (round * 1_000_000 + rank * 1000 + at) as f64;
                let mine: Vec<f64> = (0..len).map(|at| number(gang.rank(), at)).collect();
                let mut all = vec![f64::NAN; 6 * len];
                gang.all_gather(&mine, &mut all).unwrap();
                let is_right =
                    |(index, found): (usize, &f64)| *found == number(index / len, index % len);
                assert!(all.iter().enumerate().all(is_right), "{len}");
            }
        });
    }
}

#[test]
fn a_sum_that_is_absent_changes_no_bit_of_its_hosts_sum() {
    // Of one chunk the third rank is the owner, of the other the first: one of its host's ranks speaks for it there.
    let plan = Plan::new(chunks(&[4, 4]), 3, 3).unwrap();
    let plan = plan.on_hosts(&[2, 1]).unwrap();
    let chunk = (0..2).find(|&chunk| plan.owner(chunk) == 2).unwrap();
    for present in [0, 1] {
        let gang = on_hosts(&plan, &memberships(3, PATIENCE));
        all_ranks(gang, |mut gang| {
            if gang.rank() == 2 {
                gang.wait_arrived(chunk).unwrap();
                let sum = gang.inbox(chunk, 0, 0).iter();
                assert!(
                    sum.map(|x| x.to_bits())
                        .all(|bits| bits == (-0.0f32).to_bits())
                );
            } else if gang.rank() == present {
                gang.outbox(chunk, 0).fill(-0.0);
                gang.post(chunk).unwrap();
            } else {
                gang.post(chunk).unwrap();
            }
            gang.barrier().unwrap();
        });
    }
}
