//! Why a model cannot be written as ONNX.

use lockstep_embed::EmbedError;
use lockstep_place::PlaceError;
use lockstep_resolve::ResolveError;
use lockstep_train::TrainError;

/// Why a model cannot be written as ONNX.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The run has no model that can be read.
    #[error(transparent)]
    Model(#[from] TrainError),

    /// The model is the user's own script's.
    #[error(
        "{run} is the run of a script: its model is whatever the script wrote to `model/`, and only networks that \
         lockstep trains itself can be written as ONNX"
    )]
    Script {
        /// The run.
        run: String,
    },

    /// The run has grown trees.
    #[error(
        "the run {run} has grown trees, which are not written as ONNX; model/model.ubj is what XGBoost loads"
    )]
    Trees {
        /// The run.
        run: String,
    },

    /// The run's job cannot be read, which says what is done to pictures.
    #[error(transparent)]
    Job(ResolveError),

    /// The run cannot be reached.
    #[error(transparent)]
    Place(#[from] PlaceError),

    /// The encoder cannot be used.
    #[error(transparent)]
    Encoder(#[from] EmbedError),

    /// A model without an encoder is to be written with it.
    #[error(
        "the job of {run} has no [embed]: its model takes what it was trained on, and needs no encoder"
    )]
    NoEncoder {
        /// The run.
        run: String,
    },

    /// The encoder's vectors are not those that the model was trained on.
    #[error(
        "{encoder} gives vectors of {found} numbers, and the model of {run} was trained on vectors of {expected}"
    )]
    OtherEncoder {
        /// The encoder's file.
        encoder: String,
        /// Numbers of its vectors.
        found: usize,
        /// The run.
        run: String,
        /// Numbers of the model's.
        expected: usize,
    },

    /// The file would be larger than its format allows.
    #[error(
        "the model takes {bytes} bytes as ONNX, and a file of one piece has at most 2,147,483,647"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
}
