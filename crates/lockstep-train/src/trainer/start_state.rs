//! What training begins with: a snapshot, the weights of a file, or weights drawn from the seed.

use crate::sets::Sets;
use crate::snapshot::{Best, Position, Snapshot};
use crate::{LearnerPart, TrainError, pretrained};
use lockstep_events::control::Assignment;
use lockstep_nn::Model;
use lockstep_place::Place;

/// The state that a generation begins with.
#[derive(Default)]
pub(super) struct StartState {
    /// Where the run is; none is at its beginning.
    pub(super) position: Option<Position>,
    /// Parameters, then running statistics.
    pub(super) state: Vec<f32>,
    /// The optimizer's vectors; none are zeros.
    pub(super) planes: Option<[Vec<f32>; 2]>,
    /// The average of the weights so far, if the job keeps one.
    pub(super) average: Option<Vec<f32>>,
    pub(super) best: Option<Best>,
    /// What the epochs before came to, a JSON object a line.
    pub(super) history: String,
    /// SHA-256 of the file of weights that the run began with.
    pub(super) pretrained: Option<String>,
}

impl StartState {
    /// Reads what the assignment names.
    pub(super) fn read(
        assignment: &Assignment,
        part: &LearnerPart,
        sets: &Sets,
        model: &Model,
    ) -> Result<Self, TrainError> {
        let settings = &part.settings;
        if let Some(checkpoint) = &assignment.resume {
            let checkpoint = Place::parse(checkpoint, &part.access)?;
            let snapshot = Snapshot::read(&checkpoint, settings, sets, model.layout().len())?;
            return Ok(Self {
                position: Some(snapshot.position),
                state: snapshot.state,
                planes: Some(snapshot.planes),
                average: snapshot.average,
                best: snapshot.best,
                history: snapshot.history,
                pretrained: snapshot.pretrained,
            });
        }
        let Some(path) = &settings.weights else {
            return Ok(Self {
                state: model.initial_state(settings.seed),
                ..Self::default()
            });
        };
        let known = part.pretrained.as_deref();
        let weights = pretrained::read(path, model, settings.seed, known)?;
        Ok(Self {
            state: weights.state,
            pretrained: Some(weights.sha256),
            ..Self::default()
        })
    }
}
