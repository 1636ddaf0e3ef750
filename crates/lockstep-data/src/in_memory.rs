//! Samples that come from no file: those of a request, of which a model is to say what they are.
//!
//! They are stored as those of a decoded file, so everything that looks at a [`Dataset`] sees no difference, and computes
//! the same bits.

use crate::Dataset;
use crate::columns::TableSchema;
use crate::content::ContentHash;
use crate::dataset::StoredElement;
use crate::decoded::Decoded;
use crate::layout::{DecodedLayout, Extent, Facts, Form};
use crate::mapped::Mapped;
use crate::target::TargetKind;
use std::path::PathBuf;

/// The values of samples, one sample after the other, the channels of a pixel beside each other.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleValues {
    /// Bytes, which stand for 0 to 1.
    Bytes(Vec<u8>),
    /// Numbers as they are.
    Numbers(Vec<f32>),
}

impl SampleValues {
    /// None yet, stored so.
    pub fn new(element: StoredElement) -> Self {
        match element {
            StoredElement::U8 => Self::Bytes(Vec::new()),
            StoredElement::F32 => Self::Numbers(Vec::new()),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the values of others, which are stored in the same way.
    ///
    /// # Panics
    /// When they are not.
    pub fn append(&mut self, others: &Self) {
        match (self, others) {
            (Self::Bytes(own), Self::Bytes(others)) => own.extend_from_slice(others),
            (Self::Numbers(own), Self::Numbers(others)) => own.extend_from_slice(others),
            _ => panic!("samples of one model are stored in one way"),
        }
    }

    fn element(&self) -> StoredElement {
        match self {
            Self::Bytes(_) => StoredElement::U8,
            Self::Numbers(_) => StoredElement::F32,
        }
    }
}

impl Dataset {
    /// Samples of this shape (channels, height, width) that are in memory alone, of which a model says `kind`. What is
    /// right to say of them is not known.
    ///
    /// # Panics
    /// When there is no sample, or the last of them is not whole.
    pub fn in_memory(
        name: &str,
        values: &SampleValues,
        shape: [usize; 3],
        kind: TargetKind,
    ) -> Dataset {
        let sample: usize = shape.iter().product();
        let count = values.len() / sample.max(1);
        assert!(
            count > 0 && count * sample == values.len(),
            "whole samples, at least one"
        );
        let layout = DecodedLayout::new(Form {
            element: values.element(),
            count,
            shape,
            target: kind,
            outputs: 0,
            weighted: false,
            grouped: false,
            names: Extent::default(),
            classes: Extent::default(),
            skipped: Extent::default(),
            columns: Extent::default(),
        });
        let layout = layout.expect("what is in memory fits into the address space");
        // The other parts are empty, and lie at the end.
        let mut words = vec![0; layout.summed().div_ceil(4)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        match values {
            SampleValues::Bytes(own) => bytes[..own.len()].copy_from_slice(own),
            SampleValues::Numbers(own) => {
                bytes[..own.len() * 4].copy_from_slice(bytemuck::cast_slice(own));
            }
        }
        let content = ContentHash {
            head: [0; 32],
            whole: [0; 32],
        };
        let decoded = Decoded {
            path: PathBuf::new(),
            map: Mapped::in_memory(words),
            layout,
            facts: Facts {
                identity: [0; 4],
                content,
                sums: 0,
            },
            classes: Vec::new(),
            schema: TableSchema::default(),
            columns: Vec::new(),
        };
        Dataset::of(name.to_owned(), decoded, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Normaliser;
    use crate::testing::Folder;

    #[test]
    fn samples_in_memory_are_gathered_to_the_same_bits_as_those_of_a_file() {
        let folder = Folder::new();
        let bytes: Vec<u8> = (0..150).map(|n| (n * 7 % 256) as u8).collect();
        let file = folder.dataset(&folder.idx(8, &[6, 5, 5], &bytes), &folder.labels(&[0; 6]));
        let values = SampleValues::Bytes(bytes);
        let own = Dataset::in_memory("a request", &values, [1, 5, 5], TargetKind::Classes);
        assert_eq!(
            (own.len(), own.shape(), own.element()),
            (6, file.shape(), file.element())
        );
        assert!(!own.is_labelled() && own.labels().is_empty() && own.numbers().is_empty());
        assert_eq!(own.sample_name(0), None);
        let normaliser = Normaliser::new(&[0.3], &[0.7], 1).unwrap();
        let bits = |set: &Dataset| {
            let mut out = [0.0; 75];
            set.gather(&[5, 0, 3], &normaliser, &mut out);
            out.map(f32::to_bits)
        };
        assert_eq!(bits(&own), bits(&file));
        own.release(0..6);
        assert_eq!(bits(&own), bits(&file));
    }

    #[test]
    fn numbers_in_memory_are_those_that_were_given() {
        let mut values = SampleValues::new(StoredElement::F32);
        values.append(&SampleValues::Numbers(vec![1.5, f32::NAN, -3.0]));
        values.append(&SampleValues::Numbers(vec![0.0, 2.0, 4.0]));
        let set = Dataset::in_memory("a request", &values, [3, 1, 1], TargetKind::Numbers);
        assert_eq!(set.floats()[2..], [-3.0, 0.0, 2.0, 4.0]);
        assert_eq!((set.len(), set.outputs()), (2, 0));
    }
}
