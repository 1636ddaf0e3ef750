//! The language that runs are chosen by: `accuracy > 0.9 and optimizer.lr < 0.01`.
//!
//! A filter compares what is known of a run with what the user says, and joins comparisons with `and`, `or`, `not` and
//! parentheses. [`Filter::parse`] understands the text, [`Filter::resolve`] finds out what each name means in a store,
//! and what comes of it says of each run whether it is meant. What is wrong is shown where the user wrote it.

mod error;
mod lex;
mod named;
mod names;
mod parse;
mod resolve;

pub use error::FilterError;
pub use lex::{Language, LexError, Token, lex};
pub use named::Named;
pub use names::{Field, Names, Subject};
pub use resolve::{Resolved, Worth, sort_by, worth};

use std::cmp::Ordering;
use std::ops::Range;

/// A filter as the user wrote it.
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    root: Expression,
}

/// What a filter says.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(PartialEq))]
enum Expression {
    /// All of them hold. At least two.
    And(Vec<Expression>),
    /// One of them holds. At least two.
    Or(Vec<Expression>),
    /// It does not hold.
    Not(Box<Expression>),
    /// The run has such a value, and it is not `false`.
    Has(Word),
    /// The run has such a value, and this is true of it.
    Compare(Word, Operator, Literal),
}

/// A name, and where it stands in the text.
#[derive(Debug, Clone)]
struct Word {
    text: String,
    span: Range<usize>,
}

/// What a value is compared with, and where it stands in the text.
#[derive(Debug, Clone)]
struct Literal {
    /// What the user wrote, without quotation marks.
    text: String,
    /// Whether it stood in quotation marks, and so is a text whatever it looks like.
    quoted: bool,
    span: Range<usize>,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`: the text contains it, whatever the case of its letters.
    Contains,
}

impl Operator {
    /// The one that is written so.
    pub fn of(sign: &str) -> Option<Operator> {
        Some(match sign {
            "=" | "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "~" => Operator::Contains,
            _ => return None,
        })
    }

    /// Whether it holds of two values of this order; none if they cannot be compared.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Operator::Contains => false,
        }
    }

    /// Whether texts are compared so, and not only numbers.
    fn is_of_texts(self) -> bool {
        matches!(
            self,
            Operator::Equal | Operator::NotEqual | Operator::Contains
        )
    }

    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Contains => "~",
        }
    }
}
