//! The names of all files of a run's folder. `docs/run-folder.md` says what is in each; no other crate spells them.

/// The job as it ran. What has one is a run, and whole: it is written last when a run is made.
pub const JOB: &str = "job.toml";
/// The metrics of each epoch or report, one JSON object a line.
pub const METRICS: &str = "metrics.jsonl";
/// Everything that happened, one event a line; see [`RunDir::read_events`](crate::RunDir::read_events).
pub const EVENTS: &str = "events.jsonl";
/// Marks of the weights after every step, which a replay compares.
pub const TRACE: &str = "trace.jsonl";
/// How the run ended.
pub const RESULT: &str = "result.json";
/// Where the run comes from: command, user, machine, commit.
pub const ORIGIN: &str = "origin.json";
/// What was not committed there.
pub const UNCOMMITTED: &str = "uncommitted.diff";
/// The user's tags and note.
pub const TAGS: &str = "tags.json";
/// Who owns the run.
pub const LOCK: &str = ".lock";
/// What that one holds on this machine. Unlike [`LOCK`], which everybody may read, it can be opened only by those who may
/// write the run: whoever can open a file can lock it.
pub const HOLD: &str = ".hold";

/// What an evaluation came to.
pub const EVALUATION: &str = "evaluation.json";
/// A picture of which classes were taken for which.
pub const CONFUSION: &str = "confusion.svg";
/// A picture of how much each column of a table is used.
pub const IMPORTANCE: &str = "importance.svg";
/// Pictures of the hardest mistakes, one below the other.
pub const MISTAKES: &str = "mistakes.png";

/// Which run of MLflow this is, and how far it was sent there.
pub const MLFLOW: &str = "mlflow.json";
/// What MLflow knows of a run that one of its clients made and that has no other place here.
pub const MLFLOW_RUN: &str = "mlflow-run.json";
/// The folder of event files for TensorBoard.
pub const TENSORBOARD: &str = "tensorboard";

/// The folder of states to go on from.
pub const CHECKPOINTS: &str = "checkpoints";
/// The file that says what a checkpoint is made of, in its folder. It is written last: what has one is whole.
pub const MANIFEST: &str = "manifest.json";

/// The folder of the workers' logs.
pub const LOGS: &str = "logs";

/// The folder of what was learned.
pub const MODEL: &str = "model";
/// The trained weights.
pub const WEIGHTS: &str = "model/weights.safetensors";
/// What the weights are for: architecture, input shape, label map.
pub const MODEL_CARD: &str = "model/model.json";
/// The trees of a run that grows some, as XGBoost writes them.
pub const TREES: &str = "model/model.ubj";
/// How much each column is used, of trees.
pub const IMPORTANCE_TABLE: &str = "model/importance.csv";
/// The model as ONNX.
pub const ONNX: &str = "model/model.onnx";
/// The number of each class, by name.
pub const LABELS: &str = "model/labels.json";
/// The weights that the run began with, if they were those of another run.
pub const START: &str = "model/start.safetensors";
/// Which report of a script the files in [`MODEL`] belong to. It lies beside them, since a script may give its files any
/// name.
pub const SCRIPT_CARD: &str = "model.json";

/// What the names of workers' logs begin and end with.
const WORKER_LOG: (&str, &str) = ("logs/worker-", ".log");

/// The log of the worker of rank `rank`.
pub fn worker_log(rank: usize) -> String {
    let (before, after) = WORKER_LOG;
    format!("{before}{rank}{after}")
}

/// The rank of the worker whose log this is; in a bucket, a part of whose log. None of any other file.
pub fn rank_of_log(path: &str) -> Option<u64> {
    let (rank, _) = path.strip_prefix(WORKER_LOG.0)?.split_once(WORKER_LOG.1)?;
    rank.parse().ok()
}

/// Whether `path` is the growing file `name`, or, in a bucket, one of the objects that it is there.
pub(crate) fn is_part_of(path: &str, name: &str) -> bool {
    path.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_log_tells_the_rank_of_its_worker() {
        assert_eq!(rank_of_log(&worker_log(12)), Some(12));
        assert_eq!(rank_of_log("logs/worker-3.log.20260101-000001"), Some(3));
        for other in ["logs/worker-.log", "logs/other-1.log", "job.toml"] {
            assert_eq!(rank_of_log(other), None, "{other}");
        }
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn no_other_crate_spells_the_names_of_the_growing_files_and_the_records() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let own = ["lockstep-runs", "lockstep-testkit"];
        let names = [
            EVENTS, TRACE, METRICS, RESULT, ORIGIN, TAGS, MLFLOW, MLFLOW_RUN,
        ];
        for entry in std::fs::read_dir(crates).unwrap() {
            let entry = entry.unwrap();
            if own.iter().any(|own| entry.file_name() == *own) {
                continue;
            }
            let mut files = Vec::new();
            sources(&entry.path().join("src"), &mut files);
            for file in files {
                let text = std::fs::read_to_string(&file).unwrap();
                // What tests spell, they promise.
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                for name in names {
                    let spelled = code.contains(&format!("\"{name}\""));
                    assert!(!spelled, "{}: {name}", file.display());
                }
            }
        }
    }
}
