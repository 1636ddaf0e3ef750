//! What the numbers of a tensor are, and how they become `f32`.

use std::fmt;

/// The type of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Double precision.
    F64,
    /// Anything else, by its name and size in bytes: it can be listed, not read.
    Other(&'static str, usize),
}

impl Element {
    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F64 => 8,
            Self::Other(_, size) => size,
        }
    }

    /// The number at the front of `bytes`, which has as many as one takes; `None` for what is no weight.
    pub(crate) fn reader(self) -> Option<fn(&[u8]) -> f32> {
        Some(match self {
            Self::F32 => |bytes| f32::from_le_bytes(array(bytes)),
            Self::F16 => |bytes| half::f16::from_le_bytes(array(bytes)).to_f32(),
            Self::Bf16 => |bytes| half::bf16::from_le_bytes(array(bytes)).to_f32(),
            Self::F64 => |bytes| f64::from_le_bytes(array(bytes)) as f32,
            Self::Other(..) => return None,
        })
    }
}

/// The first bytes as an array.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F64 => "f64",
            Self::Other(name, _) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float_becomes_the_nearest_single() {
        let read = |element: Element, bytes: &[u8]| element.reader().map(|read| read(bytes));
        assert_eq!(read(Element::F32, &1.5f32.to_le_bytes()), Some(1.5));
        assert_eq!(read(Element::F16, &0x3e00u16.to_le_bytes()), Some(1.5));
        assert_eq!(read(Element::Bf16, &0x3fc0u16.to_le_bytes()), Some(1.5));
        assert_eq!(read(Element::F64, &0.1f64.to_le_bytes()), Some(0.1));
        assert_eq!(read(Element::Other("i64", 8), &[0; 8]), None);
    }
}
