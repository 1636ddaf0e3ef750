//! A search as one page.

use crate::Tuning;
use lockstep_measure::chart::{Bar, Curve, Picture, bars, escaped, page, single, table};

/// Curves of so many trials are drawn: the best.
const DRAWN: usize = 8;

impl Tuning {
    /// Trials as rows of text, the best first: number, values, epochs or rounds, metric.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let mut sorted: Vec<_> = self
            .trials
            .iter()
            .filter(|trial| !trial.reached.is_empty() || trial.failed.is_some())
            .collect();
        let value = |trial: &crate::Trial| trial.reached.last().map(|reached| reached.value);
        sorted.sort_by(|a, b| {
            let worth = |trial| {
                value(trial).map_or(
                    f64::MIN,
                    |value| if self.rules.maximise { value } else { -value },
                )
            };
            let further = b.reached.len().cmp(&a.reached.len());
            let failed = a.failed.is_some().cmp(&b.failed.is_some());
            failed.then(further).then(worth(b).total_cmp(&worth(a)))
        });
        let row = |trial: &&crate::Trial| {
            let mut row = vec![trial.number.to_string()];
            row.extend(trial.values.iter().map(|(_, value)| value.clone()));
            row.push(
                trial
                    .reached
                    .last()
                    .map_or(0, |reached| reached.epochs)
                    .to_string(),
            );
            row.push(match &trial.failed {
                Some(why) => format!("failed: {why}"),
                None => value(trial).map_or_else(String::new, |value| format!("{value:.4}")),
            });
            row
        };
        sorted.iter().map(row).collect()
    }

    /// What the columns of [`Tuning::rows`] are called.
    pub fn columns(&self) -> Vec<String> {
        let mut columns = vec!["trial".to_owned()];
        columns.extend(
            self.rules
                .space
                .dimensions
                .iter()
                .map(|dimension| dimension.key.clone()),
        );
        let unit = format!("{}s", self.rules.unit);
        columns.extend([unit, self.rules.metric.clone()]);
        columns
    }

    /// The page.
    pub fn html(&self) -> String {
        let rows = self.rows();
        let mut text = format!(
            "<h1>{}</h1>\n<p>{} of {} trials, {} {}s trained; the same by seed {} on any number at a time.</p>\n",
            escaped(&self.name),
            rows.len(),
            self.rules.trials,
            self.epochs(),
            self.rules.unit,
            self.rules.seed
        );
        let importance = self.importance();
        if !importance.is_empty() {
            let bar = |(key, share): &(String, f64)| Bar {
                name: key.clone(),
                parts: vec![*share],
                words: format!("{:.0}%", 100.0 * share),
            };
            let all: Vec<Bar> = importance.iter().map(bar).collect();
            let title = "How much of the difference between trials a key explains";
            text += &format!("<h2>{title}</h2>\n{}", bars(title, &["share"], &all));
        }
        let best: Vec<usize> = rows
            .iter()
            .take(DRAWN)
            .filter_map(|row| row[0].parse().ok())
            .collect();
        let curve = |(number, trial): (usize, &usize)| {
            let curve = &self.trials[*trial].reached.last()?.curve;
            let points = curve
                .iter()
                .enumerate()
                .map(|(at, value)| (at as f64 + 1.0, *value));
            Some((
                number,
                Curve::new(format!("trial {trial}"), points.collect()),
            ))
        };
        let picture = Picture {
            name: format!("{} by {}", self.rules.metric, self.rules.unit),
            curves: best.iter().enumerate().filter_map(curve).collect(),
            from_zero: false,
            across: |epoch| format!("{epoch:.0}"),
            down: |value| format!("{value:.4}"),
        };
        text += &format!("<h2>The best trials</h2>\n{}", single(&picture));
        let head: Vec<String> = self.columns().iter().map(|name| escaped(name)).collect();
        let cells = rows
            .iter()
            .map(|row| row.iter().map(String::as_str).collect());
        text += &table(&head, cells);
        page(&self.name, &text)
    }
}

#[cfg(test)]
mod tests {
    use crate::Method;
    use crate::tuning::tests::{search, tuning};

    #[test]
    fn the_page_begins_with_the_best_trial_and_asks_nobody() {
        let done = search(tuning(Method::Tpe, 20, 9), 2);
        let page = done.html();
        let best = done.best().unwrap().number.to_string();
        assert_eq!(done.rows()[0][0], best);
        assert!(page.contains("val.accuracy by epoch") && page.contains("explains"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }
}
