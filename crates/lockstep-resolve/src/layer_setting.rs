//! What a key of a layer says to the model, and what the model's setting is in the job file.

use crate::network::{in_words, named};
use lockstep_job::{JobLayer, Pair};
use lockstep_nn::{Dims, NamedLayer};

/// Where a key stands.
#[derive(Clone, Copy)]
pub(crate) struct KeyPlace<'a> {
    /// What its layer is called.
    pub(crate) name: &'a str,
    /// What the key is called.
    pub(crate) key: &'static str,
    /// Outputs of the whole network.
    pub(crate) outputs: usize,
}

/// A setting of a layer of the model, whose key in the job file has values of another type.
pub(crate) trait Setting<K> {
    /// The setting that a key asks for.
    fn of_key(value: &K, place: KeyPlace<'_>) -> Self;

    /// The value of this key that asks for the setting.
    fn to_key(&self, key: &str) -> K;
}

macro_rules! same {
    ($($type:ty)*) => {
        $(impl Setting<$type> for $type {
            fn of_key(value: &$type, _: KeyPlace<'_>) -> Self {
                *value
            }

            fn to_key(&self, _: &str) -> $type {
                *self
            }
        })*
    };
}

same!(bool f64 usize);

/// A width that is left out is that of the network's output, and groups that are left out are one.
impl Setting<Option<usize>> for usize {
    fn of_key(value: &Option<usize>, place: KeyPlace<'_>) -> Self {
        value.unwrap_or(match place.key {
            "out" => place.outputs,
            _ => 1,
        })
    }

    fn to_key(&self, key: &str) -> Option<usize> {
        (key == "out" || *self > 1).then_some(*self)
    }
}

impl Setting<Pair> for [usize; 2] {
    fn of_key(value: &Pair, _: KeyPlace<'_>) -> Self {
        (*value).into()
    }

    fn to_key(&self, _: &str) -> Pair {
        let [height, width] = *self;
        Pair { height, width }
    }
}

/// Channels and length, or channels, height and width.
impl Setting<Vec<usize>> for Dims {
    fn of_key(value: &Vec<usize>, _: KeyPlace<'_>) -> Self {
        match value[..] {
            [channels, height, width] => Dims::image(height, width, channels),
            _ => Dims::image(1, value[1], value[0]),
        }
    }

    fn to_key(&self, _: &str) -> Vec<usize> {
        match *self {
            Dims { height: 1, .. } => vec![self.channels, self.width],
            _ => vec![self.channels, self.height, self.width],
        }
    }
}

/// Layers inside of a layer are called after it and the key.
impl Setting<Vec<JobLayer>> for Vec<NamedLayer> {
    fn of_key(value: &Vec<JobLayer>, place: KeyPlace<'_>) -> Self {
        let prefix = format!("{}.{}", place.name, place.key);
        named(&prefix, value, place.outputs)
    }

    fn to_key(&self, _: &str) -> Vec<JobLayer> {
        in_words(self)
    }
}
