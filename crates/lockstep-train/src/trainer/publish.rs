//! What a run leaves behind: weights, evaluation, checkpoints. Rank 0 writes them; the other ranks'
//! publishers write nothing.

use crate::LearnerPart;
use crate::TrainError;
use crate::card::Card;
use crate::checkpoint::Checkpointer;
use crate::resume_fingerprint::ResumeFingerprint;
use crate::sets::Sets;
use crate::snapshot::Subject;
use crate::weights::write_model;
use lockstep_events::control::Assignment;
use lockstep_events::event::EpochResult;
use lockstep_measure::Evaluation;
use lockstep_model::{Decision, EvaluationReport, PictureFiles, remove_evaluation};
use lockstep_nn::Layout;
use lockstep_place::{Access, Place};
use lockstep_resolve::TrainingSettings;
use lockstep_runs::{Generation, RunDir};
use serde_json::json;

/// Writes a run's results.
pub(super) struct Publisher<'a> {
    settings: TrainingSettings,
    sets: &'a Sets,
    run: RunDir,
    /// How places are reached.
    access: Access,
    /// Under which this gang writes.
    generation: Generation,
    /// Whether this rank writes.
    writes: bool,
    /// What each epoch came to, a JSON object a line; rank 0's alone.
    pub(super) history: String,
    pub(super) checkpoints: Checkpointer,
}

impl<'a> Publisher<'a> {
    /// `history` is what the epochs before came to, `pretrained` the hash of the weights that the run began
    /// with.
    pub(super) fn new(
        (assignment, part): (&Assignment, &LearnerPart),
        sets: &'a Sets,
        history: String,
        pretrained: Option<String>,
    ) -> Result<Self, TrainError> {
        let settings = part.settings.clone();
        let run = Place::parse(&assignment.run_dir, &part.access)?;
        let run = RunDir::open(&run)?;
        let generation = Generation {
            incarnation: assignment.incarnation.clone(),
            generation: assignment.generation,
        };
        let writes = assignment.rank == 0;
        let checkpoints = match writes {
            true => {
                let subject = Subject {
                    input_shape: sets.input_shape(),
                    classes: sets.train.outputs(),
                    card: Some(Card::new(&settings, sets)),
                    fingerprint: ResumeFingerprint::new(&settings, sets, json!(pretrained)),
                };
                Checkpointer::writer(&run, generation.clone(), &settings.checkpoint, subject)?
            }
            false => Checkpointer::follower(),
        };
        Ok(Self {
            settings,
            sets,
            run,
            access: part.access.clone(),
            generation,
            writes,
            history,
            checkpoints,
        })
    }

    /// Takes what an epoch came to into the history that checkpoints carry.
    pub(super) fn note_epoch(&mut self, result: &EpochResult) {
        self.history += &serde_json::to_string(result).expect("a result is plain data");
        self.history.push('\n');
    }

    /// Writes the weights, which decide in this way, and what one must know to use them.
    pub(super) fn weights(
        &self,
        layout: &Layout,
        state: &[f32],
        sha256: &str,
        decision: Option<Decision>,
    ) -> Result<(), TrainError> {
        if !self.writes {
            return Ok(());
        }
        self.run.check_there()?;
        self.run.check(&self.generation)?;
        lockstep_base::failpoint::reach("publish.weights");
        let card = Card::new(&self.settings, self.sets).deciding(decision);
        write_model(&self.run, &card, layout, state, sha256)
    }

    /// Writes what the weights are worth on the test set.
    pub(super) fn evaluation(&self, evaluation: &Evaluation) -> Result<(), TrainError> {
        match &self.sets.test {
            Some(set) if self.writes => {
                let report = EvaluationReport {
                    run: &self.run.name,
                    set,
                    pictures: PictureFiles::of(self.settings.pictures.as_ref(), &self.access),
                    evaluation,
                };
                Ok(report.write(self.run.place())?)
            }
            _ => Ok(()),
        }
    }

    /// Removes the evaluation of weights that are about to be replaced.
    pub(super) fn remove_evaluation(&self) {
        if self.writes {
            remove_evaluation(&self.run);
        }
    }
}
