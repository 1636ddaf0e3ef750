//! A comparison as a table in Markdown.

use crate::{Comparison, Prediction};
use std::fmt::Write;

/// A number with so many decimals, or nothing.
pub(crate) fn decimals(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
}

/// What the columns of the table of settings are called.
pub(crate) const COLUMNS: [&str; 10] = [
    "setting",
    "training (s)",
    "least to most",
    "total (s)",
    "samples/s",
    "speedup",
    "least to most",
    "efficiency",
    "of the limit",
    "accuracy",
];

/// What the columns of the table of forecasts are called.
pub(crate) const FORECAST: [&str; 7] = [
    "workers",
    "batch",
    "step (ms)",
    "exchange (ms)",
    "speedup, forecast",
    "efficiency",
    "measured here",
];

impl Comparison {
    /// The rows of the table of forecasts.
    pub(crate) fn forecast_cells(&self) -> Vec<[String; 7]> {
        let row = |row: &Prediction| {
            let measured = match row.measured_speedup.zip(row.error) {
                Some((measured, error)) => format!("{measured:.2} ({:+.0}%)", 100.0 * error),
                None => String::new(),
            };
            [
                row.workers.to_string(),
                row.batch.to_string(),
                format!("{:.2}", row.step_ms),
                format!("{:.2}", row.exchange_ms),
                format!("{:.2}", row.speedup),
                format!("{:.2}", row.efficiency),
                measured,
            ]
        };
        self.predictions.iter().map(row).collect()
    }

    /// The rows of the table of settings, as people read them.
    pub(crate) fn cells(&self) -> Vec<[String; 10]> {
        let row = |row: &crate::SettingRow| {
            let between = |least: Option<f64>, most: Option<f64>| match least.zip(most) {
                Some((least, most)) => format!("{least:.2} to {most:.2}"),
                None => String::new(),
            };
            [
                row.setting.clone(),
                format!("{:.2}", row.training_time_seconds),
                between(Some(row.least_seconds), Some(row.most_seconds)),
                format!("{:.2}", row.total_time_seconds),
                format!("{:.0}", row.samples_per_second),
                decimals(row.speedup, 2),
                between(row.least_speedup, row.most_speedup),
                decimals(row.efficiency, 2),
                decimals(row.share_of_limit, 2),
                decimals(row.accuracy, 4),
            ]
        };
        self.settings.iter().map(row).collect()
    }

    /// Where and how it was measured, in a sentence or two.
    pub(crate) fn how(&self) -> String {
        let turns = match self.rounds {
            1 => "one round".to_owned(),
            n => format!("{n} rounds"),
        };
        format!(
            "Measured {} UTC on {}; load at the end {:.2}; {turns} in turns, medians, warm-up left out; Lockstep {}.",
            self.created, self.measured_on, self.load_at_the_end, self.lockstep
        )
    }

    /// The comparison as a text in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n`{}`\n\n{}\n", self.job, self.command, self.how());
        if let Some(error) = &self.error {
            let _ = writeln!(text, "\nNot complete: {error}.");
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text.push('\n');
        text += &line(&COLUMNS.map(str::to_owned));
        text += &line(&COLUMNS.map(|_| "---".to_owned()));
        for row in self.cells() {
            text += &line(&row);
        }
        if !self.predictions.is_empty() {
            text.push('\n');
            text += &line(&FORECAST.map(str::to_owned));
            text += &line(&FORECAST.map(|_| "---".to_owned()));
            for row in self.forecast_cells() {
                text += &line(&row);
            }
        }
        if let Some(compared) = &self.comparison {
            let same = match compared.same_weights {
                Some(true) => " The weights are the same to the bit.",
                _ => "",
            };
            let _ = writeln!(
                text,
                "\nSpeedup {:.2}, efficiency {:.2}.{same}",
                compared.speedup, compared.efficiency
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "\n**Note:** {}.", warning.warning);
        }
        text
    }
}
