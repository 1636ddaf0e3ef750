//! What every [`Collective`] and [`SharingCollective`] promises, as checks that each implementation runs.
//!
//! An implementation is given as a [`Join`]: a function that makes all ranks of a new gang in this process.

mod common;
mod exchange;
mod sharing;
pub(crate) mod toy;

use lockstep_gang::*;
use std::time::Duration;
use toy::{chunks, reference, train};

/// Makes all ranks of a new gang that follows this plan, each with its membership.
pub(crate) type Join = dyn Fn(&Plan, &[Membership]) -> Vec<Box<dyn SharingCollective>>;

/// A deadline that no healthy gang comes near.
pub(crate) const PATIENCE: Deadline = Deadline(Duration::from_secs(30));

/// Memberships of all ranks of a first generation.
pub(crate) fn memberships(workers: usize, deadline: Deadline) -> Vec<Membership> {
    let membership = |rank| Membership {
        rank,
        generation: 1,
        deadline,
        ..Membership::default()
    };
    (0..workers).map(membership).collect()
}

fn gang(join: &Join, plan: &Plan, deadline: Deadline) -> Vec<Box<dyn SharingCollective>> {
    join(plan, &memberships(plan.workers(), deadline))
}

/// Chunks of very different lengths.
fn plan(workers: usize) -> Plan {
    Plan::new(toy::chunks(&[40, 7, 300, 1, 64]), workers + 1, workers).unwrap()
}

/// Makes a test of every check for an implementation, given as a [`Join`].
macro_rules! conformance_tests {
    ($join:expr) => {
        exchange_tests! { $join }
        conformance_tests! { $join;
            sharing::products_and_chunks_that_follow_from_shares_arrive_in_every_step
            common::every_common_chunk_is_worked_on_by_one_rank_a_step_whoever_it_is
        }
    };
    ($join:expr; $($part:ident::$name:ident)*) => {
        $(
            #[test]
            fn $name() {
                super::$part::$name(&$join);
            }
        )*
    };
}

/// The same of every check that needs no shares.
macro_rules! exchange_tests {
    ($join:expr) => {
        conformance_tests! { $join;
            exchange::every_rank_ends_with_the_bits_of_the_sequential_run
            exchange::steps_gatherings_and_exchanges_can_follow_each_other_in_any_order
            exchange::more_workers_than_cores_make_progress
            exchange::a_silent_peer_is_named_once_the_deadline_is_over
            exchange::a_peer_that_leaves_is_reported_at_once
            exchange::what_a_peer_did_before_it_left_still_counts
            exchange::an_abort_ends_every_wait
            exchange::looking_never_waits
        }
    };
}

mod shm {
    conformance_tests!(crate::gangs::shm);
}

mod tcp {
    conformance_tests!(crate::gangs::tcp);
}

mod two_hosts {
    exchange_tests!(crate::gangs::two_hosts);
}

mod three_hosts {
    exchange_tests!(crate::gangs::three_hosts);
}

#[test]
fn a_gang_of_one_has_the_bits_of_the_sequential_run() {
    for lanes in [1, 4, 5] {
        let plan = Plan::new(chunks(&[40, 7, 300]), lanes, 1).unwrap();
        let expected = reference(5, 6, lanes, plan.len());
        let mut solo = Solo::new(plan, AbortSwitch::default()).unwrap();
        assert_eq!(train(&mut solo, 5, 6).unwrap(), expected);
    }
}
