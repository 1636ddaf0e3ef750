//! No step allocates: every buffer is made when a rank joins.

use crate::conformance::toy::*;
use crate::conformance::{Join, PATIENCE, memberships};
use crate::gangs::*;
use lockstep_gang::*;
use lockstep_testkit::{allocations_of_all_threads, child};

/// The variable that says that this process is the one that counts.
const CHILD: &str = "GANG_ALLOCATIONS";

/// In a process of its own, since other tests of this one allocate.
#[test]
fn a_step_allocates_nothing_on_any_thread() {
    let output = child!(count_allocations).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// Not a test of its own: what the child of the one above does.
#[test]
fn count_allocations() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let plan = Plan::new(chunks(&[3000, 500, 3000, 70]), 5, 3).unwrap();
    let transports: [(&str, &Join); 3] = [("shm", &shm), ("tcp", &tcp), ("two hosts", &two_hosts)];
    for (transport, join) in transports {
        let gang = join(&plan, &memberships(3, PATIENCE));
        let counts = all_ranks(gang, |mut gang| {
            let gang = gang.as_mut();
            let mut params = vec![1.0f32; plan.len()];
            let mut total = vec![0.0f32; plan.longest_chunk()];
            let mut tree = TreeSum::new(gang.plan(), gang.rank());
            for _ in 0..20 {
                step(gang, &mut tree, &mut params, &mut total);
            }
            gang.barrier().unwrap();
            let before = allocations_of_all_threads();
            // Nobody goes on, and so nobody counts, before all have looked.
            gang.barrier().unwrap();
            for _ in 0..50 {
                step(gang, &mut tree, &mut params, &mut total);
            }
            gang.barrier().unwrap();
            let after = allocations_of_all_threads();
            gang.barrier().unwrap();
            after - before
        });
        assert_eq!(counts, [0; 3], "{transport}");
    }
}

fn step(gang: &mut dyn Collective, tree: &mut TreeSum, params: &mut [f32], total: &mut [f32]) {
    let (rank, count) = (gang.rank(), gang.plan().chunks());
    for chunk in (0..count).rev() {
        if gang.plan().owner(chunk) != rank {
            for partial in 0..gang.plan().partials_of(rank).len() {
                gang.outbox(chunk, partial).fill(0.5);
            }
            gang.post(chunk).unwrap();
        }
    }
    for chunk in (0..count).rev() {
        if gang.plan().owner(chunk) != rank {
            continue;
        }
        let range = gang.plan().chunk(chunk);
        gang.wait_arrived(chunk).unwrap();
        let own = &params[range.clone()];
        let inbox = |partial: &Partial| match partial.rank == rank {
            true => own,
            false => gang.inbox(chunk, partial.rank, partial.index),
        };
        tree.sum(|partial| Some(inbox(partial)), &mut total[..range.len()]);
        params[range.clone()].copy_from_slice(&total[..range.len()]);
        gang.publish(chunk, &params[range]).unwrap();
    }
    gang.cast(1).unwrap();
    for chunk in (0..count).rev() {
        if gang.plan().owner(chunk) != rank {
            let range = gang.plan().chunk(chunk);
            gang.fetch(chunk, &mut params[range]).unwrap();
        }
    }
    gang.end_step().unwrap();
    gang.all_gather(&[1.0, 2.0], &mut [0.0; 6]).unwrap();
}
