//! What training begins with: a copy of the state in memory, a snapshot, the weights of a file, or weights drawn from the seed.

use crate::prepare::steps_per_epoch;
use crate::sets::Sets;
use crate::snapshot::{Position, Snapshot};
use crate::{LearnerPart, TrainError, copies, pretrained};
use lockstep_events::control::Assignment;
use lockstep_gang::KeptState;
use lockstep_nn::{LossSum, Model};
use lockstep_place::Place;

/// Reads the state that the assignment names.
pub(super) fn start_state(
    assignment: &Assignment,
    part: &LearnerPart,
    sets: &Sets,
    model: &Model,
    kept: Option<&KeptState>,
) -> Result<Snapshot, TrainError> {
    let settings = &part.settings;
    let copy = assignment.copies.as_ref().and_then(copies::version);
    if let (Some(kept), Some(copy)) = (kept, copy) {
        let steps = steps_per_epoch(settings, &sets.facts());
        return copies::read(kept, copy, settings, (model.layout().len(), steps));
    }
    if let Some(checkpoint) = &assignment.resume {
        let checkpoint = Place::parse(checkpoint, &part.access)?;
        return Snapshot::read(&checkpoint, settings, sets, model.layout().len());
    }
    let (state, pretrained) = match &settings.weights {
        None => (model.initial_state(settings.seed), None),
        Some(path) => {
            let known = part.pretrained.as_deref();
            let weights = pretrained::read(path, model, settings.seed, known)?;
            (weights.state, Some(weights.sha256))
        }
    };
    let position = Position {
        lane_sums: vec![LossSum::default(); settings.lanes],
        ..Position::default()
    };
    Ok(Snapshot {
        position,
        state,
        pretrained,
        ..Snapshot::default()
    })
}
