//! In which form a graph takes its samples.

use crate::port::Element;

/// In which form a graph takes its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputForm {
    /// As they are stored: pictures as bytes, and the columns of a table each as an input of its own, with words and
    /// dates.
    Stored,
    /// The same, but for pictures, which are `float32` from 0 to 255: whoever calls the model may have changed them.
    Columns,
    /// As one tensor of `float32`: pictures as numbers from 0 to 255, and rows of a table decoded, with categories as
    /// their places, dates as their parts and gaps as NaN. Programs that know no words and no bytes take it.
    Floats,
}

impl InputForm {
    /// What bytes go in as.
    pub(crate) fn of_bytes(self) -> Element {
        match self {
            Self::Stored => Element::Uint8,
            Self::Columns | Self::Floats => Element::Float32,
        }
    }
}
