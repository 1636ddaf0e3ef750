//! Named weights, checked for their size as they come in.

use super::{EncoderError, Tensors};

/// Where an encoder's weights come from.
pub(super) struct Weights<'a>(pub(super) Tensors<'a>);

impl Weights<'_> {
    /// A tensor's numbers.
    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let numbers = (self.0)(name, shape)?;
        if numbers.len() != shape.iter().product::<usize>() {
            return Err(EncoderError::Shape {
                name: name.to_owned(),
                expected: shape.to_vec(),
                found: numbers.len(),
            });
        }
        Ok(numbers)
    }
}
