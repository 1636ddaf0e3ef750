//! `data.normalise`: the scale of the input.

use crate::field::{Field, Rule};
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Normalisation of the input, one number a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Normalise {
    /// What is subtracted.
    #[schemars(length(min = 1))]
    pub mean: Vec<f64>,
    /// What is divided by.
    #[schemars(length(min = 1))]
    pub std: Vec<f64>,
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

impl Normalise {
    /// Reads a name or a table.
    pub(crate) fn read(field: &Field<'_>) -> Option<Normalise> {
        if !field.is_text() {
            return Normalise::read_table(
                field.section_or("a name or a table with `mean` and `std`")?,
            );
        }
        let name = field.one_of(&KNOWN.map(|(name, ..)| name))?;
        let (_, mean, std) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        Some(Normalise {
            mean: mean.to_vec(),
            std: std.to_vec(),
        })
    }

    fn read_table(mut section: Section<'_>) -> Option<Normalise> {
        let mean = section
            .need("mean", "add `mean = [...]`, one number a channel")
            .and_then(|field| {
                let mean = field.all(|x| x.number(Rule::FINITE))?;
                if mean.is_empty() {
                    return field.reject("must not be empty", "one number a channel");
                }
                Some(mean)
            });
        let std = section
            .need("std", "add `std = [...]`, one number a channel")
            .and_then(|field| {
                let std = field.all(|x| x.number(Rule::NOT_ZERO))?;
                match &mean {
                    Some(mean) if mean.len() != std.len() => field.reject(
                        format!(
                            "must be as long as `mean` ({}), found {}",
                            mean.len(),
                            std.len()
                        ),
                        "one number a channel in both",
                    ),
                    _ => Some(std),
                }
            });
        section.finish();
        Some(Normalise {
            mean: mean?,
            std: std?,
        })
    }
}
