//! How much each column is used, the most useful first: `model/importance.csv` is a table, and `importance.svg` a picture.

use crate::TreesError;
use crate::xgboost::{Booster, Importance};
use lockstep_measure::chart::{Bar, titled_bars};
use lockstep_runs::RunDir;
use std::collections::BTreeMap;

/// Columns that the picture shows, at most.
const SHOWN: usize = 20;

/// What is said of one column.
#[derive(Debug, Default, PartialEq)]
struct Use {
    name: String,
    gain: f32,
    total_gain: f32,
    splits: f32,
    /// The mean size of its contributions to what the model says.
    shap: f64,
}

/// Writes the table and the picture. `shap` is the mean size of each column's contributions. Columns that no split uses are
/// in the table with zeros; they are called by `names`, or by `f` and their number where names are not known.
pub(crate) fn write(
    run: &RunDir,
    booster: &mut Booster,
    names: &[String],
    shap: &[f64],
) -> Result<(), TreesError> {
    let uses = uses(booster, names, shap)?;
    let file = run.file(lockstep_runs::files::IMPORTANCE_TABLE);
    file.write(table(&uses).as_bytes())?;
    let picture = picture(&run.name, &uses);
    Ok(run.importance().write(picture.as_bytes())?)
}

/// What is said of all columns, the most useful first.
fn uses(booster: &mut Booster, names: &[String], shap: &[f64]) -> Result<Vec<Use>, TreesError> {
    let named = |(column, &shap): (usize, &f64)| Use {
        name: (names.get(column).cloned()).unwrap_or_else(|| format!("f{column}")),
        shap,
        ..Use::default()
    };
    let mut uses: Vec<Use> = shap.iter().enumerate().map(named).collect();
    for measure in [Importance::Gain, Importance::TotalGain, Importance::Weight] {
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
    uses.sort_by(|a, b| {
        let by_shap = b.shap.total_cmp(&a.shap);
        by_shap.then(b.total_gain.total_cmp(&a.total_gain))
    });
    Ok(uses)
}

fn table(uses: &[Use]) -> String {
    let mut text = "column,gain,total_gain,splits,shap\n".to_owned();
    for one in uses {
        let Use {
            name,
            gain,
            total_gain,
            splits,
            shap,
        } = one;
        text += &format!("{},{gain},{total_gain},{splits},{shap}\n", quoted(name));
    }
    text
}

fn picture(run: &str, uses: &[Use]) -> String {
    let bars: Vec<Bar> = (uses.iter().take(SHOWN))
        .map(|one| Bar {
            name: one.name.clone(),
            parts: vec![one.shap],
            words: format!("{:.3}", one.shap),
        })
        .collect();
    titled_bars(&format!("{run}: mean |SHAP value| of each column"), &bars)
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
    fn names_with_commas_and_quotes_are_one_cell_and_many_columns_are_not_all_drawn() {
        let one = |name: &str, gain: f32| Use {
            name: name.to_owned(),
            gain,
            total_gain: gain * 2.0,
            splits: 2.0,
            shap: 0.25,
        };
        assert_eq!(
            table(&[one("f2", 3.0), one("b, \"c\"", 1.5)]),
            "column,gain,total_gain,splits,shap\nf2,3,6,2,0.25\n\"b, \"\"c\"\"\",1.5,3,2,0.25\n"
        );
        let many: Vec<Use> = (0..30).map(|n| one(&format!("f{n}"), 1.0)).collect();
        assert_eq!(picture("run", &many).matches("<rect").count(), SHOWN);
    }
}
