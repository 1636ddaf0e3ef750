//! Curves drawn with letters.
//!
//! A cell of the terminal holds two times four dots of Braille, so a curve has eight times the cells' resolution. Where
//! several curves share a picture they are told apart by colours; where there are none, by a letter for each instead
//! of dots.

use super::words;
use console::Style;
use lockstep_measure::chart::Curve;

/// The colours of curves, which come again after the last. Numbers of the 256 that terminals have: they are seen on
/// dark ground and on light.
const COLOURS: [u8; 8] = [33, 208, 35, 161, 99, 37, 136, 244];
/// Cells for the numbers beside a picture.
const MARGIN: usize = 10;

/// The colour of the curve of this number.
pub(crate) fn colour(number: usize) -> Style {
    Style::new().color256(COLOURS[number % COLOURS.len()])
}

/// What a curve is drawn with where there are no colours.
pub(crate) fn letter(number: usize) -> char {
    char::from(b'a' + (number % 26) as u8)
}

/// The picture of some curves, `width` cells wide and with `height` rows of dots; nothing if there is nothing to draw.
pub(crate) fn lines(curves: &[Curve], width: usize, height: usize, coloured: bool) -> Vec<String> {
    let finite = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
    let all = || {
        curves
            .iter()
            .flat_map(|curve| curve.points.iter().filter(finite))
    };
    let (Some(xs), Some(ys)) = (
        range(all().map(|point| point.0)),
        range(all().map(|point| point.1)),
    ) else {
        return Vec::new();
    };
    let columns = width.saturating_sub(MARGIN + 2).max(8);
    let mut canvas = Canvas::new(columns, height.max(2));
    for (number, curve) in curves.iter().enumerate() {
        let points: Vec<(f64, f64)> = curve.points.iter().filter(finite).copied().collect();
        canvas.curve(number, &points, xs, ys);
    }
    let dots = coloured || curves.len() == 1;
    let mut lines = Vec::new();
    for row in 0..height.max(2) {
        let label = match row {
            0 => words::loss(ys.1),
            row if row + 1 == height.max(2) => words::loss(ys.0),
            _ => String::new(),
        };
        let cells: String = (0..columns)
            .map(|column| canvas.cell(column, row, dots, coloured))
            .collect();
        lines.push(format!("{label:>MARGIN$} ┤{cells}").trim_end().to_owned());
    }
    lines.push(format!("{:MARGIN$} ╰{}", "", "─".repeat(columns)));
    let (first, last) = (words::count(xs.0 as u64), words::count(xs.1 as u64));
    let gap = (columns + 1).saturating_sub(first.len() + last.len());
    lines.push(format!("{:MARGIN$} {first}{:gap$}{last}", "", ""));
    lines
}

/// The smallest and the largest of some numbers, a little apart if they are the same.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match low <= high {
        true if low == high => Some((low - 0.5, high + 0.5)),
        true => Some((low, high)),
        false => None,
    }
}

struct Canvas {
    columns: usize,
    rows: usize,
    /// The dots of each cell.
    dots: Vec<u8>,
    /// The curve that was drawn last in each.
    owners: Vec<usize>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns,
            rows,
            dots: vec![0; columns * rows],
            owners: vec![0; columns * rows],
        }
    }

    fn curve(&mut self, number: usize, points: &[(f64, f64)], xs: (f64, f64), ys: (f64, f64)) {
        let (wide, high) = ((self.columns * 2 - 1) as f64, (self.rows * 4 - 1) as f64);
        let place = |&(x, y): &(f64, f64)| {
            let across = (x - xs.0) / (xs.1 - xs.0) * wide;
            let down = (ys.1 - y) / (ys.1 - ys.0) * high;
            (across.round() as i64, down.round() as i64)
        };
        let mut last = None;
        for point in points {
            let here = place(point);
            self.line(number, last.unwrap_or(here), here);
            last = Some(here);
        }
    }

    /// Sets the dots from one to another.
    fn line(&mut self, number: usize, from: (i64, i64), to: (i64, i64)) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
        for step in 0..=steps {
            let along = |from: i64, to: i64| from + (to - from) * step / steps;
            self.set(number, along(from.0, to.0), along(from.1, to.1));
        }
    }

    fn set(&mut self, number: usize, x: i64, y: i64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
            return;
        };
        let cell = y / 4 * self.columns + x / 2;
        // Braille counts its dots down the left and then down the right, and has added a row below later.
        let dot = match (x % 2, y % 4) {
            (0, 3) => 0x40,
            (1, 3) => 0x80,
            (0, row) => 1 << row,
            (_, row) => 8 << row,
        };
        if let Some(dots) = self.dots.get_mut(cell) {
            *dots |= dot;
            self.owners[cell] = number;
        }
    }

    fn cell(&self, column: usize, row: usize, dots: bool, coloured: bool) -> String {
        let cell = row * self.columns + column;
        if self.dots[cell] == 0 {
            return " ".to_owned();
        }
        let number = self.owners[cell];
        let drawn = match dots {
            true => char::from_u32(0x2800 + u32::from(self.dots[cell])).unwrap_or(' '),
            false => letter(number),
        };
        match coloured {
            true => colour(number).apply_to(drawn).to_string(),
            false => drawn.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use console::measure_text_width;

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve::new("a", points.to_vec())
    }

    #[test]
    fn a_picture_fits_its_width_and_goes_from_corner_to_corner() {
        let falling = curve(&[(0.0, 2.0), (100.0, 1.0)]);
        for width in [20, 40, 97] {
            let lines = lines(std::slice::from_ref(&falling), width, 5, false);
            assert_eq!(lines.len(), 7);
            assert!(
                lines.iter().all(|line| measure_text_width(line) <= width),
                "{lines:?}"
            );
            // The dot in the corner at the left above, and the one at the right below.
            let dots = |cell: Option<char>| cell.map_or(0, |cell| cell as u32 - 0x2800);
            let first = lines[0].strip_prefix("    2.0000 ┤").unwrap();
            assert_eq!(dots(first.chars().next()) & 0x01, 0x01, "{first}");
            assert!(lines[4].starts_with("    1.0000 ┤ "), "{}", lines[4]);
            assert_eq!(dots(lines[4].chars().last()) & 0x80, 0x80, "{}", lines[4]);
            assert!(lines[6].trim_start().starts_with('0') && lines[6].ends_with("100"));
        }
    }

    #[test]
    fn nothing_and_nonsense_draw_nothing_and_one_point_is_drawn() {
        assert!(lines(&[], 40, 5, false).is_empty());
        assert!(lines(&[curve(&[(1.0, f64::NAN)])], 40, 5, false).is_empty());
        let one = lines(&[curve(&[(1.0, 3.0)])], 40, 5, false);
        assert!(
            one.iter()
                .any(|line| line.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)))
        );
    }

    #[test]
    fn without_colours_several_curves_have_letters() {
        let lines = lines(
            &[
                curve(&[(0.0, 0.0), (9.0, 0.0)]),
                curve(&[(0.0, 1.0), (9.0, 1.0)]),
            ],
            40,
            4,
            false,
        );
        assert!(
            lines[0].contains("bbbb") && lines[3].contains("aaaa"),
            "{lines:?}"
        );
    }
}
