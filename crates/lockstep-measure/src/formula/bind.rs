//! A formula together with what a model predicts: classes have their numbers, and columns their places.

use super::compute::{BoundFormula, Column, Step};
use super::expression::{Expression, FormulaError, Kind, Operator, Value};
use super::function::Aggregate;
use lockstep_base::nearest::nearest;

/// What a model predicts, and what its outputs are called.
#[derive(Debug, Clone, Copy)]
pub enum Predicted<'a> {
    /// One of these classes.
    Classes(&'a [String]),
    /// Numbers of these columns.
    Numbers(&'a [String]),
    /// Labels of these names, of which a sample may have several.
    Labels(&'a [String]),
}

/// A sample, and what was predicted for it.
#[derive(Debug, Clone, Copy)]
pub enum FormulaSample<'a> {
    /// The numbers of its class and of that which was predicted, and how probable that is.
    Class {
        /// Its class.
        label: usize,
        /// The class that was predicted.
        predicted: usize,
        /// How probable that is.
        probability: f32,
    },
    /// Its numbers, and those that were predicted; of labels, 1 or 0, and how probable each is.
    Numbers {
        /// What is right.
        label: &'a [f32],
        /// What was predicted.
        predicted: &'a [f32],
    },
}

/// Binds a formula to what a model predicts.
pub(super) fn bind(
    formula: &Expression,
    predicted: Predicted<'_>,
) -> Result<BoundFormula, FormulaError> {
    let mut binder = Binder {
        predicted,
        aggregates: Vec::new(),
    };
    let whole = binder.step(formula)?;
    Ok(BoundFormula::new(binder.aggregates, whole))
}

struct Binder<'a> {
    predicted: Predicted<'a>,
    aggregates: Vec<(Aggregate, Step)>,
}

impl Binder<'_> {
    fn step(&mut self, part: &Expression) -> Result<Step, FormulaError> {
        Ok(match &part.kind {
            Kind::Number(number) => Step::Number(*number),
            Kind::Text(_) => return part.refuse("a text can only be compared"),
            Kind::Value(value, output) => {
                Step::Column(self.number(part, *value, output.as_deref())?)
            }
            Kind::Negative(of) => Step::Negative(Box::new(self.step(of)?)),
            Kind::Not(of) => Step::Not(Box::new(self.step(of)?)),
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Kind::PerSample(function, of) => {
                let of = of
                    .iter()
                    .map(|of| self.step(of))
                    .collect::<Result<_, _>>()?;
                Step::PerSample(*function, of)
            }
            Kind::Aggregate(aggregate, of) => {
                let of = self.step(of)?;
                self.aggregates.push((*aggregate, of));
                Step::Aggregate(self.aggregates.len() - 1)
            }
        })
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<Step, FormulaError> {
        if let (Operator::Equal | Operator::NotEqual, Predicted::Classes(names)) =
            (operator, self.predicted)
        {
            let sides = [
                self.class(left, names, right)?,
                self.class(right, names, left)?,
            ];
            if let [Some(left), Some(right)] = sides {
                return Ok(Step::Binary(operator, Box::new(left), Box::new(right)));
            }
        }
        let (left, right) = (self.step(left)?, self.step(right)?);
        Ok(Step::Binary(operator, Box::new(left), Box::new(right)))
    }

    /// A side of a comparison as the number of a class, where it is a class, or the name of one beside a class.
    fn class(
        &self,
        side: &Expression,
        names: &[String],
        other: &Expression,
    ) -> Result<Option<Step>, FormulaError> {
        let is_class = |side: &Expression| {
            matches!(
                side.kind,
                Kind::Value(Value::Label | Value::Predicted, None)
            )
        };
        let number = |class: usize| Ok(Some(Step::Number(class as f64)));
        match &side.kind {
            Kind::Value(Value::Label, None) => Ok(Some(Step::Column(Column::Label))),
            Kind::Value(Value::Predicted, None) => Ok(Some(Step::Column(Column::Predicted))),
            Kind::Text(name) if is_class(other) => {
                match names.iter().position(|class| class == name) {
                    Some(class) => number(class),
                    None => side.refuse(no_such("class", name, names)),
                }
            }
            // A class whose name is a number may be written as one.
            Kind::Number(value) if is_class(other) => {
                match names.iter().position(|class| class.parse() == Ok(*value)) {
                    Some(class) => number(class),
                    None => side.refuse(no_such("class", &side.text, names)),
                }
            }
            _ => Ok(None),
        }
    }

    /// A value of each sample as a number.
    fn number(
        &self,
        part: &Expression,
        value: Value,
        output: Option<&str>,
    ) -> Result<Column, FormulaError> {
        let word = value.word();
        match (self.predicted, value, output) {
            (Predicted::Classes(_), Value::Probability, None) => Ok(Column::Probability),
            (Predicted::Classes(names), Value::Probability, Some(name)) => {
                let Some(class) = names.iter().position(|class| class == name) else {
                    return part.refuse(no_such("class", name, names));
                };
                match names.len() {
                    2 => Ok(Column::ProbabilityOf(class)),
                    count => part.refuse(format!(
                        "of {count} classes, only that of the predicted one is known: `probability`"
                    )),
                }
            }
            (Predicted::Classes(_), _, Some(_)) => part.refuse(format!(
                "a sample has one class; write `{word}`, and compare it"
            )),
            (Predicted::Classes(names), value, None) => {
                let numbers: Option<Vec<f64>> =
                    names.iter().map(|name| name.parse().ok()).collect();
                match (numbers, value) {
                    (Some(numbers), Value::Label) => Ok(Column::LabelAs(numbers)),
                    (Some(numbers), _) => Ok(Column::PredictedAs(numbers)),
                    (None, _) => part.refuse(format!(
                        "it is a class and no number; compare it: {word} == '{}'",
                        names.first().map_or("", String::as_str)
                    )),
                }
            }
            (Predicted::Numbers(_), Value::Probability, _) => part
                .refuse("where numbers are predicted, there are no probabilities; use `predicted`"),
            (Predicted::Numbers(names), _, None) if names.len() == 1 => Ok(of_output(value, 0)),
            (Predicted::Numbers(names), _, Some(name)) => {
                match names.iter().position(|column| column == name) {
                    Some(at) => Ok(of_output(value, at)),
                    None => part.refuse(no_such("column to predict", name, names)),
                }
            }
            (Predicted::Labels(names), _, Some(name)) => {
                match names.iter().position(|label| label == name) {
                    Some(at) if value == Value::Predicted => Ok(Column::OutputIsSaid(at)),
                    Some(at) => Ok(of_output(value, at)),
                    None => part.refuse(no_such("label", name, names)),
                }
            }
            (Predicted::Numbers(names) | Predicted::Labels(names), _, None) => {
                part.refuse(format!(
                    "there are several; name one: {word}['{}']",
                    names.first().map_or("", String::as_str)
                ))
            }
        }
    }
}

fn of_output(value: Value, at: usize) -> Column {
    match value {
        Value::Label => Column::OutputLabel(at),
        Value::Predicted | Value::Probability => Column::Output(at),
    }
}

/// What is said of a name that there is not.
fn no_such(what: &str, name: &str, names: &[String]) -> String {
    const SHOWN: usize = 8;
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(name, &words) {
        Some(meant) => format!("there is no such {what}; did you mean '{meant}'?"),
        None => {
            let more = if words.len() > SHOWN { ", …" } else { "" };
            let shown = words[..words.len().min(SHOWN)].join("', '");
            format!("there is no such {what}; there are '{shown}'{more}")
        }
    }
}
