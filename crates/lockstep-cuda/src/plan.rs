//! What lies where in a GPU's memory, and what is launched: all of it worked out from a setup, without a GPU.

use crate::error::CudaError;
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::{
    BatchMemory, Chain, LaneTables, LossKernel, OptimizerKernel, Pass, PassKind, PassMemory,
    Planner, ResidentMemory, UpdateMemory,
};
use crate::setup::{Setup, WorkerBatch};
use lockstep_nn::DROPOUT_DOMAIN;

/// Numbers that a lane's gradient is a multiple of, so that each begins as aligned as the first.
const GRADIENT_ALIGNMENT: usize = 64;

/// What lies where.
pub(crate) struct Plan {
    chain: Chain,
    loss: LossKernel,
    optimizer: OptimizerKernel,
    pub(crate) batch: BatchMemory,
    pub(crate) update: UpdateMemory,
    /// Of a full batch, and of the last one.
    pub(crate) tables: [BatchTables; 2],
    bytes: [usize; 2],
}

/// What the device knows of the lanes of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchTables {
    pub(crate) lanes: LaneTables,
    /// Pairs of lanes: the second is added to the first.
    pub(crate) adds: DeviceSlice<u32>,
}

impl BatchTables {
    fn new(planner: &mut Planner, batch: &WorkerBatch) -> Self {
        Self {
            lanes: LaneTables::new(planner, batch.lanes.len()),
            adds: planner.keep(2 * batch.adds.len()),
        }
    }

    /// What the tables hold: each with its numbers.
    pub(crate) fn content(&self, batch: &WorkerBatch) -> [(DeviceSlice<u32>, Vec<u32>); 3] {
        let mut rows = vec![0];
        for lane in &batch.lanes {
            rows.push(rows[rows.len() - 1] + lane.rows as u32);
        }
        let numbers = batch.lanes.iter().map(|lane| lane.lane as u32);
        let adds = batch.adds.iter();
        let adds = adds.flat_map(|&(into, from)| [into as u32, from as u32]);
        [
            (self.lanes.rows, rows),
            (self.lanes.numbers, numbers.collect()),
            (self.adds, adds.collect()),
        ]
    }
}

impl Plan {
    /// Plans the memory at two addresses: of what is kept, and of what comes and goes.
    pub(crate) fn new(setup: &Setup, addresses: [u64; 2]) -> Result<Self, CudaError> {
        setup.check()?;
        let model = &setup.model;
        let mut planner = Planner::new(setup.most_rows(), addresses);
        let numbers = model.layout.len();
        let stride = numbers.next_multiple_of(GRADIENT_ALIGNMENT);
        let widths = [model.inputs(), model.outputs()];
        let batch = BatchMemory::new(&mut planner, widths, setup.lanes, setup.samples);
        let planes = setup.optimizer.planes();
        let lanes = setup.batches.iter().map(|batch| batch.lanes.len());
        let update = UpdateMemory {
            values: planner.keep(numbers),
            planes: [0, 1].map(|plane| planner.keep(if plane < planes { numbers } else { 0 })),
            gradients: planner.keep(lanes.max().unwrap_or(0) * stride),
            stride,
            rates: planner.keep(setup.steps()),
            progress: batch.progress,
        };
        let [full, last] = &setup.batches;
        let tables = [full, last].map(|batch| BatchTables::new(&mut planner, batch));
        let chain = Chain::new(&model.operations, &mut planner)?;
        Ok(Self {
            chain,
            loss: LossKernel::new(model.loss)?,
            optimizer: OptimizerKernel::new(setup.optimizer),
            batch,
            update,
            tables,
            bytes: planner.bytes(),
        })
    }

    /// Bytes that are kept, and bytes that are needed beside them.
    pub(crate) fn bytes(&self) -> [usize; 2] {
        self.bytes
    }

    fn pass<'a>(&'a self, setup: &'a Setup, kind: PassKind, rows: usize, last: bool) -> Pass<'a> {
        let memory = PassMemory {
            values: self.update.values,
            gradients: self.update.gradients,
            stride: self.update.stride,
            samples: self.batch.samples,
            progress: self.batch.progress,
            dropout_key: setup.seed ^ DROPOUT_DOMAIN,
        };
        let lanes = &self.tables[usize::from(last)].lanes;
        Pass::new(kind, rows, lanes, memory, &setup.model.layout)
    }

    /// The launches of a step on a full batch, or on the last one of an epoch.
    pub(crate) fn step(&self, setup: &Setup, set: ResidentMemory, last: bool) -> Vec<Launch> {
        let batch = &setup.batches[usize::from(last)];
        let rows = batch.rows();
        let mut pass = self.pass(setup, PassKind::Train, rows, last);
        // A worker may have no rows of a short batch.
        if let Some(&result) = batch.partials.first() {
            self.batch
                .gather(&mut pass, set, setup.batches[0].samples, batch.first);
            let Self {
                chain, batch: on, ..
            } = self;
            chain.forward(&mut pass, on.x, on.scores);
            self.loss.launch(&mut pass, on, batch.samples);
            chain.backward(&mut pass, on.x, on.delta, None);
            let adds = self.tables[usize::from(last)].adds;
            let layout = &setup.model.layout;
            self.update
                .launch(&mut pass, layout, self.optimizer, (adds, result));
        }
        self.batch.end_step(&mut pass);
        pass.into_launches()
    }

    /// The launches that score so many rows.
    pub(crate) fn scores(&self, setup: &Setup, rows: usize) -> Vec<Launch> {
        let mut pass = self.pass(setup, PassKind::Evaluate, rows, false);
        let Self { chain, batch, .. } = self;
        chain.forward(&mut pass, batch.x, batch.scores);
        pass.into_launches()
    }
}
