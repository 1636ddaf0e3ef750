//! How much each column is used, as a table: `model/importance.csv`, the most useful first.

use crate::TreesError;
use lockstep_runs::RunDir;
use lockstep_xgboost::{Booster, Importance};
use std::collections::BTreeMap;

/// What is said of one column.
#[derive(Debug, Default, PartialEq)]
struct Use {
    gain: f32,
    total_gain: f32,
    splits: f32,
}

/// Writes the table. Columns that no split uses are in it with zeros; they are called by `names`, or by `f` and their number
/// where names are not known.
pub(crate) fn write(
    run: &RunDir,
    booster: &mut Booster,
    names: &[String],
    columns: usize,
) -> Result<(), TreesError> {
    let measures = [Importance::Gain, Importance::TotalGain, Importance::Weight];
    let mut uses: Vec<Use> = (0..columns).map(|_| Use::default()).collect();
    for measure in measures {
        let found: BTreeMap<String, f32> = booster.importance(measure)?.into_iter().collect();
        for (column, one) in uses.iter_mut().enumerate() {
            let value = found.get(&format!("f{column}")).copied().unwrap_or(0.0);
            match measure {
                Importance::Gain => one.gain = value,
                Importance::TotalGain => one.total_gain = value,
                Importance::Weight => one.splits = value,
            }
        }
    }
    let text = table(&uses, names);
    Ok(run.file("model/importance.csv").write(text.as_bytes())?)
}

fn table(uses: &[Use], names: &[String]) -> String {
    let mut order: Vec<usize> = (0..uses.len()).collect();
    order.sort_by(|&a, &b| uses[b].total_gain.total_cmp(&uses[a].total_gain));
    let mut text = "column,gain,total_gain,splits\n".to_owned();
    for column in order {
        let name = names.get(column).cloned();
        let name = name.unwrap_or_else(|| format!("f{column}"));
        let Use {
            gain,
            total_gain,
            splits,
        } = &uses[column];
        text += &format!("{},{gain},{total_gain},{splits}\n", quoted(&name));
    }
    text
}

/// A cell of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_useful_column_comes_first_and_unused_ones_last() {
        let one = |gain: f32| Use {
            gain,
            total_gain: gain * 2.0,
            splits: 2.0,
        };
        let uses = [Use::default(), one(1.5), one(3.0)];
        let names = ["a".to_owned(), "b, \"c\"".to_owned()];
        assert_eq!(
            table(&uses, &names),
            "column,gain,total_gain,splits\nf2,3,6,2\n\"b, \"\"c\"\"\",1.5,3,2\na,0,0,0\n"
        );
    }
}
