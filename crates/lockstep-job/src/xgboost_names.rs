//! What XGBoost calls the keys of a job of trees.

/// The objectives that there are, by XGBoost's names.
pub const OBJECTIVES: [&str; 11] = [
    "binary:logistic",
    "multi:softprob",
    "reg:squarederror",
    "reg:pseudohubererror",
    "count:poisson",
    "reg:gamma",
    "reg:absoluteerror",
    "reg:quantileerror",
    "rank:ndcg",
    "rank:map",
    "rank:pairwise",
];

/// Parameters of XGBoost by which chance depends on how the rows are divided. They need `exact = false`.
pub const INEXACT_PARAMETERS: [&str; 5] = [
    "colsample_bylevel",
    "colsample_bynode",
    "num_parallel_tree",
    "sampling_method",
    "tree_method",
];

/// Names that have a key in a job of trees: the name, the table of the key, and the key.
const KEYS: [(&str, &str, &str); 38] = [
    ("n_estimators", "model", "rounds"),
    ("num_boost_round", "model", "rounds"),
    ("num_round", "model", "rounds"),
    ("rounds", "model", "rounds"),
    ("epochs", "model", "rounds"),
    ("max_depth", "model", "depth"),
    ("depth", "model", "depth"),
    ("learning_rate", "model", "eta"),
    ("lr", "model", "eta"),
    ("eta", "model", "eta"),
    ("objective", "model", "objective"),
    ("min_split_loss", "model", "gamma"),
    ("reg_lambda", "model", "lambda"),
    ("reg_alpha", "model", "alpha"),
    ("early_stopping_rounds", "train", "patience"),
    ("eval_metric", "checkpoint", "best"),
    ("random_state", "train", "seed"),
    ("seed", "train", "seed"),
    ("n_jobs", "train", "threads"),
    ("device", "train", "device"),
    ("gpu_id", "train", "device"),
    ("nthread", "train", "threads"),
    ("gamma", "model", "gamma"),
    ("min_child_weight", "model", "min_child_weight"),
    ("max_delta_step", "model", "max_delta_step"),
    ("lambda", "model", "lambda"),
    ("alpha", "model", "alpha"),
    ("max_leaves", "model", "max_leaves"),
    ("grow_policy", "model", "grow_policy"),
    ("max_bin", "model", "max_bin"),
    ("subsample", "model", "subsample"),
    ("colsample_bytree", "model", "colsample_bytree"),
    ("scale_pos_weight", "model", "scale_pos_weight"),
    ("base_score", "model", "base_score"),
    ("quantile_alpha", "model", "quantile_alpha"),
    ("monotone_constraints", "model", "monotone_constraints"),
    (
        "interaction_constraints",
        "model",
        "interaction_constraints",
    ),
    ("max_cat_to_onehot", "model", "max_cat_to_onehot"),
];

/// The table and the key that stand for what XGBoost, or its users, call `name`.
pub(crate) fn key_of(name: &str) -> Option<(&'static str, &'static str)> {
    let known = KEYS.iter().find(|(theirs, ..)| *theirs == name)?;
    Some((known.1, known.2))
}

/// What to use instead of `word`, where the keys that are known are those of a table of trees.
pub(crate) fn instead(word: &str, known: &[&str]) -> Option<String> {
    let table = if known.contains(&"colsample_bytree") {
        "model"
    } else if known.contains(&"patience") && !known.contains(&"epochs") {
        "train"
    } else {
        return None;
    };
    if table == "model" {
        if INEXACT_PARAMETERS.contains(&word) {
            return Some(format!(
                "write `parameters = {{ {word} = ... }}`, and `exact = false`"
            ));
        }
        if word == "max_cat_threshold" || word.starts_with("lambdarank_") {
            return Some(format!("write `parameters = {{ {word} = ... }}`"));
        }
    }
    if word == "gpu_data" {
        return Some("leave it out: XGBoost brings rows to a GPU in its own way".to_owned());
    }
    let (of, key) = key_of(word)?;
    Some(if of == table {
        format!("here it is called `{key}`")
    } else if key == word {
        format!("it belongs to [{of}]")
    } else {
        format!("here it is called `{key}`, in [{of}]")
    })
}
