//! The numbers are scikit-learn's; `reference.py` makes the file they are compared with.

use lockstep_measure::{Outcome, Scores, Tally};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    classes: usize,
    actual: Vec<usize>,
    predicted: Vec<usize>,
    in_top5: Vec<bool>,
    accuracy: f64,
    top5: f64,
    r#macro: Scores,
    weighted: Scores,
    micro: Scores,
    per_class: Vec<PerClass>,
    confusion: Vec<Vec<u64>>,
}

#[derive(Deserialize)]
struct PerClass {
    #[serde(flatten)]
    scores: Scores,
    support: u64,
}

fn close(case: &str, what: &str, ours: Scores, theirs: Scores) {
    let pairs = [
        (ours.precision, theirs.precision),
        (ours.recall, theirs.recall),
        (ours.f1, theirs.f1),
    ];
    for (ours, theirs) in pairs {
        assert!(
            (ours - theirs).abs() < 1e-12,
            "{case}, {what}: {ours} is not {theirs}"
        );
    }
}

#[test]
fn every_number_is_that_of_scikit_learn() {
    let reference: Reference = serde_json::from_str(include_str!("../reference.json")).unwrap();
    assert!(reference.cases.len() >= 4);
    for case in reference.cases {
        let classes: Vec<String> = (0..case.classes).map(|class| class.to_string()).collect();
        let mut tally = Tally::new(&classes);
        for row in 0..case.actual.len() {
            tally.add(&Outcome {
                row: row as u64,
                actual: case.actual[row],
                predicted: case.predicted[row],
                probability: 0.5,
                in_top5: case.in_top5[row],
            });
        }
        let evaluation = tally.finish(20, |_| None);
        let (name, summary) = (&case.name, &evaluation.summary);
        assert_eq!(summary.accuracy, case.accuracy, "{name}");
        assert_eq!(summary.top5, case.top5, "{name}");
        close(name, "macro", summary.macro_average, case.r#macro);
        close(name, "weighted", summary.weighted_average, case.weighted);
        let accuracy = summary.accuracy;
        let micro = Scores {
            precision: accuracy,
            recall: accuracy,
            f1: accuracy,
        };
        close(name, "micro", micro, case.micro);
        for (ours, theirs) in evaluation.classes.iter().zip(&case.per_class) {
            close(name, &ours.class, ours.scores, theirs.scores);
            assert_eq!(ours.support, theirs.support, "{name}, {}", ours.class);
        }
        let confusion: Vec<Vec<u64>> = evaluation.confusion.into();
        assert_eq!(confusion, case.confusion, "{name}");
    }
}

#[test]
fn an_evaluation_reads_back_from_its_json() {
    let mut tally = Tally::new(&["a", "b"].map(str::to_owned));
    tally.add(&Outcome {
        row: 3,
        actual: 0,
        predicted: 1,
        probability: 0.9,
        in_top5: true,
    });
    tally.add_unseen("c");
    let evaluation = tally.finish(20, |row| Some(format!("{row}.png")));
    let json = serde_json::to_value(&evaluation).unwrap();
    for key in [
        "samples",
        "accuracy",
        "top5",
        "macro",
        "weighted",
        "classes",
        "confusion",
    ] {
        assert!(!json[key].is_null(), "{key} is missing in {json}");
    }
    assert_eq!(json["mistakes"][0]["path"], "3.png");
    assert_eq!(json["unseen"][0]["class"], "c");
    let back: lockstep_measure::Classification = serde_json::from_value(json).unwrap();
    assert_eq!(back, evaluation);
}
