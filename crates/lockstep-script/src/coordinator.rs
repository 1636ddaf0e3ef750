//! The coordinator's side of the learner that is a user's own script.

use crate::checkpoints::history;
use crate::part::ScriptPart;
use crate::sets::ScriptSets;
use crate::{ScriptError, learner};
use lockstep_base::fs::CacheDir;
use lockstep_events::control::Assignment;
use lockstep_job::{ScriptCheckpoint, ScriptTraining};
use lockstep_learner::{
    Coordinator, EarlierRun, Fact, Forecast, FoundData, Learner, LearnerError, LearnerFailure,
    LearnerNeeds, LearnerType, ResumePoint, RunFacts, RunPlan, VectorFacts,
};
use lockstep_place::Access;
use lockstep_resolve::{PictureInput, ResolvedScript};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What the learner is called in assignments.
const KIND: &str = "script";

/// The learner that is a user's own script.
#[derive(Debug)]
pub struct ScriptLearner;

impl LearnerType for ScriptLearner {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn open(&self, assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
        learner::open(assignment)
    }

    fn needs(&self) -> LearnerNeeds {
        LearnerNeeds {
            program: Some("python"),
            opens_data: false,
        }
    }

    fn predicts(&self) -> bool {
        false
    }
}

/// How a script is started.
#[derive(Debug, Clone)]
pub struct ScriptSettings {
    /// The job's name.
    pub name: String,
    /// The keys of `[train]`.
    pub train: ScriptTraining,
    /// The keys of `[checkpoint]`.
    pub checkpoint: ScriptCheckpoint,
    /// How often the gang may begin again.
    pub max_restarts: u32,
    /// Where the script starts: the job file's folder.
    pub folder: PathBuf,
}

/// A job that starts a script.
pub struct ScriptCoordinator {
    settings: ScriptSettings,
    job: ResolvedScript,
}

impl ScriptCoordinator {
    /// Of how the script is started, and what its job means.
    pub fn new(settings: ScriptSettings, job: ResolvedScript) -> Self {
        Self { settings, job }
    }
}

impl From<ScriptError> for LearnerError {
    fn from(error: ScriptError) -> Self {
        Self::of_job(error)
    }
}

impl Coordinator for ScriptCoordinator {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn prepare(
        self: Box<Self>,
        _pictures: Option<PictureInput>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn RunPlan>, LearnerError> {
        let sets = ScriptSets::find(&self.job, cache, progress)?;
        let train = &self.settings.train;
        let found = sets.by_use();
        let facts = RunFacts {
            train_samples: sets.samples("train"),
            val_samples: sets.samples("val"),
            test_samples: sets.samples("test"),
            command: train.command.clone(),
            sets: found
                .map(|(set, name, sha256)| FoundData::new(set, name, sha256))
                .collect(),
            stall_s: Some(train.stall_s),
            ..RunFacts::default()
        };
        Ok(Box::new(ScriptRun {
            facts,
            sets,
            settings: self.settings,
            access: self.job.access,
        }))
    }

    /// What the script does is the script's own: only what is started is known.
    fn forecast(
        &self,
        _vectors: Option<&VectorFacts>,
        _cache: &CacheDir,
        _progress: &mut dyn FnMut(&str),
    ) -> Result<Forecast, LearnerError> {
        let train = &self.settings.train;
        let workers = train.workers.max;
        Ok(Forecast {
            layers: Vec::new(),
            facts: vec![
                ("command", Fact::Command(train.command.clone())),
                ("workers", Fact::Workers(workers)),
            ],
            notes: Vec::new(),
            json: json!({
                "name": self.settings.name,
                "command": train.command,
                "workers": workers,
            }),
        })
    }
}

/// A run that starts a script as a gang.
struct ScriptRun {
    facts: RunFacts,
    settings: ScriptSettings,
    access: Access,
    sets: ScriptSets,
}

impl RunPlan for ScriptRun {
    fn facts(&self) -> &RunFacts {
        &self.facts
    }

    fn check_resume(&self, earlier: &EarlierRun<'_>) -> Result<ResumePoint, LearnerError> {
        Ok(ResumePoint {
            step: earlier.step,
            epochs: 0,
            history: history(earlier.run, earlier.checkpoint)?,
            words: None,
        })
    }

    fn part(&self, run: &str, _workers: usize) -> Value {
        let settings = self.settings.clone();
        let part = ScriptPart {
            job: settings.name,
            run: run.to_owned(),
            train: settings.train,
            checkpoint: settings.checkpoint,
            max_restarts: settings.max_restarts,
            folder: settings.folder,
            access: self.access.clone(),
            sets: self.sets.clone(),
        };
        serde_json::to_value(part).expect("settings are plain data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::{Job, LearnerJob};
    use lockstep_learner::conformance::{Subject, check};

    #[test]
    fn scripts_keep_the_promises_of_a_learner() {
        let folder = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir().unwrap();
        let make = || -> Box<dyn Coordinator> {
            let command = vec!["true".to_owned()];
            let job = Job::of_command("x", folder.path(), command, 2);
            let LearnerJob::Script(own) = &job.learner else {
                panic!("{job:?}");
            };
            let settings = ScriptSettings {
                name: job.name.clone(),
                train: own.train.clone(),
                checkpoint: own.checkpoint.clone(),
                max_restarts: job.recover.max_restarts,
                folder: folder.path().to_owned(),
            };
            let resolved = ResolvedScript::of(&job).unwrap();
            Box::new(ScriptCoordinator::new(settings, resolved))
        };
        check(&Subject {
            learner: &ScriptLearner,
            make: &make,
            folder: folder.path(),
            cache: &CacheDir::at(cache.path()).unwrap(),
        });
    }
}
