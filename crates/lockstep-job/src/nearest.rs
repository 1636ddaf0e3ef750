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

/// Where a key is that was written elsewhere.
fn home(word: &str) -> Option<String> {
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let ours = known.map_or(word, |(_, ours)| ours);
    let mut homes = HOMES.iter();
    let home = homes.find(|home| home.rsplit_once('.').is_some_and(|(_, key)| key == ours))?;
    Some(format!("it is the key `{home}`"))
}

/// What to use instead of `word`: what it is called here, the nearest candidate, where such a key is, else all candidates.
pub(crate) fn suggestion(word: &str, candidates: &[&str]) -> String {
    if let Some(instead) = xgboost_names::instead(word, candidates) {
        return instead;
    }
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let ours = known.map_or(word, |(_, ours)| ours);
    if known.is_some() && candidates.contains(&ours) {
        return format!("here it is called `{ours}`");
    }
    if ours == "lr" && candidates.contains(&"optimizer") {
        return "it belongs to the optimizer: `optimizer = { kind = \"adam\", lr = 0.001 }`"
            .to_owned();
    }
    match nearest(word, candidates) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => home(word).unwrap_or_else(|| format!("use one of {}", listed(candidates))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_its_table_finds_its_home() {
        assert_eq!(home("lr").unwrap(), "it is the key `train.optimizer.lr`");
        assert_eq!(home("batch_size").unwrap(), "it is the key `train.batch`");
        assert_eq!(home("nonsense"), None);
        let of_data = ["train", "val_split", "normalise"];
        let label = "it is the key `data.train.label`";
        assert_eq!(suggestion("target", &of_data), label);
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
        for rate in ["lr", "learning_rate"] {
            assert!(suggestion(rate, &keys).starts_with("it belongs to the optimizer"));
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
