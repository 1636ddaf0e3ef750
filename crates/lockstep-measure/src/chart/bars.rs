//! Bars that are divided: what a whole consists of, for several wholes below each other.

use crate::chart::{STYLE, colour, escaped};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 80.0;
const ROW: f64 = 30.0;
/// Letters of a name that fit beside its bar.
const NAME: usize = 28;

/// One bar.
#[derive(Debug)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// Its parts, from left to right, in the order of the legend.
    pub parts: Vec<f64>,
    /// What stands behind it.
    pub words: String,
}

/// Bars below each other on a page, with a legend above. The longest takes the whole width.
pub fn bars(title: &str, legend: &[&str], bars: &[Bar]) -> String {
    let height = ROW * (bars.len() as f64 + 1.0) + 10.0;
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{}{}</svg>\n",
        escaped(title),
        names(legend),
        rows(legend, bars)
    )
}

/// Bars of one part each as a file that stands for itself, with a title above.
pub fn titled_bars(title: &str, bars: &[Bar]) -> String {
    let height = ROW * (bars.len() as f64 + 1.0) + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\"><style>{STYLE}</style>\n\
         <text class=\"t\" x=\"5\" y=\"18\">{}</text>{}</svg>\n",
        escaped(title),
        rows(&[], bars)
    )
}

/// The legend.
fn names(legend: &[&str]) -> String {
    let mut text = String::new();
    let step = (WIDTH - 10.0) / legend.len().max(1) as f64;
    for (number, name) in legend.iter().enumerate() {
        let x = 5.0 + step * number as f64;
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" y=\"6\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"15\">{}</text>",
            colour(number),
            x + 15.0,
            escaped(name)
        );
    }
    text
}

/// The bars themselves.
fn rows(legend: &[&str], bars: &[Bar]) -> String {
    let mut text = String::new();
    let whole = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    for (row, bar) in bars.iter().enumerate() {
        let y = ROW * (row as f64 + 1.0);
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 15.0,
            escaped(&fitted(&bar.name))
        );
        let mut x = LEFT;
        for (number, part) in bar.parts.iter().enumerate() {
            let width = (part / longest * (WIDTH - LEFT - RIGHT)).max(0.0);
            let share = 100.0 * part / whole(bar).max(f64::MIN_POSITIVE);
            let story = match legend.get(number) {
                Some(name) => format!("{name}: {share:.1}%"),
                None => format!("{}: {}", bar.name, bar.words),
            };
            let _ = write!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"20\" fill=\"{}\">\
                 <title>{}</title></rect>",
                colour(number),
                escaped(&story),
            );
            x += width;
        }
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            x + 6.0,
            y + 15.0,
            escaped(&bar.words)
        );
    }
    text
}

/// The beginning of a name that is too long.
fn fitted(name: &str) -> String {
    match name.chars().nth(NAME) {
        None => name.to_owned(),
        Some(_) => name.chars().take(NAME - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_bars_stands_for_itself_and_long_names_are_cut_beside_their_bars_alone() {
        let long = "a column <with> a name that nobody reads to its end";
        let bar = |name: &str, part| Bar {
            name: name.to_owned(),
            parts: vec![part],
            words: part.to_string(),
        };
        let text = titled_bars("importance", &[bar(long, 2.0), bar("b", 1.0)]);
        assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(
            text.contains(">a column &lt;with&gt; a name that…</text>"),
            "{text}"
        );
        assert!(text.contains("to its end: 2</title>"), "{text}");
        assert!(text.contains("width=\"490.0\"") && text.contains("width=\"245.0\""));
    }
}
