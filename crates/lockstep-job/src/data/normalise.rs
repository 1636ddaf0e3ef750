//! `data.normalise`: the scale of the input.

use crate::field::Rule;
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

impl Normalise {
    pub(super) fn read(mut section: Section<'_>) -> Option<Normalise> {
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
