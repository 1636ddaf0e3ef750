//! The list of contents of a ZIP archive, read with suspicion.
//!
//! What an archive says of itself is held against its bytes: every part lies inside it, no two contents overlap, and
//! both of an entry's headers say the same name. What is not understood is refused, not guessed. What names mean, and
//! how large contents may turn out to be, is up to whoever uses them.

use std::ops::Range;

/// What a content, its entry in the list, and the list's end begin with; the last two of archives over 4 GiB.
const LOCAL: &[u8] = b"PK\x03\x04";
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
/// Lengths of the parts of those that are always there.
const LOCAL_LENGTH: usize = 30;
const ENTRY_LENGTH: usize = 46;
const END_LENGTH: usize = 22;
const LOCATOR_LENGTH: usize = 20;
/// A comment may follow the end of an archive.
const LONGEST_COMMENT: usize = u16::MAX as usize;
/// The extra field that holds the numbers that do not fit 32 bits, and what stands in their places.
const WIDE: u64 = 1;
const ELSEWHERE: u64 = u32::MAX as u64;

const NO_ARCHIVE: &str = "it is no ZIP archive, or cut off";
const CUT_OFF: &str = "its list of contents is cut off";

const ENCRYPTED: u64 = 1;
const UTF8: u64 = 1 << 11;
const STORED: u64 = 0;
const DEFLATED: u64 = 8;
const UNIX: u64 = 3;

/// What an archive holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Whether the name is said to be UTF-8.
    pub utf8: bool,
    /// Its kind and permissions, if it was packed under Unix, and else 0.
    pub mode: u32,
    /// How long it says that its content is.
    pub size: u64,
    /// What its content is said to sum up to.
    pub crc: u32,
    /// Whether the content is deflated; else it is as it was.
    pub deflated: bool,
    /// Where the content lies in the archive.
    pub content: Range<usize>,
}

/// Whether a file begins as an archive with a content does.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(LOCAL)
}

/// What is in an archive.
///
/// # Errors
/// In words, when the archive is not sound.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, String> {
    let (list, count) = list(bytes)?;
    let mut entries = Vec::new();
    let mut at = list.start;
    for _ in 0..count {
        let (entry, next) = entry(&bytes[..list.end], at, list.start)?;
        entries.push(entry);
        at = next;
    }
    if at != list.end {
        return Err("its list of contents is longer than it says".to_owned());
    }
    no_overlap(&entries)?;
    Ok(entries)
}

/// Where the list of contents lies, and how many entries it has.
fn list(bytes: &[u8]) -> Result<(Range<usize>, u64), String> {
    let last = bytes.len().checked_sub(END_LENGTH);
    let last = last.ok_or(NO_ARCHIVE)?;
    let is_end = |at: &usize| {
        let comment = number(bytes, at + 20, 2);
        bytes[*at..].starts_with(END) && comment == Ok((last - at) as u64)
    };
    let end = (last.saturating_sub(LONGEST_COMMENT)..=last)
        .rev()
        .find(is_end)
        .ok_or(NO_ARCHIVE)?;
    let locator = end.checked_sub(LOCATOR_LENGTH);
    let locator = locator.filter(|at| bytes[*at..].starts_with(LOCATOR_64));
    // Of the end: where it lies, where in it the numbers begin, and how long they are: the number of this part and of
    // the part with the list, the entries in this part and in all, the list's length and its place.
    let (end, first, disk, counts, places) = match locator {
        None => (end, 4, 2, 2, 4),
        Some(locator) => {
            let end = number(bytes, locator + 8, 8)? as usize;
            let length = number(bytes, end.saturating_add(4), 8)? as usize;
            let is_there = bytes[end..].starts_with(END_64)
                && end.checked_add(12).and_then(|at| at.checked_add(length)) == Some(locator);
            if !is_there {
                return Err("its list of contents is not where it says".to_owned());
            }
            (end, 16, 4, 8, 8)
        }
    };
    let mut at = end + first;
    let mut next = |length: usize| {
        at += length;
        number(bytes, at - length, length)
    };
    let (part, of_list, here, count) = (next(disk)?, next(disk)?, next(counts)?, next(counts)?);
    let (length, begin) = (next(places)? as usize, next(places)? as usize);
    if part != 0 || of_list != 0 || here != count {
        return Err("it is one part of several".to_owned());
    }
    match begin.checked_add(length) == Some(end) {
        true => Ok((begin..end, count)),
        false => Err("its list of contents is not where it says".to_owned()),
    }
}

/// Reads the entry at `at` of the list that begins at `list` and ends with `bytes`, and where the next one begins.
fn entry(bytes: &[u8], at: usize, list: usize) -> Result<(Entry<'_>, usize), String> {
    let field = |offset: usize, length: usize| number(bytes, at + offset, length);
    if !bytes[at..].starts_with(ENTRY) {
        return Err("its list of contents is damaged".to_owned());
    }
    let (made_by, flags, method) = (field(4, 2)?, field(8, 2)?, field(10, 2)?);
    let lengths = [field(28, 2)?, field(30, 2)?, field(32, 2)?].map(|length| length as usize);
    let (attributes, name_at) = (field(38, 4)?, at + ENTRY_LENGTH);
    let extra_at = name_at + lengths[0];
    let next = extra_at + lengths[1] + lengths[2];
    if next > bytes.len() {
        return Err(CUT_OFF.to_owned());
    }
    let name = &bytes[name_at..extra_at];
    let wrong = |what: &str| Err(format!("{:?} {what}", String::from_utf8_lossy(name)));
    if flags & ENCRYPTED != 0 {
        return wrong("is encrypted");
    }
    if method != STORED && method != DEFLATED {
        return wrong("is packed in a way that is not known");
    }
    let mut wide = wide_numbers(&bytes[extra_at..extra_at + lengths[1]]);
    let mut resolve = |number: u64| match number {
        ELSEWHERE => wide.next(),
        number => Some(number),
    };
    // In the order in which those that are elsewhere stand there.
    let [size, packed, local] = [field(24, 4)?, field(20, 4)?, field(42, 4)?].map(&mut resolve);
    let (Some(size), Some(packed), Some(local)) = (size, packed, local) else {
        return wrong("is too large");
    };
    let Some(content) = content(&bytes[..list], local as usize, packed as usize, name) else {
        return wrong("is not where the archive says");
    };
    if method == STORED && packed != size {
        return wrong("is not as long as the archive says");
    }
    let entry = Entry {
        name,
        utf8: flags & UTF8 != 0,
        mode: match made_by >> 8 == UNIX {
            true => (attributes >> 16) as u32,
            false => 0,
        },
        size,
        crc: field(16, 4)? as u32,
        deflated: method == DEFLATED,
        content,
    };
    Ok((entry, next))
}

/// Where a content lies; none if not inside of `bytes`, or under another name.
fn content(bytes: &[u8], local: usize, packed: usize, name: &[u8]) -> Option<Range<usize>> {
    let header = bytes.get(local..local.checked_add(LOCAL_LENGTH)?)?;
    header.starts_with(LOCAL).then_some(())?;
    let [name_length, extra] = [26, 28].map(|at| number(header, at, 2).unwrap_or(0) as usize);
    let at = local + LOCAL_LENGTH;
    (bytes.get(at..at + name_length)? == name).then_some(())?;
    let from = at + name_length + extra;
    let to = from.checked_add(packed)?;
    (to <= bytes.len()).then_some(from..to)
}

/// The numbers of the extra field that is there for them.
fn wide_numbers(extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut at = 0;
    let mut field: &[u8] = &[];
    while let (Ok(kind), Ok(length)) = (number(extra, at, 2), number(extra, at + 2, 2)) {
        let end = at + 4 + length as usize;
        if kind == WIDE {
            field = extra.get(at + 4..end).unwrap_or(&[]);
            break;
        }
        at = end;
    }
    field.chunks_exact(8).filter_map(|n| number(n, 0, 8).ok())
}

/// Contents that share bytes unpack to more than any bound on the archive's size could hold off.
fn no_overlap(entries: &[Entry<'_>]) -> Result<(), String> {
    let mut sorted: Vec<&Entry<'_>> = entries.iter().collect();
    sorted.sort_by_key(|entry| (entry.content.start, entry.content.end));
    // Empty contents may share a place; headers may not, but those were found under their own names.
    let overlap = sorted
        .windows(2)
        .find(|pair| pair[0].content.end > pair[1].content.start);
    match overlap {
        Some(pair) => {
            let [one, other] = [pair[0], pair[1]].map(|entry| String::from_utf8_lossy(entry.name));
            Err(format!("{one:?} and {other:?} overlap"))
        }
        None => Ok(()),
    }
}

/// A number of some bytes, the lowest first.
fn number(bytes: &[u8], at: usize, length: usize) -> Result<u64, &'static str> {
    let end = at.checked_add(length).ok_or(CUT_OFF)?;
    let bytes = bytes.get(at..end).ok_or(CUT_OFF)?;
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Ok(bytes.iter().rev().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of one stored content, whose numbers all stand where those over 4 GiB do.
    fn wide(name: &[u8], content: &[u8]) -> Vec<u8> {
        let length = (name.len() as u16).to_le_bytes();
        let size = (content.len() as u64).to_le_bytes();
        let extra = [&[1, 0, 24, 0][..], &size, &size, &[0; 8]].concat();
        let local = [LOCAL, &[0; 22], &length, &[0; 2], name, content].concat();
        let before = [0, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0];
        let entry = [
            ENTRY,
            &before,
            &[0xff; 8],
            &length,
            &[extra.len() as u8, 0],
            &[0; 10],
            &[0xff; 4],
            name,
            &extra,
        ]
        .concat();
        let number = |number: usize| (number as u64).to_le_bytes();
        let end = [
            END_64,
            &number(44),
            &[0; 12],
            &number(1),
            &number(1),
            &number(entry.len()),
            &number(local.len()),
        ]
        .concat();
        let at = number(local.len() + entry.len());
        let locator = [LOCATOR_64, &[0; 4], &at, &[1, 0, 0, 0]].concat();
        let last = [END, &[0; 4], &[0xff; 12], &[0; 2]].concat();
        [local, entry, end, locator, last].concat()
    }

    #[test]
    fn numbers_over_32_bits_are_found_where_they_stand() {
        let bytes = wide(b"name", b"words");
        let entries = entries(&bytes).unwrap();
        assert_eq!((entries[0].name, entries[0].crc), (&b"name"[..], 7));
        assert_eq!(&bytes[entries[0].content.clone()], b"words");
        assert_eq!((entries.len(), entries[0].size), (1, 5));
    }

    #[test]
    fn whatever_is_changed_or_cut_off_is_refused_or_lies_inside() {
        let bytes = wide(b"name", b"words");
        for at in 0..bytes.len() {
            assert!(entries(&bytes[..at]).is_err(), "cut at {at}");
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                for entry in entries(&changed).unwrap_or_default() {
                    assert!(entry.content.end <= changed.len());
                }
            }
        }
    }
}
