//! IDX elements as what the decoded cache stores: labels as `u32`, samples as bytes or `f32`.

use crate::DataError;
use crate::idx::IdxType;
use std::path::Path;

/// No label may be as large as this. A damaged file would otherwise ask for a model with billions of
/// outputs.
pub(crate) const MOST_CLASSES: u32 = 1 << 16;

/// Turns blocks of a file's elements into native bytes, and checks each value.
pub(crate) struct Converter<'a> {
    path: &'a Path,
    element: IdxType,
    /// Elements in a sample.
    sample_len: u64,
    /// Elements converted so far.
    done: u64,
    bytes: Vec<u8>,
}

impl<'a> Converter<'a> {
    /// Converts elements of the file `path`, of which `sample_len` make a sample.
    pub(crate) fn new(path: &'a Path, element: IdxType, sample_len: usize) -> Self {
        Converter {
            path,
            element,
            sample_len: sample_len as u64,
            done: 0,
            bytes: Vec::new(),
        }
    }

    /// A block of labels as `u32`.
    pub(crate) fn labels(&mut self, block: &[u8]) -> Result<&[u8], DataError> {
        let fits = |label: i64| (0..i64::from(MOST_CLASSES)).contains(&label);
        match self.element {
            IdxType::U8 => self.convert(block, |[byte]| i64::from(byte), fits),
            IdxType::I8 => self.convert(block, |byte| i64::from(i8::from_be_bytes(byte)), fits),
            IdxType::I16 => self.convert(block, |word| i64::from(i16::from_be_bytes(word)), fits),
            IdxType::I32 => self.convert(block, |word| i64::from(i32::from_be_bytes(word)), fits),
            IdxType::F32 | IdxType::F64 => unreachable!("float labels are refused by their header"),
        }
    }

    /// A block of samples as `f32`; bytes stay bytes.
    pub(crate) fn samples<'b>(&'b mut self, block: &'b [u8]) -> Result<&'b [u8], DataError> {
        match self.element {
            IdxType::U8 => Ok(block),
            IdxType::I8 => self.convert(block, |x| f64::from(i8::from_be_bytes(x)), finite),
            IdxType::I16 => self.convert(block, |x| f64::from(i16::from_be_bytes(x)), finite),
            IdxType::I32 => self.convert(block, |x| f64::from(i32::from_be_bytes(x)), finite),
            IdxType::F32 => self.convert(block, |x| f64::from(f32::from_be_bytes(x)), finite),
            IdxType::F64 => self.convert(block, f64::from_be_bytes, finite),
        }
    }

    /// Reads each element of `N` bytes, checks it, and stores its native form.
    fn convert<const N: usize, T: Value>(
        &mut self,
        block: &[u8],
        read: impl Fn([u8; N]) -> T,
        fits: impl Fn(T) -> bool,
    ) -> Result<&[u8], DataError> {
        self.bytes.clear();
        for element in block.as_chunks().0 {
            let value = read(*element);
            if !fits(value) {
                let sample = (self.done + self.bytes.len() as u64 / 4) / self.sample_len;
                return Err(value.refused(self.path, sample));
            }
            self.bytes.extend_from_slice(&value.native());
        }
        self.done += self.bytes.len() as u64 / 4;
        Ok(&self.bytes)
    }
}

/// Whether a value is still a finite number when it is rounded to `f32`.
fn finite(value: f64) -> bool {
    (value as f32).is_finite()
}

/// A value on its way into the cache.
trait Value: Copy {
    /// As it is stored.
    fn native(self) -> [u8; 4];
    /// The error that this value is.
    fn refused(self, path: &Path, sample: u64) -> DataError;
}

impl Value for i64 {
    fn native(self) -> [u8; 4] {
        (self as u32).to_ne_bytes()
    }

    fn refused(self, path: &Path, sample: u64) -> DataError {
        let classes = u64::from(MOST_CLASSES);
        DataError::Label {
            path: path.to_owned(),
            sample,
            label: self,
            classes,
        }
    }
}

impl Value for f64 {
    fn native(self) -> [u8; 4] {
        (self as f32).to_ne_bytes()
    }

    fn refused(self, path: &Path, sample: u64) -> DataError {
        DataError::NotFinite {
            path: path.to_owned(),
            sample,
            value: self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converter(element: IdxType, sample_len: usize) -> Converter<'static> {
        Converter::new(Path::new("some/file"), element, sample_len)
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|value| f32::from_ne_bytes(*value))
            .collect()
    }

    fn labels(bytes: &[u8]) -> Vec<u32> {
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|value| u32::from_ne_bytes(*value))
            .collect()
    }

    #[test]
    fn every_element_type_is_read() {
        assert_eq!(
            converter(IdxType::U8, 1).samples(&[0, 255]).unwrap(),
            [0, 255]
        );
        let read = |element, bytes: &[u8]| floats(converter(element, 1).samples(bytes).unwrap());
        assert_eq!(read(IdxType::I8, &[0x80, 5]), [-128.0, 5.0]);
        assert_eq!(read(IdxType::I16, &(-300i16).to_be_bytes()), [-300.0]);
        assert_eq!(read(IdxType::I32, &70_000i32.to_be_bytes()), [70_000.0]);
        assert_eq!(read(IdxType::F32, &1.5f32.to_be_bytes()), [1.5]);
        assert_eq!(read(IdxType::F64, &(-0.1f64).to_be_bytes()), [-0.1]);
        let read = |element, bytes: &[u8]| labels(converter(element, 1).labels(bytes).unwrap());
        assert_eq!(read(IdxType::U8, &[0, 255]), [0, 255]);
        assert_eq!(read(IdxType::I8, &[7]), [7]);
        assert_eq!(read(IdxType::I16, &[1, 0]), [256]);
        assert_eq!(read(IdxType::I32, &[0, 0, 0xff, 0xff]), [65_535]);
    }

    #[test]
    fn a_value_that_is_no_number_is_refused_with_its_sample_across_blocks() {
        for wrong in [f64::NAN, f64::INFINITY, 1e300] {
            let mut converter = converter(IdxType::F64, 3);
            converter
                .samples([0.0f64; 4].map(f64::to_be_bytes).as_flattened())
                .unwrap();
            let block = [0.0, 1.0, wrong].map(f64::to_be_bytes);
            let error = converter.samples(block.as_flattened()).unwrap_err();
            assert!(
                matches!(error, DataError::NotFinite { sample: 2, .. }),
                "{error}"
            );
            assert!(
                error.to_string().starts_with("some/file: sample 2 holds "),
                "{error}"
            );
        }
    }

    #[test]
    fn a_label_out_of_range_is_refused_with_its_sample() {
        let refused = |element, bytes: &[u8]| converter(element, 1).labels(bytes).unwrap_err();
        let negative = refused(IdxType::I8, &[0, 1, 0xff]);
        assert!(
            matches!(
                negative,
                DataError::Label {
                    sample: 2,
                    label: -1,
                    ..
                }
            ),
            "{negative}"
        );
        let huge = refused(IdxType::I32, &[0, 1, 0, 0]);
        assert!(
            matches!(
                huge,
                DataError::Label {
                    sample: 0,
                    label: 65_536,
                    ..
                }
            ),
            "{huge}"
        );
    }
}
