//! The coordinator's side of the learner that is a user's own script.

use crate::checkpoints::history;
use crate::part::ScriptPart;
use crate::sets::ScriptSets;
use crate::{ScriptError, learner};
use lockstep_base::fs::CacheDir;
use lockstep_events::control::Assignment;
use lockstep_learner::{
    Coordinator, EarlierRun, Fact, Forecast, FoundData, Learner, LearnerError, LearnerFailure,
    LearnerNeeds, LearnerType, ResumePoint, RunFacts, RunPlan, VectorFacts,
};
use lockstep_resolve::{PictureInput, ResolvedScript, masked_words};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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

/// A job that starts a script.
pub struct ScriptCoordinator {
    workers: usize,
    folder: PathBuf,
    job: ResolvedScript,
}

impl ScriptCoordinator {
    /// Of what a job means that has at most so many workers, each of which starts in `folder`.
    pub fn new(workers: usize, folder: &Path, job: ResolvedScript) -> Self {
        Self {
            workers,
            folder: folder.to_owned(),
            job,
        }
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
        let settings = self.job.settings;
        let found = sets.by_use();
        let facts = RunFacts {
            train_samples: sets.samples("train"),
            val_samples: sets.samples("val"),
            test_samples: sets.samples("test"),
            command: shown(&settings.command),
            sets: found
                .map(|(set, name, sha256)| FoundData::new(set, name, sha256))
                .collect(),
            stall_s: Some(settings.stall_s),
            ..RunFacts::default()
        };
        Ok(Box::new(ScriptRun {
            facts,
            part: ScriptPart {
                settings,
                run: String::new(),
                folder: self.folder,
                access: self.job.access,
                sets,
            },
        }))
    }

    /// What the script does is the script's own: only what is started is known.
    fn forecast(
        &self,
        _vectors: Option<&VectorFacts>,
        _cache: &CacheDir,
        _progress: &mut dyn FnMut(&str),
    ) -> Result<Forecast, LearnerError> {
        let (settings, workers) = (&self.job.settings, self.workers);
        Ok(Forecast {
            layers: Vec::new(),
            facts: vec![
                ("command", Fact::Command(shown(&settings.command))),
                ("workers", Fact::Workers(workers)),
            ],
            notes: Vec::new(),
            json: json!({
                "name": settings.job,
                "command": shown(&settings.command),
                "workers": workers,
            }),
        })
    }
}

/// A command without secrets.
fn shown(command: &[String]) -> Vec<String> {
    masked_words(command.iter().map(String::as_str))
}

/// A run that starts a script as a gang.
struct ScriptRun {
    facts: RunFacts,
    /// What workers are told, but for the name of the run.
    part: ScriptPart,
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
        let part = ScriptPart {
            run: run.to_owned(),
            ..self.part.clone()
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
            let resolved = ResolvedScript::of(&job, own).unwrap();
            Box::new(ScriptCoordinator::new(2, folder.path(), resolved))
        };
        check(&Subject {
            learner: &ScriptLearner,
            make: &make,
            folder: folder.path(),
            cache: &CacheDir::at(cache.path()).unwrap(),
        });
    }
}
