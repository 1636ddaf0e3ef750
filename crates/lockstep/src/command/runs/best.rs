//! `lockstep runs best`: the best runs by a metric.

use super::list::{Shown, subject, table};
use super::row;
use super::store::Store;
use crate::args::BestArgs;
use crate::command::{print, print_json};
use crate::view::ROUNDS;
use anyhow::bail;
use lockstep_index::filter::Subject;
use lockstep_index::keep::{is_better_low, ranked};
use lockstep_index::{Keys, Run};

pub(super) fn run(args: &BestArgs) -> anyhow::Result<()> {
    let mut store = Store::open(&args.store)?;
    let names = store.names()?;
    let metric = match subject(&names, &args.metric)? {
        Subject::Metric(name) => name,
        Subject::Named(named) if named.metric => named.name,
        _ => bail!("`{}` is not a metric", args.metric),
    };
    let low = args.min || (!args.max && is_better_low(&metric));
    let keys = match args.form.json {
        true => Keys::All,
        false => Keys::Some(vec![ROUNDS.to_owned()]),
    };
    let runs = store.choose(args.filter.as_deref(), &names, keys)?;
    let best: Vec<Run> = ranked(runs.iter(), &metric, low)
        .into_iter()
        .take(args.limit)
        .map(|(run, _)| run.clone())
        .collect();
    if args.form.json {
        let rows: Vec<_> = best.iter().map(|run| row::json(run, store.now)).collect();
        return print_json(&rows);
    }
    if best.is_empty() {
        bail!("no run in {} has the metric `{metric}`", store.name());
    }
    let columns = [Shown {
        title: metric.clone(),
        subject: Subject::Metric(metric),
    }];
    if args.form.csv {
        let head = ["run".to_owned(), columns[0].title.clone()];
        let value = |run: &Run| {
            run.metric(&columns[0].title)
                .unwrap_or(f64::NAN)
                .to_string()
        };
        let rows: Vec<Vec<String>> = best
            .iter()
            .map(|run| vec![run.name.clone(), value(run)])
            .collect();
        return Ok(print(row::csv(&head, &rows)?)?);
    }
    Ok(print(table(&best, &columns, store.now))?)
}
