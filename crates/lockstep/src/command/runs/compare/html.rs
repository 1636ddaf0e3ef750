//! Everything on one page.

use super::{Comparison, Line};
use lockstep_index::dates;
use lockstep_measure::chart::{escaped, mark, single, table};
use std::fmt::Write;

/// The page.
pub(super) fn page(comparison: &Comparison, store: &str, now: f64) -> String {
    let number = comparison.runs.len();
    let mut text = format!(
        "<h1>{number} runs compared</h1>\n<p>{}, {} UTC</p>\n<ul>\n",
        escaped(store),
        dates::show(now),
    );
    for (number, run) in comparison.runs.iter().enumerate() {
        let note = match run.note.as_str() {
            "" => String::new(),
            note => format!(": {}", escaped(note)),
        };
        let _ = writeln!(
            text,
            "<li>{}{} ({}){note}</li>",
            mark(number),
            escaped(&run.name),
            run.state
        );
    }
    text += "</ul>\n";
    for picture in &comparison.pictures {
        let _ = writeln!(
            text,
            "<h2>{} by step</h2>\n{}",
            escaped(&picture.name),
            single(picture)
        );
    }
    text += &lines(comparison, "Results", &comparison.metrics);
    if comparison.differing.is_empty() {
        let _ = writeln!(
            text,
            "<h2>Parameters</h2>\n<p>All {} are the same.</p>",
            comparison.same
        );
    } else {
        text += &lines(comparison, "Parameters that differ", &comparison.differing);
        let _ = writeln!(text, "<p>{} more are the same.</p>", comparison.same);
    }
    lockstep_measure::chart::page(&format!("{number} runs of {store}"), &text)
}

fn lines(comparison: &Comparison, title: &str, lines: &[Line]) -> String {
    let mut head = vec![String::new()];
    head.extend(
        (0..comparison.runs.len())
            .map(|number| format!("{}{}", mark(number), escaped(&comparison.label(number)))),
    );
    let rows = lines.iter().map(|line| {
        let values = line.values.iter().map(String::as_str);
        std::iter::once(line.name.as_str()).chain(values).collect()
    });
    format!("<h2>{title}</h2>\n{}", table(&head, rows))
}
