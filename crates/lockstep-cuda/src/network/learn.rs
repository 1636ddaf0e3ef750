//! What ends a step: gradients of dense layers' weights, updates, running statistics and the sums of losses, in one launch.
//!
//! The gradients of dense layers are put off to the end of the pass ([`Pass::learn`]), where what they need is still there.
//! If the device updates, then a block that has formed a gradient updates by it at once, and it is never written to memory.

use super::dense::is_wide;
use super::pass::Pass;
use super::step::{BatchMemory, EndStep};
use super::update::{LaneSums, OptimizerKernel, StepRate, UpdateMemory, alike};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, LEARN};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::setup::WorkerBatch;
use lockstep_nn::{Factored, Layout, STATISTICS_SHARE};

arguments! {
    /// A part of what is learned.
    struct LearnJob {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        first: u64,
        second: u64,
        inputs: u32,
        outputs: u32,
        block: u32,
        kind: u32,
        by_sample: u32,
        wide: u32,
        part: f32,
    }

    struct Learn {
        jobs: [LearnJob; 12],
        count: u32,
        blocks: u32,
        samples: Pointer<u32>,
        lane_rows: Pointer<u32>,
        merges: Pointer<u32>,
        lane_count: u32,
        gradients: Pointer<f32>,
        stride: u64,
        values: Pointer<f32>,
        planes: [Pointer<f32>; 2],
        lanes: LaneSums,
        rule: u32,
        settings: [f32; 4],
        rate: Pointer<StepRate>,
        end: EndStep,
    }
}

const KERNEL: Kernel<Learn> = Kernel::new(&LEARN, "learn", 128);

/// Inputs of a layer that a block has, and its outputs.
const TILE: [usize; 2] = [64, 32];

/// Numbers of another job that a block has.
const PIECE: usize = 128 * 16;

/// Jobs of a launch.
const MOST_JOBS: usize = 12;

/// Sums that may wait for their other half when lanes are added.
const MOST_WAITING: usize = 8;

const DENSE: u32 = 0;
const UPDATE: u32 = 1;
const BLEND: u32 = 2;

/// What the gradient of a dense layer's weights is formed of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseGradient {
    pub(crate) x: DeviceSlice<f32>,
    pub(crate) dy: DeviceSlice<f32>,
}

/// A dense layer whose gradient was put off.
#[derive(Debug, Clone)]
pub(crate) struct DenseJob {
    layer: Factored,
    gradient: DenseGradient,
    /// Whether x has a row for each sample of the data set.
    by_sample: bool,
}

/// A job, and how many blocks it has.
type SizedJob = (LearnJob, usize);

impl DenseJob {
    pub(crate) fn new(layer: &Factored, gradient: DenseGradient, by_sample: bool) -> Self {
        Self {
            layer: layer.clone(),
            gradient,
            by_sample,
        }
    }

    fn sized(&self, layout: &Layout) -> SizedJob {
        let Self {
            layer, gradient, ..
        } = self;
        let tiles = layer.inputs.div_ceil(TILE[0]) * layer.outputs.div_ceil(TILE[1]);
        let job = LearnJob {
            x: gradient.x.pointer(),
            dy: gradient.dy.pointer(),
            first: layer.weight().start as u64,
            second: layer.bias().start as u64,
            inputs: layer.inputs as u32,
            outputs: layer.outputs as u32,
            block: 0,
            kind: DENSE,
            by_sample: self.by_sample.into(),
            wide: is_wide(layer).into(),
            part: layout.rates[layer.chunks.start],
        };
        (job, tiles)
    }
}

/// In which order a block adds the lanes.
///
/// `adds` has pairs of lanes, the second of which is added to the first. Where they are sums over a tree of the lanes in
/// their order, as they are for a worker that trains alone, a sum is complete as soon as its last lane is there: then this
/// is for each lane how many sums are complete after it.
pub(crate) fn merges(lanes: usize, adds: &[(usize, usize)]) -> Option<Vec<u32>> {
    let mut waiting = Vec::new();
    let mut adds = adds.iter().peekable();
    let mut merges = vec![0; lanes];
    for (lane, complete) in merges.iter_mut().enumerate() {
        waiting.push(lane);
        while let [.., into, from] = waiting[..]
            && adds.next_if_eq(&&(into, from)).is_some()
        {
            waiting.pop();
            *complete += 1;
        }
        // The newest is in the threads' hands.
        if waiting.len() > MOST_WAITING + 1 {
            return None;
        }
    }
    (waiting.len() <= 1 && adds.next().is_none()).then_some(merges)
}

/// What is learned at the end of a pass, and with what.
pub(crate) struct Learning<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) batch: &'a BatchMemory,
    /// The worker's part of a full batch and of the last one.
    pub(crate) batches: &'a [WorkerBatch; 2],
    pub(crate) update: &'a UpdateMemory,
    /// Pairs of lanes whose gradients are added, and the lane that has their sum then.
    pub(crate) adds: DeviceSlice<u32>,
    pub(crate) result: usize,
    /// For each lane how many sums are complete after it.
    pub(crate) merges: DeviceSlice<u32>,
}

impl Learning<'_> {
    /// Appends what forms the gradients of dense layers that were put off, lane by lane, for others to use.
    pub(crate) fn form(&self, pass: &mut Pass<'_>) {
        let jobs = self.put_off(pass);
        self.push(pass, jobs, Way::Gradients);
    }

    /// Appends what updates all that learns and ends the step. Returns whether there is anything.
    pub(crate) fn update(&self, pass: &mut Pass<'_>, optimizer: OptimizerKernel) -> bool {
        let layers: Vec<Factored> = pass.put_off.iter().map(|job| job.layer.clone()).collect();
        let mut jobs = self.put_off(pass);
        let is_done = |chunk: usize| layers.iter().any(|layer| layer.chunks.contains(&chunk));
        for chunks in alike(self.layout, |chunk| !is_done(chunk)) {
            let job = LearnJob {
                x: Pointer::null(),
                dy: Pointer::null(),
                first: chunks.range.start as u64,
                second: chunks.range.end as u64,
                inputs: 0,
                outputs: 0,
                block: 0,
                kind: if chunks.are_statistics { BLEND } else { UPDATE },
                by_sample: 0,
                wide: 0,
                part: match chunks.are_statistics {
                    true => STATISTICS_SHARE,
                    false => chunks.part,
                },
            };
            jobs.push((job, chunks.range.len().div_ceil(PIECE)));
        }
        let is_any = !jobs.is_empty();
        self.push(pass, jobs, Way::Update(optimizer));
        is_any
    }

    fn put_off(&self, pass: &mut Pass<'_>) -> Vec<SizedJob> {
        let jobs = std::mem::take(&mut pass.put_off);
        jobs.iter().map(|job| job.sized(self.layout)).collect()
    }

    /// Appends as many launches as the jobs need. One that updates ends the step with the last of them.
    fn push(&self, pass: &mut Pass<'_>, jobs: Vec<SizedJob>, way: Way) {
        let launches = jobs.chunks(MOST_JOBS);
        let count = launches.len();
        for (i, jobs) in launches.enumerate() {
            let ends = i + 1 == count && matches!(way, Way::Update(_));
            self.push_one(pass, jobs, way, ends);
        }
    }

    fn push_one(&self, pass: &mut Pass<'_>, jobs: &[SizedJob], way: Way, ends: bool) {
        let mut blocks = 0;
        let mut all = [jobs[0].0; MOST_JOBS];
        for (to, &(job, count)) in all.iter_mut().zip(jobs) {
            *to = LearnJob {
                block: blocks as u32,
                ..job
            };
            blocks += count;
        }
        let (update, lanes) = (self.update, pass.lanes);
        let (gradients, optimizer, times) = match way {
            Way::Gradients => (update.gradients.pointer(), None, lanes.count()),
            Way::Update(optimizer) => (Pointer::null(), Some(optimizer), 1),
        };
        let arguments = Learn {
            jobs: all,
            count: jobs.len() as u32,
            blocks: blocks as u32,
            samples: self.batch.samples.pointer(),
            lane_rows: lanes.rows.pointer(),
            merges: self.merges.pointer(),
            lane_count: lanes.count() as u32,
            gradients,
            stride: update.stride as u64,
            values: update.values.pointer(),
            planes: update.planes.map(|plane| plane.pointer_if_any()),
            lanes: update.lanes(self.adds, self.result),
            rule: optimizer.map_or(0, |optimizer| optimizer.rule),
            settings: optimizer.map_or([0.0; 4], |optimizer| optimizer.settings),
            rate: self.batch.rate.pointer(),
            end: self.batch.end_step(lanes, self.batches),
        };
        let blocks = blocks + usize::from(ends);
        pass.push(Launch::new(&KERNEL, [blocks, 1, times], arguments));
    }
}

/// What becomes of the gradients.
#[derive(Clone, Copy)]
enum Way {
    /// They are written, for each lane.
    Gradients,
    /// The state follows them at once.
    Update(OptimizerKernel),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_added_when_both_halves_of_a_sum_are_there() {
        let found = |lanes, adds: &[(usize, usize)]| merges(lanes, adds);
        assert_eq!(found(1, &[]), Some(vec![0]));
        assert_eq!(found(3, &[(0, 1), (0, 2)]), Some(vec![0, 1, 1]));
        let tree = [(0, 1), (2, 3), (0, 2)];
        assert_eq!(found(4, &tree), Some(vec![0, 1, 0, 2]));
        assert_eq!(found(3, &[(1, 2), (0, 1)]), Some(vec![0, 0, 2]));
        // Two sums, another order, and sums that wait for too many.
        assert_eq!(found(3, &[(0, 1)]), None);
        assert_eq!(found(3, &[(0, 2), (0, 1)]), None);
        let mut long: Vec<(usize, usize)> = (0..20).map(|lane| (lane, lane + 1)).collect();
        long.reverse();
        assert_eq!(found(21, &long), None);
    }
}
