//! The loop: batches in, steps, epochs, evaluation, and the weights that are kept.
//!
//! Everything that decides the result is the same on every rank: the order of samples, the sums, the
//! metrics, which epoch is the best. So no rank asks another what to do; a stop and a checkpoint alone
//! are agreed on, by a vote in the step.

use crate::assess::{Assessor, names_of_outputs, remove_evaluation, title, write_evaluation};
use crate::batches::Batches;
use crate::checkpoint::{Checkpointer, StepEnd, Vote};
use crate::contract::contract;
use crate::control::{Assignment, Finished, FromWorker};
use crate::evaluate::Evaluator;
use crate::event::{EpochResult, Metrics};
use crate::lanes::LaneProgram;
use crate::prepare::{exchange_plan, full_batch, steps_per_epoch, working_model};
use crate::replica::{GangReplica, StepPlan};
use crate::reporter::Reporter;
use crate::sets::{Sets, all_indices};
use crate::snapshot::{Best, Position, Snapshot, Subject, View};
use crate::{Prediction, TrainError, numerics, pretrained, spec, weights};
use lockstep_gang::{Collective, Plan};
use lockstep_job::{Every, Job, Measure};
use lockstep_measure::Summary;
use lockstep_nn::{LossSum, Model, Optimizer, Schedule, Step};
use lockstep_store::{CacheDir, RunDir};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a worker has of a job in any generation of its gang: the data and the model.
pub(crate) struct Bench {
    sets: Sets,
    model: Model,
    evaluation_rows: usize,
}

impl Bench {
    /// Opens the data and builds the model.
    pub(crate) fn open(job: &Job, cache: &CacheDir) -> Result<Self, TrainError> {
        let sets = Sets::open(job, cache, &mut |_| {})?;
        let (model, evaluation_rows) = working_model(job, &sets)?;
        Ok(Self {
            sets,
            model,
            evaluation_rows,
        })
    }
}

/// One rank's training of one job, in one generation of its gang.
pub(crate) struct Trainer<'a> {
    job: Job,
    run: RunDir,
    rank: usize,
    sets: &'a Sets,
    test_indices: Vec<u32>,
    model: &'a mut Model,
    optimizer: Optimizer,
    schedule: Schedule,
    steps_per_epoch: u64,
    replica: GangReplica,
    batches: Batches,
    evaluator: Evaluator,
    /// For full batches, and for the last one of an epoch.
    programs: [LaneProgram; 2],
    position: Position,
    /// The step that the generation before was lost in.
    catch_up: u64,
    /// Steps after which the run stops by itself.
    max_steps: Option<u64>,
    best: Option<Best>,
    /// What each epoch came to, a JSON object a line; rank 0's alone.
    history: String,
    checkpoints: Checkpointer,
    test: Option<Metrics>,
    /// What the last measuring says of every test sample, if it was the last.
    predictions: Vec<Prediction>,
    clock: Clock,
}

/// How long things took.
#[derive(Default)]
struct Clock {
    /// When the first step of this process began.
    began: Option<Instant>,
    /// Time spent in steps alone.
    stepping: Duration,
    samples: u64,
}

impl<'a> Trainer<'a> {
    /// Joins the gang through `join`, and begins with the state that the assignment names.
    pub(crate) fn new(
        assignment: &Assignment,
        bench: &'a mut Bench,
        join: impl FnOnce(Plan) -> Result<Box<dyn Collective>, TrainError>,
    ) -> Result<Self, TrainError> {
        let job = assignment.job.clone();
        let Bench {
            sets,
            model,
            evaluation_rows,
        } = bench;
        let layout = model.layout();
        let (plan, factored) = exchange_plan(&job, sets, model)?;
        let whole = !plan.producing().is_empty();
        let samples = sets.train_indices.len();
        let full = full_batch(&job, sets);
        let last = match samples % full {
            0 => full,
            rest => rest,
        };
        let programs = [full, last].map(|batch| LaneProgram::new(&plan, assignment.rank, batch));
        let optimizer = spec::optimizer(&job);
        let steps_per_epoch = steps_per_epoch(&job, sets);
        let snapshot = match &assignment.resume {
            Some(path) => Some(Snapshot::read(path, &job, sets, layout.len())?),
            None => None,
        };
        let (state, pretrained) = match (&snapshot, &job.model.weights) {
            (Some(snapshot), _) => (snapshot.state.clone(), snapshot.pretrained.clone()),
            (None, Some(path)) => {
                let known = assignment.pretrained.as_deref();
                let begin = pretrained::read(path, model, job.train.seed, known)?;
                (begin.state, Some(begin.sha256))
            }
            (None, None) => (model.initial_state(job.train.seed), None),
        };
        let lanes = plan.lanes();
        let mut collective = join(plan)?;
        numerics::agree(&mut *collective)?;
        let clip = job.train.clip_norm;
        let aside = programs[0].aside.max(programs[1].aside);
        let mut replica = GangReplica::new(
            collective,
            layout,
            (&state[..]).into(),
            &optimizer,
            clip,
            &factored,
            aside,
        );
        let mut position = Position {
            lane_sums: vec![LossSum::default(); lanes],
            ..Position::default()
        };
        let (mut best, mut history) = (None, String::new());
        if let Some(snapshot) = snapshot {
            replica.planes = snapshot.planes.map(|plane| (&plane[..]).into());
            position = snapshot.position;
            best = snapshot.best;
            history = snapshot.history;
        }
        replica.enter_homes()?;
        let run = RunDir::open(&assignment.run_dir)?;
        let checkpoints = match assignment.rank {
            0 => {
                let subject = Subject {
                    input_shape: sets.train.shape(),
                    classes: sets.train.classes(),
                    contract: contract(&job, sets, json!(pretrained)),
                };
                Checkpointer::writer(&run, &job.checkpoint, subject)?
            }
            _ => Checkpointer::follower(),
        };
        Ok(Self {
            run,
            rank: assignment.rank,
            test_indices: sets.test.as_ref().map(all_indices).unwrap_or_default(),
            schedule: spec::schedule(&job, steps_per_epoch),
            batches: Batches::new(sets, job.train.seed, job.train.batch, whole),
            evaluator: Evaluator::new(sets.train.sample_len(), *evaluation_rows),
            test: None,
            predictions: Vec::new(),
            clock: Clock::default(),
            steps_per_epoch,
            optimizer,
            programs,
            max_steps: assignment.max_steps,
            catch_up: assignment.catch_up.max(position.step),
            position,
            best,
            history,
            checkpoints,
            replica,
            model,
            sets,
            job,
        })
    }

    /// Optimizer steps that were done.
    pub(crate) fn steps(&self) -> u64 {
        self.position.step
    }

    /// Trains to the end, or until `stop` is set on any rank.
    pub(crate) fn train(
        &mut self,
        stop: &AtomicBool,
        reporter: &mut Reporter,
    ) -> Result<Finished, TrainError> {
        while self.position.epochs < self.job.train.epochs {
            let interrupted = self.epoch(stop, reporter)?;
            if interrupted && self.position.epochs < self.job.train.epochs {
                return self.interrupted();
            }
        }
        self.finished()
    }

    /// Trains the rest of one epoch, or a part of it; true when a stop was asked for.
    fn epoch(&mut self, stop: &AtomicBool, reporter: &mut Reporter) -> Result<bool, TrainError> {
        let began = Instant::now();
        let (stepping_before, samples_before) = (self.clock.stepping, self.clock.samples);
        let mut vote = Vote::GoOn;
        let epoch = self.position.epochs + 1;
        self.batches.begin(epoch);
        self.prepare(self.position.step_in_epoch);
        reporter.resume();
        while self.position.step_in_epoch < self.steps_per_epoch {
            vote = self.step(stop, reporter)?;
            if self.position.step_in_epoch == self.steps_per_epoch {
                break;
            }
            match vote {
                Vote::GoOn => {}
                Vote::Checkpoint => self.checkpoint(false)?,
                Vote::Stop => {
                    self.clock.stepping += began.elapsed();
                    return Ok(true);
                }
            }
        }
        self.clock.stepping += began.elapsed();
        let stepping = (self.clock.stepping - stepping_before).as_secs_f64();
        self.replica.gather_state()?;
        let total = self.epoch_sum()?;
        let val = self.validate()?;
        // Without validation data these are the weights that are kept.
        let last = val.is_none() && epoch == self.job.train.epochs;
        self.test = self.measure_test(None, last)?;
        let best = match val {
            None => true,
            Some(val) => self.keep_if_best(epoch, val),
        };
        let trained = self.clock.samples - samples_before;
        self.position.epochs = epoch;
        self.position.step_in_epoch = 0;
        self.position.lane_sums.fill(LossSum::default());
        if self.rank == 0 {
            let result = EpochResult {
                epoch,
                step: self.position.step,
                train_loss: total.loss / total.rows as f64,
                train_accuracy: total.correct as f64 / total.rows as f64,
                val,
                test: self.test,
                seconds: began.elapsed().as_secs_f64(),
                total_s: self.seconds(),
                samples_per_s: trained as f64 / stepping,
                best,
            };
            self.history += &serde_json::to_string(&result).expect("a result is plain data");
            self.history.push('\n');
            reporter.send(&FromWorker::Epoch(result))?;
        }
        // What is due at the end of an epoch has its evaluation in it.
        if vote == Vote::Checkpoint {
            self.checkpoint(false)?;
        }
        Ok(vote == Vote::Stop)
    }

    /// One optimizer step, and what the ranks want next.
    fn step(&mut self, stop: &AtomicBool, reporter: &mut Reporter) -> Result<Vote, TrainError> {
        let first = self.clock.began.is_none();
        self.clock.began.get_or_insert_with(Instant::now);
        let in_epoch = self.position.step_in_epoch;
        let is_last = in_epoch + 1 == self.steps_per_epoch;
        let number = self.position.step;
        let program = &self.programs[usize::from(is_last)];
        let update = self.optimizer.at(number, self.schedule.rate(number));
        let plan = StepPlan {
            program,
            update,
            inputs: self.batches.inputs(),
        };
        self.replica.begin();
        self.replica.make_columns(&plan)?;
        let mut sum = LossSum::default();
        for (i, work) in program.work.iter().enumerate() {
            let (batch, samples) = self.batches.lane(i);
            let step = Step {
                seed: self.job.train.seed,
                number,
                samples,
                batch: program.batch,
            };
            let by_columns = self.replica.is_by_columns();
            if by_columns {
                let output = self.model.first_output(samples.len());
                self.replica.take_columns(&plan, work.lane, output)?;
            }
            let replica = &mut self.replica.lane(&plan, i);
            let lane = match by_columns {
                true => self.model.gradient_after_first(replica, batch, step),
                false => self.model.gradient(replica, batch, step),
            };
            if !lane.loss.is_finite() {
                let (loss, step) = (lane.loss, number + 1);
                return Err(TrainError::Diverged {
                    loss,
                    step,
                    epoch: self.position.epochs + 1,
                });
            }
            self.position.lane_sums[work.lane] += lane;
            sum += self.position.lane_sums[work.lane];
        }
        self.replica.computed(&plan)?;
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
        let epoch = self.position.epochs + 1;
        let end = StepEnd {
            step: number + 1,
            epoch: is_last.then_some(epoch),
            last: is_last && epoch == self.job.train.epochs,
        };
        let enough = self.max_steps.is_some_and(|most| end.step >= most);
        let stop = enough || stop.load(Ordering::Relaxed);
        let vote = self.checkpoints.vote(stop, end);
        let vote = Vote::from(self.replica.finish(&plan, vote as u64)?);
        self.position.step += 1;
        self.position.step_in_epoch += 1;
        self.clock.samples += program.batch as u64;
        let batch = program.batch;
        if first {
            reporter.send(&FromWorker::FirstStep { step: number })?;
        }
        if self.rank == 0 && number == self.catch_up {
            reporter.send(&FromWorker::CaughtUp)?;
        }
        let place = (self.position.epochs + 1, in_epoch + 1, self.steps_per_epoch);
        reporter.step(place, &sum, batch)?;
        if let Some(words) = self.checkpoints.news() {
            reporter.send(&FromWorker::Warning { words })?;
        }
        Ok(vote)
    }

    /// Writes the run's state, in the background unless it is the last. All ranks come here together.
    fn checkpoint(&mut self, last: bool) -> Result<(), TrainError> {
        self.share_lane_sums()?;
        self.replica.gather_state()?;
        self.replica.gather_planes()?;
        let view = View {
            position: &self.position,
            seconds: self.seconds(),
            state: &self.replica.state,
            planes: self.replica.planes.each_ref().map(|plane| &plane[..]),
            best: self.best.as_ref(),
            history: &self.history,
        };
        match last {
            true => self.checkpoints.finish(&view)?,
            false => self.checkpoints.take(&view),
        }
        Ok(())
    }

    /// Seconds since the first step of the run, those before an interruption included.
    fn seconds(&self) -> f64 {
        let now = self
            .clock
            .began
            .map_or(0.0, |began| began.elapsed().as_secs_f64());
        self.position.seconds_before + now
    }

    /// Metrics that are numbers; others mean that the weights are lost.
    fn finite(&self, metrics: Metrics) -> Result<Metrics, TrainError> {
        match metrics.loss.is_finite() {
            true => Ok(metrics),
            false => Err(TrainError::Diverged {
                loss: metrics.loss,
                step: self.position.step,
                epoch: self.position.epochs + 1,
            }),
        }
    }

    fn prepare(&mut self, step: u64) {
        let program = &self.programs[usize::from(step + 1 == self.steps_per_epoch)];
        self.batches.prepare(self.sets, program, step);
    }

    /// The sum over all lanes of the epoch so far, in the order of the lanes, the same on every rank.
    fn epoch_sum(&mut self) -> Result<LossSum, TrainError> {
        self.share_lane_sums()?;
        let mut total = LossSum::default();
        for &sum in &self.position.lane_sums {
            total += sum;
        }
        Ok(total)
    }

    /// Brings every lane's sum to every rank.
    fn share_lane_sums(&mut self) -> Result<(), TrainError> {
        let collective = &mut *self.replica.collective;
        let (lanes, workers) = (collective.plan().lanes(), collective.plan().workers());
        let sums = self.position.lane_sums.iter();
        let mine: Vec<f64> = sums
            .flat_map(|sum| [sum.loss, sum.correct as f64, sum.rows as f64])
            .collect();
        let mut all = vec![0.0; mine.len() * workers];
        collective.all_gather(&mine, &mut all)?;
        for rank in 0..workers {
            for lane in collective.plan().lanes_of(rank) {
                let at = 3 * (rank * lanes + lane);
                self.position.lane_sums[lane] = LossSum {
                    loss: all[at],
                    correct: all[at + 1] as u64,
                    rows: all[at + 2] as u64,
                };
            }
        }
        Ok(())
    }

    fn validate(&mut self) -> Result<Option<Metrics>, TrainError> {
        if self.sets.val_indices.is_empty() {
            return Ok(None);
        }
        let samples = (self.sets.val_set(), &self.sets.val_indices[..]);
        let (state, collective) = (&self.replica.state, &mut *self.replica.collective);
        let normaliser = &self.sets.normaliser;
        let metrics = self
            .evaluator
            .run(self.model, state, samples, normaliser, collective, None)?;
        self.finite(metrics).map(Some)
    }

    /// The metrics on the test set of the given weights, or of the present ones. Of the `last` ones, what
    /// they say of every sample is kept.
    fn measure_test(
        &mut self,
        state: Option<&[f32]>,
        last: bool,
    ) -> Result<Option<Metrics>, TrainError> {
        let Some(set) = &self.sets.test else {
            return Ok(None);
        };
        let state = state.unwrap_or(&self.replica.state);
        let (samples, collective) = ((set, &self.test_indices[..]), &mut *self.replica.collective);
        let normaliser = &self.sets.normaliser;
        let predictions = last.then_some(&mut self.predictions);
        let metrics = self.evaluator.run(
            self.model,
            state,
            samples,
            normaliser,
            collective,
            predictions,
        )?;
        self.finite(metrics).map(Some)
    }

    /// Of epochs that are equally good the first is kept.
    fn keep_if_best(&mut self, epoch: u32, val: Metrics) -> bool {
        let better = self
            .best
            .as_ref()
            .is_none_or(|best| match self.job.checkpoint.best {
                Measure::Loss => val.loss < best.val.loss,
                Measure::Accuracy => val.accuracy > best.val.accuracy,
            });
        if better {
            let state = self.replica.state.to_vec();
            self.best = Some(Best { epoch, val, state });
        }
        better
    }

    fn finished(&mut self) -> Result<Finished, TrainError> {
        let best = self.best.take();
        let (metrics, epoch) = match &best {
            Some(best) => (self.measure_test(Some(&best.state), true)?, best.epoch),
            None if self.test.is_none() => (self.measure_test(None, true)?, self.position.epochs),
            None => (self.test, self.position.epochs),
        };
        let state = best
            .as_ref()
            .map_or(&self.replica.state[..], |best| &best.state[..]);
        let sha256 = weights::sha256(self.model.layout(), state);
        if self.rank == 0 {
            weights::write_model(&self.run, &self.job, self.sets, self.model, state, &sha256)?;
        }
        let evaluation = self.evaluate(metrics)?;
        self.best = best;
        if self.job.checkpoint.every != Every::None {
            self.checkpoint(true)?;
        }
        // Nobody says that it is finished before the weights are there.
        self.replica.collective.barrier()?;
        Ok(Finished {
            evaluation,
            ..self.report(false, metrics, Some(epoch), sha256)
        })
    }

    /// What the kept weights are worth on the test set. Rank 0 writes it down.
    fn evaluate(&self, metrics: Option<Metrics>) -> Result<Option<Summary>, TrainError> {
        let (Some(set), Some(metrics)) = (&self.sets.test, metrics) else {
            return Ok(None);
        };
        let classes = self.sets.train.class_names();
        let classes = names_of_outputs(classes, self.model.classes());
        let mut assessor = Assessor::new(set, &classes);
        for (row, &prediction) in self.predictions.iter().enumerate() {
            assessor.add(row, prediction);
        }
        let mut evaluation = assessor.finish();
        evaluation.summary.loss = Some(metrics.loss);
        if self.rank == 0 {
            write_evaluation(&self.run.path, &evaluation, &title(&self.run.name, set))?;
        }
        Ok(Some(evaluation.summary))
    }

    fn interrupted(&mut self) -> Result<Finished, TrainError> {
        self.checkpoint(true)?;
        let sha256 = weights::sha256(self.model.layout(), &self.replica.state);
        if self.rank == 0 {
            remove_evaluation(&self.run);
            let (sets, state) = (&self.sets, &self.replica.state);
            weights::write_model(&self.run, &self.job, sets, self.model, state, &sha256)?;
        }
        self.replica.collective.barrier()?;
        // The weights are of the middle of an epoch: no metrics are of them, and no epoch is theirs.
        Ok(self.report(true, None, None, sha256))
    }

    fn report(
        &self,
        interrupted: bool,
        metrics: Option<Metrics>,
        best: Option<u32>,
        sha256: String,
    ) -> Finished {
        Finished {
            interrupted,
            epochs: self.position.epochs,
            evaluation: None,
            metrics,
            best_epoch: best,
            weights_sha256: sha256,
            step_s: self.clock.stepping.as_secs_f64(),
            train_s: self.seconds(),
            samples: self.clock.samples,
        }
    }
}
