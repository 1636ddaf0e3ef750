//! `[track]`: who else keeps a record of the run.

use crate::field::{Field, Rule};
use crate::keys::{Any, By, FromField, keys};
use crate::storage::{web_address, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What turns MLflow off where the environment names a server.
const NONE: &str = "none";

/// The most characters that MLflow takes in the names of models and aliases.
const LONGEST: usize = 255;

keys! {
    /// Who else keeps a record of the run. Tokens and passwords are not here: they come from the variables of the
    /// environment that MLflow's own client uses.
    pub struct Track: all default {
        /// The address of an MLflow server. If left out, that of `MLFLOW_TRACKING_URI` in the environment, if there is
        /// one; `"none"` for no server at all.
        mlflow: Option<String> = optional => By(server);
        /// The experiment of MLflow that the runs belong to. If left out, `MLFLOW_EXPERIMENT_NAME`, else the job's name.
        experiment: Option<String> = optional => By(words);
        /// What MLflow calls the run. If left out, `MLFLOW_RUN_NAME`, else the run's own name.
        run_name: Option<String> = optional => By(words);
        /// The name under which MLflow registers the model of a run that succeeded, as a new version.
        register: Option<String> = optional => By(registered_name);
        /// The alias that the new version gets, such as `"champion"`.
        alias: Option<String> = optional => Any, |field, ()| match register {
            Some(None) => field.reject("is for a registered model", "add `register = \"...\"`, or leave this out"),
            _ => alias_name(field),
        };
        /// Whether event files for TensorBoard are written: `true` for `tensorboard` in the run's folder, or a folder in
        /// which each run gets one of its own.
        tensorboard: TensorBoard = default(TensorBoard::Switch(false)) => Any;
        /// Whether TensorBoard gets histograms of the weights, of every checkpoint.
        histograms: bool = default(false) => Any;
        /// Whether what workers use (processor, memory) is tracked too.
        system: bool = default(true) => Any;
        /// Whether MLflow gets what was not committed when the run began, too: `uncommitted.diff`.
        uncommitted: bool = default(false) => Any;
        /// Seconds that the end of a run waits until all is tracked. What is not then can be sent later.
        wait_s: f64 = default(15.0) => Rule::SECONDS;
    }
}

/// Where event files for TensorBoard go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TensorBoard {
    /// Into the run's folder, or nowhere.
    Switch(bool),
    /// Into a folder in which each run gets one of its own.
    Folder(PathBuf),
}

impl FromField for TensorBoard {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        match field.is_text() {
            true => Some(Self::Folder(field.path()?)),
            false => Some(Self::Switch(field.boolean()?)),
        }
    }
}

impl Track {
    /// The server that the job names; `Err` where it wants none, whatever the environment says.
    #[allow(
        clippy::result_unit_err,
        reason = "three answers: this one, the environment's, none"
    )]
    pub fn server(&self) -> Result<Option<&str>, ()> {
        match self.mlflow.as_deref() {
            Some(NONE) => Err(()),
            server => Ok(server),
        }
    }
}

/// The name of a registered model, as MLflow has it.
fn registered_name(field: &Field<'_>) -> Option<String> {
    let name = words(field)?;
    match name.contains(['/', ':']) || name.len() > LONGEST {
        false => Some(name),
        true => field.reject(
            format!("cannot be {name:?}"),
            format!("use at most {LONGEST} characters, none of them `/` or `:`"),
        ),
    }
}

/// The name of an alias, as MLflow has it. It keeps `latest` and `v1` for itself.
fn alias_name(field: &Field<'_>) -> Option<String> {
    let name = words(field)?;
    let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let number = name.strip_prefix(['v', 'V']);
    let is_number = number
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    let is_kept = is_number || name.eq_ignore_ascii_case("latest");
    match name.chars().all(fits) && !is_kept && name.len() <= LONGEST {
        true => Some(name),
        false => field.reject(
            format!("cannot be {name:?}"),
            format!(
                "use at most {LONGEST} letters, digits, `-` or `_`, but not `latest`, nor `v` and a number"
            ),
        ),
    }
}

fn server(field: &Field<'_>) -> Option<String> {
    match field.text()? {
        NONE => Some(NONE.to_owned()),
        _ => web_address(field),
    }
}
