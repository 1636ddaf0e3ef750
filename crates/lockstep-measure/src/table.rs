//! The scores as text.

use crate::{ClassScores, Classification, MultiLabel, Scores};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr as _};

/// The widest that a class's name may be.
const WIDEST: usize = 40;

impl Classification {
    /// The scores of every class and their averages, as aligned lines of text.
    pub fn table(&self) -> Vec<String> {
        let averages = [
            ("macro average", &self.summary.macro_average),
            ("weighted average", &self.summary.weighted_average),
        ];
        score_table("class", &self.classes, averages, self.summary.samples)
    }
}

impl MultiLabel {
    /// The scores of every label and their averages, as aligned lines of text.
    pub fn table(&self) -> Vec<String> {
        let averages = [
            ("micro average", &self.summary.micro),
            ("macro average", &self.summary.macro_average),
        ];
        score_table("label", &self.labels, averages, self.summary.samples)
    }
}

fn score_table(
    of: &str,
    all: &[ClassScores],
    averages: [(&str, &Scores); 2],
    samples: u64,
) -> Vec<String> {
    let names = all.iter().map(|class| printable(&class.class).width());
    let least = averages[0].0.len().max(averages[1].0.len());
    let width = names.max().unwrap_or(0).clamp(least, WIDEST);
    let row = |name: &str, scores: &Scores, support: u64| {
        format!(
            "{}     {:.4}  {:.4}  {:.4}  {:>7}",
            padded(&fitted(name, width), width),
            scores.precision,
            scores.recall,
            scores.f1,
            grouped(support)
        )
    };
    let head = padded(of, width);
    let mut lines = vec![format!("{head}  precision  recall      F1  samples")];
    for class in all {
        lines.push(row(&printable(&class.class), &class.scores, class.support));
    }
    lines.push(String::new());
    lines.extend(averages.map(|(name, scores)| row(name, scores, samples)));
    lines
}

/// A name without what could move the cursor.
pub(crate) fn printable(name: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    name.chars().map(harmless).collect()
}

/// The beginning of a text, with an ellipsis if it is wider than `width`.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        fitted.push(c);
    }
    fitted + "…"
}

pub(crate) fn padded(text: &str, width: usize) -> String {
    let space = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(space))
}

/// `60000` as `60,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Tally};

    #[test]
    fn columns_are_aligned_whatever_the_names() {
        let long = "a very long name that nobody wants to read to its very end";
        let classes = ["犬", "ñandú", "bell\u{7}", long].map(str::to_owned);
        let mut tally = Tally::new(&classes);
        for row in 0..4000 {
            tally.add(&Outcome {
                row,
                actual: row as usize % 4,
                predicted: row as usize % 3,
                probability: 0.5,
                in_top5: true,
            });
        }
        let lines = tally.finish(0, |_| None).table();
        assert_eq!(lines.len(), 1 + 4 + 1 + 2);
        let widths: Vec<usize> = lines.iter().map(|line| line.width()).collect();
        for (line, width) in lines.iter().zip(&widths) {
            assert!(*width == widths[0] || line.is_empty(), "{line:?}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        assert!(lines[4].contains('…'), "{}", lines[4]);
        assert!(lines[0].ends_with("precision  recall      F1  samples"));
        assert!(lines[6].starts_with("macro average"), "{}", lines[6]);
        assert!(lines[6].ends_with("4,000"), "{}", lines[6]);
    }
}
