//! The model of a run that did not end: that of its newest whole checkpoint.

use crate::fork::model_of;
use crate::snapshot::{Weights, read_weights};
use crate::weights::{sha256, write_model};
use crate::{SavedModel, TrainError};
use lockstep_learner::ForkFrom;
use lockstep_runs::RunDir;

/// Writes the `model` folder of a run from its newest whole checkpoint: the weights that it kept as the best so far, or
/// the last ones where nothing is validated. Says in words which those are; nothing if the run has left no checkpoint of
/// a network.
///
/// # Errors
/// When the checkpoint cannot be read or is of an earlier version of this program, or the files cannot be written.
pub fn recover_model(run: &RunDir) -> Result<Option<String>, TrainError> {
    let Some(found) = run.checkpoints().newest()? else {
        return Ok(None);
    };
    let place = found.checkpoint.place().clone();
    let refused = |reason| TrainError::resume(&place, reason);
    let Weights {
        subject,
        state,
        best_epoch,
    } = read_weights(&place, ForkFrom::Best)?;
    let Some(card) = &subject.card else {
        let reason = "it was written by an earlier lockstep and does not say what the weights are for; go on with \
                      the run: --resume";
        return Err(refused(reason.to_owned()));
    };
    let model = model_of(&subject).map_err(refused)?;
    let layout = model.layout();
    if layout.len() != state.len() {
        return Err(refused(
            "its weights are not those of its network".to_owned(),
        ));
    }
    write_model(run, card, layout, &state, &sha256(layout, &state))?;
    // What was written is what will be read.
    SavedModel::open(run)?;
    let step = found.checkpoint.step();
    Ok(Some(match best_epoch {
        Some(epoch) => format!("the weights of epoch {epoch}, the best up to step {step}"),
        None => format!("the weights of step {step}"),
    }))
}
