//! What a model takes: the columns of a table, or samples of one shape.

use crate::content::Content;
use crate::sample_rows::SampleForm;
use crate::table_rows;
use crate::{Refusal, ServingSettings};
use lockstep_data::{RowReader, SampleValues};
use lockstep_learner::TrainedModel;

/// What a model takes.
#[derive(Debug)]
pub(crate) enum Takes {
    /// The columns of a table.
    Table(RowReader),
    /// Samples of one shape: vectors, pixels, or pictures that become such.
    Samples(SampleForm),
}

impl Takes {
    /// What this model takes.
    pub(crate) fn of(model: &dyn TrainedModel) -> Self {
        match model.inputs() {
            ([], _) => {
                let (element, shape) = model.sample();
                Self::Samples(SampleForm::new(element, shape, model.pictures().cloned()))
            }
            (columns, gaps) => Self::Table(RowReader::new(columns, gaps)),
        }
    }

    /// The shape of a sample: channels, height, width.
    pub(crate) fn shape(&self) -> [usize; 3] {
        match self {
            Self::Table(reader) => [reader.width(), 1, 1],
            Self::Samples(form) => form.shape,
        }
    }

    /// Whether even a short request may take a while to read: a small file may be a large picture.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self, Self::Samples(form) if form.takes_pictures())
    }

    /// The samples that the rows of a request are.
    ///
    /// # Errors
    /// When there are none or too many, or a row is not what the model takes.
    pub(crate) fn read(
        &self,
        content: Content,
        settings: &ServingSettings,
    ) -> Result<SampleValues, Refusal> {
        match content.rows() {
            0 => return Err(Refusal::bad("the request has no rows")),
            rows if rows > settings.max_rows => {
                let most = settings.max_rows;
                return Err(Refusal::too_large(format!(
                    "the request has {rows} rows; there may be {most}: send the others in further requests"
                )));
            }
            _ => (),
        }
        match self {
            Self::Table(reader) => table_rows::read(reader, content).map(SampleValues::Numbers),
            Self::Samples(form) => form.read(content, settings.max_pixels),
        }
    }
}
