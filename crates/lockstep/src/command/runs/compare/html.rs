//! Everything on one page, which needs nothing else: no script, no font, no picture from elsewhere.

use super::svg::{COLOURS, STYLE, escaped, single};
use super::{Comparison, Line};
use lockstep_index::dates;
use std::fmt::Write;

const PAGE: &str = "
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#1f2328}
h1{font-size:1.4rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}
p{margin:.2rem 0;color:#59636e}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem;border-bottom:1px solid #d0d7de;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
thead th{border-bottom-width:2px}
i{display:inline-block;width:.9em;height:.3em;margin-right:.5em;vertical-align:middle;border-radius:2px}
ul{list-style:none;padding:0}
svg{width:100%;height:auto}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}p{color:#9198a1}
th,td{border-color:#3d444d}}
";

/// The page.
pub(super) fn page(comparison: &Comparison, store: &str, now: f64) -> String {
    let number = comparison.runs.len();
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{number} runs of {store}</title>\n<style>{PAGE}{STYLE}</style></head>\n<body>\n\
         <h1>{number} runs compared</h1>\n<p>{store}, {} UTC</p>\n<ul>\n",
        dates::show(now),
        store = escaped(store),
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
    text += &table(comparison, "Results", &comparison.metrics);
    if comparison.differing.is_empty() {
        let _ = writeln!(
            text,
            "<h2>Parameters</h2>\n<p>All {} are the same.</p>",
            comparison.same
        );
    } else {
        text += &table(comparison, "Parameters that differ", &comparison.differing);
        let _ = writeln!(text, "<p>{} more are the same.</p>", comparison.same);
    }
    text + "</body></html>\n"
}

fn mark(number: usize) -> String {
    let colour = COLOURS[number % COLOURS.len()];
    format!("<i style=\"background:{colour}\"></i>")
}

fn table(comparison: &Comparison, title: &str, lines: &[Line]) -> String {
    let mut text = format!("<h2>{title}</h2>\n<div class=\"scroll\"><table><thead><tr><th></th>");
    for number in 0..comparison.runs.len() {
        let _ = write!(
            text,
            "<th>{}{}</th>",
            mark(number),
            escaped(&comparison.label(number))
        );
    }
    text += "</tr></thead><tbody>\n";
    for line in lines {
        let _ = write!(text, "<tr><td>{}</td>", escaped(&line.name));
        for value in &line.values {
            let _ = write!(text, "<td>{}</td>", escaped(value));
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}
