//! The right word for a wrong one.

use crate::xgboost_names;
use lockstep_base::nearest::nearest;

/// The candidates as a person lists them.
pub(crate) fn listed(candidates: &[&str]) -> String {
    let quoted: Vec<String> = candidates.iter().map(|c| format!("`{c}`")).collect();
    quoted.join(", ")
}

/// What other programs call a thing, and what it is called here.
const ELSEWHERE: [(&str, &str); 21] = [
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

/// What to use instead of `word`: what it is called here, the nearest candidate, else all of them.
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
        None => format!("use one of {}", listed(candidates)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
