//! The last words of a run: what came out, how long it took, where it lies, how to go on.

use super::{Options, shell, words};
use lockstep_events::Metrics;
use lockstep_events::event::{Embedded, Embedding, Reported, Restart, RunResult, Status};
use lockstep_measure::{Scores, Summary};
use lockstep_place::{Access, Place};
use lockstep_runs::RunDir;
use serde_json::{Map, Value};
use std::path::Path;

/// What comes before the command that goes on with the run.
const GO_ON: &str = "go on with";

/// The one line that says it all. Who wants no other line learns here where the run lies.
pub(crate) fn headline(result: &RunResult, options: &Options, unit: &str) -> String {
    let line = outcome(result, unit);
    match result.run_dir.as_deref().filter(|_| options.quiet) {
        Some(run) if options.elsewhere => format!("{line}; {run}"),
        Some(run) => format!("{line}; {}", from_here(Path::new(run))),
        None => line,
    }
}

/// How a run ended and what it came to. What it counts is called `unit`.
fn outcome(result: &RunResult, unit: &str) -> String {
    let took = words::seconds(result.timing.total_s);
    let epochs = words::plural(result.epochs as usize, unit);
    let mut line = match result.status {
        Status::Succeeded if result.epochs == 0 => format!("done in {took}"),
        Status::Succeeded if result.stopped_early => {
            format!("stopped early after {epochs} and {took}")
        }
        Status::Succeeded => format!("{epochs} in {took}"),
        Status::Interrupted if result.epochs == 0 => format!("interrupted after {took}"),
        Status::Interrupted => format!("interrupted after {epochs} and {took}"),
        Status::Failed => format!("failed after {took}"),
    };
    if let Some(metrics) = result
        .reported
        .as_ref()
        .filter(|_| result.status != Status::Failed)
    {
        line += &format!(": {}", named(metrics));
    }
    let worth = match (&result.metrics, &result.val) {
        (Some(test), _) => Some(measured(test)),
        (None, Some(val)) => Some(format!("{} on validation data", measured(val))),
        (None, None) => None,
    };
    if let Some(worth) = worth {
        line += &format!(": {worth}");
        if let (Status::Succeeded, Some(best)) = (result.status, result.best_epoch)
            && best != result.epochs
        {
            line += &format!(" (best {unit} {best})");
        }
    }
    line
}

/// What a script reported, in one line.
pub(crate) fn reported(reported: &Reported) -> String {
    let kept = match reported.checkpoint {
        true => " (checkpoint)",
        false => "",
    };
    format!(
        "report {}: {}{kept}",
        reported.report,
        named(&reported.metrics)
    )
}

/// What a script measured, each with its name.
fn named(metrics: &Map<String, Value>) -> String {
    let said = metrics.iter().map(|(name, value)| match value.as_f64() {
        Some(number) if !value.is_i64() && !value.is_u64() => {
            format!("{name} {}", words::loss(number))
        }
        _ => format!("{name} {value}"),
    });
    super::harmless(&said.collect::<Vec<_>>().join(", "))
}

/// All metrics in words: what training minimised, which comes first among them, is said last.
pub(crate) fn measured(metrics: &Metrics) -> String {
    let mut said = metrics
        .iter()
        .map(|(name, value)| format!("{name} {}", words::metric(name, value)));
    let first = said.next();
    said.chain(first).collect::<Vec<_>>().join(", ")
}

/// What the kept weights are worth on the test set, beyond the metrics.
fn test_set(evaluation: &Summary) -> String {
    let scores = |scores: &Scores, of: &str| {
        let Scores {
            precision,
            recall,
            f1,
        } = scores;
        format!("precision {precision:.4}, recall {recall:.4}, F1 {f1:.4} ({of})")
    };
    match evaluation {
        Summary::Classes(of) => match (&of.positive, of.auc) {
            (Some(positive), Some(auc)) => {
                format!("{}, AUC {auc:.4}", scores(positive, "positive class"))
            }
            _ => format!(
                "{}, top-5 {:.4}",
                scores(&of.macro_average, "macro"),
                of.top5
            ),
        },
        Summary::Labels(of) => {
            format!(
                "{}, all labels right {:.4}",
                scores(&of.macro_average, "macro"),
                of.exact
            )
        }
        Summary::Ranking(of) => {
            let groups = words::plural(of.groups as usize, "group");
            format!(
                "NDCG of the first 10 {:.4}, MAP {:.4}, {groups}",
                of.scores.ndcg10, of.scores.map
            )
        }
        Summary::Numbers(of) => {
            let rms = of.scores.mse.sqrt();
            format!("off by {} (root mean square)", words::loss(rms))
        }
    }
}

/// What is said when the gang begins again.
pub(crate) fn restarted(restart: &Restart) -> String {
    let workers = words::plural(restart.workers, "worker");
    let from = match &restart.from {
        Some(path) => format!("from {}", from_here(path.as_ref())),
        None if restart.step > 0 => format!("from step {}, kept in memory", restart.step),
        None => "from the beginning".to_owned(),
    };
    format!(
        "restart {}: {}; going on {from} with {workers}",
        restart.restart, restart.reason
    )
}

/// Who is where, and what machines send each other.
pub(crate) fn hosts(hosts: &[Vec<usize>], bytes_sent: u64) -> String {
    let machine = |workers: &Vec<usize>| {
        let workers: Vec<String> = workers.iter().map(usize::to_string).collect();
        workers.join(" ")
    };
    let machines: Vec<String> = hosts.iter().map(machine).collect();
    let sent = bytes_sent as f64 / 1e6;
    let machines = machines.join(" | ");
    format!("workers by machine: {machines}; each machine sends {sent:.1} MB a step")
}

/// What is said when the gang became larger or smaller.
pub(crate) fn resized(workers: usize, reason: &str) -> String {
    let workers = words::plural(workers, "worker");
    format!("{reason}; going on with {workers}")
}

/// How far the embedding is, and how long it may take.
pub(crate) fn embedding(embedding: &Embedding) -> String {
    let count = |number: usize| words::count(number as u64);
    let mut line = format!(
        "{} of {} pictures, {} pictures/s",
        count(embedding.pictures_done),
        count(embedding.pictures),
        words::rate(embedding.pictures_per_s)
    );
    if embedding.pictures_per_s > 0.0 {
        let left = embedding.pictures - embedding.pictures_done.min(embedding.pictures);
        line += &format!(
            ", {} left",
            words::clock(left as f64 / embedding.pictures_per_s)
        );
    }
    line
}

/// What is said of a set when its pictures are embedded.
pub(crate) fn embedded(embedded: &Embedded) -> String {
    let mut line = format!(
        "{}: {} embedded in {}",
        embedded.set,
        words::plural(embedded.pictures - embedded.skipped, "picture"),
        embedded.store
    );
    line += &match (embedded.parts_made, embedded.parts) {
        (0, _) => ", all there already".to_owned(),
        (made, parts) if made == parts => format!(" ({})", words::plural(parts, "part")),
        (made, parts) => format!(" ({made} of {parts} parts anew)"),
    };
    if embedded.skipped > 0 {
        let skipped = words::plural(embedded.skipped, "picture");
        line += &format!("; {skipped} could not be read, see skipped.jsonl there");
    }
    line
}

/// What else there is to know, as `(name, value)` pairs. Who wants it quiet still has to learn how to
/// go on.
pub(crate) fn details(result: &RunResult, options: &Options) -> Vec<(String, String)> {
    let mut details = all_details(result, options);
    if options.quiet {
        details.retain(|(name, _)| name == GO_ON);
    }
    details
}

fn all_details(result: &RunResult, options: &Options) -> Vec<(String, String)> {
    let mut details = Vec::new();
    let mut tell = |name: &str, value: String| details.push((name.to_owned(), value));
    let timing = &result.timing;
    if timing.start_to_first_step_s > 0.0 {
        let first = words::seconds(timing.start_to_first_step_s);
        tell("first step", format!("{first} after the start"));
    }
    if timing.train_s > 0.0 {
        let train = words::seconds(timing.train_s);
        tell(
            "training",
            match timing.samples_per_s > 0.0 {
                true => format!("{train}, {} samples/s", words::rate(timing.samples_per_s)),
                // What a script does with its samples is not known.
                false => train,
            },
        );
    }
    if result.restarts > 0 {
        let restarts = words::plural(result.restarts as usize, "restart");
        let steps = words::plural(result.steps_repeated as usize, "step");
        let lost = words::seconds(result.seconds_lost);
        let goodput = result.goodput.map(|share| format!(", goodput {share:.3}"));
        let goodput = goodput.unwrap_or_default();
        tell(
            "recovered",
            format!("{restarts}, {steps} repeated, {lost} lost{goodput}"),
        );
    }
    if let (Some(val), Some(_)) = (&result.val, &result.metrics) {
        tell("validation", measured(val));
    }
    if let Some(evaluation) = &result.evaluation {
        tell("test set", test_set(evaluation));
    }
    if let Some(hash) = &result.weights_sha256 {
        tell("sha256", hash.clone());
    }
    if let (Status::Interrupted, Some(note)) = (result.status, &result.error) {
        tell("note", note.clone());
    }
    let Some(path) = &result.run_dir else {
        return details;
    };
    let here = Place::parse(path, &Access::default());
    let is_here = |place: &Place| !options.elsewhere && place.local().is_some();
    let Some(here) = here.ok().filter(is_here) else {
        // What lies in a bucket or on another machine is not asked for again: its place says enough.
        tell("run", path.clone());
        if result.status != Status::Succeeded {
            let run = shell(path);
            tell(GO_ON, format!("{} {run}", options.resume_command));
        }
        return details;
    };
    let run = RunDir::named(result.run.as_deref().unwrap_or_default(), here);
    if let Some(importance) = importance(&run) {
        tell("importance", importance);
    }
    let mut tell_file = |name: &str, file: &Place| {
        if let Some(path) = file.local().filter(|path| path.exists()) {
            tell(name, from_here(path));
        }
    };
    tell_file("model", &run.weights());
    tell_file("model", &run.trees());
    tell_file("metrics", &run.metrics());
    if result.evaluation.is_some() {
        tell_file("evaluation", &run.evaluation());
        tell_file("confusion", &run.confusion());
    }
    tell_file("logs", &run.logs());
    if result.status != Status::Succeeded && !run.checkpoints().is_empty() {
        let run = shell(&from_here(path.as_ref()));
        tell(GO_ON, format!("{} {run}", options.resume_command));
    }
    details
}

/// Which columns move what trees say the most: each one's share of all contributions.
fn importance(run: &RunDir) -> Option<String> {
    /// Columns that are named.
    const SHOWN: usize = 5;
    let file = run.file(lockstep_runs::files::IMPORTANCE_TABLE);
    let mut table = csv::Reader::from_path(file.local()?).ok()?;
    let row =
        |record: csv::StringRecord| Some((record.get(0)?.to_owned(), record.get(4)?.parse().ok()?));
    let rows = table.records().map_while(Result::ok);
    let rows: Vec<(String, f64)> = rows.filter_map(row).collect();
    let all: f64 = rows.iter().map(|(_, size)| size).sum();
    if all <= 0.0 {
        return None;
    }
    let share = |(name, size): &(String, f64)| {
        let share = (100.0 * size / all).round();
        (share > 0.0).then(|| format!("{} {share} %", super::harmless(name)))
    };
    let shown: Vec<String> = rows.iter().take(SHOWN).filter_map(share).collect();
    let more = if rows.len() > SHOWN { ", …" } else { "" };
    Some(format!("{}{more}", shown.join(", ")))
}

/// A path as one would type it in the current folder.
pub(crate) fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(here).unwrap_or(path);
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, result};
    use super::*;
    use lockstep_measure::ClassSummary;

    #[test]
    fn the_headline_says_how_it_ended_and_what_came_out() {
        assert_eq!(
            headline(&result(Status::Succeeded), &options(), "epoch"),
            "10 epochs in 13.0 s: accuracy 0.8123, loss 0.4000"
        );
        let best = RunResult {
            best_epoch: Some(7),
            ..result(Status::Succeeded)
        };
        assert!(headline(&best, &options(), "epoch").ends_with("(best epoch 7)"));
        assert!(
            headline(&result(Status::Interrupted), &options(), "epoch")
                .starts_with("interrupted after")
        );
        let early = RunResult {
            stopped_early: true,
            ..best
        };
        let early = headline(&early, &options(), "round");
        assert!(
            early.starts_with("stopped early after 10 rounds and 13.0 s: "),
            "{early}"
        );
    }

    #[test]
    fn what_the_test_set_says_is_told_with_the_details() {
        let scores = Scores {
            precision: 0.81,
            recall: 0.82,
            f1: 0.83,
        };
        let evaluated = RunResult {
            evaluation: Some(Box::new(Summary::Classes(ClassSummary {
                samples: 100,
                loss: Some(0.4),
                accuracy: 0.8123,
                auc: None,
                average_precision: None,
                positive: None,
                top5: 0.99,
                macro_average: scores,
                weighted_average: scores,
                unseen_samples: 0,
            }))),
            ..result(Status::Succeeded)
        };
        let details = details(&evaluated, &options());
        let test = details.iter().find(|(name, _)| name == "test set");
        assert_eq!(
            test.unwrap().1,
            "precision 0.8100, recall 0.8200, F1 0.8300 (macro), top-5 0.9900"
        );
    }

    #[test]
    fn a_run_that_was_cut_short_says_how_to_go_on_only_if_it_left_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let interrupted = RunResult {
            run_dir: Some(folder.path().display().to_string()),
            ..result(Status::Interrupted)
        };
        let says_how = || {
            let details = details(&interrupted, &options());
            details.iter().any(|(name, _)| name == "go on with")
        };
        assert!(!says_how());
        let checkpoint = folder.path().join("checkpoints/000001-step-5");
        std::fs::create_dir_all(&checkpoint).unwrap();
        assert!(!says_how());
        std::fs::write(checkpoint.join("manifest.json"), "").unwrap();
        assert!(says_how());
        let quiet = Options {
            quiet: true,
            ..options()
        };
        assert_eq!(details(&interrupted, &quiet).len(), 1);
    }
}
