//! No step allocates: every buffer is made when a rank joins.

mod gangs;

use gangs::*;
use lockstep_gang::conformance::toy::*;
use lockstep_gang::conformance::{Join, PATIENCE, memberships};
use lockstep_gang::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_step_allocates_nothing_on_any_thread() {
    let plan = Plan::new(chunks(&[3000, 500, 3000, 70]), 5, 2).unwrap();
    let transports: [(&str, &Join); 2] = [("shm", &shm), ("tcp", &tcp)];
    for (transport, join) in transports {
        let gang = join(&plan, &memberships(2, PATIENCE));
        let counts = all_ranks(gang, |mut gang| {
            let gang = gang.as_mut();
            let mut params = vec![1.0f32; plan.len()];
            let mut total = vec![0.0f32; plan.longest_chunk()];
            let mut tree = TreeSum::new(&plan);
            for _ in 0..20 {
                step(gang, &mut tree, &mut params, &mut total);
            }
            gang.barrier().unwrap();
            let before = ALLOCATIONS.load(Ordering::SeqCst);
            // Nobody goes on, and so nobody counts, before all have looked.
            gang.barrier().unwrap();
            for _ in 0..50 {
                step(gang, &mut tree, &mut params, &mut total);
            }
            gang.barrier().unwrap();
            let after = ALLOCATIONS.load(Ordering::SeqCst);
            gang.barrier().unwrap();
            after - before
        });
        assert_eq!(counts, [0, 0], "{transport}");
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
    gang.all_gather(&[1.0, 2.0], &mut [0.0; 4]).unwrap();
}
