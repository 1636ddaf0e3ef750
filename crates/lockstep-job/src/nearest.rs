//! The right word for a wrong one.

use crate::xgboost_names;
use lockstep_base::nearest::nearest;

/// The candidates as a person lists them.
pub(crate) fn listed(candidates: &[&str]) -> String {
    let quoted: Vec<String> = candidates.iter().map(|c| format!("`{c}`")).collect();
    quoted.join(", ")
}

/// What other programs call a thing, and what it is called here.
const ELSEWHERE: [(&str, &str); 38] = [
    ("target", "label"),
    ("targets", "label"),
    ("target_column", "label"),
    ("label_column", "label"),
    ("training", "train"),
    ("trainer", "train"),
    ("dataset", "data"),
    ("network", "model"),
    ("categorical", "category"),
    ("numeric", "number"),
    ("numerical", "number"),
    ("float", "number"),
    ("int", "number"),
    ("integer", "number"),
    ("bool", "boolean"),
    ("datetime", "date"),
    ("string", "text"),
    ("batch_size", "batch"),
    ("num_epochs", "epochs"),
    ("max_epochs", "epochs"),
    ("learning_rate", "lr"),
    ("num_workers", "workers"),
    ("nproc_per_node", "workers"),
    ("world_size", "workers"),
    ("kernel_size", "kernel"),
    ("out_channels", "out"),
    ("out_features", "out"),
    ("hidden_layer_sizes", "hidden"),
    ("random_state", "seed"),
    ("early_stopping", "patience"),
    ("min_delta", "min_change"),
    ("ema", "average"),
    ("ema_decay", "average"),
    ("class_weight", "class_weights"),
    ("negative_slope", "slope"),
    ("sample_weight", "weight"),
    ("frozen", "freeze"),
    ("freeze_layers", "freeze"),
];

/// Keys that people write at the top of a job file, in the wrong section or after `--set`, and where they are.
const HOMES: [&str; 21] = [
    "train.optimizer.lr",
    "train.optimizer.momentum",
    "train.optimizer.weight_decay",
    "train.epochs",
    "train.batch",
    "train.optimizer",
    "train.schedule",
    "train.loss",
    "train.seed",
    "train.workers",
    "train.lanes",
    "train.patience",
    "data.val_split",
    "data.test",
    "data.train.label",
    "data.train.features",
    "data.train.types",
    "model.hidden",
    "model.rounds",
    "model.dropout",
    "run.store",
];

/// What a word is called here, if that is one of the candidates: by what others call it, or nearly so.
pub(crate) fn meant<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let of_others = known.and_then(|(_, ours)| candidates.iter().find(|key| *key == ours));
    of_others.copied().or_else(|| nearest(word, candidates))
}

/// What to use instead of a key in this section: what it is called there, where it belongs, else one of those that are there.
pub(crate) fn key_instead(word: &str, section: &str, candidates: &[&str]) -> String {
    let is_there = meant(word, candidates).is_some();
    let of_trees = xgboost_names::instead(word, candidates);
    let at_home = || home(word, section).filter(|_| !is_there);
    let instead = of_trees.or_else(at_home);
    instead.unwrap_or_else(|| suggestion(word, candidates))
}

/// Where a key is that was written at the top of a job file or in one of its sections, `section`.
fn home(word: &str, section: &str) -> Option<String> {
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let ours = known.map_or(word, |(_, ours)| ours);
    if section.contains(['.', '[']) {
        return None;
    }
    if ours == "lr" && section == "train" {
        let example = "`optimizer = { kind = \"adam\", lr = 0.001 }`";
        return Some(format!("it belongs to the optimizer: {example}"));
    }
    let is_home = |home: &&&str| {
        let parts = home.rsplit_once('.');
        parts.is_some_and(|(of, key)| key == ours && of != section)
    };
    let home = HOMES.iter().find(is_home)?;
    Some(format!("it is the key `{home}`"))
}

/// What to use instead of `word`: what it is called here, the nearest candidate, else all of them.
pub(crate) fn suggestion(word: &str, candidates: &[&str]) -> String {
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let ours = known.map_or(word, |(_, ours)| ours);
    if known.is_some() && candidates.contains(&ours) {
        return format!("here it is called `{ours}`");
    }
    match nearest(word, candidates) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("use one of {}", listed(candidates)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_its_table_finds_its_home() {
        let at = |word, section| home(word, section).unwrap_or_default();
        assert_eq!(at("lr", ""), "it is the key `train.optimizer.lr`");
        assert_eq!(at("batch_size", ""), "it is the key `train.batch`");
        assert_eq!(at("target", "data"), "it is the key `data.train.label`");
        for rate in ["lr", "learning_rate"] {
            assert!(at(rate, "train").starts_with("it belongs to the optimizer"));
        }
        // A network of another kind has no such key in this section, and its parts have keys of their own.
        for section in ["", "model", "model.layers[2]"] {
            assert_eq!(home("nonsense", section), None);
        }
        assert_eq!(home("hidden", "model"), None);
        assert_eq!(home("hidden", "model.layers[2]"), None);
    }

    #[test]
    fn keys_of_other_programs_find_ours() {
        let keys = ["epochs", "batch", "optimizer", "workers", "seed"];
        for (theirs, ours) in [("batch_size", "batch"), ("num_workers", "workers")] {
            assert_eq!(
                suggestion(theirs, &keys),
                format!("here it is called `{ours}`")
            );
        }
        assert_eq!(
            suggestion("learning_rate", &["lr"]),
            "here it is called `lr`"
        );
        // Where there is no such thing, nothing is claimed.
        assert_eq!(
            suggestion("kernel_size", &["epochs"]),
            "use one of `epochs`"
        );
    }
}
