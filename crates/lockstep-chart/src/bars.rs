//! Bars that are divided: what a whole consists of, for several wholes below each other.

use crate::{colour, escaped};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 80.0;
const ROW: f64 = 30.0;

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
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
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
    let whole = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    for (row, bar) in bars.iter().enumerate() {
        let y = ROW * (row as f64 + 1.0);
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 15.0,
            escaped(&bar.name)
        );
        let mut x = LEFT;
        for (number, part) in bar.parts.iter().enumerate() {
            let width = (part / longest * (WIDTH - LEFT - RIGHT)).max(0.0);
            let share = 100.0 * part / whole(bar).max(f64::MIN_POSITIVE);
            let _ = write!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"20\" fill=\"{}\">\
                 <title>{}: {share:.1}%</title></rect>",
                colour(number),
                escaped(legend.get(number).copied().unwrap_or_default()),
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
    text + "</svg>\n"
}
