//! `data.normalise`: the scale of the input.

use crate::field::{Field, Rule};
use crate::keys::{FromField, NotEmpty, keys};

keys! {
    /// Normalisation of the input, one number a channel.
    pub struct JobNormalise {
        /// What is subtracted.
        mean: Vec<f64> = need("add `mean = [...]`, one number a channel")
            => NotEmpty(Rule::FINITE, "one number a channel");
        /// What is divided by.
        std: Vec<f64> = need("add `std = [...]`, one number a channel")
            => NotEmpty(Rule::NOT_ZERO, "one number a channel"), |field, std| match &mean {
                Some(mean) if mean.len() != std.len() => field.reject(
                    format!(
                        "must be as long as `mean` ({}), found {}",
                        mean.len(),
                        std.len()
                    ),
                    "one number a channel in both",
                ),
                _ => Some(std),
            };
    }
}

/// Scales that networks for colour pictures were trained with, by name: mean, then deviation.
const KNOWN: [(&str, [f64; 3], [f64; 3]); 3] = [
    ("imagenet", [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    (
        "clip",
        [0.481_454_66, 0.457_827_5, 0.408_210_73],
        [0.268_629_54, 0.261_302_58, 0.275_777_11],
    ),
    ("half", [0.5; 3], [0.5; 3]),
];

/// A name or a table.
impl FromField for JobNormalise {
    fn from_field(field: &Field<'_>) -> Option<JobNormalise> {
        if !field.is_text() {
            let mut section = field.section_or("a name or a table with `mean` and `std`")?;
            let normalise = JobNormalise::read_keys(&mut section);
            section.finish();
            return normalise;
        }
        let name = field.one_of(&KNOWN.map(|(name, ..)| name))?;
        let (_, mean, std) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        Some(JobNormalise {
            mean: mean.to_vec(),
            std: std.to_vec(),
        })
    }
}
