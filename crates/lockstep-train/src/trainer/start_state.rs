//! What training begins with: a copy of the state in memory, a snapshot, the weights of a file, or weights drawn from the seed.

use crate::copies::CopiesHere;
use crate::prepare::steps_per_epoch;
use crate::sets::Sets;
use crate::snapshot::{Position, Snapshot};
use crate::{LearnerPart, TrainError, pretrained};
use lockstep_events::control::Assignment;
use lockstep_nn::{LossSum, Model};
use lockstep_place::Place;

/// Reads the state that the assignment names.
pub(super) fn start_state(
    assignment: &Assignment,
    part: &LearnerPart,
    sets: &Sets,
    model: &Model,
    copies: Option<&CopiesHere<'_>>,
) -> Result<Snapshot, TrainError> {
    let settings = &part.settings;
    let steps = steps_per_epoch(settings, &sets.facts());
    let of = (model.layout().len(), steps);
    if let Some(copy) = copies.and_then(|copies| copies.read(settings, of)) {
        return copy;
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
