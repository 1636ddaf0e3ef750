//! How the columns of a batch lie in a slot, and how they get there.

use crate::ScriptError;
use crate::sets::{OpenData, OpenSamples};
use lockstep_data::{Dataset, Frame, FrameBatch, FrameCell, TargetKind, TargetScale};
use serde_json::{Value, json};

/// Columns begin at multiples of this in a slot, so that every kind of number is aligned.
const ALIGNED: usize = 64;

/// The layout of all batches of an iterator.
pub(super) enum BatchLayout {
    Samples(SampleLayout),
    Columns(FrameBatch),
}

impl BatchLayout {
    /// For these batches.
    pub(super) fn new<'a>(
        data: &OpenData,
        batches: impl Iterator<Item = &'a [u32]>,
    ) -> Result<Self, ScriptError> {
        Ok(match data {
            OpenData::Samples(samples) => {
                let most = batches.map(<[u32]>::len).max().unwrap_or(0);
                Self::Samples(SampleLayout::of(&samples.set, most))
            }
            OpenData::Columns(frame) => Self::Columns(FrameBatch::new(frame, batches)?),
        })
    }

    /// Bytes of a batch.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Samples(layout) => layout.bytes,
            Self::Columns(layout) => layout.bytes(),
        }
    }

    /// What Python is told of it.
    pub(super) fn described(&self, data: &OpenData) -> Value {
        match (self, data) {
            (Self::Columns(layout), OpenData::Columns(frame)) => described(layout, frame),
            (Self::Samples(layout), _) => layout.described(),
            (Self::Columns(_), OpenData::Samples(_)) => Value::Null,
        }
    }

    /// Writes a batch into a slot.
    pub(super) fn fill(&self, data: &OpenData, rows: &[u32], memory: &mut [u8]) {
        match (self, data) {
            (Self::Columns(layout), OpenData::Columns(frame)) => layout.fill(frame, rows, memory),
            (Self::Samples(layout), OpenData::Samples(samples)) => {
                layout.fill(samples, rows, memory);
            }
            _ => {}
        }
    }
}

/// The columns of a table. `shape` is that of a cell; what has an `ends` has cells of several lengths.
fn described(layout: &FrameBatch, frame: &Frame) -> Value {
    let columns = layout.parts().iter().zip(frame.columns());
    let columns = columns.map(|(part, column)| {
        let shape = match (column.cell, column.width) {
            (FrameCell::List, Some(width)) => vec![width],
            _ => Vec::new(),
        };
        json!({
            "name": column.name,
            "dtype": column.element.numpy(),
            "cell": match column.cell {
                FrameCell::Single => "single",
                FrameCell::List => "list",
                FrameCell::Text => "text",
                FrameCell::Bytes => "bytes",
            },
            "shape": shape,
            "offset": part.values,
            "ends": part.ends,
            "valid": part.valid,
        })
    });
    columns.collect()
}

/// Samples as networks see them.
pub(super) struct SampleLayout {
    samples: Vec<usize>,
    /// What is to be predicted of a sample: a class, or numbers.
    target: Option<Vec<usize>>,
    /// Where the targets begin.
    targets_at: usize,
    bytes: usize,
}

impl SampleLayout {
    fn of(set: &Dataset, batch: usize) -> Self {
        let [channels, height, width] = set.shape();
        let samples = match (height, width) {
            (1, 1) => vec![channels],
            _ => vec![height, width, channels],
        };
        let targets_at = (batch * set.sample_len() * 4).next_multiple_of(ALIGNED);
        let target = set.is_labelled().then(|| match set.target_kind() {
            TargetKind::Classes => Vec::new(),
            _ => vec![set.outputs()],
        });
        let bytes = match &target {
            None => 0,
            Some(shape) if shape.is_empty() => batch * 8,
            Some(shape) => batch * shape[0] * 4,
        };
        Self {
            samples,
            target,
            targets_at,
            bytes: targets_at + bytes,
        }
    }

    fn described(&self) -> Value {
        let name = match self.samples.len() {
            1 => "features",
            _ => "image",
        };
        let mut columns = vec![json!({
            "name": name, "dtype": "float32", "shape": self.samples, "offset": 0,
        })];
        if let Some(shape) = &self.target {
            let dtype = if shape.is_empty() { "int64" } else { "float32" };
            columns.push(json!({
                "name": "label", "dtype": dtype, "shape": shape, "offset": self.targets_at,
            }));
        }
        Value::Array(columns)
    }

    fn fill(&self, open: &OpenSamples, rows: &[u32], memory: &mut [u8]) {
        let set = &open.set;
        let (samples, targets) = memory.split_at_mut(self.targets_at);
        let samples: &mut [f32] = bytemuck::cast_slice_mut(samples);
        let samples = &mut samples[..rows.len() * set.sample_len()];
        set.gather(rows, &open.normaliser, samples);
        if !set.is_labelled() {
            return;
        }
        match set.target_kind() {
            TargetKind::Classes => {
                let labels = set.labels();
                let targets = targets.as_chunks_mut::<8>().0;
                for (target, &row) in targets.iter_mut().zip(rows) {
                    *target = i64::from(labels[row as usize]).to_le_bytes();
                }
            }
            _ => {
                let width = set.outputs();
                let bytes = rows.len() * width * 4;
                let numbers: &mut [f32] = bytemuck::cast_slice_mut(&mut targets[..bytes]);
                set.gather_numbers(rows, &TargetScale::identity(width), numbers);
            }
        }
    }
}
