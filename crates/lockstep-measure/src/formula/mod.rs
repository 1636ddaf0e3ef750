//! Own metrics: a formula over what is right and what was predicted, such as `mean(label != predicted)`.
//!
//! A formula is written as in Python, with the names of NumPy: a part of it is of each sample, a function such as `mean` makes
//! one number of all samples, and the whole must be such a number. It can do nothing else: it has no loops, and reads
//! and calls nothing.
//!
//! A [`Formula`] is read once ([`parse`]), where all that is wrong without knowing the data is refused at its place. For a model
//! it is bound to what that predicts ([`bind`]), where classes get their numbers. A [`BoundFormula`] takes in sample after
//! sample, in the order of the set, so that its sums are the same to the bit whoever predicted which sample.
//!
//! ```
//! use lockstep_measure::{Formula, FormulaSample, Predicted};
//!
//! let cost: Formula = "mean(5 * (label == 'dog' and predicted == 'cat') + (predicted != label))".parse().unwrap();
//! let classes = ["cat".to_owned(), "dog".to_owned()];
//! let mut cost = cost.bind(Predicted::Classes(&classes)).unwrap();
//! cost.add(FormulaSample::Class { label: 1, predicted: 0, probability: 0.75 });
//! cost.add(FormulaSample::Class { label: 1, predicted: 1, probability: 0.5 });
//! assert_eq!(cost.finish(), Some(3.0));
//! ```

mod bind;
mod compute;
mod expression;
mod function;
mod parse;
mod rules;
mod token;

pub use bind::{FormulaSample, Predicted};
pub use compute::BoundFormula;
pub use expression::FormulaError;

use expression::Expression;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A formula for a metric, read and checked as far as that is possible without data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Formula {
    text: String,
    expression: Expression,
}

impl Formula {
    /// Binds it to what a model predicts.
    ///
    /// # Errors
    /// When it asks for what the model does not say, or names a class or a column that there is not.
    pub fn bind(&self, predicted: Predicted<'_>) -> Result<BoundFormula, FormulaError> {
        bind::bind(&self.expression, predicted)
    }
}

impl FromStr for Formula {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        Ok(Self {
            text: text.to_owned(),
            expression: parse::parse(text)?,
        })
    }
}

impl TryFrom<String> for Formula {
    type Error = FormulaError;

    fn try_from(text: String) -> Result<Self, FormulaError> {
        text.parse()
    }
}

impl From<Formula> for String {
    fn from(formula: Formula) -> Self {
        formula.text
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
