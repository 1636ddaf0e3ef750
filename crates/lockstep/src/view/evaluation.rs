//! An evaluation as lines of text.

use super::words;
use lockstep_measure::Evaluation;

/// How many classes that the model does not know are named.
const NAMED: usize = 10;

/// The numbers, the table of classes, and the hardest mistakes.
pub(crate) fn lines(evaluation: &Evaluation) -> Vec<String> {
    let summary = &evaluation.summary;
    let mut lines = vec![format!(
        "accuracy {:.4}   top-5 {:.4}   {}{} samples",
        summary.accuracy,
        summary.top5,
        summary.loss.map_or(String::new(), |loss| format!(
            "loss {}   ",
            words::loss(loss)
        )),
        words::count(summary.samples)
    )];
    lines.push(String::new());
    lines.extend(evaluation.table());
    if !evaluation.mistakes.is_empty() {
        lines.push(String::new());
        lines.push("hardest mistakes".to_owned());
        lines.extend(mistakes(evaluation));
    }
    if summary.unseen_samples > 0 {
        lines.push(String::new());
        lines.push(unseen(evaluation));
    }
    lines
}

fn mistakes(evaluation: &Evaluation) -> impl Iterator<Item = String> {
    evaluation.mistakes.iter().map(|mistake| {
        let sample = match &mistake.path {
            Some(path) => path.clone(),
            None => format!("row {}", mistake.row),
        };
        let (actual, predicted) = (&mistake.actual, &mistake.predicted);
        super::harmless(&format!(
            "  {:.4}  {actual} taken for {predicted}: {sample}",
            mistake.probability
        ))
    })
}

/// The classes that the model does not know, with their counts.
fn unseen(evaluation: &Evaluation) -> String {
    let named = evaluation.unseen.iter().take(NAMED);
    let mut names: Vec<String> = named
        .map(|unseen| format!("{} ({})", unseen.class, words::count(unseen.count)))
        .collect();
    let more = evaluation.unseen.len() - names.len();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    super::harmless(&format!(
        "not measured: {} samples of classes that the model does not know: {}",
        words::count(evaluation.summary.unseen_samples),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_measure::{Outcome, Tally};

    #[test]
    fn the_numbers_the_mistakes_and_the_unknown_are_told() {
        let mut tally = Tally::new(&["cat", "dog"].map(str::to_owned));
        for (row, actual, predicted) in [(0, 0, 0), (1, 1, 0), (2, 1, 1)] {
            tally.add(&Outcome {
                row,
                actual,
                predicted,
                probability: 0.75,
                in_top5: true,
            });
        }
        for class in 0..12 {
            tally.add_unseen(&format!("fish {class}\u{7}"));
        }
        let evaluation = tally.finish(20, |row| Some(format!("{row}.jpg")));
        let text = lines(&evaluation).join("\n");
        for part in [
            "accuracy 0.6667   top-5 1.0000   3 samples",
            "macro average",
            "0.7500  dog taken for cat: 1.jpg",
            "12 samples of classes that the model does not know: fish 0",
            ", 2 more",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains('\u{7}'));
    }
}
