//! The coordinator's side of the learner of trees.

use crate::plan::threads;
use crate::state::check_resume;
use crate::trained::{TrainedTrees, is_of_trees};
use crate::{PreparedTrees, TreesError, TreesPart, learner, prepare, recover_model};
use lockstep_base::cores;
use lockstep_base::fs::CacheDir;
use lockstep_events::control::Assignment;
use lockstep_events::event::WorkerThreads;
use lockstep_learner::{
    Coordinator, EarlierRun, Fact, Forecast, FoundData, Learner, LearnerError, LearnerFailure,
    LearnerNeeds, LearnerType, ModelDevice, ResumePoint, RunFacts, RunPlan, TrainedModel,
    VectorFacts,
};
use lockstep_resolve::{PictureInput, ResolvedTrees};
use lockstep_runs::RunDir;
use serde_json::{Value, json};

/// What the learner is called in assignments.
const KIND: &str = "trees";
/// Seconds without any sign of work after which all workers are taken to hang: a round on a large table is one call of
/// XGBoost's.
const STALL_S: f64 = 600.0;

/// The learner of trees.
#[derive(Debug)]
pub struct TreesLearner;

impl LearnerType for TreesLearner {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn open(&self, assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
        learner::open(assignment)
    }

    fn needs(&self) -> LearnerNeeds {
        LearnerNeeds {
            program: Some("xgboost"),
            opens_data: false,
        }
    }

    fn open_model(
        &self,
        run: &RunDir,
        on: ModelDevice,
    ) -> Result<Option<Box<dyn TrainedModel>>, LearnerError> {
        Ok(match is_of_trees(run)? {
            true => Some(Box::new(TrainedTrees::open(run, on.threads)?)),
            false => None,
        })
    }

    fn recover_model(&self, run: &RunDir) -> Result<Option<String>, LearnerError> {
        Ok(recover_model(run)?)
    }
}

/// A job that grows trees.
pub struct TreesCoordinator {
    name: String,
    workers: usize,
    job: ResolvedTrees,
}

impl TreesCoordinator {
    /// Of a job of this name, which has at most so many workers, and what it means.
    pub fn new(name: &str, workers: usize, job: ResolvedTrees) -> Self {
        Self {
            name: name.to_owned(),
            workers,
            job,
        }
    }

    fn threads(&self, prepared: &PreparedTrees) -> WorkerThreads {
        let cores = cores::share(self.workers);
        threads(&self.job.settings, prepared.train_rows, cores)
    }
}

impl From<TreesError> for LearnerError {
    fn from(error: TreesError) -> Self {
        Self::of_job(error)
    }
}

impl Coordinator for TreesCoordinator {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn forks(&self) -> Result<bool, LearnerError> {
        let reason = "trees do not begin with those of another run; --resume goes on with that one";
        Err(TreesError::misfit("--fork", reason).into())
    }

    fn prepare(
        self: Box<Self>,
        _pictures: Option<PictureInput>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn RunPlan>, LearnerError> {
        let prepared = prepare(&self.job, cache, progress)?;
        let facts = RunFacts {
            threads: Some(self.threads(&prepared)),
            ..facts(self.job.settings.model.rounds, &prepared)
        };
        let part = TreesPart {
            settings: self.job.settings,
            sources: self.job.sets,
            access: self.job.access,
            found: prepared.found,
        };
        Ok(Box::new(TreesRun { facts, part }))
    }

    fn forecast(
        &self,
        _vectors: Option<&VectorFacts>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Forecast, LearnerError> {
        let prepared = prepare(&self.job, cache, progress)?;
        let rounds = self.job.settings.model.rounds;
        let words = match self.job.settings.patience {
            Some(patience) => format!("{rounds}, fewer after {patience} that are no better"),
            None => rounds.to_string(),
        };
        let samples = Fact::Samples {
            train: prepared.train_rows,
            val: prepared.val_rows,
            test: prepared.test_rows,
        };
        Ok(Forecast {
            layers: Vec::new(),
            facts: vec![
                ("samples", samples),
                ("rounds", Fact::Words(words)),
                ("workers", Fact::Workers(self.workers)),
                ("threads", Fact::Threads(self.threads(&prepared))),
                ("measured by", Fact::Words(prepared.metrics.join(", "))),
            ],
            json: json!({
                "name": self.name,
                "train_samples": prepared.train_rows,
                "val_samples": prepared.val_rows,
                "test_samples": prepared.test_rows,
                "rounds": rounds,
                "workers": self.workers,
                "threads": self.threads(&prepared),
                "metrics": prepared.metrics,
                "notes": prepared.notes,
            }),
            notes: prepared.notes,
        })
    }
}

fn facts(rounds: u32, prepared: &PreparedTrees) -> RunFacts {
    let found = prepared.found.by_use();
    RunFacts {
        train_samples: prepared.train_rows,
        val_samples: prepared.val_rows,
        test_samples: prepared.test_rows,
        steps_per_epoch: 1,
        epochs: rounds,
        metrics: prepared.metrics.clone(),
        notes: prepared.notes.clone(),
        libraries: vec![prepared.library.clone()],
        sets: found
            .map(|(name, set)| FoundData::new(name, &set.name, &set.sha256))
            .collect(),
        stall_s: Some(STALL_S),
        ..RunFacts::default()
    }
}

/// A run that grows trees.
struct TreesRun {
    facts: RunFacts,
    part: TreesPart,
}

impl RunPlan for TreesRun {
    fn facts(&self) -> &RunFacts {
        &self.facts
    }

    fn check_resume(&self, earlier: &EarlierRun<'_>) -> Result<ResumePoint, LearnerError> {
        let (settings, data) = (&self.part.settings, self.part.found.sha256());
        let point = check_resume(settings, &data, earlier.checkpoint)?;
        let (rounds, wanted) = (point.rounds, settings.model.rounds);
        if rounds >= wanted && earlier.has_succeeded_with(rounds) {
            let reason = format!(
                "the run has trained {rounds} rounds already, and the job asks for {wanted}; ask for more"
            );
            return Err(TreesError::saved(earlier.checkpoint, reason).into());
        }
        let name = &earlier.run.name;
        Ok(ResumePoint {
            step: earlier.step,
            epochs: rounds,
            history: point.history,
            words: Some(format!("going on with {name} after round {rounds}")),
        })
    }

    fn part(&self, _run: &str, _workers: usize) -> Value {
        serde_json::to_value(&self.part).expect("settings are plain data")
    }
}
