//! Bars that are divided: what a whole consists of, for several wholes below each other.

use crate::chart::{STYLE, TITLE, colour};
use crate::svg::{Anchor, Canvas};

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
    let mut canvas = Canvas::part(WIDTH, height(bars), title);
    let step = (WIDTH - 10.0) / legend.len().max(1) as f64;
    for (number, name) in legend.iter().enumerate() {
        let x = 5.0 + step * number as f64;
        canvas.rect((x, 6.0), (10.0, 10.0), colour(number), None);
        canvas.label((x + 15.0, 15.0), Anchor::Start, name);
    }
    rows(&mut canvas, legend, bars);
    canvas.finish()
}

/// Bars of one part each as a file that stands for itself, with a title above.
pub fn titled_bars(title: &str, bars: &[Bar]) -> String {
    let mut canvas = Canvas::file(WIDTH, height(bars), "");
    canvas.push(format_args!("<style>{STYLE}</style>\n"));
    canvas.words((5.0, 18.0), TITLE, title);
    rows(&mut canvas, &[], bars);
    canvas.finish()
}

fn height(bars: &[Bar]) -> f64 {
    ROW * (bars.len() as f64 + 1.0) + 10.0
}

/// The bars themselves.
fn rows(canvas: &mut Canvas, legend: &[&str], bars: &[Bar]) {
    let whole = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    for (row, bar) in bars.iter().enumerate() {
        let y = ROW * (row as f64 + 1.0);
        canvas.label((LEFT - 8.0, y + 15.0), Anchor::End, &fitted(&bar.name));
        let mut x = LEFT;
        for (number, part) in bar.parts.iter().enumerate() {
            let width = (part / longest * (WIDTH - LEFT - RIGHT)).max(0.0);
            let share = 100.0 * part / whole(bar).max(f64::MIN_POSITIVE);
            let story = match legend.get(number) {
                Some(name) => format!("{name}: {share:.1}%"),
                None => format!("{}: {}", bar.name, bar.words),
            };
            canvas.rect((x, y), (width, 20.0), colour(number), Some(&story));
            x += width;
        }
        canvas.label((x + 6.0, y + 15.0), Anchor::Start, &bar.words);
    }
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
        assert!(text.contains("width=\"490\"") && text.contains("width=\"245\""));
    }
}
