//! How good a model is: accuracy, precision, recall, F1, confusion, and pictures of it; of numbers, how near
//! they are.
//!
//! A [`Tally`] takes in what was predicted, sample by sample, and becomes a [`Classification`]: plain data,
//! which is JSON for programs, [text](Classification::table) for a terminal and an
//! [SVG picture](Classification::svg) for people. Everything is computed from counts, so the order of the
//! samples and who counted them do not matter. A [`RegressionTally`] does the same with numbers, and a
//! [`LabelTally`] with labels of which a sample may have several. A [`Ranking`] is of rows that were put in order.
//!
//! The numbers are those of scikit-learn with `zero_division=0`. In particular the macro averages are over
//! the classes that occur, as right ones or as predicted ones, and the micro averages of precision, recall
//! and F1 are all the accuracy.
//!
//! Samples whose class the model does not know cannot be predicted rightly, and are no fault of the model.
//! They are counted by class in [`Classification::unseen`] and in nothing else.
//!
//! ```
//! use lockstep_measure::{Outcome, Tally};
//!
//! let classes = ["cat".to_owned(), "dog".to_owned()];
//! let mut tally = Tally::new(&classes);
//! tally.add(&Outcome { row: 0, actual: 0, predicted: 0, probability: 0.9, in_top5: true });
//! tally.add(&Outcome { row: 1, actual: 1, predicted: 0, probability: 0.6, in_top5: true });
//! let evaluation = tally.finish(20, |row| Some(format!("photos/{row}.jpg")));
//! assert_eq!(evaluation.summary.accuracy, 0.5);
//! assert_eq!(evaluation.classes[0].scores.precision, 0.5);
//! assert_eq!(evaluation.mistakes[0].path.as_deref(), Some("photos/1.jpg"));
//! ```

pub mod chart;
mod classification;
mod confusion;
mod evaluation;
mod formula;
mod measure;
mod mistakes;
mod multi_label;
mod own;
mod picture;
mod ranked;
mod ranking;
mod regression;
mod scores;
mod svg;
mod table;
mod tally;

pub use classification::{ClassSummary, Classification, Unseen};
pub use confusion::Confusion;
pub use evaluation::{Evaluation, Summary};
pub use formula::{BoundFormula, Formula, FormulaError, FormulaSample, Predicted};
pub use measure::{Measure, Measured};
pub use mistakes::Mistake;
pub use multi_label::{LabelSummary, LabelTally, MultiLabel};
pub use own::{Best, BestBy, OwnMetric};
pub use ranked::{Ranking, RankingScores, RankingSummary};
pub use ranking::{Curves, ThresholdBy, best_threshold};
pub use regression::{
    ColumnScores, Miss, Regression, RegressionScores, RegressionSummary, RegressionTally, Residuals,
};
pub use scores::{ClassScores, Scores};
pub use tally::{Outcome, Tally};
