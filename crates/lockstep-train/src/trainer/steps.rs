//! Steps, one after the other: each lane's gradient, its exchange, and the vote on what comes next.

use super::lane_sums::{LaneExchange, LossByStep, total};
use super::trace::Tracer;
use crate::average::WeightAverage;
use crate::batches::Batches;
use crate::checkpoint::{Checkpointer, StepEnd, Vote};
use crate::lanes::LaneProgram;
use crate::prepare::{exchange_plan, full_batch, steps_per_epoch};
use crate::replica::{GangReplica, ReplicaSetup, StepPlan};
use crate::sets::Sets;
use crate::snapshot::{Position, Snapshot};
use crate::{TrainError, numerics};
use lockstep_base::progress::{Phase, enter};
use lockstep_events::Metrics;
use lockstep_events::control::{Assignment, FromWorker};
use lockstep_events::event::StepTimes;
use lockstep_gang::{Plan, SharingCollective};
use lockstep_learner::{Reporter, Wish};
use lockstep_measure::BestBy;
use lockstep_nn::{DeviceState, LossSum, Network, Optimizer, Schedule, StatePart, Step, Threads};
use lockstep_resolve::TrainingSettings;
use std::time::{Duration, Instant};

/// Trains step by step.
pub(super) struct StepLoop<'a, N: Network> {
    rank: usize,
    seed: u64,
    epochs: u32,
    sets: &'a Sets,
    pub(super) network: &'a mut N,
    optimizer: Optimizer,
    schedule: Schedule,
    /// What a plateau of validation is that cuts the learning rate: epochs, and what counts as better.
    plateau: Option<(u32, f64)>,
    /// The average of the weights, if the job keeps one.
    pub(super) average: Option<WeightAverage>,
    steps_per_epoch: u64,
    pub(super) replica: GangReplica<N::State>,
    batches: Batches,
    /// For full batches, and for the last one of an epoch.
    programs: [LaneProgram; 2],
    pub(super) position: Position,
    lane_exchange: LaneExchange,
    loss: LossByStep,
    /// The step that the generation before was lost in.
    catch_up: u64,
    /// Steps after which the run stops by itself.
    max_steps: Option<u64>,
    /// Whether the time of steps is measured.
    timed: bool,
    pub(super) clock: Clock,
    /// Marks what was computed; rank 0 alone does.
    tracer: Option<Tracer>,
}

/// The state of the loop where it lies.
pub(super) struct StateParts<'a> {
    pub(super) position: &'a Position,
    /// The weights, and the optimizer's vectors.
    pub(super) vectors: [&'a [f32]; 3],
    /// The average of the weights, if the job keeps one.
    pub(super) average: Option<&'a [f32]>,
}

/// How long things took.
#[derive(Default)]
pub(super) struct Clock {
    /// When the first step of this process began.
    began: Option<Instant>,
    /// When the steps of the epoch in progress began, and the samples that were trained on before.
    epoch: Option<(Instant, u64)>,
    /// Time spent in steps alone.
    pub(super) stepping: Duration,
    pub(super) samples: u64,
}

impl<'a, N: Network> StepLoop<'a, N> {
    /// Joins the gang through `join`, and begins with `beginning`.
    pub(super) fn new(
        (assignment, settings): (&Assignment, &TrainingSettings),
        sets: &'a Sets,
        (network, compute): (&'a mut N, &Threads),
        beginning: &mut Snapshot,
        join: impl FnOnce(Plan) -> Result<Box<dyn SharingCollective>, TrainError>,
    ) -> Result<Self, TrainError> {
        let data = sets.facts();
        let exchange = exchange_plan(settings, &data, network.layout())?;
        let full = full_batch(settings, &data);
        let last = match sets.train_indices.len() % full {
            0 => full,
            rest => rest,
        };
        let programs =
            [full, last].map(|batch| LaneProgram::new(&exchange.plan, assignment.rank, batch));
        let optimizer = settings.learner.optimizer;
        let steps_per_epoch = steps_per_epoch(settings, &data);
        let position = beginning.position.clone();
        let mut collective = join(exchange.plan.clone())?;
        if assignment.step_times {
            lockstep_base::progress::begin_phases();
        }
        numerics::agree(&mut *collective)?;
        let mut state = network.load_state(&beginning.state, optimizer.planes());
        for (number, plane) in beginning.planes.iter().enumerate() {
            if number < optimizer.planes() {
                let part = StatePart::Plane(number);
                state.write(part, 0..plane.len(), &mut |own| own.copy_from_slice(plane));
            }
        }
        let setup = ReplicaSetup {
            layout: network.layout(),
            exchange: &exchange,
            compute: compute.clone(),
            planes: optimizer.planes(),
            clip_norm: settings.learner.clip_norm,
            aside: programs[0].aside.max(programs[1].aside),
        };
        let steps = steps_per_epoch * u64::from(settings.learner.epochs);
        let tracer = (assignment.rank == 0).then(|| Tracer::new(network.layout(), steps));
        let replica = GangReplica::new(collective, state, setup)?;
        let whole = exchange.reads_whole_batch();
        Ok(Self {
            rank: assignment.rank,
            seed: settings.seed,
            epochs: settings.learner.epochs,
            schedule: (settings.learner.schedule)
                .over(settings.learner.epochs, steps_per_epoch)
                .after_cuts(position.plateaus.cuts),
            plateau: settings.learner.schedule.plateau(),
            average: (settings.learner.average).map(|kept| {
                WeightAverage::new(kept, network.layout().trained(), beginning.average.take())
            }),
            batches: Batches::new(sets, settings, whole),
            clock: Clock::default(),
            max_steps: assignment.max_steps,
            timed: assignment.step_times,
            catch_up: assignment.catch_up.max(position.step),
            lane_exchange: LaneExchange::new(exchange.plan.lanes(), exchange.plan.workers()),
            loss: LossByStep::new(exchange.plan.lanes(), steps_per_epoch, position.step),
            steps_per_epoch,
            optimizer,
            programs,
            position,
            replica,
            tracer,
            network,
            sets,
        })
    }

    /// Begins the rest of the epoch in progress and says which it is, counted from 1.
    pub(super) fn begin_epoch(&mut self) -> u32 {
        self.clock.epoch = Some((Instant::now(), self.clock.samples));
        let epoch = self.position.epochs + 1;
        let was = enter(Phase::Data);
        self.batches.begin(epoch);
        let step = self.position.step_in_epoch;
        let program = &self.programs[usize::from(step + 1 == self.steps_per_epoch)];
        self.batches.prepare(self.sets, program, step);
        enter(was);
        epoch
    }

    /// Whether all steps of the epoch are done.
    pub(super) fn is_epoch_complete(&self) -> bool {
        self.position.step_in_epoch == self.steps_per_epoch
    }

    /// Stops the clock of steps, and returns the samples a second since [`StepLoop::begin_epoch`].
    pub(super) fn pause(&mut self) -> f64 {
        let Some((began, before)) = self.clock.epoch.take() else {
            return 0.0;
        };
        let stepping = began.elapsed();
        self.clock.stepping += stepping;
        (self.clock.samples - before) as f64 / stepping.as_secs_f64()
    }

    /// Counts the epoch as done.
    pub(super) fn end_epoch(&mut self) {
        self.position.epochs += 1;
        self.position.step_in_epoch = 0;
        self.position.lane_sums.fill(LossSum::default());
    }

    /// Takes in what validation came to after an epoch: the learning rate may be cut for the next ones.
    pub(super) fn note_validation(&mut self, best_by: &BestBy, min_change: f64, value: f64) {
        self.position.improvement.note(best_by, min_change, value);
        if let Some(plateau) = self.plateau {
            let plateaus = &mut self.position.plateaus;
            plateaus.note(best_by, plateau, value);
            self.schedule = self.schedule.after_cuts(plateaus.cuts);
        }
    }

    /// The learning rate of the last step.
    pub(super) fn last_rate(&self) -> f64 {
        f64::from(self.schedule.rate(self.position.step.saturating_sub(1)))
    }

    /// The weights that are measured and kept, which are gathered by then: their average where the job keeps one.
    pub(super) fn kept_weights(&mut self) -> &[f32] {
        let average = self.average.as_ref().and_then(WeightAverage::values);
        match average {
            Some(average) => average,
            None => self.replica.state.read_all()[0],
        }
    }

    /// All that a checkpoint has of this.
    pub(super) fn state_parts(&mut self) -> StateParts<'_> {
        StateParts {
            position: &self.position,
            vectors: self.replica.state.read_all(),
            average: self.average.as_ref().and_then(WeightAverage::values),
        }
    }

    /// One optimizer step, and what the ranks want next.
    pub(super) fn step(
        &mut self,
        wish: Wish,
        checkpoints: &mut Checkpointer,
        reporter: &mut Reporter,
    ) -> Result<Vote, TrainError> {
        lockstep_base::failpoint::reach("step.begin");
        let first = self.clock.began.is_none();
        self.clock.began.get_or_insert_with(Instant::now);
        let in_epoch = self.position.step_in_epoch;
        let is_last = in_epoch + 1 == self.steps_per_epoch;
        let number = self.position.step;
        let epoch = self.position.epochs + 1;
        let program = &self.programs[usize::from(is_last)];
        let update = self.optimizer.at(number, self.schedule.rate(number));
        let plan = StepPlan {
            program,
            update,
            inputs: self.batches.inputs(),
        };
        enter(Phase::Forward);
        self.replica.begin(&plan)?;
        let mut first_loss = 0.0;
        for (i, work) in program.work.iter().enumerate() {
            enter(Phase::Forward);
            let (batch, samples) = self.batches.lane(i);
            let step = Step {
                seed: self.seed,
                number,
                samples,
                batch: program.batch,
            };
            let lane = self.replica.gradient(self.network, &plan, i, batch, step)?;
            if !lane.loss.is_finite() {
                return Err(TrainError::Diverged {
                    loss: lane.loss,
                    step: number + 1,
                    epoch,
                });
            }
            if work.lane == 0 {
                first_loss = lane.loss;
            }
            self.position.lane_sums[work.lane] += lane;
            self.loss.add(work.lane, lane);
        }
        enter(Phase::Exchange);
        self.replica.computed(&plan)?;
        enter(Phase::Data);
        // The next batch is made ready while the peers' parts are on their way.
        let inputs = match is_last {
            true => self.batches.inputs(),
            false => {
                let program = &self.programs[usize::from(in_epoch + 2 == self.steps_per_epoch)];
                self.batches.prepare(self.sets, program, in_epoch + 1);
                self.batches.inputs_before()
            }
        };
        let plan = StepPlan {
            program,
            update,
            inputs,
        };
        let end = StepEnd {
            step: number + 1,
            epoch: is_last.then_some(epoch),
            last: is_last && epoch == self.epochs,
        };
        let enough = self.max_steps.is_some_and(|most| end.step >= most);
        let wish = if enough { Wish::Stop } else { wish };
        let vote = checkpoints.vote(wish, end);
        enter(Phase::Exchange);
        let vote = Vote::from(self.replica.finish(&plan, vote as u64)?);
        let collective = &mut *self.replica.collective;
        self.loss
            .end_step(end.step, is_last, &mut self.lane_exchange, collective)?;
        if let Some(average) = &mut self.average {
            enter(Phase::Update);
            average.add(self.replica.state.read_all()[0]);
        }
        enter(Phase::Other);
        self.position.step += 1;
        self.position.step_in_epoch += 1;
        self.clock.samples += program.batch as u64;
        if first {
            reporter.send(&FromWorker::FirstStep { step: number })?;
        }
        if let Some(tracer) = &mut self.tracer {
            if first {
                reporter.send(&FromWorker::Trace(tracer.begin()))?;
            }
            let told = tracer.step(end.step, first_loss, &mut self.replica.state);
            if let Some(line) = told {
                reporter.send(&FromWorker::Trace(line))?;
            }
        }
        if self.rank == 0 && number == self.catch_up {
            reporter.send(&FromWorker::CaughtUp)?;
        }
        let place = (epoch, in_epoch + 1, self.steps_per_epoch);
        let loss = || Metrics::from([("loss", self.loss.mean)]);
        reporter.step(place, loss, program.batch)?;
        if let Some(words) = checkpoints.news()? {
            reporter.send(&FromWorker::Warning { words })?;
        }
        Ok(vote)
    }

    /// Tells all marks so far, and hashes of the whole state, which is gathered by then.
    pub(super) fn trace_whole(&mut self, reporter: &mut Reporter) -> Result<(), TrainError> {
        let Some(tracer) = &mut self.tracer else {
            return Ok(());
        };
        if let Some(line) = tracer.flush() {
            reporter.send(&FromWorker::Trace(line))?;
        }
        let [state, ..] = self.replica.state.read_all();
        let whole = tracer.whole(self.position.step, state);
        Ok(reporter.send(&FromWorker::Trace(whole))?)
    }

    /// Brings all of the run's state to every rank. All ranks come here together.
    pub(super) fn gather(&mut self) -> Result<(), TrainError> {
        self.share_lane_sums()?;
        self.replica.gather_state()?;
        self.replica.gather_planes()
    }

    /// Where the time of this process's steps went, if that was asked for.
    pub(super) fn times(&self) -> Option<StepTimes> {
        use Phase::{Backward, Data, Exchange, Forward, Update, Waiting};
        let parts = [Data, Forward, Backward, Waiting, Exchange, Update];
        let seconds = parts.map(|phase| lockstep_base::progress::time_in(phase).as_secs_f64());
        self.timed.then(|| StepTimes::of_parts(seconds))
    }

    /// Seconds since the first step of the run, those before an interruption included.
    pub(super) fn seconds(&self) -> f64 {
        let began = self.clock.began;
        let now = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        self.position.seconds_before + now
    }

    /// The sum over all lanes of the epoch so far, in the order of the lanes, the same on every rank.
    pub(super) fn epoch_sum(&mut self) -> Result<LossSum, TrainError> {
        self.share_lane_sums()?;
        Ok(total(&self.position.lane_sums))
    }

    /// Brings every lane's sum of the epoch to every rank.
    fn share_lane_sums(&mut self) -> Result<(), TrainError> {
        let collective = &mut *self.replica.collective;
        self.lane_exchange
            .share(&mut self.position.lane_sums, collective)
    }
}
