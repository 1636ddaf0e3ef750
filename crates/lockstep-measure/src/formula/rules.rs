//! Which parts of a formula fit each other: what is of each sample and what is of all, and what is a number, a text or true.

use super::expression::{Expression, FormulaError, Kind, Operator, Value};

/// Checks that a formula is one number of all samples, and that its parts fit each other.
pub(super) fn check_whole(whole: &Expression) -> Result<(), FormulaError> {
    match spread(whole)? {
        Spread::Whole => Ok(()),
        Spread::Fixed => whole.refuse(
            "this says nothing of the samples; a metric is such as mean(label != predicted)",
        ),
        Spread::Sample => whole.refuse(
            "a metric is one number of all samples: put what is of each sample into a function such as mean(...)",
        ),
    }
}

/// Of what something is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spread {
    /// It is the same everywhere.
    Fixed,
    /// Of all samples together.
    Whole,
    /// Of each sample.
    Sample,
}

/// Of what a part is known, where its parts fit each other.
fn spread(part: &Expression) -> Result<Spread, FormulaError> {
    if let Kind::Value(..) = part.kind {
        return Ok(Spread::Sample);
    }
    let mut found = Spread::Fixed;
    for inner in part.parts() {
        let of = spread(inner)?;
        match (&part.kind, of) {
            (Kind::Aggregate(..), Spread::Whole) => {
                return inner.refuse("this is a number of all samples already, and stands inside of another such function");
            }
            (_, Spread::Whole) if found == Spread::Sample => return mixed(inner),
            (_, Spread::Sample) if found == Spread::Whole => return mixed(part),
            _ => found = found.max(of),
        }
    }
    match part.kind {
        Kind::Aggregate(..) => Ok(Spread::Whole),
        _ => Ok(found),
    }
}

fn mixed<T>(part: &Expression) -> Result<T, FormulaError> {
    part.refuse("a number of all samples cannot be put together with one of each sample")
}

/// Two sides that an operator can take.
pub(super) fn operands(
    operator: Operator,
    left: Expression,
    right: Expression,
) -> Result<(Box<Expression>, Box<Expression>), FormulaError> {
    let is_text = |side: &Expression| matches!(side.kind, Kind::Text(_));
    let is_said =
        |side: &Expression| matches!(side.kind, Kind::Value(Value::Label | Value::Predicted, _));
    let (left, right) = match operator {
        Operator::And | Operator::Or => (truth(left)?, truth(right)?),
        // A class is compared with its name.
        Operator::Equal | Operator::NotEqual if is_text(&left) && is_said(&right) => (left, right),
        Operator::Equal | Operator::NotEqual if is_text(&right) && is_said(&left) => (left, right),
        _ => (number(left)?, number(right)?),
    };
    Ok((Box::new(left), Box::new(right)))
}

/// A part that is a number; what is true counts 1.
pub(super) fn number(part: Expression) -> Result<Expression, FormulaError> {
    match part.kind {
        Kind::Text(_) => {
            part.refuse("a text can only be compared with `label` or `predicted`, by == or !=")
        }
        _ => Ok(part),
    }
}

/// A part that is true or false.
pub(super) fn truth(part: Expression) -> Result<Expression, FormulaError> {
    match &part.kind {
        Kind::Not(_) => Ok(part),
        Kind::Binary(operator, ..)
            if operator.compares() || matches!(operator, Operator::And | Operator::Or) =>
        {
            Ok(part)
        }
        // Of labels, a sample has one or has it not.
        Kind::Value(Value::Label | Value::Predicted, Some(_)) => Ok(part),
        _ => part.refuse("here should stand a comparison, such as label == predicted"),
    }
}
