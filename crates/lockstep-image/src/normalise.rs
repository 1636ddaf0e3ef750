//! From bytes to the numbers that a model was trained on: every channel less its mean, by its deviation.

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// Mean and deviation of red, green and blue, where pixels reach from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Numbers")]
pub struct Normalise {
    /// What is subtracted.
    pub mean: [f32; 3],
    /// What is divided by.
    pub std: [f32; 3],
}

impl Normalise {
    /// What a byte of a channel becomes: `(value / 255 - mean) / std`, in `f32` and in this order.
    pub fn of(&self, value: u8, channel: usize) -> f32 {
        (f32::from(value) / 255.0 - self.mean[channel]) / self.std[channel]
    }
}

/// As they are read, before they are looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    mean: [f32; 3],
    std: [f32; 3],
}

impl TryFrom<Numbers> for Normalise {
    type Error = ImageError;

    fn try_from(Numbers { mean, std }: Numbers) -> Result<Normalise, ImageError> {
        let sound = |deviation: &f32| deviation.is_finite() && *deviation > 0.0;
        if std.iter().all(sound) && mean.iter().all(|mean| mean.is_finite()) {
            return Ok(Normalise { mean, std });
        }
        Err(ImageError::Transform(format!(
            "normalisation by mean {mean:?} and std {std:?}: std must be above zero"
        )))
    }
}

/// A [`Normalise`] worked out for every byte there is.
#[derive(Debug, Clone)]
pub struct ByteNormaliser(Box<[[f32; 3]; 256]>);

impl ByteNormaliser {
    /// Works the table out.
    pub fn new(normalise: &Normalise) -> ByteNormaliser {
        let mut table = Box::new([[0.0; 3]; 256]);
        for (value, row) in (0..=255).zip(table.iter_mut()) {
            *row = std::array::from_fn(|channel| normalise.of(value, channel));
        }
        ByteNormaliser(table)
    }

    /// The numbers of one pixel.
    pub(crate) fn pixel(&self, [red, green, blue]: [u8; 3]) -> [f32; 3] {
        [
            self.0[usize::from(red)][0],
            self.0[usize::from(green)][1],
            self.0[usize::from(blue)][2],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_of_zero_is_refused() {
        let text = r#"{"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.0, 0.5]}"#;
        assert!(serde_json::from_str::<Normalise>(text).is_err());
    }

    #[test]
    fn the_table_is_the_formula_for_every_byte() {
        let normalise = Normalise {
            mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
            std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
        };
        let table = ByteNormaliser::new(&normalise);
        for value in 0..=255 {
            let formula = [0, 1, 2].map(|channel| normalise.of(value, channel).to_bits());
            assert_eq!(table.pixel([value; 3]).map(f32::to_bits), formula);
        }
    }
}
