//! A network that is trained on a GPU.
//!
//! An epoch is handed over whole: the order of its samples and the rates of its steps. A step is a graph that was recorded
//! once; what differs from step to step it reads from the device's memory, by a number that it counts on itself. So
//! queueing a step is one call, and many may be under way.

mod beginning;
mod exchange;
mod extras;
mod peers;
mod state;

use crate::data_set::DataSet;
use crate::epoch::Epoch;
use crate::error::CudaError;
use crate::gang::GangMemory;
use crate::gpu::Gpu;
use crate::memory::DeviceMemory;
use crate::network::{Progress, StepRate};
use crate::plan::Plan;
use crate::ring::{BatchSlot, Ring, SLOTS};
use crate::scoring::Scoring;
use crate::setup::Setup;
use crate::streams::{Event, Graph, Stream};
pub use beginning::Beginning;
use extras::Extras;
use peers::PeerExchange;

/// Steps between two marks in the stream.
const STEPS_A_MARK: usize = 32;

/// Marks that steps may be ahead of the device: so many times [`STEPS_A_MARK`] steps are under way at most.
const MARKS: usize = 2;

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
    /// What is exchanged with the host, or with other devices.
    gang: Option<GangMemory>,
    peers: Option<PeerExchange>,
    memory: DeviceMemory,
    set: Option<DataSet>,
    scoring: Scoring,
    /// Whether other values than those that are trained were loaded, to score with.
    is_loaded: bool,
    plan: Plan,
    setup: Setup,
    gpu: Gpu,
    /// The run's number of the step that is queued next.
    step: u64,
    /// Steps that were queued: of the epoch, and since this was made.
    in_epoch: usize,
    queued: usize,
}

impl Training {
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
        if setup.exchange.updates() {
            let rates: Vec<StepRate> = epoch.updates.iter().map(StepRate::of).collect();
            memory.write(stream, plan.update.rates, &rates)?;
        }
        let on_device = (&*memory, &*stream);
        self.extras
            .begin_epoch(plan, on_device, (epoch.step, self.queued))?;
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

    /// Queues the next step of the epoch, and returns before it is done, unless many are under way. If the host exchanges,
    /// copies of the partial sums are queued with it; those of the step before must not be needed any more. If the devices
    /// do, [`Training::wait_for_sums`] and [`Training::end_step`] follow.
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
            peers,
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
        if let Some(peers) = peers {
            peers.computed(stream, which)?;
        }
        self.extras.is_averaged |= plan.average.is_some();
        *step += 1;
        self.in_epoch += 1;
        self.queued += 1;
        Ok(())
    }
}
