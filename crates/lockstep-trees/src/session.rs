//! One rank's training in one generation of its gang.

mod result;

use crate::apart::own_matrix;
use crate::cuts::RankRows;
use crate::gradients::RankTargets;
use crate::measure::{Measured, variance};
use crate::part::{Tables, TreesPart};
use crate::publish::Card;
use crate::shard::{self, Shard};
use crate::state::{self, Best, Header, Saved};
use crate::xgboost::{Communicator, Matrix, Xgboost};
use crate::{BoostSettings, Boosting, Together, TreesError, said};
use lockstep_data::Dataset;
use lockstep_events::Metrics;
use lockstep_events::control::{Finished, FromWorker};
use lockstep_events::event::{EpochResult, Progress};
use lockstep_learner::{Gang, GenerationEnd, Reporter, Wish};
use lockstep_measure::Evaluation;
use lockstep_model::{Assessor, Outputs, Predictions};
use lockstep_place::Place;
use lockstep_resolve::Interval;
use lockstep_runs::checkpoint::CheckpointWriter;
use lockstep_runs::{Generation, RunDir};
use result::metrics_of;
use std::mem;
use std::time::Instant;

/// Rows that are binned at once.
const BINNED_ROWS: usize = 1 << 16;

/// Training, from the state that the assignment names to its end.
pub(crate) struct Session<'a> {
    xgboost: &'a Xgboost,
    part: &'a TreesPart,
    settings: &'a BoostSettings,
    tables: &'a Tables,
    gang: &'a Gang<'a>,
    together: &'a Option<Communicator>,
    train: Shard<'a>,
    train_variance: f64,
    val: Option<Validation<'a>>,
    beginning: Option<Saved>,
    run: RunDir,
    writer: Option<CheckpointWriter>,
}

/// The rows that rounds are compared on.
struct Validation<'a> {
    shard: Shard<'a>,
    /// None on a rank without such rows.
    matrix: Option<Matrix>,
    variance: f64,
}

/// How a generation goes on after a round, as all ranks agreed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vote {
    GoOn,
    Checkpoint,
    Pause,
    Stop,
}

impl<'a> Session<'a> {
    pub(crate) fn begin(
        xgboost: &'a Xgboost,
        part: &'a TreesPart,
        settings: &'a BoostSettings,
        tables: &'a Tables,
        gang: &'a Gang<'a>,
        together: &'a Option<Communicator>,
    ) -> Result<Self, TreesError> {
        let assignment = gang.assignment();
        let (rank, ranks) = (assignment.rank, assignment.workers);
        let beginning = match &assignment.resume {
            Some(place) => Some(Saved::at(place, &part.access)?),
            None => None,
        };
        let run = RunDir::open(&Place::parse(&assignment.run_dir, &part.access)?)?;
        let generation = Generation {
            incarnation: assignment.incarnation.clone(),
            generation: assignment.generation,
        };
        let writer = match rank {
            0 => Some(
                run.checkpoints()
                    .writer(part.settings.checkpoint.keep, generation)?,
            ),
            _ => None,
        };
        let numbers = |set: &'a Dataset, rows: &'a [u32]| {
            variance(rows.iter().map(move |&row| shard::target(set, row)))
        };
        let val = match tables.val_rows.is_empty() {
            true => None,
            false => {
                let set = tables.val_set();
                let shard = Shard::of(set, &tables.val_rows, rank, ranks);
                let (width, threads) = (set.sample_len(), settings.threads);
                let values = shard.values();
                let matrix = match values.is_empty() {
                    true => None,
                    false => Some(own_matrix(xgboost, &values, width, threads)?),
                };
                Some(Validation {
                    matrix,
                    variance: numbers(set, &tables.val_rows),
                    shard,
                })
            }
        };
        Ok(Self {
            xgboost,
            part,
            settings,
            tables,
            gang,
            together,
            train: Shard::of(&tables.train, &tables.train_rows, rank, ranks),
            train_variance: numbers(&tables.train, &tables.train_rows),
            val,
            beginning,
            run,
            writer,
        })
    }

    /// Trains to the end, or until any rank hears another wish.
    pub(crate) fn train(
        &mut self,
        reporter: &mut Reporter,
        rounds_done: &mut u64,
    ) -> Result<GenerationEnd, TreesError> {
        let (settings, tables, together) = (self.settings, self.tables, self.together);
        let categorical = tables.categorical();
        let targets = mem::take(&mut self.train.targets);
        let weights = weighed(&targets, self.train.weights.take(), &settings.class_weights);
        let groups = mem::take(&mut self.train.groups);
        let rows = RankTargets {
            targets: &targets,
            weights: weights.as_deref(),
            positive: settings.positive,
            groups: &groups,
            first_row: self.train.first as u64,
            all_rows: self.train.all as u64,
        };
        let beginning = self.beginning.take();
        let (mut best, mut history) = (None, String::new());
        let mut model = None;
        if let Some(saved) = beginning {
            (best, history, model) = (saved.header.best, saved.history, Some(saved.model));
        }
        let model = model.as_deref();
        let values = RankRows {
            blocks: &mut self.train.blocks(BINNED_ROWS),
            categorical: &categorical,
        };
        let mut boosting = Boosting::begin(self.xgboost, settings, values, rows, model, together)?;
        let began = Instant::now();
        let before = boosting.rounds() as u64;
        *rounds_done = before;
        let wanted = self.part.settings.model.rounds as usize;
        let (mut step_s, mut is_first, mut written) = (0.0, true, Instant::now());
        let catch_up = self.gang.assignment().catch_up;
        while boosting.rounds() < wanted && !self.is_enough(&best, boosting.rounds()) {
            let round_began = Instant::now();
            lockstep_base::failpoint::reach("round.begin");
            boosting.round()?;
            lockstep_base::progress::advance();
            let round = boosting.rounds() as u32;
            *rounds_done = u64::from(round);
            step_s += round_began.elapsed().as_secs_f64();
            if is_first {
                is_first = false;
                reporter.send(&FromWorker::FirstStep { step: before })?;
            }
            if self.is_first_rank() && u64::from(round) == catch_up.max(before + 1) {
                reporter.send(&FromWorker::CaughtUp)?;
            }
            let train = Measured {
                objective: settings.objective,
                targets: &targets,
                groups: &groups,
                variance: self.train_variance,
                all_rows: self.train.all as u64,
            };
            let train = train.metrics(boosting.margins()?, together)?;
            // The sums are those of all ranks, so all of them end here.
            if train.iter().any(|(_, value)| !value.is_finite()) {
                return Err(TreesError::Diverged { round });
            }
            let val = self.validate(&mut boosting)?;
            let is_best = self.note_best(&mut best, round, val.as_ref());
            let seconds = round_began.elapsed().as_secs_f64();
            let result = EpochResult {
                epoch: round,
                step: u64::from(round),
                train,
                val,
                test: None,
                seconds,
                total_s: began.elapsed().as_secs_f64(),
                samples_per_s: self.train.all as f64 / seconds.max(1e-9),
                lr: None,
                gradient_norm: None,
                best: is_best,
            };
            history += &serde_json::to_string(&result).expect("a result is plain data");
            history.push('\n');
            self.report(reporter, result)?;
            let vote = self.vote(round, written)?;
            if vote != Vote::GoOn {
                written = Instant::now();
                let model = boosting.model()?;
                self.checkpoint(round, &best, &model, &history)?;
            }
            match vote {
                Vote::Stop if boosting.rounds() < wanted => {
                    return Ok(GenerationEnd::Finished(Box::new(Finished {
                        interrupted: true,
                        ..ended(round, &best, (step_s, began))
                    })));
                }
                Vote::Pause if boosting.rounds() < wanted => {
                    let step = u64::from(round);
                    return Ok(GenerationEnd::Paused { step });
                }
                _ => {}
            }
        }
        let rounds = boosting.rounds() as u32;
        let trained = boosting.model()?;
        self.checkpoint(rounds, &best, &trained, &history)?;
        let kept = best.as_ref().map_or(rounds, |best| best.round);
        let (sha256, evaluation) = self.publish(boosting.booster()?, kept, rounds)?;
        let summary = evaluation.as_ref().map(|of| Box::new(of.summary()));
        Ok(GenerationEnd::Finished(Box::new(Finished {
            stopped_early: boosting.rounds() < wanted,
            metrics: evaluation.as_ref().map(metrics_of),
            evaluation: summary,
            val: best.as_ref().map(|best| best.val.clone()),
            weights_sha256: Some(sha256),
            samples: (u64::from(rounds) - before) * self.train.all as u64,
            ..ended(rounds, &best, (step_s, began))
        })))
    }

    fn is_first_rank(&self) -> bool {
        self.together.rank() == 0
    }

    /// Whether no round was the best for as long as the job's patience lasts.
    fn is_enough(&self, best: &Option<Best>, rounds: usize) -> bool {
        match (self.part.settings.patience, best) {
            (Some(patience), Some(best)) => {
                rounds as u64 >= u64::from(best.round) + u64::from(patience)
            }
            _ => false,
        }
    }

    fn validate<T: Together>(
        &self,
        boosting: &mut Boosting<'_, T>,
    ) -> Result<Option<Metrics>, TreesError>
    where
        TreesError: From<T::Error>,
    {
        let Some(val) = &self.val else {
            return Ok(None);
        };
        let measured = Measured {
            objective: self.settings.objective,
            targets: &val.shard.targets,
            groups: &val.shard.groups,
            variance: val.variance,
            all_rows: val.shard.all as u64,
        };
        let margins = match &val.matrix {
            Some(matrix) => boosting.margins_of(matrix)?,
            None => Vec::new(),
        };
        let mut metrics = measured.metrics(&margins, self.together)?;
        let best_by = &self.part.settings.checkpoint.best;
        let threshold = self.tables.decision.and_then(|of| of.threshold);
        let is_measured = metrics.get(best_by.word()).is_some();
        if is_measured && threshold.is_none() && self.tables.metrics.is_empty() {
            return Ok(Some(metrics));
        }
        // What does not follow from sums over the rows: every rank looks at what is said of all of them.
        let outputs = self.outputs();
        let mut said = self.said_of_validation(&margins, val)?;
        outputs.decide(&mut said);
        let samples = (self.tables.val_set(), &self.tables.val_rows[..]);
        let assessor = Assessor::of_samples(samples, &outputs);
        let mut assessor = assessor.with_own(&self.tables.metrics);
        assessor.add(&said);
        let evaluation = assessor.finish();
        if let (Evaluation::Classes(of), Some(_)) = (&evaluation, threshold) {
            metrics.set("accuracy", of.summary.accuracy);
        }
        let best = evaluation.value(best_by).filter(|_| !is_measured);
        let best = best.map(|value| (best_by.word(), value));
        for (name, value) in best.into_iter().chain(evaluation.own()) {
            metrics.set(name, value);
        }
        Ok(Some(metrics))
    }

    /// What the model predicts, as far as that is known before it is trained.
    fn outputs(&self) -> Outputs {
        self.card(0, "").outputs()
    }

    /// What one must know to use the trees of so many rounds.
    fn card(&self, rounds: u32, sha256: &str) -> Card {
        let card = Card::new(&self.tables.train, self.settings.objective, rounds, sha256);
        card.deciding(self.tables.decision)
    }

    /// What these margins of this rank's validation rows, and those of the other ranks, say of all of them.
    fn said_of_validation(
        &self,
        margins: &[f32],
        val: &Validation<'_>,
    ) -> Result<Predictions, TreesError> {
        let objective = self.settings.objective;
        let margins = gathered(self.together, margins, &val.shard, objective.outputs())?;
        let labels = self.tables.val_set().labels();
        let labels: Vec<u32> = (self.tables.val_rows.iter())
            .map(|&row| labels.get(row as usize).copied().unwrap_or(u32::MAX))
            .collect();
        Ok(said::predictions(objective, &margins, &labels))
    }

    /// Of rounds that are equally good the first is kept. Without validation every round is better than the one before.
    fn note_best(&self, best: &mut Option<Best>, round: u32, val: Option<&Metrics>) -> bool {
        let Some(val) = val else {
            return true;
        };
        let by = &self.part.settings.checkpoint.best;
        let value = |metrics: &Metrics| metrics.get(by.word()).unwrap_or(f64::NAN);
        let is_better = |best: &Best| by.is_better(value(val), value(&best.val));
        let better = best.as_ref().is_none_or(is_better);
        if better {
            let val = val.clone();
            *best = Some(Best { round, val });
        }
        better
    }

    fn report(&self, reporter: &mut Reporter, result: EpochResult) -> Result<(), TreesError> {
        if !self.is_first_rank() {
            return Ok(());
        }
        reporter.send(&FromWorker::Progress(Progress {
            epoch: result.epoch,
            step: 1,
            steps: 1,
            metrics: result.train.clone(),
            samples_per_s: result.samples_per_s,
            rank: 0,
        }))?;
        Ok(reporter.send(&FromWorker::Epoch(result))?)
    }

    /// What all ranks do next. Each hears the coordinator at another time; what any of them heard counts for all. When a
    /// checkpoint is due is rank 0's to say.
    fn vote(&self, round: u32, written: Instant) -> Result<Vote, TreesError> {
        let is_due = match self.part.settings.checkpoint.every {
            Interval::Steps(every) | Interval::Epochs(every) => {
                u64::from(round).is_multiple_of(every)
            }
            Interval::Seconds(seconds) => written.elapsed().as_secs_f64() >= seconds,
            Interval::Never => false,
        };
        let most = self.gang.assignment().max_steps;
        let is_over = most.is_some_and(|most| u64::from(round) >= most);
        let wish = self.gang.wish();
        let mut heard = [
            u64::from(wish == Wish::Stop || is_over),
            u64::from(wish == Wish::Pause),
            u64::from(is_due && self.is_first_rank()),
        ];
        self.together.sum(&mut heard)?;
        let [stop, pause, checkpoint] = heard.map(|ranks| ranks > 0);
        Ok(if stop {
            Vote::Stop
        } else if pause {
            Vote::Pause
        } else if checkpoint {
            Vote::Checkpoint
        } else {
            Vote::GoOn
        })
    }

    fn checkpoint(
        &mut self,
        rounds: u32,
        best: &Option<Best>,
        model: &[u8],
        history: &str,
    ) -> Result<(), TreesError> {
        let card = self.card(rounds, "");
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let header = Header {
            rounds,
            best: best.clone(),
            settings: self.part.settings.decides.clone(),
            data: self.part.found.sha256(),
            card: Some(card),
        };
        state::write(writer, &header, model, history)
    }
}

/// How much each row counts: by itself, and by its class.
fn weighed(targets: &[f32], own: Option<Vec<f32>>, by_class: &[f32]) -> Option<Vec<f32>> {
    if by_class.is_empty() {
        return own;
    }
    let of_class = targets.iter().map(|&class| by_class[class as usize]);
    Some(match own {
        None => of_class.collect(),
        Some(own) => own.iter().zip(of_class).map(|(own, of)| own * of).collect(),
    })
}

/// The margins of all ranks' rows, of which this rank has those of its shard. All ranks come here together.
fn gathered<T: Together>(
    together: &T,
    own: &[f32],
    shard: &Shard<'_>,
    outputs: usize,
) -> Result<Vec<f32>, T::Error> {
    // Others leave this rank's places at 0, so that the sums are what each wrote.
    let mut all = vec![0_u64; shard.all * outputs];
    let places = &mut all[shard.first * outputs..][..own.len()];
    for (place, margin) in places.iter_mut().zip(own) {
        *place = u64::from(margin.to_bits());
    }
    together.sum(&mut all)?;
    let numbers = all.into_iter();
    Ok(numbers.map(|bits| f32::from_bits(bits as u32)).collect())
}

/// What every end of the training says, after so many rounds.
fn ended(rounds: u32, best: &Option<Best>, (step_s, began): (f64, Instant)) -> Finished {
    Finished {
        interrupted: false,
        epochs: rounds,
        stopped_early: false,
        metrics: None,
        val: None,
        evaluation: None,
        best_epoch: best.as_ref().map(|best| best.round),
        weights_sha256: None,
        step_s,
        train_s: began.elapsed().as_secs_f64(),
        samples: 0,
        step_times: None,
    }
}
