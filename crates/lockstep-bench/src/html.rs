//! A comparison as one page, which needs nothing else.

use crate::comparison::SettingRow;
use crate::markdown::{COLUMNS, FORECAST};
use crate::measured::EpochPoint;
use crate::{Comparison, How};
use lockstep_events::event::StepTimes;
use lockstep_measure::chart::{Bar, Curve, Picture, bars, escaped, mark, page, single, table};
use std::fmt::Write;

impl Comparison {
    /// The page.
    pub fn html(&self) -> String {
        let mut text = format!(
            "<h1>{}: one worker against many</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n",
            escaped(&self.job),
            escaped(&self.how()),
            escaped(&self.command)
        );
        if let Some(error) = &self.error {
            let _ = writeln!(
                text,
                "<p class=\"warning\">Not complete: {}</p>",
                escaped(error)
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(
                text,
                "<p class=\"warning\">{}</p>",
                escaped(&warning.warning)
            );
        }
        let cells = self.cells();
        let rows = cells
            .iter()
            .map(|row| row.iter().map(String::as_str).collect());
        text += &table(&COLUMNS.map(escaped), rows);
        text += &self.scaling_pictures();
        text += &self.forecasts();
        text += &self.step_bars();
        text += &self.accuracy_pictures();
        text += &self.hashes();
        page(&format!("{}: one worker against many", self.job), &text)
    }

    /// Speedup and efficiency by workers, against the ideal line.
    fn scaling_pictures(&self) -> String {
        let mut groups: Vec<Option<u64>> = self.settings.iter().map(|row| row.group).collect();
        groups.dedup();
        groups.sort_unstable();
        groups.dedup();
        let workers = self.settings.iter().map(|row| row.workers as f64);
        let (least, most) = workers.fold((f64::MAX, 1.0), |(a, b), n| (a.min(n), f64::max(b, n)));
        if most <= least {
            return String::new();
        }
        let mut names = Vec::new();
        let (mut speedups, mut efficiencies) = (Vec::new(), Vec::new());
        for group in groups {
            let of_batch = group.map(|batch| format!(", batch {batch}"));
            let of_batch = of_batch.unwrap_or_default();
            for (how, word) in [
                (How::Together, "measured"),
                (How::Apart, "workers that exchange nothing"),
            ] {
                let is_meant = |row: &&SettingRow| row.how == how && row.group == group;
                let own: Vec<&SettingRow> = self.settings.iter().filter(is_meant).collect();
                if own.is_empty() {
                    continue;
                }
                let number = names.len();
                names.push(format!("{word}{of_batch}"));
                let points = |value: fn(&SettingRow) -> Option<f64>| {
                    let point = |row: &&SettingRow| (row.workers as f64, value(row).unwrap_or(1.0));
                    let mut points: Vec<(f64, f64)> = own.iter().map(point).collect();
                    if how == How::Apart {
                        // One worker has nobody to wait for.
                        points.insert(0, (least, 1.0));
                    }
                    Curve::new(&names[number], points)
                };
                speedups.push((number, points(|row| row.speedup)));
                efficiencies.push((number, points(|row| row.efficiency)));
            }
        }
        let ideal = names.len();
        names.push("ideal".to_owned());
        let line = |points| Curve {
            dashed: true,
            ..Curve::new("ideal", points)
        };
        speedups.push((ideal, line(vec![(least, 1.0), (most, most / least)])));
        efficiencies.push((ideal, line(vec![(least, 1.0), (most, 1.0)])));
        let mut text = "<h2>Speedup and efficiency by workers</h2>\n".to_owned();
        text += &legend(&names);
        for (name, curves) in [
            ("speedup by workers", speedups),
            ("efficiency by workers", efficiencies),
        ] {
            text += &single(&picture(name, curves, true));
        }
        text
    }

    fn forecasts(&self) -> String {
        if self.predictions.is_empty() {
            return String::new();
        }
        let cells = self.forecast_cells();
        let rows = cells
            .iter()
            .map(|row| row.iter().map(String::as_str).collect());
        format!(
            "<h2>Forecast for more workers</h2>\n<p>Computed from what was measured and a model of the network, not \
             measured. Rows with a figure in the last column are of shared memory, and say how far it is off.</p>\n{}",
            table(&FORECAST.map(escaped), rows)
        )
    }

    fn step_bars(&self) -> String {
        if self.steps.is_empty() {
            return String::new();
        }
        let bar = |row: &crate::comparison::StepRow| Bar {
            name: row.setting.clone(),
            parts: row.times.parts().to_vec(),
            words: format!("{:.2} s", row.seconds),
        };
        let all: Vec<Bar> = self.steps.iter().map(bar).collect();
        let title = "Where the time of a worker's steps goes";
        format!(
            "<h2>{title}</h2>\n<p>Seconds of one worker in a run of up to 200 steps that looked at the clock, and did not count.</p>\n{}",
            bars(title, &StepTimes::NAMES, &all)
        )
    }

    fn accuracy_pictures(&self) -> String {
        let mut names: Vec<String> = self.epochs.iter().map(|row| row.setting.clone()).collect();
        names.dedup();
        let curves = |point: &dyn Fn(&EpochPoint) -> Option<(f64, f64)>| {
            let curve = |(number, name): (usize, &String)| {
                let own = self.epochs.iter().filter(|row| row.setting == *name);
                let points: Vec<_> = own.filter_map(|row| point(&row.point)).collect();
                (!points.is_empty()).then(|| (number, Curve::new(name, points)))
            };
            names
                .iter()
                .enumerate()
                .filter_map(curve)
                .collect::<Vec<_>>()
        };
        let by_epoch = curves(&|point| Some((f64::from(point.epoch), point.accuracy?)));
        let by_second = curves(&|point| Some((point.seconds, point.accuracy?)));
        if by_epoch.is_empty() {
            return String::new();
        }
        format!(
            "<h2>Accuracy by epoch and by second</h2>\n<p>Curves that lie on each other learn the same.</p>\n{}{}{}",
            legend(&names),
            single(&picture("accuracy by epoch", by_epoch, false)),
            single(&picture("accuracy by second of training", by_second, false))
        )
    }

    fn hashes(&self) -> String {
        let rows: Vec<[&str; 2]> = self
            .settings
            .iter()
            .filter_map(|row| Some([row.setting.as_str(), row.weights_sha256.as_deref()?]))
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<h2>What was learned, as SHA-256 of the weights</h2>\n{}",
            table(
                &["setting", "SHA-256"].map(str::to_owned),
                rows.iter().map(|row| row.to_vec())
            )
        )
    }
}

fn legend(names: &[String]) -> String {
    let mut text = "<ul>".to_owned();
    for (number, name) in names.iter().enumerate() {
        let _ = write!(text, "<li>{}{}</li>", mark(number), escaped(name));
    }
    text + "</ul>\n"
}

fn picture(name: &str, curves: Vec<(usize, Curve)>, from_zero: bool) -> Picture {
    let number: fn(f64) -> String = |value| match value.fract().abs() < 1e-9 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    };
    Picture {
        name: name.to_owned(),
        curves,
        from_zero,
        across: number,
        down: if from_zero {
            number
        } else {
            |value| format!("{value:.4}")
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::tests::{bench, steady};
    use crate::{EpochPoint, Measured, Setting};
    use lockstep_events::event::StepTimes;

    #[test]
    fn the_page_has_everything_and_asks_nobody_for_anything() {
        let mut bench = bench(&[1, 2], 2);
        bench.job = "<script>".into();
        let mut one = |_, setting: &Setting| {
            let epoch = |epoch| EpochPoint {
                epoch,
                seconds: f64::from(epoch),
                accuracy: Some(0.5),
                loss: None,
            };
            Ok::<_, String>(Some(Measured {
                epochs: vec![epoch(1), epoch(2)],
                step: Some(StepTimes {
                    forward_s: 1.0,
                    ..StepTimes::default()
                }),
                ..steady(setting)
            }))
        };
        let page = bench.measure(&mut one, &mut |_| Ok(())).unwrap().0.html();
        for wanted in [
            "speedup",
            "efficiency",
            "ideal",
            "Where the time",
            "accuracy by second",
            "SHA-256",
        ] {
            assert!(page.contains(wanted), "{wanted}");
        }
        for refused in ["<script", "http://", "https://", "url("] {
            assert!(!page.contains(refused), "{refused}");
        }
    }
}
