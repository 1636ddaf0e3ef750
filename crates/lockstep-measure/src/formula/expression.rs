//! A formula as a tree, each part of which knows where it stands in the text.

use super::function::{Aggregate, PerSample};
use std::ops::Range;

/// What is wrong with a formula, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at `{at}`: {reason}")]
pub struct FormulaError {
    /// The part of the formula.
    pub at: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

/// A part of a formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression {
    pub(super) kind: Kind,
    /// The text of it.
    pub(super) text: String,
    /// Whether brackets stand around it.
    pub(super) bracketed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    Text(String),
    /// A value of each sample; of the output of this name, if one is named.
    Value(Value, Option<String>),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    PerSample(PerSample, Vec<Expression>),
    /// One number of all samples. A quantile has its share beside it.
    Aggregate(Aggregate, Box<Expression>),
}

/// What is known of each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Label,
    Predicted,
    Probability,
}

impl Value {
    pub(super) const ALL: [(&'static str, Self); 3] = [
        ("label", Self::Label),
        ("predicted", Self::Predicted),
        ("probability", Self::Probability),
    ];

    pub(super) fn word(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
}

impl Operator {
    /// Whether it compares two things.
    pub(super) fn compares(self) -> bool {
        use Operator::*;
        matches!(
            self,
            Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual
        )
    }
}

impl Expression {
    pub(super) fn new(kind: Kind, whole: &str, range: Range<usize>) -> Self {
        let text = whole[range].trim().to_owned();
        Self {
            kind,
            text,
            bracketed: false,
        }
    }

    /// Refuses this part.
    pub(super) fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, FormulaError> {
        Err(FormulaError {
            at: self.text.clone(),
            reason: reason.into(),
        })
    }

    /// The parts that it is made of.
    pub(super) fn parts(&self) -> Vec<&Expression> {
        match &self.kind {
            Kind::Number(_) | Kind::Text(_) | Kind::Value(..) => Vec::new(),
            Kind::Negative(of) | Kind::Not(of) | Kind::Aggregate(_, of) => vec![of],
            Kind::Binary(_, left, right) => vec![left, right],
            Kind::PerSample(_, of) => of.iter().collect(),
        }
    }
}
