//! The loop: batches in, steps, epochs, evaluation, and the weights that are kept.
//!
//! Everything that decides the result is the same on every rank: the order of samples, the sums, the
//! metrics, which epoch is the best. So no rank asks another what to do; a stop and a checkpoint alone
//! are agreed on, by a vote in the step.
//!
//! [`StepLoop`] trains, [`EpochEvaluation`] measures and keeps the best weights, [`Publisher`] writes what the
//! run leaves behind. [`Trainer`] brings them together, epoch by epoch.

mod evaluation;
mod lane_sums;
mod profile;
mod publish;
mod start_state;
mod steps;
mod trace;

use crate::checkpoint::{Checkpointer, Vote};
use crate::choice;
use crate::choice::WorkerDevice;
use crate::copies::{CopiesHere, StateCopies};
use crate::device::Device;
use crate::evaluate::mean;
use crate::sets::Sets;
use crate::snapshot::{Snapshot, StateView};
use crate::{LearnerPart, TrainError, weights};
use evaluation::{EpochEvaluation, note_decided};
use lockstep_base::fs::CacheDir;
use lockstep_data::DataError;
use lockstep_events::control::{Assignment, Finished, FromWorker};
use lockstep_events::event::EpochResult;
use lockstep_gang::{CollectiveExt, HeldMemory, HeldShare, Plan, SharingCollective};
use lockstep_learner::{GenerationEnd, Reporter, Wish};
use lockstep_measure::BestBy;
use lockstep_nn::Model;
use lockstep_resolve::Interval;
use publish::Publisher;
use start_state::start_state;
use std::time::Instant;
use steps::StepLoop;

/// What a worker has of a job in any generation of its gang: the data, and what the network is computed on.
pub(crate) struct Opened {
    sets: Sets,
    device: Box<dyn Device>,
    evaluation_rows: usize,
    note: Option<String>,
    /// The shares of copies of the state that this process holds, where workers keep them for each other.
    held: Option<HeldMemory>,
}

impl Opened {
    /// Opens the data where it was found, and builds the model. What was found may be gone by now: the cache can
    /// be cleared at any time. Then it is looked for again.
    pub(crate) fn open(
        part: &LearnerPart,
        rank: usize,
        cache: &CacheDir,
    ) -> Result<Self, TrainError> {
        let settings = &part.settings;
        let sets = match Sets::reopen(settings, &part.found) {
            Err(TrainError::Data(DataError::DecodedGone { .. })) => {
                let sets = Sets::open(settings, &part.sources, cache, &mut |_| {})?;
                sets.check_same(&part.found)?;
                sets
            }
            sets => sets?,
        };
        let WorkerDevice {
            device,
            evaluation_rows,
            note,
        } = choice::open(settings, &sets.facts(), rank)?;
        Ok(Self {
            sets,
            device,
            evaluation_rows,
            note,
            held: None,
        })
    }

    /// The shares of copies of the state that this process holds, when it does not work.
    pub(crate) fn held_shares(&self) -> Vec<HeldShare> {
        self.held
            .as_ref()
            .map(HeldMemory::shares)
            .unwrap_or_default()
    }

    /// What a person may not expect of it, which is said once.
    pub(crate) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// One rank's training of one job, in one generation of its gang.
pub(crate) struct Trainer<'a> {
    rank: usize,
    epochs: u32,
    /// What epochs are compared by, on validation data.
    best_by: BestBy,
    /// Epochs without a better one after which training ends.
    patience: Option<u32>,
    /// By how much an epoch must be better to count as such.
    min_change: f64,
    /// Whether the run leaves a checkpoint when it is trained to the end.
    leaves_checkpoint: bool,
    /// A state to pause with could not be written: this generation is not asked again.
    stays: bool,
    steps: StepLoop<'a>,
    evaluation: EpochEvaluation<'a>,
    publisher: Publisher<'a>,
}

impl<'a> Trainer<'a> {
    /// Joins the gang through `join`, and begins with the state that the assignment names.
    pub(crate) fn new(
        assignment: &Assignment,
        part: &LearnerPart,
        opened: &'a mut Opened,
        join: impl FnOnce(Plan) -> Result<Box<dyn SharingCollective>, TrainError>,
    ) -> Result<Self, TrainError> {
        let settings = &part.settings;
        let Opened {
            sets,
            device,
            evaluation_rows,
            note: _,
            held,
        } = opened;
        let told = (assignment, settings);
        let begin = |model: &Model, collective: &mut dyn SharingCollective| {
            let of = (settings, &sets.facts(), model.layout().len());
            let place = assignment.copies.as_ref();
            let copies = place.map(|place| CopiesHere::open(place, held, of, collective));
            let copies = copies.transpose()?;
            let beginning = start_state(assignment, part, sets, model, copies.as_ref())?;
            let from = copies.as_ref().and_then(CopiesHere::version);
            let writer = copies.map(|copies| copies.writer(assignment.generation, collective));
            let copies = match (writer.transpose()?.flatten(), place) {
                (Some(writer), Some(place)) => {
                    let who = (assignment.rank, from);
                    StateCopies::new(writer, who, place.every_step, &beginning)
                }
                _ => StateCopies::none(),
            };
            Ok((beginning, copies))
        };
        let (steps, beginning) = StepLoop::new(told, sets, &mut **device, begin, join)?;
        let Snapshot {
            best,
            history,
            pretrained,
            ..
        } = beginning;
        Ok(Self {
            rank: assignment.rank,
            epochs: settings.learner.epochs,
            best_by: settings.checkpoint.best.clone(),
            patience: settings.learner.patience,
            min_change: settings.learner.min_change,
            stays: false,
            leaves_checkpoint: settings.checkpoint.every != Interval::Never,
            evaluation: EpochEvaluation::new(
                settings,
                sets,
                steps.objective,
                *evaluation_rows,
                best,
            ),
            publisher: Publisher::new((assignment, part), sets, history, pretrained)?,
            steps,
        })
    }
}

impl Trainer<'_> {
    /// Optimizer steps that were done.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.position.step
    }

    /// Trains to the end, or until any rank hears another `wish`.
    pub(crate) fn train(
        &mut self,
        wish: &dyn Fn() -> Wish,
        reporter: &mut Reporter,
    ) -> Result<GenerationEnd, TrainError> {
        while !self.is_done() {
            let vote = self.epoch(wish, reporter)?;
            if self.is_done() {
                break;
            }
            match vote {
                Vote::Stop => {
                    self.steps.end_profile(reporter)?;
                    return Ok(GenerationEnd::Finished(self.interrupted(reporter)?.into()));
                }
                Vote::Pause if self.is_written(reporter)? => {
                    let step = self.steps.position.step;
                    return Ok(GenerationEnd::Paused { step });
                }
                Vote::Pause => self.stays = true,
                Vote::GoOn | Vote::Checkpoint => {}
            }
        }
        self.steps.end_profile(reporter)?;
        Ok(GenerationEnd::Finished(self.finished()?.into()))
    }

    /// Whether all epochs are trained, or none was better for too long. The same on every rank.
    fn is_done(&self) -> bool {
        self.steps.position.epochs >= self.epochs || self.is_out_of_patience()
    }

    fn is_out_of_patience(&self) -> bool {
        let waited = self.steps.position.improvement.epochs_since;
        self.patience.is_some_and(|patience| waited >= patience)
    }

    /// Trains the rest of one epoch, or a part of it, and returns what was agreed on after the last step.
    fn epoch(
        &mut self,
        wish: &dyn Fn() -> Wish,
        reporter: &mut Reporter,
    ) -> Result<Vote, TrainError> {
        let began = Instant::now();
        let epoch = self.steps.begin_epoch()?;
        reporter.resume();
        let mut vote = Vote::GoOn;
        while !self.steps.is_epoch_complete() {
            let checkpoints = &mut self.publisher.checkpoints;
            let wish = match wish() {
                Wish::Pause if self.stays => Wish::GoOn,
                wish => wish,
            };
            vote = self.steps.step(wish, checkpoints, reporter)?;
            if self.steps.is_epoch_complete() {
                break;
            }
            match vote {
                Vote::GoOn => {}
                Vote::Checkpoint => self.checkpoint()?,
                Vote::Pause | Vote::Stop => {
                    self.steps.pause()?;
                    return Ok(vote);
                }
            }
        }
        let samples_per_s = self.steps.pause()?;
        let lr = self.steps.last_rate();
        self.steps.replica.gather_state()?;
        let total = self.steps.epoch_sum()?;
        // Without validation data the last epoch's weights are the ones that are kept.
        let is_last = epoch == self.epochs;
        self.steps.trace_whole(reporter)?;
        let measured = self.evaluation.epoch(&mut self.steps, epoch, is_last)?;
        self.steps.end_epoch();
        if let Some(val) = &measured.val {
            let value = val.get(self.best_by.word()).unwrap_or(f64::NAN);
            self.steps
                .note_validation(&self.best_by, self.min_change, value);
        }
        if self.rank == 0 {
            let result = EpochResult {
                epoch,
                step: self.steps.position.step,
                train: mean(self.steps.objective, &total),
                val: measured.val,
                test: measured.test,
                seconds: began.elapsed().as_secs_f64(),
                total_s: self.steps.seconds(),
                samples_per_s,
                lr: Some(lr),
                gradient_norm: self.steps.gradient_norm()?,
                best: measured.best,
            };
            self.publisher.note_epoch(&result);
            reporter.send(&FromWorker::Epoch(result))?;
        }
        // After it was told: what is told twice counts once, and what is not told would be missed.
        let best = (self.evaluation.best.as_ref(), measured.best);
        if let Some(words) = self.steps.note_epoch(best, &self.publisher.history) {
            reporter.send(&FromWorker::Warning { words })?;
        }
        // What is due at the end of an epoch has its evaluation in it. The last one is written when all is done.
        if vote == Vote::Checkpoint && !self.is_done() {
            self.checkpoint()?;
        }
        Ok(vote)
    }

    /// Writes the state for the next generation to begin with, and says whether that worked. All ranks come here
    /// together and wait for the disk of rank 0: without that state, nobody may leave.
    fn is_written(&mut self, reporter: &mut Reporter) -> Result<bool, TrainError> {
        self.steps.gather()?;
        self.steps.trace_whole(reporter)?;
        let written = match self.last_checkpoint() {
            Ok(()) => 1.0,
            Err(TrainError::Store(error)) if error.ends_the_run() => return Err(error.into()),
            Err(error) => {
                let words =
                    format!("the gang stays as it is, since its state was not written: {error}");
                reporter.send(&FromWorker::Warning { words })?;
                0.0
            }
        };
        let collective = self.steps.replica.collective();
        let mut all = vec![0.0; collective.plan().workers()];
        collective.all_gather(&[written], &mut all)?;
        Ok(all[0] == 1.0)
    }

    /// Writes the run's state in the background. All ranks come here together.
    fn checkpoint(&mut self) -> Result<(), TrainError> {
        self.steps.gather()?;
        let (view, checkpoints) = self.view();
        checkpoints.take(&view);
        Ok(())
    }

    /// Writes the run's state, once it is gathered, and waits for the disk.
    fn last_checkpoint(&mut self) -> Result<(), TrainError> {
        let (view, checkpoints) = self.view();
        checkpoints.finish(&view)
    }

    /// The run's state, and who writes it.
    fn view(&mut self) -> (StateView<'_>, &mut Checkpointer) {
        let seconds = self.steps.seconds();
        let vectors = self.steps.replica.vectors();
        let view = StateView {
            position: &self.steps.position,
            seconds,
            state: vectors.values,
            planes: vectors.planes,
            average: vectors.average,
            best: self.evaluation.best.as_ref(),
            history: &self.publisher.history,
        };
        (view, &mut self.publisher.checkpoints)
    }

    /// Ends what ranks do together. What follows is each rank's own: nobody waits for the disk of rank 0,
    /// and what it has published counts only once it says that it is finished.
    fn part(&mut self) -> Result<(), TrainError> {
        Ok(self.steps.replica.collective().barrier()?)
    }

    fn finished(&mut self) -> Result<Finished, TrainError> {
        let mut kept = self.evaluation.of_kept(&mut self.steps)?;
        if self.leaves_checkpoint {
            self.steps.gather()?;
        }
        self.part()?;
        let layout = self.steps.layout.clone();
        let state = match &self.evaluation.best {
            Some(best) => &best.state,
            None => self.steps.kept_weights(),
        };
        let sha256 = weights::sha256(&layout, state);
        let decision = self.evaluation.decision();
        self.publisher.weights(&layout, state, &sha256, decision)?;
        let evaluation = self.evaluation.assess(kept.metrics.as_ref());
        if let Some(evaluation) = &evaluation {
            self.publisher.evaluation(evaluation)?;
        }
        if let (Some(evaluation), Some(metrics)) = (&evaluation, &mut kept.metrics) {
            note_decided(metrics, evaluation);
        }
        if self.leaves_checkpoint {
            self.last_checkpoint()?;
        }
        Ok(Finished {
            evaluation: evaluation.map(|evaluation| Box::new(evaluation.summary())),
            metrics: kept.metrics,
            val: kept.val,
            best_epoch: Some(kept.epoch),
            ..self.report(false, sha256)
        })
    }

    fn interrupted(&mut self, reporter: &mut Reporter) -> Result<Finished, TrainError> {
        self.steps.gather()?;
        self.steps.trace_whole(reporter)?;
        self.part()?;
        self.last_checkpoint()?;
        let layout = self.steps.layout.clone();
        let state = self.steps.kept_weights();
        let sha256 = weights::sha256(&layout, state);
        self.publisher.remove_evaluation();
        let decision = self.evaluation.decision();
        self.publisher.weights(&layout, state, &sha256, decision)?;
        // The weights are of the middle of an epoch: no metrics are of them, and no epoch is theirs.
        Ok(self.report(true, sha256))
    }

    /// How training ended, without what the kept weights are worth.
    fn report(&self, interrupted: bool, weights_sha256: String) -> Finished {
        Finished {
            interrupted,
            epochs: self.steps.position.epochs,
            stopped_early: !interrupted && self.steps.position.epochs < self.epochs,
            evaluation: None,
            metrics: None,
            val: None,
            best_epoch: None,
            weights_sha256: Some(weights_sha256),
            step_s: self.steps.clock.stepping.as_secs_f64(),
            train_s: self.steps.seconds(),
            samples: self.steps.clock.samples,
            step_times: self.steps.times(),
        }
    }
}
