//! Formulas come to what Python says, and whatever is wrong with one is told at its place.

use lockstep_measure::{Formula, FormulaSample, Predicted};
use proptest::prelude::*;
use serde_json::Value;

/// What a formula comes to on these samples.
fn value(formula: &str, predicted: Predicted<'_>, samples: &[FormulaSample<'_>]) -> Option<f64> {
    let formula: Formula = formula
        .parse()
        .unwrap_or_else(|error| panic!("{formula}: {error}"));
    let mut bound = formula.bind(predicted).unwrap();
    for sample in samples {
        bound.add(*sample);
    }
    bound.finish()
}

#[test]
fn formulas_come_to_what_python_says() {
    let made: Value = serde_json::from_str(include_str!("../formulas.json")).unwrap();
    let names: Vec<String> = serde_json::from_value(made["names"].clone()).unwrap();
    let rows: Vec<(String, String, f32)> = serde_json::from_value(made["rows"].clone()).unwrap();
    let class = |name: &String| names.iter().position(|known| known == name).unwrap();
    let rows: Vec<FormulaSample> = (rows.iter())
        .map(|(label, predicted, probability)| FormulaSample::Class {
            label: class(label),
            predicted: class(predicted),
            probability: *probability,
        })
        .collect();
    let lines: Vec<[f32; 2]> = serde_json::from_value(made["lines"].clone()).unwrap();
    let lines: Vec<FormulaSample> = (lines.iter())
        .map(|line| FormulaSample::Numbers {
            label: &line[..1],
            predicted: &line[1..],
        })
        .collect();
    let column = ["price".to_owned()];
    let sets = [
        ("classes", Predicted::Classes(&names), &rows),
        ("numbers", Predicted::Numbers(&column), &lines),
    ];
    for (name, predicted, samples) in sets {
        let cases: Vec<(String, f64)> =
            serde_json::from_value(made["cases"][name].clone()).unwrap();
        for (formula, expected) in cases {
            let found = value(&formula, predicted, samples).unwrap();
            let off = (found - expected).abs();
            assert!(
                off <= 1e-12 * expected.abs().max(1.0),
                "{formula}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn classes_called_by_numbers_two_classes_columns_and_labels_have_their_values() {
    let classes = ["1", "2.5"].map(str::to_owned);
    let sample = |label, predicted, probability| FormulaSample::Class {
        label,
        predicted,
        probability,
    };
    let rows = [sample(0, 1, 0.75), sample(1, 1, 0.5)];
    let of_classes = |formula| value(formula, Predicted::Classes(&classes), &rows);
    assert_eq!(of_classes("sum(label == 2.5)"), Some(1.0));
    assert_eq!(of_classes("sum(abs(label - predicted))"), Some(1.5));
    assert_eq!(of_classes("sum(probability['1'])"), Some(0.75));
    assert_eq!(
        of_classes("sum(label == 1) / sum(predicted == '1')"),
        None,
        "a division by 0"
    );

    let names = ["a", "b"].map(str::to_owned);
    let rows = [FormulaSample::Numbers {
        label: &[1.0, 0.0],
        predicted: &[0.75, 0.625],
    }];
    let both = "sum(predicted['b']) - sum(label['a'])";
    assert_eq!(value(both, Predicted::Numbers(&names), &rows), Some(-0.375));
    assert_eq!(value(both, Predicted::Labels(&names), &rows), Some(0.0));
    let said = "sum(predicted['b'] and not label['b']) + sum(probability['b'])";
    assert_eq!(value(said, Predicted::Labels(&names), &rows), Some(1.625));
}

#[test]
fn what_is_wrong_is_told_at_its_place_with_what_would_be_right() {
    let classes = ["dog", "cat", "elk"].map(str::to_owned);
    let column = ["price".to_owned()];
    let columns = ["price", "rent"].map(str::to_owned);
    let of = Predicted::Classes(&classes);
    let (one, several) = (Predicted::Numbers(&column), Predicted::Numbers(&columns));
    for (formula, predicted, at, reason) in [
        ("", of, "the end", "a function such as `mean(...)`"),
        (
            "mean(label == predictd)",
            of,
            "predictd",
            "did you mean `predicted`?",
        ),
        (
            "maen(label == predicted)",
            of,
            "maen",
            "did you mean `mean`?",
        ),
        (
            "label != predicted",
            of,
            "label != predicted",
            "put what is of each sample into a function",
        ),
        (
            "mean(label - mean(label))",
            of,
            "mean(label)",
            "put together",
        ),
        ("1 + 2", of, "1 + 2", "says nothing of the samples"),
        ("mean(label = predicted)", of, "=", "write `==`"),
        (
            "mean(label == 'dog' & predicted == 'cat')",
            of,
            "&",
            "write `and`",
        ),
        ("mean(label == 'dog)", of, "'dog)", "no ' at its end"),
        ("mean(label == predicted", of, "the end", "`)`"),
        ("mean(label == predicted) 3", of, "3", "an operator"),
        ("mean(0 < label < 3)", of, "<", "two things at a time"),
        ("mean('dog' + 1)", of, "'dog'", "only be compared"),
        ("mean(label and 1)", of, "label", "a comparison"),
        ("sum(mean(label))", of, "mean(label)", "inside of another"),
        (
            "mean(label) - label",
            of,
            "mean(label) - label",
            "put together",
        ),
        ("quantile(probability, 90)", of, "90", "from 0 to 1"),
        ("max(label, predicted)", of, "max(...)", "use maximum(a, b)"),
        (
            "mean(minimum(1))",
            of,
            "minimum(...)",
            "it takes two numbers, and has 1",
        ),
        ("mean(1e999)", of, "1e999", "too large"),
        ("mean(label == 'dgo')", of, "'dgo'", "did you mean 'dog'?"),
        (
            "mean(label == 'whale')",
            of,
            "'whale'",
            "there are 'dog', 'cat', 'elk'",
        ),
        ("mean(label == 3)", of, "3", "no such class"),
        (
            "mean(label - predicted)",
            of,
            "label",
            "compare it: label == 'dog'",
        ),
        (
            "mean(label['dog'])",
            of,
            "label['dog']",
            "a sample has one class",
        ),
        (
            "mean(probability['dog'])",
            of,
            "probability['dog']",
            "of 3 classes",
        ),
        ("mean(probability)", one, "probability", "use `predicted`"),
        ("mean(label)", several, "label", "name one: label['price']"),
        (
            "mean(label['prise'])",
            one,
            "label['prise']",
            "did you mean 'price'?",
        ),
    ] {
        let error = formula
            .parse::<Formula>()
            .and_then(|formula| formula.bind(predicted));
        let error = error.expect_err(formula);
        assert_eq!(error.at, at, "{formula}: {error}");
        assert!(error.reason.contains(reason), "{formula}: {error}");
    }
    // As long and as deep as anybody likes.
    for endless in [
        "(".repeat(100_000),
        "-".repeat(100_000),
        format!("mean({}1)", "1+".repeat(100_000)),
    ] {
        assert!(endless.parse::<Formula>().is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn words_in_any_order_are_a_formula_or_an_error(
        words in prop::collection::vec(prop::sample::select(vec![
            "mean", "quantile", "where", "(", ")", "[", "]", ",", "+", "-", "*", "**", "/", "%", "==", "<", "not", "and", "or",
            "label", "predicted", "probability", "'a'", "1", "0.5", "é", "\"",
        ]), 0..24)
    ) {
        let names = ["a", "b"].map(str::to_owned);
        if let Ok(formula) = words.join(" ").parse::<Formula>() {
            for predicted in [Predicted::Classes(&names), Predicted::Numbers(&names), Predicted::Labels(&names)] {
                if let Ok(mut bound) = formula.bind(predicted) {
                    bound.add(FormulaSample::Class { label: 7, predicted: 9, probability: f32::NAN });
                    bound.add(FormulaSample::Numbers { label: &[], predicted: &[f32::INFINITY] });
                    bound.finish();
                }
            }
        }
    }
}
