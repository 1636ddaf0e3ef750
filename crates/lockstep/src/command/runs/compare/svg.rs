//! Curves as a picture: plain SVG that stands for itself, on light ground and on dark.

use super::{Comparison, Picture};
use crate::view::loss;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// A line of the legend.
const LEGEND: f64 = 18.0;

/// The colours of curves, which come again after the last; seen on light ground and on dark.
pub(super) const COLOURS: [&str; 8] = [
    "#2f7ed8", "#e8710a", "#1a9850", "#d6306a", "#8662d6", "#1a9ba1", "#a98300", "#7a7f87",
];

/// What the picture looks like; a page that holds it has the same.
pub(super) const STYLE: &str = "svg text{font:12px system-ui,sans-serif;fill:#1f2328}\
svg .t{font-weight:600;font-size:14px}svg .g{stroke:#d0d7de;stroke-width:1}svg .c{fill:none;stroke-width:1.6}\
@media(prefers-color-scheme:dark){svg text{fill:#e6edf3}svg .g{stroke:#3d444d}}";

/// Text that stands for itself in SVG and HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no words for most of these.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// All curves below each other, with a legend.
pub(super) fn picture(comparison: &Comparison) -> String {
    let legend = LEGEND * comparison.runs.len() as f64 + 16.0;
    let height = HEIGHT * comparison.pictures.len() as f64 + legend;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\"><style>{STYLE}</style>\n"
    );
    for (number, run) in comparison.runs.iter().enumerate() {
        let y = 12.0 + LEGEND * number as f64;
        let colour = COLOURS[number % COLOURS.len()];
        let _ = writeln!(
            text,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            y + 4.0,
            LEFT + 22.0,
            y + 10.0,
            escaped(&run.name)
        );
    }
    for (number, picture) in comparison.pictures.iter().enumerate() {
        let down = legend + HEIGHT * number as f64;
        let _ = writeln!(
            text,
            "<g transform=\"translate(0 {down})\">{}</g>",
            curves(picture)
        );
    }
    text + "</svg>\n"
}

/// One picture on a page.
pub(super) fn single(picture: &Picture) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">{}</svg>",
        escaped(&picture.name),
        curves(picture)
    )
}

fn curves(picture: &Picture) -> String {
    let finite = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
    let points = || {
        picture
            .curves
            .iter()
            .flat_map(|(_, curve)| curve.points.iter().filter(finite))
    };
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = points()
            .map(of)
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match low < high {
            true => (low, high),
            false => (low - 0.5, low + 0.5),
        }
    };
    let mut text = format!(
        "<text class=\"t\" x=\"{LEFT}\" y=\"20\">{}</text>",
        escaped(&picture.name)
    );
    if points().next().is_none() {
        return text;
    }
    let (xs, ys) = (bounds(|point| point.0), bounds(|point| point.1));
    let across = |x: f64| LEFT + (x - xs.0) / (xs.1 - xs.0) * (WIDTH - LEFT - RIGHT);
    let down = |y: f64| TOP + (ys.1 - y) / (ys.1 - ys.0) * (HEIGHT - TOP - BOTTOM);
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let (x, y) = (xs.0 + share * (xs.1 - xs.0), ys.0 + share * (ys.1 - ys.0));
        let _ = write!(
            text,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{2:.1}\" y2=\"{2:.1}\"/>\
             <text x=\"{3}\" y=\"{4:.1}\" text-anchor=\"end\">{1}</text>",
            WIDTH - RIGHT,
            escaped(&loss(y)),
            down(y),
            LEFT - 8.0,
            down(y) + 4.0,
        );
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            across(x),
            HEIGHT - BOTTOM + 18.0,
            crate::view::count(x.round().max(0.0) as u64)
        );
    }
    for (number, curve) in &picture.curves {
        let mut path = String::new();
        for point in curve.points.iter().filter(finite) {
            let _ = write!(path, "{:.1},{:.1} ", across(point.0), down(point.1));
        }
        let _ = write!(
            text,
            "<polyline class=\"c\" stroke=\"{}\" points=\"{}\"><title>{}</title></polyline>",
            COLOURS[number % COLOURS.len()],
            path.trim_end(),
            escaped(&curve.name)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_run_is_called_becomes_markup() {
        assert_eq!(
            escaped("<a href='x'>\"&\u{1b}"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}"
        );
    }
}
