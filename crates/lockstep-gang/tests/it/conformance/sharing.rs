//! What every [`SharingCollective`] promises of shares and products.

use super::toy::all_ranks;
use super::{Join, PATIENCE, gang, plan};
use lockstep_gang::{GangError, SharingCollective};

/// A step whose chunks follow from shares: each lane shares one number and its chunk's values are
/// sums over all lanes' numbers.
fn shared_step(gang: &mut dyn SharingCollective, step: u64) -> Result<Vec<f32>, GangError> {
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
fn check_products(gang: &mut dyn SharingCollective, step: u64) {
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

/// Shares go to all, products to one, chunks follow.
pub(crate) fn products_and_chunks_that_follow_from_shares_arrive_in_every_step(join: &Join) {
    for workers in [2, 3, 5] {
        let plan = plan(workers)
            .with_shares(&[3, 200])
            .with_products(1..4, &[5, 1, 90]);
        all_ranks(gang(join, &plan, PATIENCE), |mut rank| {
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
