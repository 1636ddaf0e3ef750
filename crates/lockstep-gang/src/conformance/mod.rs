//! What every [`Collective`](crate::Collective) promises, as checks that any implementation can run.
//!
//! An implementation is given as a [`Join`]: a function that makes all ranks of a new gang in this process.
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each check:
//!
//! ```ignore
//! lockstep_gang::conformance_tests!(my_gang);
//! ```

mod common;
mod exchange;
mod sharing;
pub mod toy;

pub use common::every_common_chunk_is_worked_on_by_one_rank_a_step_whoever_it_is;
pub use exchange::{
    a_peer_that_leaves_is_reported_at_once, a_silent_peer_is_named_once_the_deadline_is_over,
    an_abort_ends_every_wait, every_rank_ends_with_the_bits_of_the_sequential_run,
    looking_never_waits, more_workers_than_cores_make_progress,
    steps_gatherings_and_exchanges_can_follow_each_other_in_any_order,
    what_a_peer_did_before_it_left_still_counts,
};
pub use sharing::products_and_chunks_that_follow_from_shares_arrive_in_every_step;

use crate::{Deadline, Membership, Plan, SharingCollective};
use std::time::Duration;

/// Makes all ranks of a new gang that follows this plan, each with its membership.
pub type Join = dyn Fn(&Plan, &[Membership]) -> Vec<Box<dyn SharingCollective>>;

/// A deadline that no healthy gang comes near.
pub const PATIENCE: Deadline = Deadline(Duration::from_secs(30));

/// Memberships of all ranks of a first generation.
pub fn memberships(workers: usize, deadline: Deadline) -> Vec<Membership> {
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

/// Makes a test of every check of [`conformance`](crate::conformance) for an implementation, given as a
/// [`Join`](crate::conformance::Join).
#[macro_export]
macro_rules! conformance_tests {
    ($join:expr) => {
        $crate::conformance_tests! { $join;
            every_rank_ends_with_the_bits_of_the_sequential_run
            steps_gatherings_and_exchanges_can_follow_each_other_in_any_order
            more_workers_than_cores_make_progress
            a_silent_peer_is_named_once_the_deadline_is_over
            a_peer_that_leaves_is_reported_at_once
            what_a_peer_did_before_it_left_still_counts
            an_abort_ends_every_wait
            looking_never_waits
            products_and_chunks_that_follow_from_shares_arrive_in_every_step
            every_common_chunk_is_worked_on_by_one_rank_a_step_whoever_it_is
        }
    };
    ($join:expr; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::conformance::$name(&$join);
            }
        )*
    };
}
