//! A network that only says something of rows.

use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::memory::{DeviceMemory, DeviceSlice};
use crate::network::{Chain, Constant, LaneTables, Pass, PassKind, PassMemory, Planner, Progress};
use crate::scoring::Scoring;
use crate::setup::ModelDescription;
use crate::streams::Stream;

/// A network on a GPU that is asked, and not trained.
pub struct Predictor {
    // Dropped first: it waits for what is queued on it.
    stream: Stream,
    scoring: Scoring,
    plan: PredictorPlan,
    model: ModelDescription,
    memory: DeviceMemory,
    gpu: Gpu,
}

/// What lies where.
struct PredictorPlan {
    chain: Chain,
    values: DeviceSlice<f32>,
    inputs: DeviceSlice<f32>,
    scores: DeviceSlice<f32>,
    lanes: LaneTables,
    samples: DeviceSlice<u32>,
    progress: DeviceSlice<Progress>,
    constants: Vec<Constant>,
    bytes: [usize; 2],
}

impl PredictorPlan {
    fn new(model: &ModelDescription, rows: usize, addresses: [u64; 2]) -> Result<Self, CudaError> {
        // Nothing is trained, so that there are no lanes.
        let mut planner = Planner::new([rows, 0], [(0, 0); 2], addresses);
        let values = planner.keep(model.layout.len());
        let inputs = planner.keep(rows * model.inputs());
        let scores = planner.keep(rows * model.outputs());
        let lanes = LaneTables::new(&mut planner, 0, 0);
        let (samples, progress) = (planner.keep(0), planner.keep(0));
        let chain = Chain::new(&model.operations, &mut planner)?;
        Ok(Self {
            chain,
            values,
            inputs,
            scores,
            lanes,
            samples,
            progress,
            bytes: planner.bytes(),
            constants: planner.take_constants(),
        })
    }

    /// What scores so many rows.
    fn launches(&self, model: &ModelDescription, rows: usize) -> Vec<Launch> {
        let memory = PassMemory {
            values: self.values,
            gradients: self.values.first(0),
            stride: 0,
            samples: self.samples,
            progress: self.progress,
            dropout_key: 0,
        };
        let kind = PassKind::Evaluate;
        let mut pass = Pass::new(kind, (rows, rows), &self.lanes, memory, &model.layout);
        self.chain.forward(&mut pass, self.inputs, self.scores);
        pass.into_launches()
    }
}

impl Predictor {
    /// Brings a network with these values, its state vector, to a GPU, to be asked of up to `rows` rows at a time.
    ///
    /// # Errors
    /// When there is no kernel for something in it, or the GPU has too little memory.
    pub fn new(
        gpu: &Gpu,
        model: ModelDescription,
        values: &[f32],
        rows: usize,
    ) -> Result<Self, CudaError> {
        let [kept, scratch] = PredictorPlan::new(&model, rows, [0; 2])?.bytes;
        let memory = DeviceMemory::new(&gpu.device, kept + scratch, "a network")?;
        let at = memory.address();
        let plan = PredictorPlan::new(&model, rows, [at, at + kept as u64])?;
        let stream = Stream::new(&gpu.device)?;
        memory.write(&stream, plan.values, values)?;
        for constant in &plan.constants {
            memory.write(&stream, constant.slice, &constant.numbers)?;
        }
        let shape = [model.inputs(), model.outputs()];
        let scoring = Scoring::new(gpu, (plan.inputs, plan.scores), shape, rows)?;
        Ok(Self {
            gpu: gpu.clone(),
            stream,
            scoring,
            plan,
            model,
            memory,
        })
    }

    /// The network's scores of some rows, row after row.
    ///
    /// # Errors
    /// When these are not whole rows, or more than were planned; or when the GPU fails.
    pub fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], CudaError> {
        let Self {
            stream,
            scoring,
            plan,
            model,
            memory,
            gpu,
        } = self;
        let on_device = (&*gpu, &*memory, &*stream);
        let launches = |rows| plan.launches(model, rows);
        scoring.scores(on_device, plan.values, inputs, launches)
    }
}
