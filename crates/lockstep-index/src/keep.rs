//! Which runs of a job are kept, and which are old or poor enough to go.
//!
//! A run is kept if any of the rules keeps it. One that goes on, and one that the user has given the tag `keep`, is
//! always kept. What a version of a model was made from is kept too.

use crate::run::{Run, State};
use crate::{Index, IndexError, Keys};
use lockstep_place::Place;
use lockstep_runs::RunDir;
use lockstep_runs::registry::Registry;

/// The tag that keeps a run.
pub const TAG: &str = "keep";

/// What is kept of the runs of one job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// So many that began last.
    pub newest: Option<usize>,
    /// Those that began within so many days.
    pub days: Option<f64>,
    /// So many that are best by a metric.
    pub best: Option<(usize, String)>,
}

/// Which of some runs of `store` can be removed, and a sentence on each of the others: one that goes on, or that a
/// version of a model was made from.
///
/// # Errors
/// When the models of the store cannot be read.
pub fn removable(runs: Vec<Run>, store: &Place) -> Result<(Vec<Run>, Vec<String>), IndexError> {
    let registered = Registry::of(store)?.by_run()?;
    let (mut removable, mut kept) = (Vec::new(), Vec::new());
    for run in runs {
        let why = match (run.state, registered.get(&run.name)) {
            (State::Running, _) => "it goes on; stop it first".to_owned(),
            (_, Some(versions)) => format!(
                "{} was made from it; `lockstep models rm` comes first",
                versions.join(", ")
            ),
            _ => {
                removable.push(run);
                continue;
            }
        };
        kept.push(format!("{} is not removed: {why}", run.name));
    }
    Ok((removable, kept))
}

/// Removes what the rules do not keep of a job's runs, but never the one that has just ended, nor what a version of a
/// model was made from. `waiting` is told of runs that others have.
///
/// # Errors
/// When the store cannot be read, and when a run cannot be removed.
pub fn retain(
    index: &mut Index,
    rules: &Rules,
    (job, just_ended): (&str, &str),
    now: f64,
    waiting: &mut dyn FnMut(String),
) -> Result<(), IndexError> {
    index.refresh_all()?;
    let registered = Registry::of(index.store())?.by_run()?;
    let mut runs = index.runs(&Keys::Some(Vec::new()))?;
    runs.retain(|run| run.job == job);
    let mut gone = Vec::new();
    for run in surplus(&runs, rules, now) {
        if run.name == just_ended || registered.contains_key(&run.name) {
            continue;
        }
        RunDir::named(&run.name, index.store().join(&run.name)?).remove(waiting)?;
        gone.push(run.name.clone());
    }
    index.forget(&gone)
}

/// The runs that go, at the time `now`, of runs of any jobs: rules hold for each job by itself.
pub fn surplus<'a>(runs: &'a [Run], rules: &Rules, now: f64) -> Vec<&'a Run> {
    let mut jobs: Vec<&str> = runs.iter().map(|run| run.job.as_str()).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let of_job = |job: &str| -> Vec<&'a Run> {
        let mut of_job: Vec<&Run> = runs.iter().filter(|run| run.job == job).collect();
        let age = |run: &Run| run.started.unwrap_or(f64::MAX);
        of_job.sort_by(|a, b| age(b).total_cmp(&age(a)));
        of_job
    };
    let surplus = jobs.into_iter().flat_map(|job| {
        let of_job = of_job(job);
        let best = best_of(&of_job, rules);
        let goes = of_job.iter().enumerate().filter(|(place, run)| {
            let is_new = rules.newest.is_some_and(|newest| *place < newest);
            let began = run.started.unwrap_or(now);
            let is_young = rules.days.is_some_and(|days| now - began < days * 86_400.0);
            let is_best = best.contains(&run.name.as_str());
            let is_held = !run.has_ended() || run.tags.contains_key(TAG);
            !(is_new || is_young || is_best || is_held)
        });
        goes.map(|(_, run)| *run).collect::<Vec<_>>()
    });
    surplus.collect()
}

fn best_of<'a>(runs: &[&'a Run], rules: &Rules) -> Vec<&'a str> {
    let Some((number, metric)) = &rules.best else {
        return Vec::new();
    };
    let ranked = ranked(runs.iter().copied(), metric, is_better_low(metric));
    ranked
        .into_iter()
        .take(*number)
        .map(|(run, _)| run.name.as_str())
        .collect()
}

/// Runs that have a metric, the best first. Of equally good ones the earlier in `runs` comes first.
pub fn ranked<'a>(
    runs: impl Iterator<Item = &'a Run>,
    metric: &str,
    low: bool,
) -> Vec<(&'a Run, f64)> {
    let measured = runs.filter_map(|run| Some((run, run.metric(metric)?)));
    let mut ranked: Vec<(&Run, f64)> = measured.filter(|(_, value)| !value.is_nan()).collect();
    ranked.sort_by(|(_, a), (_, b)| match low {
        true => a.total_cmp(b),
        false => b.total_cmp(a),
    });
    ranked
}

/// Whether less of a metric is better, as its name says: of losses and errors it is.
pub fn is_better_low(metric: &str) -> bool {
    let last = metric.rsplit('.').next().unwrap_or(metric).to_lowercase();
    let low = [
        "loss",
        "mse",
        "mae",
        "rmse",
        "error",
        "cost",
        "perplexity",
        "latency",
    ];
    low.iter().any(|word| last.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten runs of a day each, the last of them the newest; the fourth is best.
    fn runs() -> Vec<Run> {
        let run = |day: u32| Run {
            name: format!("r{day}"),
            job: "a".into(),
            state: State::Succeeded,
            started: Some(f64::from(day) * 86_400.0),
            metrics: [("test.accuracy".to_owned(), if day == 4 { 0.9 } else { 0.5 })].into(),
            ..Run::default()
        };
        (1..=10).map(run).collect()
    }

    fn gone(runs: &[Run], rules: Rules) -> Vec<String> {
        let mut names: Vec<String> = surplus(runs, &rules, 10.5 * 86_400.0)
            .into_iter()
            .map(|run| run.name.clone())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_run_is_kept_if_any_rule_keeps_it() {
        let newest = Rules {
            newest: Some(7),
            ..Rules::default()
        };
        assert_eq!(gone(&runs(), newest.clone()), ["r1", "r2", "r3"]);
        let days = Rules {
            days: Some(8.0),
            ..Rules::default()
        };
        assert_eq!(gone(&runs(), days), ["r1", "r2"]);
        let all = Rules {
            newest: Some(2),
            days: Some(3.0),
            best: Some((1, "accuracy".into())),
        };
        assert_eq!(gone(&runs(), all), ["r1", "r2", "r3", "r5", "r6", "r7"]);
    }

    #[test]
    fn what_goes_on_and_what_is_tagged_stays_and_jobs_do_not_mix() {
        let mut runs = runs();
        runs[0].state = State::Running;
        runs[1].tags.insert(TAG.into(), String::new());
        runs[2].job = "b".into();
        let newest = Rules {
            newest: Some(7),
            ..Rules::default()
        };
        assert_eq!(gone(&runs, newest), [] as [&str; 0]);
    }

    #[test]
    fn losses_are_better_low() {
        assert!(is_better_low("val.loss") && is_better_low("RMSE"));
        assert!(!is_better_low("accuracy") && !is_better_low("r2"));
    }
}
