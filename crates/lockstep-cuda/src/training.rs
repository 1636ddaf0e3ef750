//! A network that is trained on a GPU.
//!
//! An epoch is handed over whole: the order of its samples and the rates of its steps. A step is a graph that was recorded
//! once; what differs from step to step it reads from the device's memory, by a number that it counts on itself. So
//! queueing a step is one call, and many may be under way.

use crate::data_set::DataSet;
use crate::epoch::{Epoch, LaneReport, check};
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::LoadedLaunch;
use crate::memory::{DeviceMemory, DeviceSlice, Pinned};
use crate::network::{LaneSum, Progress, RowSum, StepRate};
use crate::plan::Plan;
use crate::setup::Setup;
use crate::streams::{Event, Graph, Stream};
use lockstep_nn::LossSum;

/// Steps between two marks in the stream.
const STEPS_A_MARK: usize = 32;

/// Marks that steps may be ahead of the device: so many times [`STEPS_A_MARK`] steps are under way at most.
const MARKS: usize = 2;

/// A network that is trained on a GPU by a worker that has no others beside it.
pub struct Training {
    // Dropped first: it waits for what is queued on it.
    stream: Stream,
    graphs: [Graph; 2],
    marks: [Event; MARKS],
    memory: DeviceMemory,
    set: DataSet,
    answers: Pinned<f32>,
    /// What scores so many rows, as it was wanted last.
    scoring: Option<(usize, Vec<LoadedLaunch>)>,
    plan: Plan,
    setup: Setup,
    gpu: Gpu,
    /// Steps that were queued: of the epoch, and since this was made.
    in_epoch: usize,
    queued: usize,
}

impl Training {
    /// Plans all memory, brings the state vector to the GPU, with the optimizer's vectors as zeros, and records the steps.
    ///
    /// # Errors
    /// When there is no kernel for something in the network, the parts do not fit each other, or the GPU has too little
    /// memory.
    pub fn new(gpu: &Gpu, setup: Setup, set: DataSet, values: &[f32]) -> Result<Self, CudaError> {
        check("the inputs of a sample", set.width(), setup.model.inputs())?;
        check("the state vector", values.len(), setup.model.layout.len())?;
        if set.classes() > setup.model.outputs() {
            return Err(CudaError::Mismatch {
                what: "the classes of the data set",
                found: set.classes().to_string(),
                expected: format!("at most the {} that the network has", setup.model.outputs()),
            });
        }
        let device = &gpu.device;
        let [kept, scratch] = Plan::new(&setup, [0; 2])?.bytes();
        let memory = DeviceMemory::new(device, kept + scratch, "training")?;
        let at = memory.address();
        let plan = Plan::new(&setup, [at, at + kept as u64])?;
        let stream = Stream::new(device)?;
        for (tables, batch) in plan.tables.iter().zip(&setup.batches) {
            for (slice, numbers) in tables.content(batch) {
                memory.write(&stream, slice, &numbers)?;
            }
        }
        memory.write(&stream, plan.update.values, values)?;
        for plane in plan.update.planes {
            memory.clear(&stream, plane)?;
        }
        let record = |last| {
            let launches = plan.step(&setup, set.slices(), last);
            Graph::new(device, &stream, &load(gpu, launches)?)
        };
        let graphs = [record(false)?, record(true)?];
        let scores = setup.scored_rows * setup.model.outputs();
        Ok(Self {
            graphs,
            marks: [Event::new(device)?, Event::new(device)?],
            answers: Pinned::zeros(device, scores)?,
            scoring: None,
            in_epoch: setup.steps(),
            queued: 0,
            gpu: gpu.clone(),
            stream,
            memory,
            set,
            plan,
            setup,
        })
    }

    /// Hands over an epoch, or the rest of it. Steps that are under way are waited for.
    ///
    /// # Errors
    /// When its parts are not as long as the epoch, it names samples that there are not, or steps before have failed.
    pub fn begin_epoch(&mut self, epoch: Epoch<'_>) -> Result<(), CudaError> {
        epoch.check(&self.setup, &self.set)?;
        let rates: Vec<StepRate> = epoch.updates.iter().map(StepRate::of).collect();
        let sums: Vec<LaneSum> = epoch
            .sums
            .iter()
            .map(|&sum| LaneSum::beginning(sum))
            .collect();
        let progress = Progress {
            step: epoch.step,
            in_epoch: epoch.in_epoch as u64,
        };
        let Self {
            memory,
            stream,
            plan,
            ..
        } = self;
        memory.write(stream, plan.batch.order, epoch.order)?;
        memory.write(stream, plan.update.rates, &rates)?;
        memory.write(stream, plan.batch.sums, &sums)?;
        memory.write(stream, plan.batch.progress, &[progress])?;
        self.in_epoch = epoch.in_epoch;
        Ok(())
    }

    /// Queues the next step of the epoch, and returns before it is done, unless many are under way.
    ///
    /// # Errors
    /// When the epoch is over, or a step before has failed.
    pub fn queue_step(&mut self) -> Result<(), CudaError> {
        let steps = self.setup.steps();
        if self.in_epoch >= steps {
            return Err(CudaError::Mismatch {
                what: "a step of the epoch",
                found: (self.in_epoch + 1).to_string(),
                expected: format!("at most {steps}"),
            });
        }
        if self.queued.is_multiple_of(STEPS_A_MARK) {
            let mark = &self.marks[self.queued / STEPS_A_MARK % MARKS];
            mark.wait()?;
            mark.record(&self.stream)?;
        }
        let is_last = self.in_epoch + 1 == steps;
        let graph = &self.graphs[usize::from(is_last)];
        // SAFETY: the memory that it uses is dropped after the stream, which waits for it.
        unsafe { self.stream.launch_graph(graph)? };
        self.in_epoch += 1;
        self.queued += 1;
        Ok(())
    }

    /// What each lane has come to, when all steps that were queued are done. The next window begins.
    ///
    /// # Errors
    /// When a step has failed.
    pub fn report(&mut self) -> Result<Vec<LaneReport>, CudaError> {
        let Self {
            memory,
            stream,
            plan,
            ..
        } = self;
        let mut sums = vec![LaneSum::beginning(LossSum::default()); plan.batch.sums.len()];
        memory.read(stream, plan.batch.sums, &mut sums)?;
        let reports = sums.iter().map(LaneSum::report).collect();
        for sum in &mut sums {
            sum.window = RowSum::of(LossSum::default());
        }
        memory.write(stream, plan.batch.sums, &sums)?;
        Ok(reports)
    }

    /// The network's scores of some rows, with the present parameters: row after row.
    ///
    /// # Errors
    /// When these are not whole rows, or more than were planned; or when a step has failed.
    pub fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], CudaError> {
        let rows = inputs.len() / self.setup.model.inputs().max(1);
        check(
            "the inputs of whole rows",
            inputs.len(),
            rows * self.setup.model.inputs(),
        )?;
        if rows > self.setup.scored_rows {
            return Err(CudaError::Mismatch {
                what: "the rows that are scored at a time",
                found: rows.to_string(),
                expected: format!("at most {}", self.setup.scored_rows),
            });
        }
        if rows == 0 {
            return Ok(&[]);
        }
        let launches = match self.scoring.take() {
            Some((planned, launches)) if planned == rows => launches,
            _ => load(&self.gpu, self.plan.scores(&self.setup, rows))?,
        };
        let Self {
            memory,
            stream,
            plan,
            answers,
            ..
        } = self;
        let scores = rows * self.setup.model.outputs();
        memory.write(stream, plan.batch.x.first(inputs.len()), inputs)?;
        // SAFETY: the memory is dropped after the stream, which waits for what is queued.
        unsafe { stream.launch(&launches)? };
        memory.read(
            stream,
            plan.batch.scores.first(scores),
            &mut answers[..scores],
        )?;
        self.scoring = Some((rows, launches));
        Ok(&self.answers[..scores])
    }

    /// Reads the state vector, when all steps that were queued are done.
    ///
    /// # Errors
    /// When there is not as much room, or a step has failed.
    pub fn read_values(&self, to: &mut [f32]) -> Result<(), CudaError> {
        self.read("the state vector", self.plan.update.values, to)
    }

    /// Reads one of the optimizer's vectors.
    ///
    /// # Errors
    /// As [`Training::read_values`].
    ///
    /// # Panics
    /// When the optimizer has no such vector.
    pub fn read_plane(&self, plane: usize, to: &mut [f32]) -> Result<(), CudaError> {
        self.read(
            "a vector of the optimizer",
            self.plan.update.planes[plane],
            to,
        )
    }

    /// Overwrites the state vector.
    ///
    /// # Errors
    /// As [`Training::read_values`].
    pub fn write_values(&mut self, from: &[f32]) -> Result<(), CudaError> {
        self.write("the state vector", self.plan.update.values, from)
    }

    /// Overwrites one of the optimizer's vectors.
    ///
    /// # Errors
    /// As [`Training::read_values`].
    ///
    /// # Panics
    /// When the optimizer has no such vector.
    pub fn write_plane(&mut self, plane: usize, from: &[f32]) -> Result<(), CudaError> {
        self.write(
            "a vector of the optimizer",
            self.plan.update.planes[plane],
            from,
        )
    }

    fn read(
        &self,
        what: &'static str,
        from: DeviceSlice<f32>,
        to: &mut [f32],
    ) -> Result<(), CudaError> {
        check(what, to.len(), from.len())?;
        self.memory.read(&self.stream, from, to)
    }

    fn write(
        &self,
        what: &'static str,
        to: DeviceSlice<f32>,
        from: &[f32],
    ) -> Result<(), CudaError> {
        check(what, from.len(), to.len())?;
        self.memory.write(&self.stream, to, from)
    }
}

/// Launches with their functions.
fn load(gpu: &Gpu, launches: Vec<crate::launch::Launch>) -> Result<Vec<LoadedLaunch>, CudaError> {
    let loaded = launches.into_iter().map(|launch| launch.load(&*gpu.device));
    loaded.collect()
}
