//! The model that a run left, read back: its layers, its weights, and what goes in and comes out.
//!
//! All of it is in the `model` folder of the run. The learner predicts with it; others write it in a
//! form of their own.

use crate::card::{self, Card};
use crate::{TrainError, network, pretrained, weights};
use lockstep_data::{Encoding, InputColumn, Normalisation, StoredElement};
use lockstep_model::{Outputs, inputs};
use lockstep_nn::{Dims, Loss, Model, NamedLayer, Precision};
use lockstep_place::{Place, PlaceError};
use lockstep_resolve::PictureInput;
use lockstep_runs::RunDir;
use serde::Deserialize;
use std::path::PathBuf;

/// The version of `model.json`, which is looked at before all else: a newer one may have other keys.
#[derive(Deserialize)]
struct CardVersion {
    version: u32,
}

/// What the samples of a model's input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputElement {
    /// Bytes, which stand for 0 to 1.
    Bytes,
    /// Numbers as they are.
    Numbers,
}

impl From<StoredElement> for InputElement {
    fn from(stored: StoredElement) -> Self {
        match stored {
            StoredElement::U8 => Self::Bytes,
            StoredElement::F32 => Self::Numbers,
        }
    }
}

/// A model with the weights that a run ended with.
pub struct SavedModel {
    /// `model.json`, for whoever is told what is wrong with it.
    pub path: PathBuf,
    /// The network, layer by layer.
    pub layers: Vec<NamedLayer>,
    /// Channels, height and width of a sample.
    pub input_shape: [usize; 3],
    /// What its numbers are.
    pub input: InputElement,
    /// The columns of the table that the input comes from, in their order; none if that is not known.
    pub inputs: Vec<InputColumn>,
    /// How a row of that table becomes the network's input; `None` if it is that.
    pub encoding: Option<Encoding>,
    /// How pictures become samples; nothing if the samples are none, or a model of an earlier version does not say it.
    pub pictures: Option<PictureInput>,
    /// Mean and deviation of the samples, as in the job file; the model takes `(x - mean) / std`.
    pub normalise: Option<Normalisation>,
    /// What the model predicts.
    pub outputs: Outputs,
    /// What it is measured by.
    pub loss: Loss,
    /// How its products were computed in training.
    pub precision: Precision,
    /// The network for one sample at a time, which says where each tensor lies.
    pub model: Model,
    /// Its weights and running statistics, as the model's layout has them.
    pub state: Vec<f32>,
    /// SHA-256 of the weights, as the run's result has it.
    pub weights_sha256: String,
}

impl SavedModel {
    /// Reads the model that a run ended with.
    ///
    /// # Errors
    /// When the run has no model yet, or its files are damaged, do not belong together, or are of a newer version of
    /// this program.
    pub fn open(run: &RunDir) -> Result<Self, TrainError> {
        let file = run.model();
        let path = PathBuf::from(file.to_string());
        let refused = |reason: String| TrainError::Trained {
            path: path.clone(),
            reason,
        };
        let text = match file.read() {
            Ok(text) => text,
            Err(PlaceError::NotFound { .. }) => {
                let reason = "there is none; the run has not ended, or it failed";
                return Err(refused(reason.to_owned()));
            }
            Err(PlaceError::Io { source, .. }) => return Err(refused(source.to_string())),
            Err(error) => return Err(refused(error.to_string())),
        };
        let wrong = |error: serde_json::Error| refused(error.to_string());
        let CardVersion { version } = serde_json::from_slice(&text).map_err(wrong)?;
        if version > card::VERSION {
            return Err(refused(format!(
                "it is of version {version}, written by a newer lockstep; this one reads up to {}",
                card::VERSION
            )));
        }
        let card: Card = serde_json::from_slice(&text).map_err(wrong)?;
        let mut outputs = card
            .outputs()
            .ok_or_else(|| refused("its `targets` do not fit each other".to_owned()))?;
        let tables = network::embeddings(card.encoding.as_ref());
        let layers = network::layers_behind(tables, &card.network, outputs.names.len());
        let raw: usize = card.input_shape.iter().product();
        if card
            .encoding
            .as_ref()
            .is_some_and(|encoding| !encoding.fits(raw))
        {
            return Err(refused("its `encoding` does not fit its rows".to_owned()));
        }
        let model =
            Model::new(&layers, card.dims(), 1).map_err(|error| refused(error.to_string()))?;
        outputs.widen(model.outputs());
        let state = read_weights(&run.weights(), &model)?;
        if weights::sha256(model.layout(), &state) != card.weights_sha256 {
            let weights = run.weights();
            let reason = format!("{weights} holds other weights than it says");
            return Err(refused(reason));
        }
        let input = card.input();
        Ok(Self {
            loss: card.loss(),
            layers,
            input_shape: card.input_shape,
            input,
            inputs: inputs(card.inputs, &card.column_names),
            encoding: card.encoding,
            pictures: card.pictures,
            normalise: card.normalise,
            outputs,
            precision: card.precision,
            model,
            state,
            weights_sha256: card.weights_sha256,
            path,
        })
    }

    /// The shape of the network's input.
    pub fn dims(&self) -> Dims {
        dims(self.input_shape, self.encoding.as_ref())
    }
}

/// The shape of a network's input, where a sample has this one and may be encoded.
pub(crate) fn dims([channels, height, width]: [usize; 3], encoding: Option<&Encoding>) -> Dims {
    match encoding {
        Some(encoding) => Dims::vector(encoding.width()),
        None => Dims::image(height, width, channels),
    }
}

fn read_weights(file: &Place, model: &Model) -> Result<Vec<f32>, TrainError> {
    let refused = |path: PathBuf, reason| TrainError::Trained { path, reason };
    let shown = PathBuf::from(file.to_string());
    let copy = file.local_copy().map_err(|error| {
        let reason = match error {
            PlaceError::NotFound { .. } => "there is none".to_owned(),
            error => error.to_string(),
        };
        refused(shown.clone(), reason)
    })?;
    match pretrained::read(copy.path(), model, 0, None) {
        Ok(read) => match read.note {
            None => Ok(read.state),
            Some(note) => Err(refused(shown, note)),
        },
        Err(TrainError::Pretrained { reason, .. }) => Err(refused(shown, reason)),
        Err(error) => Err(error),
    }
}
