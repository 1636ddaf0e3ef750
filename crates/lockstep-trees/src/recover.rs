//! The model of a run that did not end: that of its newest whole checkpoint.

use crate::publish::{self, Card};
use crate::state::Saved;
use crate::xgboost::{Booster, ModelFormat};
use crate::{TreesError, load_xgboost};
use lockstep_base::fs::sha256;
use lockstep_runs::RunDir;

/// Writes the `model` folder of a run from its newest whole checkpoint: the trees up to the best round so far, or all of
/// them where nothing is validated. Says in words which those are; nothing if the run has left no checkpoint.
///
/// # Errors
/// When the checkpoint cannot be read or is of an earlier version of this program, the files cannot be written, or XGBoost
/// is not here.
pub fn recover_model(run: &RunDir) -> Result<Option<String>, TreesError> {
    let Some(found) = run.checkpoints().newest()? else {
        return Ok(None);
    };
    let place = found.checkpoint.place();
    let Saved { header, model, .. } = Saved::open(place)?;
    let reason = "it was written by an earlier lockstep and does not say what the trees are of; go on with the run: \
                  --resume";
    let card = header
        .card
        .ok_or_else(|| TreesError::saved(place, reason))?;
    let kept = header
        .best
        .as_ref()
        .map_or(header.rounds, |best| best.round);
    let xgboost = load_xgboost()?;
    let mut booster = Booster::new(&xgboost, &[])?;
    booster.load(&model)?;
    let model = match kept < header.rounds {
        true => booster
            .first_rounds(kept as usize)?
            .save(ModelFormat::Ubj)?,
        false => model,
    };
    let card = Card {
        rounds: kept,
        weights_sha256: sha256(&model),
        ..card
    };
    publish::write(run, &card, &model)?;
    Ok(Some(match kept < header.rounds {
        true => format!(
            "the trees of round {kept}, the best up to round {}",
            header.rounds
        ),
        false => format!("the trees of round {kept}"),
    }))
}
