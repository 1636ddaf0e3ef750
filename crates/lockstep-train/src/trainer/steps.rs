//! Steps, one after the other: each lane's gradient, its exchange, and the vote on what comes next.

use super::lane_sums::{LaneExchange, LossByStep, total};
use super::profile::Profiler;
use super::trace::Tracer;
use crate::checkpoint::{Checkpointer, StepEnd, Vote};
use crate::copies::StateCopies;
use crate::device::{Device, DeviceReplica, EpochPlan, Objective, ReplicaSetup};
use crate::sets::Sets;
use crate::snapshot::{Best, Position, Snapshot};
use crate::{TrainError, numerics, peers};
use lockstep_base::progress::{Phase, enter};
use lockstep_events::Metrics;
use lockstep_events::control::{Assignment, FromWorker};
use lockstep_events::event::StepTimes;
use lockstep_gang::{Plan, SharingCollective};
use lockstep_learner::{Reporter, Wish};
use lockstep_measure::BestBy;
use lockstep_nn::{Layout, LossSum, Model, Optimizer, Schedule};
use lockstep_resolve::TrainingSettings;
use std::time::{Duration, Instant};

/// Trains step by step.
pub(super) struct StepLoop<'a> {
    rank: usize,
    epochs: u32,
    pub(super) layout: Layout,
    pub(super) objective: Objective,
    optimizer: Optimizer,
    schedule: Schedule,
    /// What a plateau of validation is that cuts the learning rate: epochs, and what counts as better.
    plateau: Option<(u32, f64)>,
    steps_per_epoch: u64,
    pub(super) replica: Box<dyn DeviceReplica + 'a>,
    /// Copies of the state that outlive a worker.
    pub(super) copies: StateCopies,
    /// The norm of the gradient that training goes on after, until there is another one.
    norm_before: Option<f64>,
    /// Whether the epoch has no steps left to do here, and the position has the sums of all lanes.
    has_whole_sums: bool,
    /// Samples in a full batch, and in the last one of an epoch.
    batches: [usize; 2],
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
    /// Makes a profile, if one is asked for.
    profiler: Option<Profiler>,
    /// Marks what was computed; rank 0 alone does.
    tracer: Option<Tracer>,
}

/// What a rank wants after a step, and whether it wants the state copied. The largest vote counts for both: so rank 0 may
/// have to wait with a copy that is not due at the end of an epoch, where all want one.
struct StepVote {
    vote: Vote,
    copied: bool,
}

impl From<StepVote> for u64 {
    fn from(of: StepVote) -> Self {
        2 * of.vote as u64 + u64::from(of.copied)
    }
}

impl From<u64> for StepVote {
    fn from(word: u64) -> Self {
        Self {
            vote: Vote::from(word / 2),
            copied: word % 2 == 1,
        }
    }
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

impl<'a> StepLoop<'a> {
    /// Joins the gang through `join`, and begins with what `begin` finds then.
    pub(super) fn new(
        (assignment, settings): (&Assignment, &TrainingSettings),
        sets: &'a Sets,
        device: &'a mut dyn Device,
        begin: impl FnOnce(
            &Model,
            &mut dyn SharingCollective,
        ) -> Result<(Snapshot, StateCopies), TrainError>,
        join: impl FnOnce(Plan) -> Result<Box<dyn SharingCollective>, TrainError>,
    ) -> Result<(Self, Snapshot), TrainError> {
        let model = device.model();
        let (layout, objective) = (model.layout().clone(), Objective::of(model));
        let place = (assignment.rank, assignment.transport.hosts());
        let mut setup = ReplicaSetup::on_hosts(settings, &sets.facts(), &layout, place)?;
        let optimizer = setup.optimizer();
        let steps_per_epoch = setup.steps_per_epoch;
        let batches = setup.programs.each_ref().map(|program| program.batch);
        let plan = &setup.exchange.plan;
        let (lanes, workers) = (plan.lanes(), plan.workers());
        let mut collective = join(plan.clone())?;
        if assignment.step_times {
            lockstep_base::progress::begin_phases();
        }
        numerics::agree(device.fingerprint(), &mut *collective)?;
        if peers::are_on_one_machine(&assignment.transport) {
            peers::agree(device, &mut setup, &mut *collective)?;
        }
        let (beginning, copies) = begin(device.model(), &mut *collective)?;
        let position = beginning.position.clone();
        let steps = steps_per_epoch * u64::from(settings.learner.epochs);
        let tracer = (assignment.rank == 0).then(|| Tracer::new(&layout, &setup.marked, steps));
        let this = Self {
            rank: assignment.rank,
            epochs: settings.learner.epochs,
            schedule: (settings.learner.schedule)
                .over(settings.learner.epochs, steps_per_epoch)
                .after_cuts(position.plateaus.cuts),
            plateau: settings.learner.schedule.plateau(),
            clock: Clock::default(),
            max_steps: assignment.max_steps,
            timed: assignment.step_times,
            catch_up: assignment.catch_up.max(position.step),
            lane_exchange: LaneExchange::new(lanes, workers),
            loss: LossByStep::new(lanes, steps_per_epoch, position.step),
            replica: device.replica(sets, setup, &beginning, collective)?,
            copies,
            norm_before: beginning.gradient_norm,
            has_whole_sums: false,
            steps_per_epoch,
            optimizer,
            batches,
            position,
            profiler: (assignment.profile).map(|steps| Profiler::new(assignment.rank, steps)),
            tracer,
            layout,
            objective,
        };
        Ok((this, beginning))
    }

    /// Begins the rest of the epoch in progress and says which it is, counted from 1.
    pub(super) fn begin_epoch(&mut self) -> Result<u32, TrainError> {
        self.clock.epoch = Some((Instant::now(), self.clock.samples));
        let epoch = self.position.epochs + 1;
        let done = self.position.step_in_epoch;
        self.copies.resume();
        // It may have been left when all of its steps were done, and those of all lanes were added up.
        self.has_whole_sums = self.is_epoch_complete();
        if self.has_whole_sums {
            return Ok(epoch);
        }
        let first_step = self.position.step - done;
        let update = |number| self.optimizer.at(number, self.schedule.rate(number));
        self.replica.begin_epoch(EpochPlan {
            epoch,
            done,
            first_step,
            updates: (first_step..first_step + self.steps_per_epoch)
                .map(update)
                .collect(),
        })?;
        Ok(epoch)
    }

    /// Whether all steps of the epoch are done.
    pub(super) fn is_epoch_complete(&self) -> bool {
        self.position.step_in_epoch == self.steps_per_epoch
    }

    /// Waits for the steps that are under way, stops the clock of steps, and returns the samples a second since
    /// [`StepLoop::begin_epoch`].
    pub(super) fn pause(&mut self) -> Result<f64, TrainError> {
        self.replica.settle()?;
        let Some((began, before)) = self.clock.epoch.take() else {
            return Ok(0.0);
        };
        let stepping = began.elapsed();
        self.clock.stepping += stepping;
        Ok((self.clock.samples - before) as f64 / stepping.as_secs_f64())
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

    /// Writes what an epoch that ended came to beside the copies of the state. Says what a person should know.
    pub(super) fn note_epoch(
        &mut self,
        best: (Option<&Best>, bool),
        history: &str,
    ) -> Option<String> {
        self.copies.note(&self.position, best, history)
    }

    /// The norm of the last gradient before it was clipped.
    pub(super) fn gradient_norm(&mut self) -> Result<Option<f64>, TrainError> {
        match self.replica.gradient_norm()? {
            None => Ok(self.norm_before),
            norm => Ok(norm),
        }
    }

    /// The learning rate of the last step.
    pub(super) fn last_rate(&self) -> f64 {
        f64::from(self.schedule.rate(self.position.step.saturating_sub(1)))
    }

    /// The weights that are measured and kept, which are gathered by then: their average where the job keeps one.
    pub(super) fn kept_weights(&mut self) -> &[f32] {
        let vectors = self.replica.vectors();
        vectors.average.unwrap_or(vectors.values)
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
        let batch = self.batches[usize::from(is_last)];
        let number = self.position.step;
        let epoch = self.position.epochs + 1;
        let since = Instant::now();
        if let Some(profiler) = &mut self.profiler {
            profiler.before(number + 1);
        }
        self.replica.compute()?;
        let end = StepEnd {
            step: number + 1,
            epoch: is_last.then_some(epoch),
            last: is_last && epoch == self.epochs,
        };
        let enough = self.max_steps.is_some_and(|most| end.step >= most);
        let wish = if enough { Wish::Stop } else { wish };
        let vote = checkpoints.vote(wish, end);
        let copied = self.copies.wants(vote == Vote::Checkpoint);
        let cast = StepVote { vote, copied };
        let StepVote { vote, copied } = StepVote::from(self.replica.finish(cast.into())?);
        enter(Phase::Exchange);
        let (exchange, replica) = (&mut self.lane_exchange, &mut *self.replica);
        self.loss.end_step(end.step, is_last, exchange, replica)?;
        enter(Phase::Other);
        if let Some(profiler) = &mut self.profiler {
            profiler.after(number + 1, since, reporter)?;
        }
        if let Some(tracer) = &mut self.tracer {
            if first {
                reporter.send(&FromWorker::Trace(tracer.begin()))?;
            }
            if tracer.is_marked(end.step) {
                self.replica.mark()?;
            }
            // Of a step that is not done again marks would be missed.
            if tracer.is_full() || copied {
                self.tell_marks(reporter)?;
            }
        }
        if copied {
            let place = (end.step, self.seconds());
            self.copies.copy(&mut *self.replica, place)?;
        }
        self.position.step += 1;
        self.position.step_in_epoch += 1;
        self.clock.samples += batch as u64;
        if first {
            self.replica.settle()?;
            reporter.send(&FromWorker::FirstStep { step: number })?;
        }
        if self.rank == 0 && number == self.catch_up {
            reporter.send(&FromWorker::CaughtUp)?;
        }
        let place = (epoch, in_epoch + 1, self.steps_per_epoch);
        let loss = || Metrics::from([("loss", self.loss.mean)]);
        reporter.step(place, loss, batch)?;
        if let Some(words) = checkpoints.news()? {
            reporter.send(&FromWorker::Warning { words })?;
        }
        Ok(vote)
    }

    /// Tells the marks that were not told yet.
    fn tell_marks(&mut self, reporter: &mut Reporter) -> Result<(), TrainError> {
        let Some(tracer) = &mut self.tracer else {
            return Ok(());
        };
        let marks = self.replica.take_marks()?;
        match tracer.tell(&marks) {
            Some(line) => Ok(reporter.send(&FromWorker::Trace(line))?),
            None => Ok(()),
        }
    }

    /// Tells all marks so far, and hashes of the whole state, which is gathered by then.
    pub(super) fn trace_whole(&mut self, reporter: &mut Reporter) -> Result<(), TrainError> {
        self.tell_marks(reporter)?;
        let Some(tracer) = &self.tracer else {
            return Ok(());
        };
        let whole = tracer.whole(self.position.step, self.replica.vectors().values);
        Ok(reporter.send(&FromWorker::Trace(whole))?)
    }

    /// Brings all of the run's state to every rank. All ranks come here together.
    pub(super) fn gather(&mut self) -> Result<(), TrainError> {
        self.share_lane_sums()?;
        self.replica.gather_state()?;
        self.replica.gather_planes()
    }

    /// Tells what a profile has so far, where training ends within its steps.
    pub(super) fn end_profile(&mut self, reporter: &mut Reporter) -> Result<(), TrainError> {
        match &mut self.profiler {
            Some(profiler) => profiler.finish(reporter),
            None => Ok(()),
        }
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
        if self.has_whole_sums {
            return Ok(());
        }
        let sums = &mut self.position.lane_sums;
        sums.copy_from_slice(self.replica.epoch_losses()?);
        self.lane_exchange.share(sums, self.replica.collective())
    }
}
