//! What decides a run's result, and so must stay the same from one part of the run to the next.
//!
//! Data, model and training are in it. What each part of a run may choose for itself is not: workers,
//! threads, the number of epochs.

use crate::prepare::steps_per_epoch;
use crate::pretrained;
use crate::sets::Sets;
use lockstep_nn::Precision;
use lockstep_resolve::{TrainingSettings, hide_secrets};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is said of a run that a version with other numerics began.
const OTHER_NUMERICS: &str =
    "the version of Lockstep is one that computes other bits than the one that began the run";

/// All that decides a run's result, as a checkpoint keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ResumeFingerprint(Value);

impl ResumeFingerprint {
    /// Of a run with `settings` that began with weights of this hash, or with none. Of those weights the contents
    /// matter, not where they lie.
    pub(crate) fn new(settings: &TrainingSettings, sets: &Sets, pretrained: Value) -> Self {
        let mut value = settings.decides.clone();
        value["samples"] = json!(sets.sha256());
        value["layout"] = json!(lockstep_nn::LAYOUT_VERSION);
        value["numerics"] = json!(lockstep_nn::NUMERICS_VERSION);
        value["train"]["precision"] = json!(settings.learner.precision);
        if !sets.train.table().columns.is_empty() {
            value["data"]["standardise"] = json!(settings.standardise);
        }
        value["model"]["weights"] = pretrained;
        if !sets.val_indices.is_empty() {
            value["checkpoint"]["best"] = json!(settings.checkpoint.best);
        }
        if let Some(steps) = steps_of_whole_run(settings, sets) {
            value["train"]["schedule"]["steps"] = json!(steps);
        }
        Self(value)
    }

    /// The model as the job file describes it.
    pub(crate) fn model(&self) -> &Value {
        &self.0["model"]
    }

    /// SHA-256 of the weights that the run began with.
    pub(crate) fn pretrained(&self) -> Option<&str> {
        self.0["model"]["weights"].as_str()
    }

    /// In what a run with `settings` would differ from the run that this is of: a sentence for each key.
    pub(crate) fn changes(&self, settings: &TrainingSettings, sets: &Sets) -> Vec<String> {
        let mut was = self.0.clone();
        // Earlier versions wrote them down.
        hide_secrets(&mut was["data"]);
        let table = sets.train.table();
        if !table.columns.is_empty() && was["data"]["standardise"].is_null() {
            // Earlier versions left plain numbers as they were.
            was["data"]["standardise"] = json!(!table.is_plain());
        }
        if was["train"]["precision"].is_null() {
            // Earlier versions had no other.
            was["train"]["precision"] = json!(Precision::F32);
        }
        let was = &was;
        let Self(is) = Self::new(
            settings,
            sets,
            pretrained_now(settings, &was["model"]["weights"]),
        );
        let mut changes = differences("", was, &is);
        changes.retain(|change| !change.starts_with("samples "));
        changes.extend(other_samples(&was["samples"], sets));
        if let Some(steps) = steps_of_whole_run(settings, sets) {
            let key = "train.schedule.steps ";
            for change in changes.iter_mut().filter(|change| change.starts_with(key)) {
                let before = &was["train"]["schedule"]["steps"];
                *change = format!(
                    "train.schedule is over the steps of the whole run, which were {before} and are \
                     {steps} with {} epochs; set train.schedule.steps = {before} to keep it as it was",
                    settings.learner.epochs
                );
            }
        }
        changes
    }
}

/// What is said of sets that hold other samples than when the run began.
fn other_samples(was: &Value, sets: &Sets) -> Vec<String> {
    let names = [("data.train", &sets.train), ("data.val", sets.val_set())];
    let now = sets.sha256();
    let before = was.as_array().map_or(&[][..], Vec::as_slice);
    let mut said = Vec::new();
    for (at, (key, set)) in names.iter().enumerate() {
        if before.get(at).and_then(Value::as_str) != now.get(at).map(String::as_str) {
            let name = set.name();
            said.push(format!(
                "the samples of {key} are not those that the run began with: {name} has changed since"
            ));
        }
    }
    said
}

/// Steps of the whole run, if the learning rate depends on them.
fn steps_of_whole_run(settings: &TrainingSettings, sets: &Sets) -> Option<u64> {
    let epochs = u64::from(settings.learner.epochs);
    let schedule = &settings.learner.schedule;
    schedule
        .is_over_whole_run()
        .then(|| epochs * steps_per_epoch(settings, &sets.facts()))
}

/// The weights that the job begins with now, as [`ResumeFingerprint`] holds them. A run that went on from them
/// does not need them any more: the file may be gone.
fn pretrained_now(settings: &TrainingSettings, before: &Value) -> Value {
    match &settings.weights {
        None => Value::Null,
        Some(path) => match pretrained::sha256_of(path) {
            Some(sha256) => json!(sha256),
            None if before.is_string() => before.clone(),
            None => json!(path),
        },
    }
}

/// The keys in which two values differ, with both values.
fn differences(key: &str, was: &Value, is: &Value) -> Vec<String> {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a
                .keys()
                .chain(b.keys().filter(|key| !a.contains_key(*key)))
                .collect();
            keys.sort();
            keys.into_iter()
                .flat_map(|name| {
                    let path = if key.is_empty() {
                        name.clone()
                    } else {
                        format!("{key}.{name}")
                    };
                    let missing = &Value::Null;
                    differences(
                        &path,
                        a.get(name).unwrap_or(missing),
                        b.get(name).unwrap_or(missing),
                    )
                })
                .collect()
        }
        _ if was == is => Vec::new(),
        _ if key == "numerics" => vec![OTHER_NUMERICS.to_owned()],
        _ => vec![format!("{key} was {was}, is {is}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_differs_is_named_with_both_values() {
        let was = json!({ "a": { "b": 1, "c": [1, 2] }, "same": "x", "gone": 1 });
        let is = json!({ "a": { "b": 2, "c": [1, 3] }, "same": "x", "new": null });
        assert_eq!(
            differences("", &was, &is),
            [
                "a.b was 1, is 2",
                "a.c was [1,2], is [1,3]",
                "gone was 1, is null"
            ]
        );
        let [was, is] = [json!({}), json!({ "numerics": 2 })];
        assert_eq!(differences("", &was, &is), [OTHER_NUMERICS]);
    }
}
