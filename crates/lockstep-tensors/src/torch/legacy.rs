//! PyTorch's files until 1.5: five pickles in a row, then the storages.
//!
//! The pickles are a magic number, a version, facts on the machine, the object itself, and the storages'
//! keys in the order in which they follow. Each is its length in numbers, 8 bytes, and its numbers.

use super::Fault;
use super::objects::{self, Storage};
use super::pickle::{self, Pickle, Value};
use crate::file::TensorLocation;
use std::collections::HashMap;
use std::ops::Range;

/// The first pickle: protocol 2 and the magic number.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// The only version there ever was.
const VERSION: i128 = 1001;

pub(super) fn is_legacy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<(String, TensorLocation)>, Fault> {
    let mut at = MAGIC.len();
    let mut next = || -> Result<Pickle<'_>, Fault> {
        let pickle = pickle::load(&bytes[at..])?;
        at += pickle.len;
        Ok(pickle)
    };
    let version = next()?;
    if *version.get(version.root) != Value::Int(VERSION) {
        return Err(Fault::Unsupported("another version than 1001".into()));
    }
    let machine = next()?;
    if !is_little_endian(&machine) {
        return Err(Fault::Unsupported(
            "numbers whose high bytes come first".into(),
        ));
    }
    let (object, keys) = (next()?, next()?);

    let ranges = ranges(bytes, at, &keys, &objects::storages(&object)?)?;
    objects::tensors(&object, |storage| ranges.get(storage.key).cloned())
}

fn is_little_endian(machine: &Pickle<'_>) -> bool {
    let Value::Dict(pairs) = machine.get(machine.root) else {
        return false;
    };
    pairs.iter().any(|&(key, value)| {
        *machine.get(key) == Value::Text("little_endian")
            && *machine.get(value) == Value::Bool(true)
    })
}

/// The bytes of each storage. Where one begins depends on the sizes of those before it.
fn ranges<'a>(
    bytes: &[u8],
    mut at: usize,
    keys: &Pickle<'a>,
    storages: &HashMap<&str, Storage<'_>>,
) -> Result<HashMap<&'a str, Range<usize>>, Fault> {
    let Value::List(items) = keys.get(keys.root) else {
        return Err(Fault::damaged("the storages' keys are not a list"));
    };
    let mut ranges = HashMap::new();
    for &id in items {
        let Value::Text(key) = *keys.get(id) else {
            return Err(Fault::damaged("a storage's key is not text"));
        };
        let storage = storages
            .get(key)
            .ok_or_else(|| Fault::damaged(format!("nothing is known of the storage {key}")))?;
        let cut = || {
            Fault::damaged(format!(
                "it ends inside of storage {key}, at byte {}",
                bytes.len()
            ))
        };
        let head = bytes.get(at..at + 8).ok_or_else(cut)?;
        let len = u64::from_le_bytes(std::array::from_fn(|i| head[i]));
        at += 8;
        let len = usize::try_from(len)
            .ok()
            .and_then(|len| len.checked_mul(storage.element.size()))
            .filter(|&len| len <= bytes.len() - at)
            .ok_or_else(cut)?;
        ranges.insert(key, at..at + len);
        at += len;
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as `torch.save(..., _use_new_zipfile_serialization=False)` writes it: tensors `a` of shape
    /// 2 x 3, and `b`, its transpose in the same storage.
    fn file() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(b"\x80\x02M\xe9\x03.");
        bytes.extend(b"\x80\x02}(X\x0d\x00\x00\x00little_endian\x88u.");
        bytes.extend(b"\x80\x02ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00a");
        bytes.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage");
        bytes.extend(b"ctorch\nFloatStorage\nX\x01\x00\x00\x007X\x03\x00\x00\x00cpuK\x06NtQq\x01");
        bytes.extend(b"K\x00K\x02K\x03\x86K\x03K\x01\x86\x89NtR");
        bytes.extend(b"X\x01\x00\x00\x00bctorch._utils\n_rebuild_tensor_v2\n(h\x01");
        bytes.extend(b"K\x00K\x03K\x02\x86K\x01K\x03\x86\x89NtRu.");
        bytes.extend(b"\x80\x02]X\x01\x00\x00\x007a.");
        bytes.extend(6u64.to_le_bytes());
        bytes.extend((0..6).flat_map(|i| (i as f32).to_le_bytes()));
        bytes
    }

    #[test]
    fn two_views_of_one_storage_are_found_where_they_lie() {
        let bytes = file();
        assert!(is_legacy(&bytes));
        let found = tensors(&bytes).unwrap();
        assert_eq!(found.len(), 2);
        for (name, place) in found {
            assert_eq!(place.start, bytes.len() - 24);
            let expected = match name.as_str() {
                "a" => ([2, 3], [3, 1]),
                _ => ([3, 2], [1, 3]),
            };
            assert_eq!(
                (&place.shape[..], &place.strides[..]),
                (&expected.0[..], &expected.1[..])
            );
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let bytes = file();
        for len in MAGIC.len()..bytes.len() {
            assert!(
                matches!(tensors(&bytes[..len]), Err(Fault::Damaged(_))),
                "cut at {len}"
            );
        }
    }

    #[test]
    fn a_storage_of_a_wild_length_is_refused() {
        for len in [7u64, 1 << 40, 1 << 62, u64::MAX] {
            let mut bytes = file();
            let at = bytes.len() - 32;
            bytes[at..at + 8].copy_from_slice(&len.to_le_bytes());
            assert!(matches!(tensors(&bytes), Err(Fault::Damaged(_))), "{len}");
        }
    }

    #[test]
    fn any_changed_byte_is_an_error_or_other_tensors_inside_the_file() {
        let bytes = file();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, b'(', b'.', b't'] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                for (_, place) in tensors(&bytes).unwrap_or_default() {
                    assert!(place.fits(bytes.len() - place.start));
                }
            }
        }
    }
}
