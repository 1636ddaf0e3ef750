//! The right word for a wrong one.

use crate::xgboost_names;

/// The candidate that was probably meant by `word`, if any is near.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    let length = word.chars().count();
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        if length >= 3 && candidate.starts_with(&word) {
            return 1;
        }
        strsim::osa_distance(&word, &candidate)
    };
    candidates
        .iter()
        .map(|candidate| (distance(candidate), *candidate))
        .filter(|(distance, candidate)| {
            // A third of the letters may be wrong: more would be another word.
            *distance <= (length.min(candidate.len()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

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

    #[test]
    fn a_misspelt_word_finds_the_right_one_and_a_strange_one_none() {
        let keys = ["epochs", "batch", "optimizer", "workers", "clip_norm"];
        assert_eq!(nearest("epoch", &keys), Some("epochs"));
        assert_eq!(nearest("optimiser", &keys), Some("optimizer"));
        assert_eq!(nearest("Clip-Norm", &keys), Some("clip_norm"));
        assert_eq!(nearest("optim", &keys), Some("optimizer"));
        assert_eq!(nearest("btach", &keys), Some("batch"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
    }
}
