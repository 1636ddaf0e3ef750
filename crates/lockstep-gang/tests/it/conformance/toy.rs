//! A toy training run that any gang can do and that can be computed without one.
//!
//! Every number depends on the step, the lane and the numbers before, and magnitudes are far apart,
//! so that a stale, missing or misordered number changes the final bits.

use lockstep_gang::{Collective, GangError, SharingCollective, TreeSum, tree};
use std::ops::Range;
use std::thread;

/// Runs `work` as every rank of a gang at the same time, and returns what each came to.
pub(crate) fn all_ranks<T: Send>(
    gang: Vec<Box<dyn SharingCollective>>,
    work: impl Fn(Box<dyn SharingCollective>) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let ranks: Vec<_> = gang
            .into_iter()
            .map(|rank| scope.spawn(move || work(rank)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// The ranges of chunks of these lengths.
pub(crate) fn chunks(lengths: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    lengths
        .iter()
        .map(|len| {
            end += len;
            end - len..end
        })
        .collect()
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Some lanes are empty in some steps, never lane 0.
fn is_absent(seed: u64, step: u64, lane: usize) -> bool {
    lane != 0 && mix(seed ^ step << 20 ^ lane as u64).is_multiple_of(4)
}

fn gradient(seed: u64, step: u64, lane: usize, at: usize, param: f32) -> f32 {
    let bits = mix(seed ^ step << 40 ^ (lane as u64) << 32 ^ at as u64);
    let magnitude = 2f32.powi((bits % 20) as i32 - 14);
    ((bits >> 40) as f32 / 16_777_216.0 - 0.5) * magnitude + param * 0.01
}

/// The sum of a node's lanes by the tree's definition; `None` if all are absent.
fn sum(node: Range<usize>, lane: &impl Fn(usize) -> Option<f32>) -> Option<f32> {
    let Some(mid) = tree::split(&node) else {
        return lane(node.start);
    };
    match (sum(node.start..mid, lane), sum(mid..node.end, lane)) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

fn partial_sum(seed: u64, step: u64, node: Range<usize>, at: usize, param: f32) -> Option<f32> {
    sum(node, &|lane| {
        (!is_absent(seed, step, lane)).then(|| gradient(seed, step, lane, at, param))
    })
}

/// The parameters after `steps` steps, computed by one thread.
pub(crate) fn reference(seed: u64, steps: u64, lanes: usize, len: usize) -> Vec<u32> {
    let mut params = vec![1.0f32; len];
    for step in 0..steps {
        for (at, param) in params.iter_mut().enumerate() {
            *param -= partial_sum(seed, step, 0..lanes, at, *param).unwrap();
        }
    }
    params.iter().map(|param| param.to_bits()).collect()
}

/// The parameters after `steps` steps, as one rank of a gang comes to know them.
pub(crate) fn train(
    gang: &mut dyn Collective,
    seed: u64,
    steps: u64,
) -> Result<Vec<u32>, GangError> {
    let mut params = vec![1.0f32; gang.plan().len()];
    let mut tree = TreeSum::new(gang.plan(), gang.rank());
    for step in 0..steps {
        train_step(gang, &mut tree, &mut params, seed, step)?;
    }
    Ok(params.iter().map(|param| param.to_bits()).collect())
}

/// One step of [`train`].
pub(crate) fn train_step(
    gang: &mut dyn Collective,
    tree: &mut TreeSum,
    params: &mut [f32],
    seed: u64,
    step: u64,
) -> Result<(), GangError> {
    let (rank, count) = (gang.rank(), gang.plan().chunks());
    let mut waiting = Vec::new();
    for chunk in (0..count).rev() {
        if mix(seed ^ step ^ (rank as u64) << 9 ^ chunk as u64).is_multiple_of(5) {
            thread::yield_now();
        }
        if gang.plan().owner(chunk) == rank {
            waiting.push(chunk);
        } else {
            for partial in 0..gang.plan().partials_of(rank).len() {
                let node = gang.plan().partials_of(rank)[partial].clone();
                // An absent sum stays what it was, which must not matter.
                if node.clone().all(|lane| is_absent(seed, step, lane)) {
                    continue;
                }
                let range = gang.plan().chunk(chunk);
                let outbox = gang.outbox(chunk, partial);
                for (out, at) in outbox.iter_mut().zip(range) {
                    *out = partial_sum(seed, step, node.clone(), at, params[at]).unwrap();
                }
            }
            gang.post(chunk)?;
        }
        // Sometimes reduce at once what is there, sometimes later.
        if step.is_multiple_of(2)
            && waiting
                .first()
                .is_some_and(|c| gang.arrived(*c).unwrap_or(false))
        {
            reduce(gang, tree, params, seed, step, waiting.remove(0))?;
        }
    }
    for chunk in waiting {
        gang.wait_arrived(chunk)?;
        assert!(gang.arrived(chunk)?);
        reduce(gang, tree, params, seed, step, chunk)?;
    }
    gang.cast(step * 10 + rank as u64)?;
    for chunk in (0..count).rev() {
        if gang.plan().owner(chunk) != rank {
            let range = gang.plan().chunk(chunk);
            gang.fetch(chunk, &mut params[range])?;
        }
    }
    assert_eq!(
        gang.end_step()?,
        step * 10 + gang.plan().workers() as u64 - 1
    );
    Ok(())
}

fn reduce(
    gang: &mut dyn Collective,
    tree: &mut TreeSum,
    params: &mut [f32],
    seed: u64,
    step: u64,
    chunk: usize,
) -> Result<(), GangError> {
    let (rank, range) = (gang.rank(), gang.plan().chunk(chunk));
    let own: Vec<Vec<f32>> = gang
        .plan()
        .partials_of(rank)
        .iter()
        .map(|node| {
            range
                .clone()
                .map(|at| partial_sum(seed, step, node.clone(), at, params[at]).unwrap_or(0.0))
                .collect()
        })
        .collect();
    let mut total = vec![0.0; range.len()];
    tree.sum(
        |partial| {
            if partial
                .lanes
                .clone()
                .all(|lane| is_absent(seed, step, lane))
            {
                None
            } else if partial.rank == rank {
                Some(own[partial.index].as_slice())
            } else {
                Some(gang.inbox(chunk, partial.rank, partial.index))
            }
        },
        &mut total,
    );
    for (param, gradient) in params[range.clone()].iter_mut().zip(&total) {
        *param -= gradient;
    }
    gang.publish(chunk, &params[range])
}
