//! The state of a run of trees, as its checkpoints have it.

use crate::publish::Card;
use crate::{TreesError, check_model};
use lockstep_events::Metrics;
use lockstep_place::{Access, Place};
use lockstep_resolve::TreesSettings;
use lockstep_runs::checkpoint::{Checkpoint, CheckpointWriter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part of a checkpoint that holds the trees.
const MODEL: &str = "model.ubj";
/// The part that holds the record of all rounds.
const HISTORY: &str = lockstep_runs::files::METRICS;

/// What the header of a checkpoint says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Rounds that were trained.
    pub(crate) rounds: u32,
    /// The best of them.
    pub(crate) best: Option<Best>,
    /// What the run was trained with, as [`TreesSettings::decides`]: one that goes on must be the same.
    pub(crate) settings: Value,
    /// What it was trained on.
    pub(crate) data: Vec<String>,
    /// What the trees are of; none in a checkpoint of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) card: Option<Card>,
}

/// The round that is the best so far on validation data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    /// Counted from 1.
    pub(crate) round: u32,
    /// What it was worth.
    pub(crate) val: Metrics,
}

/// The state that a generation goes on from.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) header: Header,
    pub(crate) model: Vec<u8>,
    pub(crate) history: String,
}

impl Saved {
    /// Reads the checkpoint in a folder.
    pub(crate) fn open(place: &Place) -> Result<Self, TreesError> {
        let refused = |reason: String| TreesError::saved(place, reason);
        let checkpoint = Checkpoint::open(place).map_err(|error| refused(error.to_string()))?;
        let header = serde_json::from_value(checkpoint.header().clone());
        let header = header.map_err(|error| refused(format!("it is not one of trees: {error}")))?;
        let part = |name: &str| {
            let bytes = checkpoint
                .part(name)
                .map_err(|error| refused(error.to_string()))?;
            bytes.ok_or_else(|| refused(format!("it lacks {name}")))
        };
        let model = part(MODEL)?;
        check_model(&model).map_err(|problem| refused(format!("{MODEL}: {problem}")))?;
        Ok(Self {
            header,
            model,
            history: String::from_utf8_lossy(&part(HISTORY)?).into_owned(),
        })
    }

    /// Reads the checkpoint at a place of this name.
    pub(crate) fn at(place: &str, access: &Access) -> Result<Self, TreesError> {
        Self::open(&Place::parse(place, access)?)
    }
}

/// Writes a checkpoint.
pub(crate) fn write(
    writer: &mut CheckpointWriter,
    header: &Header,
    model: &[u8],
    history: &str,
) -> Result<(), TreesError> {
    let label = format!("step-{}", header.rounds);
    let named = serde_json::to_value(header).expect("a header is plain data");
    writer.write(
        &label,
        named,
        &[(MODEL, model), (HISTORY, history.as_bytes())],
    )?;
    Ok(())
}

/// Where a run of trees goes on.
#[derive(Debug)]
pub(crate) struct TreesResume {
    /// The record of metrics up to there.
    pub(crate) history: String,
    /// Rounds that were trained.
    pub(crate) rounds: u32,
}

/// Checks that a run can go on from a checkpoint with these settings and this data.
///
/// # Errors
/// When what must not change has changed, which is named, or the checkpoint cannot be read.
pub(crate) fn check_resume(
    settings: &TreesSettings,
    data: &[String],
    checkpoint: &Place,
) -> Result<TreesResume, TreesError> {
    let saved = Saved::open(checkpoint)?;
    let refused = |reason: String| TreesError::saved(checkpoint, reason);
    if saved.header.data != data {
        return Err(refused(
            "the run was trained on other rows than data.train and data.val have now; a run goes on with the same rows"
                .to_owned(),
        ));
    }
    if let Some((key, then, now)) = change(&saved.header.settings, &settings.decides) {
        return Err(refused(format!(
            "the run was trained with {key} = {then}, and the job says {now}; only rounds, threads, patience and \
             [checkpoint] may change"
        )));
    }
    Ok(TreesResume {
        rounds: saved.header.rounds,
        history: saved.history,
    })
}

/// The first key in which a run would differ from what it began with, and both values. How long, with how many threads and
/// how safely may change; what the trees are may not.
fn change(then: &Value, now: &Value) -> Option<(String, String, String)> {
    let fixed = |settings: &Value| {
        let mut fixed = settings.clone();
        fixed["model"]["rounds"] = Value::Null;
        for free in ["threads", "patience", "checkpoint"] {
            fixed[free] = Value::Null;
        }
        if fixed["stratify"].is_null() {
            // Earlier versions did not have it.
            fixed["stratify"] = Value::Bool(false);
        }
        fixed
    };
    difference("", &fixed(then), &fixed(now))
}

/// The first key whose values differ.
fn difference(path: &str, then: &Value, now: &Value) -> Option<(String, String, String)> {
    match (then.as_object(), now.as_object()) {
        (Some(then), Some(now)) => then.keys().chain(now.keys()).find_map(|key| {
            let path = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            let null = Value::Null;
            let values = (
                then.get(key).unwrap_or(&null),
                now.get(key).unwrap_or(&null),
            );
            difference(&path, values.0, values.1)
        }),
        _ if then == now => None,
        _ => Some((path.to_owned(), then.to_string(), now.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::{Job, LearnerJob};
    use lockstep_resolve::ResolvedTrees;
    use std::path::Path;

    /// What the first version that grew trees wrote into its checkpoints.
    const EARLIER: &str = r#"{"model":{"kind":"xgboost","rounds":10,"depth":3,"eta":0.1,"objective":null,"exact":true,
        "gamma":null,"subsample":0.7,"parameters":{}},"threads":2,"seed":7,"patience":null,"val_share":0.25,
        "checkpoint":{"every":"10 s","keep":3,"best":"loss"}}"#;

    fn decides(model: &str) -> Value {
        let text = format!(
            "name = 'x'\n[data]\ntrain = 'x.csv'\nval_split = 0.25\n[model]\nkind = 'xgboost'\ndepth = 3\n{model}\n\
             [train]\nseed = 7\npatience = 4\n[checkpoint]\nbest = 'accuracy'\n"
        );
        let job = Job::parse(Path::new("/jobs/job.toml"), &text, &[], None).unwrap();
        let LearnerJob::Trees(own) = &job.learner else {
            panic!("no trees");
        };
        ResolvedTrees::of(&job, own).unwrap().settings.decides
    }

    #[test]
    fn a_run_of_an_earlier_version_goes_on_with_the_same_trees_and_no_others() {
        let earlier: Value = serde_json::from_str(EARLIER).unwrap();
        let same = decides("eta = 0.1\nsubsample = 0.7\nrounds = 20");
        assert_eq!(change(&earlier, &same), None);
        let (key, then, now) = change(&earlier, &decides("eta = 0.2\nsubsample = 0.7")).unwrap();
        assert_eq!([key, then, now], ["model.eta", "0.1", "0.2"]);
        let mut on_gpu = same.clone();
        on_gpu["device"] = "cuda".into();
        let (key, then, now) = change(&earlier, &on_gpu).unwrap();
        assert_eq!([key, then, now], ["device", "null", "\"cuda\""]);
    }
}
