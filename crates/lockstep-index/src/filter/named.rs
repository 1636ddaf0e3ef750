//! A name that several things of a store have.
//!
//! In a store that several programs write to, one run's metric is another run's parameter, and a name that ends one key
//! in this run may end three in that one. So each run is asked by itself, and what is unclear in one of them is no
//! obstacle to the others: a run that the name says several things of counts as one that has no such value.

use crate::run::Run;
use serde_json::Value;

/// Where the parameters of other programs lie, such as those that MLflow's clients log.
const OTHERS: &str = "params.";

/// A name, and all that may be meant by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// As the user gave it, without `param.`.
    pub name: String,
    /// Whether it is a metric of some run.
    pub metric: bool,
    /// The keys of parameters, of all runs, that may be meant.
    pub keys: Vec<String>,
}

/// What a run has of a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found<'a> {
    Nothing,
    Metric(f64),
    Param(&'a Value),
    /// Several parameters, such as these two, and none before the others.
    Unclear(&'a str, &'a str),
}

impl Named {
    /// What a run has of the name. A metric comes before a parameter, and where some run has such a metric, only a
    /// parameter that is a number is like it.
    pub(super) fn of<'a>(&'a self, run: &'a Run) -> Found<'a> {
        if let Some(number) = self.metric_of(run) {
            return Found::Metric(number);
        }
        match self.param_of(run) {
            Found::Param(value) if self.metric && !value.is_number() => Found::Nothing,
            found => found,
        }
    }

    /// The metric of the name that a run has.
    pub fn metric_of(&self, run: &Run) -> Option<f64> {
        run.metric(&self.name).filter(|_| self.metric)
    }

    /// The parameter of the name that a run has: the one with this very key, else the one key of the job file that ends
    /// so, else what another program calls so, else the one that ends so there.
    pub(super) fn param_of<'a>(&'a self, run: &'a Run) -> Found<'a> {
        if let Some(value) = run.params.get(&self.name) {
            return Found::Param(value);
        }
        let had = self.keys.iter().filter(|key| run.params.contains_key(*key));
        let (others, own): (Vec<&String>, Vec<&String>) =
            had.partition(|key| key.starts_with(OTHERS));
        let plain = |key: &&&String| key.strip_prefix(OTHERS) == Some(&self.name);
        match (&own[..], others.iter().find(plain), &others[..]) {
            ([one], ..) | ([], Some(one), _) | ([], None, [one]) => {
                Found::Param(&run.params[one.as_str()])
            }
            ([one, other, ..], ..) | ([], None, [one, other, ..]) => Found::Unclear(one, other),
            ([], None, []) => Found::Nothing,
        }
    }

    /// Whether some run says what is meant, if any has it at all; else two keys that may be meant.
    pub(super) fn unclear<'a>(&'a self, runs: &'a [Run]) -> Option<(&'a str, &'a str)> {
        let mut unclear = None;
        for run in runs {
            match self.of(run) {
                Found::Unclear(one, other) => unclear = Some((one, other)),
                Found::Nothing => {}
                Found::Metric(_) | Found::Param(_) => return None,
            }
        }
        unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(params: &[(&str, f64)]) -> Run {
        let params = params
            .iter()
            .map(|(key, value)| (key.to_string(), (*value).into()));
        Run {
            params: params.collect(),
            ..Run::default()
        }
    }

    fn lr() -> Named {
        let keys = ["train.optimizer.lr", "params.lr", "params.optimizer.lr"];
        Named {
            name: "lr".into(),
            metric: true,
            keys: keys.map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn each_run_says_by_itself_what_a_name_means() {
        let named = lr();
        let value = |run: &Run| match named.of(run) {
            Found::Metric(number) => number,
            Found::Param(value) => value.as_f64().unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(value(&run(&[("train.optimizer.lr", 1.0)])), 1.0);
        assert_eq!(value(&run(&[("params.optimizer.lr", 2.0)])), 2.0);
        let both = run(&[("params.lr", 3.0), ("params.optimizer.lr", 2.0)]);
        assert_eq!(value(&both), 3.0);
        let own = run(&[("params.lr", 3.0), ("train.optimizer.lr", 1.0)]);
        assert_eq!(value(&own), 1.0);
        let mut measured = own;
        measured.metrics.insert("lr".into(), 4.0);
        assert_eq!(value(&measured), 4.0);
    }

    #[test]
    fn what_is_unclear_in_a_run_is_told_only_if_no_run_is_clear() {
        let mut named = lr();
        named.keys.push("train.schedule.lr".into());
        let unclear = run(&[("train.optimizer.lr", 1.0), ("train.schedule.lr", 2.0)]);
        let two = Some(("train.optimizer.lr", "train.schedule.lr"));
        assert_eq!(named.unclear(std::slice::from_ref(&unclear)), two);
        assert_eq!(named.unclear(&[unclear, run(&[("params.lr", 3.0)])]), None);
        assert_eq!(named.unclear(&[run(&[])]), None);
    }

    #[test]
    fn a_text_is_not_like_a_metric() {
        let named = Named {
            name: "loss".into(),
            metric: true,
            keys: vec!["train.loss".into()],
        };
        let mut run = run(&[]);
        run.params.insert("train.loss".into(), "mse".into());
        assert_eq!(named.of(&run), Found::Nothing);
        assert_eq!(named.param_of(&run), Found::Param(&"mse".into()));
    }
}
