//! A network that is trained on a GPU.
//!
//! An epoch is handed over whole: the order of its samples and the rates of its steps. A step is a graph that was recorded
//! once; what differs from step to step it reads from the device's memory, by a number that it counts on itself. So
//! queueing a step is one call, and many may be under way.

mod extras;

use crate::data_set::DataSet;
use crate::epoch::{Epoch, LaneReport, check};
use crate::error::CudaError;
use crate::gang::GangMemory;
use crate::gpu::Gpu;
use crate::launch::{LoadedLaunch, load_all};
use crate::memory::{DeviceMemory, DeviceSlice, Pinned};
use crate::network::{LaneSum, Progress, StepRate};
use crate::plan::Plan;
use crate::ring::{BatchSlot, Ring, SLOTS};
use crate::rows::RowShape;
use crate::setup::{InputPlace, Setup};
use crate::streams::{Event, Graph, Stream};
use extras::Extras;
use std::ops::Range;

/// Steps between two marks in the stream.
const STEPS_A_MARK: usize = 32;

/// Marks that steps may be ahead of the device: so many times [`STEPS_A_MARK`] steps are under way at most.
const MARKS: usize = 2;

/// What training begins with.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// The state vector.
    pub values: &'a [f32],
    /// The optimizer's vectors, or what there is of each of them from the front on; the rest begins with zeros.
    pub planes: &'a [&'a [f32]],
    /// The average of the weights, if there is one yet.
    pub average: Option<&'a [f32]>,
}

/// A network that is trained on a GPU by one worker.
pub struct Training {
    // Dropped first: it waits for what is queued on it.
    stream: Stream,
    graphs: [Graph; 2],
    /// What is kept beside parameters.
    extras: Extras,
    marks: [Event; MARKS],
    /// Batches that the host prepares, if the data set is not resident.
    ring: Option<Ring>,
    /// What is exchanged in a gang.
    gang: Option<GangMemory>,
    memory: DeviceMemory,
    set: Option<DataSet>,
    answers: Pinned<f32>,
    scoring: Scoring,
    plan: Plan,
    setup: Setup,
    gpu: Gpu,
    /// The run's number of the step that is queued next.
    step: u64,
    /// Steps that were queued: of the epoch, and since this was made.
    in_epoch: usize,
    queued: usize,
}

/// What scores, and with which values.
#[derive(Default)]
struct Scoring {
    /// Whether other values than those that are trained were loaded.
    is_loaded: bool,
    /// What scores so many rows with the values at this address, as it was wanted last.
    planned: Option<(usize, u64, Vec<LoadedLaunch>)>,
}

impl Training {
    /// Plans all memory, brings the state to the GPU, and records the steps. The data set is there if the setup says that
    /// it is resident.
    ///
    /// # Errors
    /// When there is no kernel for something in the network, the parts do not fit each other, or the GPU has too little
    /// memory.
    pub fn new(
        gpu: &Gpu,
        setup: Setup,
        set: Option<DataSet>,
        beginning: Beginning<'_>,
    ) -> Result<Self, CudaError> {
        let layout = &setup.model.layout;
        check_set(&setup, set.as_ref())?;
        check("the state vector", beginning.values.len(), layout.len())?;
        let device = &gpu.device;
        let forecast = Plan::new(&setup, [0; 2])?;
        let [kept, scratch] = forecast.bytes();
        let what = format!("training ({})", forecast.needs());
        let memory = DeviceMemory::new(device, kept + scratch, &what)?;
        let at = memory.address();
        let plan = Plan::new(&setup, [at, at + kept as u64])?;
        let stream = Stream::new(device)?;
        for (tables, batch) in plan.tables.iter().zip(&setup.batches) {
            for (slice, numbers) in tables.content(batch) {
                memory.write(&stream, slice, &numbers)?;
            }
        }
        for constant in &plan.constants {
            memory.write(&stream, constant.slice, &constant.numbers)?;
        }
        if let Some(shape) = &setup.shape {
            let weights = plan.batch.targets.class_weights;
            memory.write(&stream, weights, &shape.class_weights)?;
        }
        let sums = vec![LaneSum::nothing(); plan.batch.sums.len()];
        memory.write(&stream, plan.batch.sums, &sums)?;
        memory.write(&stream, plan.update.values, beginning.values)?;
        for (i, plane) in plan.update.planes.into_iter().enumerate() {
            memory.clear(&stream, plane)?;
            if let Some(&known) = beginning.planes.get(i).filter(|_| plane.len() > 0) {
                let known = &known[..known.len().min(plane.len())];
                memory.write(&stream, plane.first(known.len()), known)?;
            }
        }
        let lists = set.as_ref().map(DataSet::lists);
        let record = |last| {
            let launches = plan.step(&setup, lists, last);
            Graph::new(device, &stream, &load_all(device, launches)?)
        };
        let graphs = [record(false)?, record(true)?];
        let scores = setup.scored_rows * setup.model.outputs();
        let partials = setup.batches.iter().map(|batch| batch.partials.len());
        let most = partials.max().unwrap_or(0);
        let on_device = (&memory, &stream);
        let extras = Extras::new(&plan, on_device, beginning)?;
        Ok(Self {
            graphs,
            extras,
            marks: [Event::new(device)?, Event::new(device)?],
            ring: match setup.inputs {
                InputPlace::Resident => None,
                InputPlace::Host => Some(Ring::new(device, plan.ring, setup.slot_shape())?),
            },
            gang: match setup.is_alone {
                true => None,
                false => Some(GangMemory::new(
                    device,
                    most,
                    layout.len(),
                    layout.trained(),
                )?),
            },
            answers: Pinned::zeros(device, scores)?,
            scoring: Scoring::default(),
            step: 0,
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
        epoch.check(&self.setup, self.set.as_ref())?;
        let mut sums = self.sums()?;
        for (sum, &epoch) in sums.iter_mut().zip(epoch.sums) {
            sum.begin_epoch(epoch);
        }
        let progress = Progress {
            step: epoch.step,
            in_epoch: epoch.in_epoch as u64,
        };
        let Self {
            memory,
            stream,
            plan,
            setup,
            ..
        } = self;
        memory.write(stream, plan.batch.sums, &sums)?;
        memory.write(stream, plan.batch.progress, &[progress])?;
        if setup.is_alone {
            let rates: Vec<StepRate> = epoch.updates.iter().map(StepRate::of).collect();
            memory.write(stream, plan.update.rates, &rates)?;
        }
        let on_device = (&*memory, &*stream);
        self.extras
            .begin_epoch(plan.average, on_device, epoch.step)?;
        match &mut self.ring {
            Some(ring) => ring.begin(epoch.step)?,
            None => {
                let batch = &plan.batch;
                memory.write(stream, batch.order, epoch.order)?;
                memory.write(stream, batch.targets.factors, epoch.factors)?;
                if epoch.in_epoch < setup.steps() {
                    let of_step = &setup.batches[setup.which_batch(epoch.in_epoch)];
                    let first = epoch.in_epoch * setup.batches[0].samples + of_step.first;
                    let samples = &epoch.order[first..first + of_step.rows()];
                    memory.write(stream, batch.next_samples.first(samples.len()), samples)?;
                }
            }
        }
        self.step = epoch.step;
        self.in_epoch = epoch.in_epoch;
        Ok(())
    }

    /// Room for the next batch that the host prepares: that of the next step, or of one of those after it. Waits only
    /// if the device is so far behind that all slots are in use.
    ///
    /// # Errors
    /// When the data set is resident, all batches of the epoch were sent, as many as there are slots wait for their
    /// steps to be queued, or a step before has failed.
    pub fn slot(&mut self) -> Result<BatchSlot<'_>, CudaError> {
        let Some(ring) = &mut self.ring else {
            return Err(CudaError::Mismatch {
                what: "a batch of the host's",
                found: "a resident data set".to_owned(),
                expected: "a setup whose batches the host prepares".to_owned(),
            });
        };
        let ahead = ring.ahead(self.step);
        let (in_epoch, steps) = (self.in_epoch + ahead as usize, self.setup.steps());
        if ahead >= SLOTS as u64 || in_epoch >= steps {
            return Err(CudaError::Mismatch {
                what: "a batch of the host's",
                found: format!("{ahead} that wait for their steps, of {steps} of the epoch"),
                expected: format!("less than {SLOTS}, and one for each step"),
            });
        }
        let rows = self.setup.batches[self.setup.which_batch(in_epoch)].rows();
        ring.slot(&self.memory, rows)
    }

    /// Queues the next step of the epoch, and returns before it is done, unless many are under way. In a gang, copies of
    /// the partial sums are queued with it; those of the step before must not be needed any more.
    ///
    /// # Errors
    /// When the epoch is over, the host has not sent the batch, or a step before has failed.
    pub fn queue_step(&mut self) -> Result<(), CudaError> {
        let steps = self.setup.steps();
        if self.in_epoch >= steps {
            return Err(CudaError::Mismatch {
                what: "a step of the epoch",
                found: (self.in_epoch + 1).to_string(),
                expected: format!("at most {steps}"),
            });
        }
        self.save_marks()?;
        let Self {
            memory,
            stream,
            plan,
            setup,
            ring,
            gang,
            step,
            ..
        } = self;
        if ring.as_ref().is_some_and(|ring| ring.ahead(*step) == 0) {
            return Err(CudaError::Mismatch {
                what: "a step whose batch the host prepares",
                found: "no batch".to_owned(),
                expected: "one that was sent".to_owned(),
            });
        }
        if self.queued.is_multiple_of(STEPS_A_MARK) {
            let mark = &self.marks[self.queued / STEPS_A_MARK % MARKS];
            mark.wait()?;
            mark.record(stream)?;
        }
        let which = setup.which_batch(self.in_epoch);
        if let Some(ring) = ring {
            ring.arrive(*step, stream)?;
        }
        // SAFETY: the memory that it uses is dropped after the stream, which waits for it.
        unsafe { stream.launch_graph(&self.graphs[which])? };
        if let Some(ring) = ring {
            ring.leave(*step, stream)?;
        }
        if let Some(gang) = gang {
            let partials = setup.batches[which].partials.iter();
            let sums = partials.map(|&lane| plan.update.gradient(lane));
            gang.queue_partials(memory, stream, sums)?;
        }
        self.extras.is_averaged |= plan.average.is_some();
        *step += 1;
        self.in_epoch += 1;
        self.queued += 1;
        Ok(())
    }

    /// A partial sum of the gradients of the newest step, as long as the state vector, once it is there: that of the lane
    /// which is the `number`-th of [`WorkerBatch::partials`](crate::WorkerBatch::partials). What never learns is not in it.
    ///
    /// # Errors
    /// When the worker trains alone, its batches have no such sum, or a step has failed.
    pub fn partial(&self, number: usize) -> Result<&[f32], CudaError> {
        let most = self.setup.batches.iter().map(|batch| batch.partials.len());
        let most = most.max().unwrap_or(0);
        match &self.gang {
            Some(gang) if number < most => gang.partial(number),
            found => Err(CudaError::Mismatch {
                what: "a partial sum",
                found: number.to_string(),
                expected: match found {
                    Some(_) => format!("one below {most}"),
                    None => "none of a worker that trains alone".to_owned(),
                },
            }),
        }
    }

    /// Room for the whole state vector, of which [`Training::queue_values`] brings parts to the device. It is written to
    /// by nobody else, and waited for until what was queued of it has gone.
    ///
    /// # Errors
    /// When the worker trains alone, or a step has failed.
    pub fn new_values(&mut self) -> Result<&mut [f32], CudaError> {
        let gang = self.gang.as_mut().ok_or_else(no_gang)?;
        gang.values()
    }

    /// Queues that a part of [`Training::new_values`] becomes that of the state vector, before the next step that is queued.
    ///
    /// # Errors
    /// When the worker trains alone, the vector has no such part, or a step has failed.
    pub fn queue_values(&mut self, range: Range<usize>) -> Result<(), CudaError> {
        let values = self.plan.update.values;
        if range.start > range.end || range.end > values.len() {
            return Err(CudaError::Mismatch {
                what: "a part of the state vector",
                found: format!("{range:?}"),
                expected: format!("a part of {}", values.len()),
            });
        }
        let gang = self.gang.as_mut().ok_or_else(no_gang)?;
        gang.queue_values(&self.memory, &self.stream, (values, range))
    }

    /// What each lane has come to, when all steps that were queued are done.
    ///
    /// # Errors
    /// When a step has failed.
    pub fn report(&mut self) -> Result<Vec<LaneReport>, CudaError> {
        Ok(self.sums()?.iter().map(LaneSum::report).collect())
    }

    /// What each lane has come to, as the device has it.
    fn sums(&self) -> Result<Vec<LaneSum>, CudaError> {
        let on_device = self.plan.batch.sums;
        let mut sums = vec![LaneSum::nothing(); on_device.len()];
        self.memory.read(&self.stream, on_device, &mut sums)?;
        Ok(sums)
    }

    /// Begins the next window of sums.
    ///
    /// # Errors
    /// As [`Training::report`].
    pub fn begin_window(&mut self) -> Result<(), CudaError> {
        let mut sums = self.sums()?;
        sums.iter_mut().for_each(LaneSum::begin_window);
        (self.memory).write(&self.stream, self.plan.batch.sums, &sums)
    }

    /// Scores with other values than those that are trained, or with those again. It costs a copy to the device.
    ///
    /// # Errors
    /// When they are not as many as the state vector has, or a step has failed.
    pub fn load(&mut self, values: Option<&[f32]>) -> Result<(), CudaError> {
        if let Some(values) = values {
            self.write("other values", self.plan.loaded, values)?;
        }
        self.scoring.is_loaded = values.is_some();
        Ok(())
    }

    /// The network's scores of some rows, row after row: with the values of [`Training::load`], else with the average of
    /// the weights, once there is one, else with the present ones.
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
        let Self {
            memory,
            stream,
            plan,
            answers,
            setup,
            scoring,
            ..
        } = self;
        let values = match plan.average.filter(|_| self.extras.is_averaged) {
            _ if scoring.is_loaded => plan.loaded,
            Some(average) => average.values,
            None => plan.update.values,
        };
        let launches = match scoring.planned.take() {
            Some((planned, at, launches)) if (planned, at) == (rows, values.address()) => launches,
            _ => load_all(&self.gpu.device, plan.scores(setup, values, rows))?,
        };
        let scores = rows * setup.model.outputs();
        memory.write(stream, plan.batch.rows.inputs.first(inputs.len()), inputs)?;
        // SAFETY: the memory is dropped after the stream, which waits for what is queued.
        unsafe { stream.launch(&launches)? };
        memory.read(
            stream,
            plan.batch.scores.first(scores),
            &mut answers[..scores],
        )?;
        scoring.planned = Some((rows, values.address(), launches));
        Ok(&self.answers[..scores])
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The kernels of a step on a full batch.
    pub(crate) fn full_step(&self) -> Result<Vec<LoadedLaunch>, CudaError> {
        let lists = self.set.as_ref().map(DataSet::lists);
        load_all(&self.gpu.device, self.plan.step(&self.setup, lists, false))
    }

    /// Begins the epoch again, when all steps that were queued are done.
    pub(crate) fn begin_again(&self) -> Result<(), CudaError> {
        let progress = Progress {
            step: self.step,
            in_epoch: 0,
        };
        let at = self.plan.batch.progress;
        self.memory.write(&self.stream, at, &[progress])
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
        self.write("the state vector", self.plan.update.values, from)?;
        match self.plan.average.filter(|_| !self.extras.is_averaged) {
            Some(average) => self.write("the average of the weights", average.values, from),
            None => Ok(()),
        }
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

/// Checks that the data set is one for the setup, and is there if it is to be resident.
fn check_set(setup: &Setup, set: Option<&DataSet>) -> Result<(), CudaError> {
    let wrong = |what, found: String, expected: String| {
        Err(CudaError::Mismatch {
            what,
            found,
            expected,
        })
    };
    let Some(set) = set else {
        return match setup.inputs {
            InputPlace::Host => Ok(()),
            InputPlace::Resident => wrong("the data set", "none".to_owned(), "one".to_owned()),
        };
    };
    if setup.inputs == InputPlace::Host {
        let expected = "none, since the host prepares the batches";
        return wrong("the data set", "one".to_owned(), expected.to_owned());
    }
    let (found, expected) = (set.shape(), setup.row_shape());
    if found != expected {
        let words = |shape: RowShape| format!("{shape:?}");
        return wrong("the samples of the data set", words(found), words(expected));
    }
    let outputs = setup.model.outputs();
    if set.classes() > outputs {
        return wrong(
            "the classes of the data set",
            set.classes().to_string(),
            format!("at most the {outputs} that the network has"),
        );
    }
    Ok(())
}

fn no_gang() -> CudaError {
    CudaError::Mismatch {
        what: "values of a gang",
        found: "a worker that trains alone".to_owned(),
        expected: "one in a gang".to_owned(),
    }
}
