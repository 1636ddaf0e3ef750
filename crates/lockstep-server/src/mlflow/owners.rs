//! Who may change registered models, by MLflow's clients and on pages alike.
//!
//! A model is of whoever made it through this server: that one adds versions and points aliases, since whoever loads
//! the newest version, or `champion`, trusts the model and not the version. A version is also of whoever made it, and of
//! whoever the run is of that it was made from. What is of nobody is for admins.

use super::{MlflowError, not_own, run_dir};
use crate::{Caller, Server};
use lockstep_runs::registry::{Model, Version};

/// Refuses a caller who may not change a model: describe it, add a version, point an alias, remove it.
pub(crate) fn may_change_model(caller: &Caller, model: &Model) -> Result<(), MlflowError> {
    let owner = model.details.owner.as_deref();
    match caller.owns(owner) {
        true => Ok(()),
        false => Err(not_own(caller, "model", &model.name, owner)),
    }
}

/// Refuses a caller who may not change what is said of a version, or remove it.
pub(super) fn may_change_version(
    server: &Server,
    caller: &Caller,
    model: &Model,
    version: &Version,
) -> Result<(), MlflowError> {
    let maker = version
        .mlflow
        .as_ref()
        .and_then(|sent| sent.owner.as_deref());
    let owns_run = || {
        // A run that is gone is nobody's.
        let run = run_dir(server, &version.lineage.run);
        run.is_ok_and(|run| super::may_change(server, caller, &run).is_ok())
    };
    match caller.owns(maker) || owns_run() {
        true => Ok(()),
        false => may_change_model(caller, model),
    }
}
