//! The confusion matrix as a picture: an SVG file, readable from 2 classes to a few hundred.
//!
//! A row is a class, a column what it was taken for. What is right is blue and what is wrong is orange,
//! the darker the larger its share of the row; shares grow by their square root, so that rare mistakes
//! show. Counts are written into the cells as long as they fit, and every cell that is not empty tells its
//! story when pointed at. No scripts, no outside fonts or files.

mod shade;

use crate::Classification;
use crate::scores::ratio;
use crate::svg::{Anchor, Canvas};
use crate::table::{fitted, grouped, printable};
use shade::Shade;
use unicode_width::UnicodeWidthStr as _;

/// The widest that a class's name may be, in columns of text.
const NAME: usize = 28;
/// How wide a digit or letter is, in units of its size.
const GLYPH: f64 = 0.58;
const INK: &str = "#1f2933";
const PALE: &str = "#66707c";
const FONT: &str =
    " role=\"img\" font-family=\"Inter, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\"";

impl Classification {
    /// The confusion matrix as an SVG file with a title of one's own.
    pub fn svg(&self, title: &str) -> String {
        Picture::new(self).draw(title)
    }
}

/// Where everything goes.
struct Picture<'a> {
    evaluation: &'a Classification,
    names: Vec<String>,
    /// The side of a cell.
    cell: f64,
    /// The size of class names.
    font: f64,
    /// The upper left corner of the matrix.
    left: f64,
    top: f64,
    /// How steep the names of the columns stand, in degrees.
    slope: f64,
    /// Room that they take below the matrix.
    below: f64,
}

impl<'a> Picture<'a> {
    fn new(evaluation: &'a Classification) -> Self {
        let names = evaluation.classes.iter();
        let names: Vec<String> = names
            .map(|class| fitted(&printable(&class.class), NAME))
            .collect();
        let cell = match names.len() {
            0..=3 => 96.0,
            4..=6 => 72.0,
            7..=12 => 52.0,
            13..=20 => 38.0,
            21..=40 => 24.0,
            41..=80 => 16.0,
            _ => 12.0,
        };
        let font = f64::clamp(cell * 0.75, 9.0, 13.0);
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let room = longest as f64 * font * GLYPH;
        // Names that fit below their column lie flat.
        let slope: f64 = match room {
            room if room <= cell - 6.0 => 0.0,
            _ if cell >= 20.0 => 45.0,
            _ => 90.0,
        };
        let (sin, cos) = slope.to_radians().sin_cos();
        let below = (room * sin + font * cos).max(font) + 10.0;
        let lean = if slope == 0.0 { 0.0 } else { room * cos };
        let left = 52.0 + room.max(lean - cell / 2.0);
        Self {
            evaluation,
            names,
            cell,
            font,
            left,
            top: 104.0,
            slope,
            below,
        }
    }

    fn side(&self) -> f64 {
        self.cell * self.names.len() as f64
    }

    fn draw(&self, title: &str) -> String {
        let side = self.side();
        let recall = 64.0;
        let heading = self.heading();
        let widest = title.width().max(heading.width() * 13 / 20) as f64 * 20.0 * GLYPH;
        let width = f64::max(self.left + side + recall + 24.0, 28.0 + widest + 24.0);
        let matrix_end = self.top + side + self.below;
        let height = matrix_end + 112.0;
        let mut canvas = Canvas::file(width.ceil(), height.ceil(), FONT);
        canvas.describe(title, &heading);
        canvas.text((28.0, 40.0), 20.0, INK, Anchor::Start, &printable(title));
        canvas.text((28.0, 64.0), 13.0, PALE, Anchor::Start, &heading);
        self.cells(&mut canvas);
        self.axes(&mut canvas);
        self.recalls(&mut canvas);
        self.legend(
            &mut canvas,
            (self.left.round(), (matrix_end + 52.0).round()),
        );
        canvas.finish()
    }

    /// What it all comes to, in one line.
    fn heading(&self) -> String {
        let summary = &self.evaluation.summary;
        let mut heading = format!(
            "accuracy {:.2} % of {} samples · macro F1 {:.4}",
            100.0 * summary.accuracy,
            grouped(summary.samples),
            summary.macro_average.f1
        );
        if summary.unseen_samples > 0 {
            let unseen = grouped(summary.unseen_samples);
            heading += &format!(" · {unseen} of unknown classes left out");
        }
        heading
    }

    fn cells(&self, canvas: &mut Canvas) {
        let confusion = &self.evaluation.confusion;
        let side = self.side();
        canvas.rect((self.left, self.top), (side, side), Shade::EMPTY, None);
        let gap = if self.cell >= 24.0 { 1.0 } else { 0.5 };
        for actual in 0..confusion.classes() {
            let support = confusion.support(actual);
            for (predicted, &count) in confusion.row(actual).iter().enumerate() {
                if count == 0 && actual != predicted {
                    continue;
                }
                let share = ratio(count, support);
                let shade = Shade::of(share, actual == predicted);
                let corner = self.corner(actual, predicted);
                let inner = self.cell - gap;
                let story = self.story(actual, predicted, count, share);
                let at = (corner.0 + gap / 2.0, corner.1 + gap / 2.0);
                canvas.rect(at, (inner, inner), &shade.fill, Some(&story));
                if let Some((text, size)) = self.label(count) {
                    let middle = corner.0 + self.cell / 2.0;
                    let base = corner.1 + self.cell / 2.0 + size * 0.36;
                    canvas.text((middle, base), size, shade.ink, Anchor::Middle, &text);
                }
            }
        }
        if self.cell >= 24.0 {
            canvas.grid((self.left, self.top), self.cell, self.names.len());
        } else {
            canvas.frame((self.left, self.top), side);
        }
    }

    fn corner(&self, actual: usize, predicted: usize) -> (f64, f64) {
        (
            self.left + predicted as f64 * self.cell,
            self.top + actual as f64 * self.cell,
        )
    }

    fn story(&self, actual: usize, predicted: usize, count: u64, share: f64) -> String {
        let class = |number: usize| printable(&self.evaluation.classes[number].class);
        let (count, share) = (grouped(count), 100.0 * share);
        match actual == predicted {
            true => format!("{}: {count} right, {share:.1} %", class(actual)),
            false => format!(
                "{} taken for {}: {count}, {share:.1} %",
                class(actual),
                class(predicted)
            ),
        }
    }

    /// A count as it fits into a cell, with the size of its text; nothing if it would be too small.
    fn label(&self, count: u64) -> Option<(String, f64)> {
        if self.cell < 24.0 {
            return None;
        }
        let room = self.cell - 6.0;
        let fits = |text: &str| {
            let size = room / (text.chars().count().max(2) as f64 * GLYPH);
            size.min(self.cell * 0.32).min(16.0)
        };
        let texts = [grouped(count), shortened(count)];
        let text = texts.into_iter().find(|text| fits(text) >= 7.5)?;
        let size = fits(&text);
        Some((text, size))
    }

    fn axes(&self, canvas: &mut Canvas) {
        let bottom = self.top + self.side();
        let center = self.side() / 2.0;
        for (number, name) in self.names.iter().enumerate() {
            let middle = (number as f64 + 0.5) * self.cell;
            let row = (self.left - 8.0, self.top + middle + self.font * 0.35);
            canvas.text(row, self.font, INK, Anchor::End, name);
            let column = self.left + middle;
            let (at, anchor) = match self.slope {
                0.0 => ((column, bottom + 6.0 + self.font), Anchor::Middle),
                90.0 => ((column + self.font * 0.35, bottom + 8.0), Anchor::End),
                _ => (
                    (column + self.font * 0.3, bottom + 6.0 + self.font * 0.6),
                    Anchor::End,
                ),
            };
            canvas.turned(at, -self.slope, self.font, INK, anchor, name);
        }
        let aside = (24.0, self.top + center);
        canvas.turned(aside, -90.0, 13.0, PALE, Anchor::Middle, "actual");
        let under = (self.left + center, bottom + self.below + 18.0);
        canvas.text(under, 13.0, PALE, Anchor::Middle, "predicted");
    }

    /// Beside each row, how much of it is right.
    fn recalls(&self, canvas: &mut Canvas) {
        let x = self.left + self.side() + 10.0;
        canvas.text((x, self.top - 8.0), 11.0, PALE, Anchor::Start, "recall");
        let size = self.font.min(12.0);
        for (number, class) in self.evaluation.classes.iter().enumerate() {
            let middle = self.top + (number as f64 + 0.5) * self.cell;
            let text = match class.support {
                0 => "–".to_owned(),
                _ => format!("{:.1} %", 100.0 * class.scores.recall),
            };
            canvas.text((x, middle + size * 0.35), size, PALE, Anchor::Start, &text);
        }
    }

    /// What the colours mean.
    fn legend(&self, canvas: &mut Canvas, (x, y): (f64, f64)) {
        let (steps, step, height) = (24, 6.0, 10.0);
        let length = f64::from(steps) * step;
        let lines = [("right", true), ("wrong", false)];
        for (line, (word, right)) in lines.into_iter().enumerate() {
            let y = y + line as f64 * 16.0;
            canvas.text((x + 40.0, y + 9.0), 11.0, PALE, Anchor::End, word);
            for i in 0..steps {
                let share = (f64::from(i) / f64::from(steps - 1)).powi(2);
                let shade = Shade::of(share, right);
                let at = (x + 48.0 + f64::from(i) * step, y);
                canvas.rect(at, (step, height), &shade.fill, None);
            }
        }
        let ticks = [
            (0.0, "0"),
            (0.1, "10 %"),
            (0.4, "40 %"),
            (1.0, "100 % of the row"),
        ];
        for (share, text) in ticks {
            let at = x + 48.0 + f64::sqrt(share) * length;
            let anchor = if share == 1.0 {
                Anchor::Start
            } else {
                Anchor::Middle
            };
            let at = if share == 1.0 { at - 10.0 } else { at };
            canvas.text((at, y + 40.0), 10.0, PALE, anchor, text);
        }
    }
}

/// A count of few characters: `12k`, `3.4M`.
fn shortened(count: u64) -> String {
    let (scale, unit) = match count {
        0..1_000 => return count.to_string(),
        1_000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    let value = count as f64 / scale;
    match value < 9.95 {
        true => format!("{value:.1}{unit}"),
        false => format!("{value:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Tally};

    fn svg(classes: usize, name: impl Fn(usize) -> String) -> String {
        let classes: Vec<String> = (0..classes).map(name).collect();
        let mut tally = Tally::new(&classes);
        for row in 0..4 * classes.len() {
            tally.add(&Outcome {
                row: row as u64,
                actual: row % classes.len(),
                predicted: row / 3 % classes.len(),
                probability: 0.5,
                in_top5: true,
            });
        }
        tally.finish(0, |_| None).svg("a <title> & more")
    }

    #[test]
    fn names_are_written_on_both_axes_and_nothing_in_them_is_markup() {
        let svg = svg(3, |class| format!("</text><script>{class}&\u{1}"));
        assert!(!svg.contains("<script"), "{svg}");
        for class in 0..3 {
            let name = format!(">&lt;/text&gt;&lt;script&gt;{class}&amp;\u{fffd}</text>");
            assert_eq!(svg.matches(&name).count(), 2, "{svg}");
        }
        assert!(svg.contains("a &lt;title&gt; &amp; more"), "{svg}");
    }

    #[test]
    fn counts_are_written_into_cells_that_are_large_enough() {
        let of = |classes| svg(classes, |class| class.to_string());
        let middle = |svg: &str| svg.matches("text-anchor=\"middle\"").count();
        assert!(middle(&of(10)) > 10 + 20, "one a cell that is not empty");
        assert!(middle(&of(100)) <= 8, "only the axes' names and the legend");
        assert_eq!(
            of(100).matches("<title>").count(),
            1 + of(100).matches("><title>").count()
        );
    }

    #[test]
    fn a_model_without_classes_still_makes_a_picture() {
        let empty = Tally::new(&[]).finish(0, |_| None).svg("nothing");
        assert!(empty.ends_with("</svg>\n"), "{empty}");
    }

    #[test]
    fn long_counts_are_shortened() {
        let shown = [999, 1_234, 12_345, 9_960_000, 3_400_000_000].map(shortened);
        assert_eq!(shown, ["999", "1.2k", "12k", "10M", "3.4G"]);
    }
}
