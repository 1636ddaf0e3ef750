//! An evaluation as lines of text.

use super::words;
use lockstep_measure::{Classification, Evaluation, MultiLabel, Ranking, Regression};

/// How many classes that the model does not know are named.
const NAMED: usize = 10;

/// The numbers, the table of classes, columns or labels, and the worst mistakes.
pub(crate) fn lines(evaluation: &Evaluation) -> Vec<String> {
    let mut lines = match evaluation {
        Evaluation::Classes(of) => classes(of),
        Evaluation::Numbers(of) => numbers(of),
        Evaluation::Labels(of) => labels(of),
        Evaluation::Ranking(of) => vec![ranking(of)],
    };
    let own = evaluation.own();
    let own: Vec<String> = own
        .map(|(name, value)| format!("{name} {}", words::metric(name, value)))
        .collect();
    if !own.is_empty() {
        lines.insert(1, own.join("   "));
    }
    lines
}

/// The first line: what was measured, and over how many samples.
fn first(measured: String, loss: Option<f64>, samples: u64) -> String {
    let loss = loss.map_or(String::new(), |loss| {
        format!("loss {}   ", words::loss(loss))
    });
    format!("{measured}   {loss}{} samples", words::count(samples))
}

fn numbers(evaluation: &Regression) -> Vec<String> {
    let summary = &evaluation.summary;
    let scores = &summary.scores;
    let measured = format!(
        "R² {:.4}   MAE {}   MSE {}",
        scores.r2,
        words::loss(scores.mae),
        words::loss(scores.mse)
    );
    let mut lines = vec![
        first(measured, summary.loss, summary.samples),
        String::new(),
    ];
    lines.extend(evaluation.table());
    if !evaluation.misses.is_empty() {
        lines.push(String::new());
        lines.push("farthest off".to_owned());
    }
    lines.extend(evaluation.misses.iter().map(|miss| {
        let (column, actual, predicted) = (&miss.column, miss.actual, miss.predicted);
        let sample = sample(miss.path.as_deref(), miss.row);
        super::harmless(&format!(
            "  {column} is {actual}, predicted {predicted}: {sample}"
        ))
    }));
    lines
}

fn labels(evaluation: &MultiLabel) -> Vec<String> {
    let summary = &evaluation.summary;
    let measured = format!(
        "accuracy {:.4}   all labels right {:.4}   F1 {:.4} (micro)",
        summary.accuracy, summary.exact, summary.micro.f1
    );
    let mut lines = vec![
        first(measured, summary.loss, summary.samples),
        String::new(),
    ];
    lines.extend(evaluation.table());
    lines
}

fn ranking(evaluation: &Ranking) -> String {
    let summary = &evaluation.summary;
    let scores = &summary.scores;
    let measured = format!(
        "NDCG {:.4}   NDCG of the first 10 {:.4}   MAP {:.4}   {}",
        scores.ndcg,
        scores.ndcg10,
        scores.map,
        words::plural(summary.groups as usize, "group")
    );
    first(measured, summary.loss, summary.samples)
}

fn classes(evaluation: &Classification) -> Vec<String> {
    let summary = &evaluation.summary;
    // Of two classes, both are always among the five most probable.
    let measured = match summary.auc {
        Some(auc) => format!("accuracy {:.4}   AUC {auc:.4}", summary.accuracy),
        None => format!(
            "accuracy {:.4}   top-5 {:.4}",
            summary.accuracy, summary.top5
        ),
    };
    let mut lines = vec![first(measured, summary.loss, summary.samples)];
    lines.extend((evaluation.positive_class.as_deref()).map(|class| {
        let from = evaluation.threshold.map_or(String::new(), |threshold| {
            format!(", predicted from a probability of {threshold:.4} on")
        });
        super::harmless(&format!("positive class {class}{from}"))
    }));
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

/// Which sample of a set.
fn sample(path: Option<&str>, row: u64) -> String {
    path.map_or_else(|| format!("row {row}"), str::to_owned)
}

fn mistakes(evaluation: &Classification) -> impl Iterator<Item = String> {
    evaluation.mistakes.iter().map(|mistake| {
        let sample = sample(mistake.path.as_deref(), mistake.row);
        let (actual, predicted) = (&mistake.actual, &mistake.predicted);
        super::harmless(&format!(
            "  {:.4}  {actual} taken for {predicted}: {sample}",
            mistake.probability
        ))
    })
}

/// The classes that the model does not know, with their counts.
fn unseen(evaluation: &Classification) -> String {
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
        let text = lines(&Evaluation::Classes(evaluation)).join("\n");
        for part in [
            "accuracy 0.6667   AUC 0.7500   3 samples\npositive class dog\n",
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
