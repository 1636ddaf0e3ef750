//! A run's configuration and origin in MLflow's words: parameters, tags and data sets.

use super::settings::MlflowSettings;
use crate::Origin;
use lockstep_events::event::Started;
use lockstep_runs::RunDir;
use serde_json::{Value, json};

/// The longest name and value of a parameter, and the longest value of a tag.
const LONGEST_KEY: usize = 250;
const LONGEST_PARAM: usize = 500;
const LONGEST_TAG: usize = 5000;
/// The longest digest of a data set.
const LONGEST_DIGEST: usize = 36;
/// Sections of the job that say nothing about what is learned.
const NOT_PARAMETERS: [&str; 5] = ["track.", "notify.", "kube.", "storage.", "run."];

/// The configuration as parameters.
pub(super) fn params(started: &Started) -> Vec<(String, String)> {
    let config = started.config.iter();
    let config = config.filter(|(key, _)| !NOT_PARAMETERS.iter().any(|p| key.starts_with(p)));
    let mut params: Vec<(String, String)> = config
        .map(|(key, value)| (name(key), cut(value, LONGEST_PARAM)))
        .collect();
    let counts = [
        ("parameters", started.parameters),
        ("train_samples", started.train_samples),
        ("val_samples", started.val_samples),
        ("test_samples", started.test_samples),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    params.extend(counts.map(|(name, count)| (name.to_owned(), count.to_string())));
    params
}

/// A name with the letters that MLflow takes.
pub(super) fn name(key: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-. /".contains(c);
    let plain = key.chars().map(|c| if allowed(c) { c } else { '_' });
    let name: String = plain.take(LONGEST_KEY).collect();
    name.trim_matches(['/', '.', ' ']).to_owned()
}

fn cut(text: &str, longest: usize) -> String {
    match text.chars().count() > longest {
        true => text
            .chars()
            .take(longest - 3)
            .chain("...".chars())
            .collect(),
        false => text.to_owned(),
    }
}

/// Where the run comes from, as tags.
pub(super) fn tags(
    settings: &MlflowSettings,
    run: &RunDir,
    started: &Started,
    origin: &Origin,
) -> Vec<(String, String)> {
    let git = origin.git.clone().unwrap_or_default();
    let uncommitted = match &origin.git {
        Some(git) => git.uncommitted.to_string(),
        None => String::new(),
    };
    let source = match origin.command.is_empty() {
        true => "lockstep".to_owned(),
        false => origin.command.join(" "),
    };
    let name = settings.run_name.as_deref().unwrap_or(&run.name);
    let tags = [
        ("mlflow.runName", name.to_owned()),
        ("mlflow.user", origin.user.clone()),
        ("mlflow.source.name", source),
        ("mlflow.source.type", "LOCAL".to_owned()),
        ("mlflow.source.git.commit", git.commit),
        ("mlflow.source.git.branch", git.branch.unwrap_or_default()),
        ("mlflow.source.git.repoURL", git.remote.unwrap_or_default()),
        ("lockstep.git.uncommitted", uncommitted),
        ("lockstep.run", run.name.clone()),
        ("lockstep.run_dir", run.place().to_string()),
        ("lockstep.version", origin.lockstep.clone()),
        ("lockstep.host", origin.machine.host.clone()),
        ("lockstep.cpu", origin.machine.cpu.clone()),
        ("lockstep.workers", started.workers.to_string()),
        ("lockstep.lanes", started.lanes.to_string()),
    ];
    let known = tags.into_iter().filter(|(_, value)| !value.is_empty());
    known
        .map(|(key, value)| (key.to_owned(), cut(&value, LONGEST_TAG)))
        .collect()
}

/// A list of keys and values in MLflow's JSON.
pub(super) fn entries(list: &[(String, String)]) -> Value {
    let each = list.iter();
    each.map(|(key, value)| json!({ "key": key, "value": value }))
        .collect()
}

/// The data sets of a run.
pub(super) fn inputs(started: &Started) -> Vec<Value> {
    let dataset = |set: &lockstep_events::event::UsedSet| {
        let (kind, key) = match set.source.split_once("://") {
            Some(("http" | "https", _)) => ("http", "url"),
            Some(("s3", _)) => ("s3", "uri"),
            Some(("gs", _)) => ("gs", "uri"),
            Some(_) => ("lockstep", "uri"),
            None if set.source.starts_with('/') => ("local", "uri"),
            None => ("lockstep", "uri"),
        };
        let digest: String = set.sha256.chars().take(LONGEST_DIGEST).collect();
        json!({
            "tags": [{ "key": "mlflow.data.context", "value": set.set }],
            "dataset": {
                "name": cut(&set.name, 500),
                "digest": if digest.is_empty() { "unknown".to_owned() } else { digest },
                "source_type": kind,
                "source": json!({ key: set.source }).to_string(),
                "profile": json!({ "num_rows": set.samples }).to_string(),
            },
        })
    };
    started.data.iter().map(dataset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_letters_that_mlflow_takes() {
        assert_eq!(name("model.layers[0]"), "model.layers_0_");
        assert_eq!(name("train.optimizer.lr"), "train.optimizer.lr");
        assert_eq!(name("größe"), "gr__e");
        assert_eq!(name(&"a".repeat(400)).len(), LONGEST_KEY);
    }

    #[test]
    fn a_long_value_is_cut() {
        let text = cut(&"é".repeat(600), LONGEST_PARAM);
        assert_eq!(text.chars().count(), LONGEST_PARAM);
        assert!(text.ends_with("..."));
    }
}
