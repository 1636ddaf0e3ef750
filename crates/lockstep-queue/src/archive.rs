//! ZIP archives, read with suspicion.
//!
//! What an archive says of itself is held against its bytes before anything is written: every part lies inside it, no two
//! contents overlap, both of an entry's headers say the same name, and the names are those of plain files and folders
//! that stay where they are put. What is not understood is refused, not guessed.

use flate2::bufread::DeflateDecoder;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};

/// The longest path in an archive, in bytes.
const LONGEST_NAME: usize = 1024;
/// The longest part of a path.
const LONGEST_PART: usize = 255;
/// Folders within folders.
const DEEPEST: usize = 64;

const END: &[u8; 4] = b"PK\x05\x06";
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const END_LENGTH: usize = 22;
const CENTRAL_LENGTH: usize = 46;
const LOCAL_LENGTH: usize = 30;
/// A comment may follow the end of an archive.
const LONGEST_COMMENT: usize = u16::MAX as usize;

const ENCRYPTED: u16 = 1;
const UTF8: u16 = 1 << 11;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const UNIX: u16 = 3;
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// What an archive holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// A path without `..`, `.` and empty parts, relative, with `/` between its parts.
    pub(crate) name: String,
    pub(crate) folder: bool,
    pub(crate) executable: bool,
    /// How long it says that its content is.
    pub(crate) size: u64,
    pub(crate) crc: u32,
    method: u16,
    from: usize,
    to: usize,
}

/// An archive whose names and places are sound.
#[derive(Debug)]
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    pub(crate) entries: Vec<Entry>,
}

impl<'a> Archive<'a> {
    /// Reads what is in an archive. Says what is wrong with it.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Archive<'a>, String> {
        let end = find_end(bytes).ok_or("it is no ZIP archive")?;
        let field = |at: usize| u16_at(bytes, end + at).unwrap_or_default();
        if field(4) != 0 || field(6) != 0 || field(8) != field(10) {
            return Err("it is one part of several".to_owned());
        }
        let count = usize::from(field(10));
        let length = u32_at(bytes, end + 12).unwrap_or_default() as usize;
        let begin = u32_at(bytes, end + 16).unwrap_or_default() as usize;
        if begin.checked_add(length) != Some(end) {
            return Err("its list of contents is not where it says".to_owned());
        }
        let mut entries = Vec::new();
        let mut at = begin;
        for _ in 0..count {
            let (entry, next) = central(bytes, at, end, begin)?;
            entries.push(entry);
            at = next;
        }
        if at != end {
            return Err("its list of contents is longer than it says".to_owned());
        }
        no_overlap(&entries)?;
        no_name_twice(&entries)?;
        Ok(Archive { bytes, entries })
    }

    /// The content of an entry, as long as it turns out to be.
    pub(crate) fn open(&self, entry: &Entry) -> Box<dyn Read + 'a> {
        let packed = &self.bytes[entry.from..entry.to];
        match entry.method {
            DEFLATED => Box::new(DeflateDecoder::new(BufReader::new(packed))),
            _ => Box::new(packed),
        }
    }
}

fn find_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_LENGTH)?;
    let first = last.saturating_sub(LONGEST_COMMENT);
    let ends_there = |at: &usize| {
        let comment = u16_at(bytes, at + 20).map(usize::from);
        bytes[*at..].starts_with(END) && comment == Some(last - at)
    };
    (first..=last).rev().find(ends_there)
}

/// Reads an entry of the list at `at`. Contents must lie before the list, which begins at `list`.
fn central(bytes: &[u8], at: usize, end: usize, list: usize) -> Result<(Entry, usize), String> {
    let cut_off = || "its list of contents is cut off".to_owned();
    let u16_of = |offset: usize| u16_at(bytes, at + offset).ok_or_else(cut_off);
    let u32_of = |offset: usize| u32_at(bytes, at + offset).ok_or_else(cut_off);
    let header = bytes.get(at..at + CENTRAL_LENGTH).ok_or_else(cut_off)?;
    if !header.starts_with(CENTRAL) {
        return Err("its list of contents is damaged".to_owned());
    }
    let (made_by, flags, method) = (u16_of(4)?, u16_of(8)?, u16_of(10)?);
    let (crc, packed, size) = (u32_of(16)?, u32_of(20)?, u32_of(24)?);
    let lengths = [u16_of(28)?, u16_of(30)?, u16_of(32)?].map(usize::from);
    let (attributes, local) = (u32_of(38)?, u32_of(42)? as usize);
    let next = at + CENTRAL_LENGTH + lengths.iter().sum::<usize>();
    if next > end {
        return Err(cut_off());
    }
    let raw = &bytes[at + CENTRAL_LENGTH..at + CENTRAL_LENGTH + lengths[0]];
    let name = text(raw, flags)?;
    let wrong = |what: &str| Err(format!("{name:?} {what}"));
    if flags & ENCRYPTED != 0 {
        return wrong("is encrypted");
    }
    if method != STORED && method != DEFLATED {
        return wrong("is packed in a way that is not known");
    }
    if [packed, size, local as u32].contains(&u32::MAX) {
        return wrong("is too large");
    }
    let folder = name.ends_with('/');
    let mode = match made_by >> 8 == UNIX {
        true => attributes >> 16,
        false => 0,
    };
    match (mode & KIND, folder) {
        (0, _) | (REGULAR, false) | (FOLDER, true) => (),
        _ => {
            return wrong(
                "is a link, a device or something else that is neither a file nor a folder",
            );
        }
    }
    if folder && size != 0 {
        return wrong("is a folder with a content");
    }
    let (from, to) = content(bytes, local, packed as usize, list, raw)
        .ok_or_else(|| format!("{name:?} is not where the archive says"))?;
    if method == STORED && packed != size {
        return wrong("is not as long as the archive says");
    }
    let entry = Entry {
        name: plain(&name)?,
        folder,
        executable: mode & 0o111 != 0,
        size: size.into(),
        crc,
        method,
        from,
        to,
    };
    Ok((entry, next))
}

/// Where a content lies; none if not inside the archive, or under another name.
fn content(
    bytes: &[u8],
    local: usize,
    packed: usize,
    list: usize,
    name: &[u8],
) -> Option<(usize, usize)> {
    let header = bytes.get(local..local.checked_add(LOCAL_LENGTH)?)?;
    header.starts_with(LOCAL).then_some(())?;
    let name_length = usize::from(u16_at(bytes, local + 26)?);
    let extra = usize::from(u16_at(bytes, local + 28)?);
    let at = local + LOCAL_LENGTH;
    (bytes.get(at..at + name_length)? == name).then_some(())?;
    let from = at + name_length + extra;
    let to = from.checked_add(packed)?;
    (to <= list).then_some((from, to))
}

/// A name as text. Names that are not said to be UTF-8 must be ASCII: what they mean beyond that, nobody knows.
fn text(raw: &[u8], flags: u16) -> Result<String, String> {
    let text = std::str::from_utf8(raw).ok();
    let text = text.filter(|text| flags & UTF8 != 0 || text.is_ascii());
    let text = text.ok_or_else(|| format!("{:?} is no name", String::from_utf8_lossy(raw)))?;
    Ok(text.to_owned())
}

/// A path that stays where it is put.
fn plain(name: &str) -> Result<String, String> {
    let trimmed = name.strip_suffix('/').unwrap_or(name);
    let leaves = |part: &str| matches!(part, "" | "." | "..") || part.len() > LONGEST_PART;
    let odd = |c: char| c.is_control() || c == '\\';
    let parts = || trimmed.split('/');
    if name.len() > LONGEST_NAME || parts().count() > DEEPEST {
        return Err(format!("{name:?} is too long a name"));
    }
    if parts().any(leaves) || trimmed.contains(odd) {
        return Err(format!("{name:?} is no name within the archive"));
    }
    Ok(trimmed.to_owned())
}

/// Contents that share bytes unpack to more than any bound on the archive's size could hold off.
fn no_overlap(entries: &[Entry]) -> Result<(), String> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| (entry.from, entry.to));
    // Empty contents may share a place; headers may not, but those were found under their own names.
    let overlap = sorted.windows(2).find(|pair| pair[0].to > pair[1].from);
    match overlap {
        Some(pair) => Err(format!("{:?} and {:?} overlap", pair[0].name, pair[1].name)),
        None => Ok(()),
    }
}

fn no_name_twice(entries: &[Entry]) -> Result<(), String> {
    let mut kinds: BTreeMap<&str, bool> = BTreeMap::new();
    for entry in entries {
        if kinds.insert(&entry.name, entry.folder).is_some() {
            return Err(format!("{:?} is there twice", entry.name));
        }
    }
    for entry in entries {
        let mut above = entry.name.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if kinds.get(parent) == Some(&false) {
                return Err(format!("{parent:?} is both a file and a folder"));
            }
            above = parent;
        }
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
