//! What workers exchange whose devices read each other's memory: partial sums that are handed over, and their sum.

use super::pass::Pass;
use super::planner::Planner;
use super::step::Progress;
use super::update::UpdateMemory;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, PEERS};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::setup::{PeerSum, WorkerBatch};
use lockstep_nn::Layout;

arguments! {
    struct HandOver {
        gradients: Pointer<f32>,
        stride: u64,
        lanes: Pointer<u64>,
        to: Pointer<u64>,
        progress: Pointer<Progress>,
        begin: u64,
        end: u64,
        count: u32,
        unused: u32,
    }

    struct TakeSums {
        from: Pointer<u64>,
        merges: Pointer<u64>,
        progress: Pointer<Progress>,
        to: Pointer<f32>,
        begin: u64,
        end: u64,
        count: u32,
        unused: u32,
    }
}

const HAND_OVER: Kernel<HandOver> = Kernel::new(&PEERS, "hand_over", 256);
const TAKE_SUMS: Kernel<TakeSums> = Kernel::new(&PEERS, "take_sums", 256);

/// Sums that may wait for their other half.
const MOST_WAITING: usize = 16;

/// Whether these sums can be added in their order, and come to one.
pub(crate) fn are_addable(sums: &[PeerSum]) -> bool {
    let mut waiting = 0;
    for sum in sums {
        waiting += 1;
        if waiting > MOST_WAITING || sum.merges as usize >= waiting {
            return false;
        }
        waiting -= sum.merges as usize;
    }
    waiting <= 1
}

/// Which sums are exchanged in a step, and where they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerTables {
    /// Which lanes have this worker's partial sums.
    lanes: DeviceSlice<u64>,
    /// Where they go: their addresses in both halves of the memory that others read.
    pub(crate) to: DeviceSlice<u64>,
    /// Where all workers' are, in the order in which they are added.
    pub(crate) from: DeviceSlice<u64>,
    merges: DeviceSlice<u64>,
}

impl PeerTables {
    /// Of batches of one size.
    pub(crate) fn new(planner: &mut Planner, batch: &WorkerBatch, sums: &[PeerSum]) -> Self {
        let lanes = batch.partials.iter().map(|&lane| lane as u64);
        let merges = sums.iter().map(|sum| u64::from(sum.merges));
        Self {
            lanes: planner.constant(lanes.collect()),
            to: planner.keep(2 * batch.partials.len()),
            from: planner.keep(2 * sums.len()),
            merges: planner.constant(merges.collect()),
        }
    }

    /// Appends what writes this worker's partial sums to where others read them.
    pub(crate) fn hand_over(&self, pass: &mut Pass<'_>, layout: &Layout, update: &UpdateMemory) {
        let count = self.lanes.len();
        for range in layout.trained() {
            let arguments = HandOver {
                gradients: update.gradients.pointer(),
                stride: update.stride as u64,
                lanes: self.lanes.pointer(),
                to: self.to.pointer(),
                progress: update.progress.pointer(),
                begin: range.start as u64,
                end: range.end as u64,
                count: count as u32,
                unused: 0,
            };
            let launch = Launch::over(&HAND_OVER, range.len().div_ceil(4), arguments);
            pass.push(launch.times(count));
        }
    }

    /// Appends what adds up all workers' partial sums; the first lane's gradient becomes their sum.
    pub(crate) fn take(&self, pass: &mut Pass<'_>, layout: &Layout, update: &UpdateMemory) {
        for range in layout.trained() {
            let arguments = TakeSums {
                from: self.from.pointer(),
                merges: self.merges.pointer(),
                progress: update.progress.pointer(),
                to: update.gradient(0).pointer(),
                begin: range.start as u64,
                end: range.end as u64,
                count: self.merges.len() as u32,
                unused: 0,
            };
            pass.push(Launch::over(&TAKE_SUMS, range.len().div_ceil(4), arguments));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_come_to_one_are_told_from_others() {
        let found = |merges: &[u32]| {
            let sum = |&merges: &u32| PeerSum {
                rank: 0,
                partial: 0,
                merges,
            };
            are_addable(&merges.iter().map(sum).collect::<Vec<_>>())
        };
        assert!(found(&[]) && found(&[0]) && found(&[0, 1]) && found(&[0, 1, 0, 2]));
        // One is left over, there is nothing to be added to, and too many wait.
        assert!(!found(&[0, 0]) && !found(&[0, 2]) && !found(&[1]));
        assert!(!found(&[[0; 20].as_slice(), &[20]].concat()));
    }
}
