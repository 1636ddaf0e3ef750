//! Which keys of a job say nothing: their values are those that hold when they are left out.

use crate::Job;
use std::collections::HashSet;
use std::path::Path;
use std::sync::OnceLock;

/// Jobs with nothing but what they need, of all learners.
const LEAST: [&str; 3] = [
    "name = \"x\"\n[data]\ntrain = { csv = \"x\" }\ntest = { csv = \"x\" }\nval = { csv = \"x\" }\n\
     [model]\nkind = \"mlp\"\nhidden = [1]\n[train]\nepochs = 1\nbatch = 1\noptimizer = \"OPTIMIZER\"\n",
    "name = \"x\"\n[data]\ntrain = { csv = \"x\" }\n[model]\nkind = \"xgboost\"\n",
    "name = \"x\"\n[train]\ncommand = [\"x\"]\n",
];
const OPTIMIZERS: [&str; 5] = ["sgd", "adam", "adamw", "rmsprop", "lion"];

/// Keys that are worth a line whatever they are.
const ALWAYS: [&str; 15] = [
    "name",
    "data.train.csv",
    "data.test.csv",
    "data.val.csv",
    "model.kind",
    "model.hidden",
    "model.rounds",
    "train.epochs",
    "train.batch",
    "train.optimizer.kind",
    "train.optimizer.lr",
    "train.workers",
    "train.lanes",
    "train.command",
    "run.store",
];

/// Whether a value of [`Job::rows`] is what holds when its key is left out. Keys that a reader looks for are never told to
/// be so.
pub fn is_default(key: &str, value: &str) -> bool {
    static DEFAULTS: OnceLock<HashSet<(String, String)>> = OnceLock::new();
    let defaults = DEFAULTS.get_or_init(|| {
        let network = |optimizer: &&str| LEAST[0].replace("OPTIMIZER", optimizer);
        let jobs = OPTIMIZERS.iter().map(network);
        let jobs = jobs.chain(LEAST[1..].iter().map(ToString::to_string));
        let rows = jobs.filter_map(|text| {
            let job = Job::parse(Path::new("/x/job.toml"), &text, &[], None);
            Some(job.ok()?.rows())
        });
        let rows = rows.flatten();
        rows.filter(|(key, _)| !ALWAYS.contains(&key.as_str()))
            .collect()
    });
    defaults.contains(&(key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_leaves_out_is_default_and_what_it_changes_is_not() {
        for (key, value) in [
            ("gang.transport", "auto"),
            ("train.optimizer.betas", "[0.9, 0.999]"),
            ("train.schedule.kind", "constant"),
            ("checkpoint.keep", "3"),
        ] {
            assert!(is_default(key, value), "{key}");
        }
        for (key, value) in [
            ("gang.transport", "tcp"),
            ("train.optimizer.lr", "0.001"),
            ("model.hidden", "[1]"),
            ("train.seed", "1"),
            ("train.threads", "1"),
        ] {
            assert!(!is_default(key, value), "{key}");
        }
    }
}
