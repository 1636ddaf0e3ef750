//! A size along the height and the width of an image: `3` for both, or `[3, 5]`.

use crate::field::Field;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A size along the height and the width of an image.
///
/// In the job file one number stands for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PairKeys", into = "PairKeys")]
pub struct Pair {
    /// Along the height.
    pub height: usize,
    /// Along the width.
    pub width: usize,
}

impl Pair {
    /// The same along both.
    pub const fn both(size: usize) -> Self {
        Pair {
            height: size,
            width: size,
        }
    }

    pub(crate) fn read(field: &Field<'_>, range: RangeInclusive<usize>) -> Option<Pair> {
        if !field.is_array() {
            return Some(Pair::both(field.integer(range)?));
        }
        match field.all(|size| size.integer(range.clone()))?[..] {
            [height, width] => Some(Pair { height, width }),
            ref sizes => field.reject(
                format!("must be one number or two, found {}", sizes.len()),
                "one number for both, or [height, width]",
            ),
        }
    }
}

/// [`Pair`] as the job file writes it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum PairKeys {
    /// The same along the height and the width.
    Both(usize),
    /// Height and width.
    Each([usize; 2]),
}

impl From<PairKeys> for Pair {
    fn from(keys: PairKeys) -> Self {
        match keys {
            PairKeys::Both(size) => Pair::both(size),
            PairKeys::Each([height, width]) => Pair { height, width },
        }
    }
}

impl From<Pair> for PairKeys {
    fn from(pair: Pair) -> Self {
        match pair {
            Pair { height, width } if height == width => PairKeys::Both(height),
            Pair { height, width } => PairKeys::Each([height, width]),
        }
    }
}

impl From<Pair> for [usize; 2] {
    fn from(pair: Pair) -> Self {
        [pair.height, pair.width]
    }
}
