//! What a trained model says of samples, and what that is worth, whatever kind of model it is.
//!
//! A model predicts [`Outputs`]: classes, numbers or labels. Of samples it says [`Predictions`], block by block
//! ([`Block`]). An [`Assessor`] compares them with what is right, and an [`EvaluationReport`] writes what that comes
//! to into a run's folder. A [`PredictionFile`] holds what was said of every sample.

mod assess;
mod block;
mod decision;
mod error;
mod inputs;
mod mistakes;
mod outputs;
mod own_metrics;
mod prediction;
mod prediction_file;
mod row;
mod test_set;

pub use assess::{Assessor, EvaluationReport, MISTAKES, class_name, remove_evaluation};
pub use block::{BLOCK_ROWS, Block};
pub use decision::Decision;
pub use error::{JobMisfit, WriteError};
pub use inputs::inputs;
pub use mistakes::PictureFiles;
pub use outputs::Outputs;
pub use own_metrics::OwnMetrics;
pub use prediction::{Prediction, Predictions, RowOutput};
pub use prediction_file::{PredictionColumns, PredictionFile, PredictionFormat};
pub use row::{Answer, Beside, KeptCell, Named, PredictedRow, each_row};
pub use test_set::{SampleUse, open_test, test_source};
