//! What is known of a version of a model.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the format of these files.
pub(crate) const FORMAT: u32 = 1;

/// Where a version comes from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lineage {
    /// The run that it was made from.
    pub run: String,
    /// That run's job.
    pub job: String,
    /// The hash of the job as it ran.
    pub job_sha256: String,
    /// The hash of the weights.
    pub weights_sha256: String,
    /// The git commit of the job's folder, if it was known.
    pub commit: Option<String>,
    /// The sets that it learned from and was measured on, with their hashes.
    pub data: Value,
    /// What the weights came to.
    pub metrics: BTreeMap<String, f64>,
}

/// A version of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The version of the format of this file.
    pub format: u32,
    /// The model's name.
    pub name: String,
    /// The version's number, counted from 1.
    pub number: u64,
    /// When it was made, in seconds since 1970 in UTC.
    pub created: f64,
    /// What the user says of it.
    #[serde(default)]
    pub note: String,
    /// The folder of its files, within the model's.
    pub folder: String,
    /// How many bytes they have.
    pub bytes: u64,
    /// Where it comes from.
    pub lineage: Lineage,
    /// What MLflow's client said of it, if one made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlflow: Option<MlflowVersion>,
}

/// What a client of MLflow said of a version when it made it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MlflowVersion {
    /// Where the client had it from.
    pub source: String,
    /// The logged model that it is; empty for none.
    pub model_id: String,
    /// A link to the run.
    pub run_link: String,
    /// The name of the token that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// What is left of a version that was removed, so that its number is not given again.
#[derive(Debug, Serialize)]
pub(crate) struct Removed {
    pub(crate) format: u32,
    pub(crate) removed: f64,
}

/// The aliases of a model.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Aliases {
    pub(crate) format: u32,
    #[serde(default)]
    pub(crate) aliases: BTreeMap<String, u64>,
    /// What was changed, the last change last.
    #[serde(default)]
    pub(crate) history: Vec<Pointed>,
}

/// An alias that was pointed somewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pointed {
    pub(crate) time: f64,
    pub(crate) alias: String,
    /// The version, or nothing when the alias was taken away.
    pub(crate) version: Option<u64>,
}
