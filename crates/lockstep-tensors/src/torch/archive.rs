//! PyTorch's files since 1.6: a zip archive with the pickle `data.pkl` and a file a storage.
//!
//! PyTorch stores without compression, so that storages can be mapped. Only such archives are read here,
//! by the directory at their end.

use super::Fault;
use super::{objects, pickle};
use crate::file::TensorLocation;
use std::collections::HashMap;
use std::ops::Range;

/// Signatures of a file's own header, of its entry in the directory, and of the directory's end; the
/// last two for archives of more than 4 GB.
const LOCAL: &[u8] = b"PK\x03\x04";
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";

/// Lengths of the fixed parts of those.
const ENTRY_LEN: usize = 46;
const LOCAL_LEN: usize = 30;
const END_LEN: usize = 22;
const LOCATOR_LEN: usize = 20;

/// The longest comment after the end.
const COMMENT: usize = 0xffff;

/// Stands for a number that did not fit 32 bits and is in an extra field.
const ELSEWHERE: usize = 0xffff_ffff;

pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(LOCAL)
}

pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<(String, TensorLocation)>, Fault> {
    let files = directory(bytes)?;
    let pickle_name = files
        .keys()
        .find(|name| name.ends_with("/data.pkl") || *name == "data.pkl")
        .ok_or_else(|| Fault::Unsupported("no data.pkl; it is another kind of archive".into()))?;
    let folder = pickle_name.trim_end_matches("data.pkl");
    if let Some(order) = files.get(&format!("{folder}byteorder"))
        && &bytes[order.clone()] != b"little"
    {
        return Err(Fault::Unsupported(
            "numbers whose high bytes come first".into(),
        ));
    }
    let object = pickle::load(&bytes[files[pickle_name].clone()])?;
    objects::tensors(&object, |storage| {
        files.get(&format!("{folder}data/{}", storage.key)).cloned()
    })
}

/// A little-endian number of some bytes; `None` past the end.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    let number = bytes
        .iter()
        .rev()
        .fold(0u64, |n, &byte| n << 8 | u64::from(byte));
    usize::try_from(number).ok()
}

/// Where the contents of each file lie.
fn directory(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, Fault> {
    let cut = || Fault::damaged("its zip directory is missing or cut off");
    let (mut at, count) = directory_start(bytes).ok_or_else(cut)?;
    let mut files = HashMap::new();
    for _ in 0..count {
        let (name, range, next) = entry(bytes, at).ok_or_else(cut)??;
        files.insert(name, range);
        at = next;
    }
    Ok(files)
}

/// Where the directory begins, and how many entries it has.
fn directory_start(bytes: &[u8]) -> Option<(usize, usize)> {
    let last = bytes.len().checked_sub(END_LEN)?;
    let end = (last.saturating_sub(COMMENT)..=last)
        .rev()
        .find(|&at| bytes[at..].starts_with(END))?;
    let locator = end.checked_sub(LOCATOR_LEN);
    if let Some(locator) = locator.filter(|&at| bytes[at..].starts_with(LOCATOR_64)) {
        let wide = number(bytes, locator + 8, 8)?;
        if bytes.get(wide..)?.starts_with(END_64) {
            return Some((number(bytes, wide + 48, 8)?, number(bytes, wide + 32, 8)?));
        }
    }
    Some((number(bytes, end + 16, 4)?, number(bytes, end + 10, 2)?))
}

/// An entry of the directory: its name, where its contents lie, and where the next one begins; `None`
/// when something of it is outside of the archive.
#[allow(clippy::type_complexity)]
fn entry(bytes: &[u8], at: usize) -> Option<Result<(String, Range<usize>, usize), Fault>> {
    if !bytes.get(at..)?.starts_with(ENTRY) {
        return None;
    }
    let name_len = number(bytes, at + 28, 2)?;
    let extra_len = number(bytes, at + 30, 2)?;
    let comment_len = number(bytes, at + 32, 2)?;
    let name = bytes.get(at + ENTRY_LEN..at + ENTRY_LEN + name_len)?;
    let extra = bytes.get(at + ENTRY_LEN + name_len..)?.get(..extra_len)?;
    let name = String::from_utf8_lossy(name).into_owned();
    if number(bytes, at + 10, 2)? != 0 {
        return Some(Err(Fault::Unsupported(format!(
            "the compressed file {name}"
        ))));
    }
    // Length before compression, length, and place, as far as they are in the extra field.
    let mut wide = wide_numbers(extra);
    let mut resolve = |n: usize| match n {
        ELSEWHERE => wide.next(),
        n => Some(n),
    };
    let _whole = resolve(number(bytes, at + 24, 4)?)?;
    let len = resolve(number(bytes, at + 20, 4)?)?;
    let header = resolve(number(bytes, at + 42, 4)?)?;
    if !bytes.get(header..)?.starts_with(LOCAL) {
        return None;
    }
    let gap = number(bytes, header + 26, 2)? + number(bytes, header + 28, 2)?;
    let start = header + LOCAL_LEN + gap;
    let end = start.checked_add(len).filter(|&end| end <= bytes.len())?;
    let next = at + ENTRY_LEN + name_len + extra_len + comment_len;
    Some(Ok((name, start..end, next)))
}

/// The 64-bit numbers of the extra field that is there for them.
fn wide_numbers(extra: &[u8]) -> impl Iterator<Item = usize> {
    const WIDE: usize = 1;
    let mut at = 0;
    let mut field: &[u8] = &[];
    while let (Some(kind), Some(len)) = (number(extra, at, 2), number(extra, at + 2, 2)) {
        if kind == WIDE {
            field = extra.get(at + 4..at + 4 + len).unwrap_or(&[]);
            break;
        }
        at += 4 + len;
    }
    field.chunks_exact(8).filter_map(|n| number(n, 0, 8))
}
