//! As much of the ELF format as it takes to say where a program runs.
//!
//! Nothing in a file is trusted: every offset is held against the file's length, and a file that makes no sense
//! is only one of which nothing is known.

use crate::jobs::Needs;

/// Why a file cannot run on Linux.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotElf {
    /// It is something else.
    Other,
    /// It is one, but for 32 bits or with the highest byte first.
    Unsupported,
    /// It is damaged.
    Damaged,
}

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

/// Entries of the dynamic section.
const STRTAB: u64 = 5;
const VERNEED: u64 = 0x6fff_fffe;
const VERNEEDNUM: u64 = 0x6fff_ffff;

struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

/// Looks at a file.
pub(crate) fn read(file: &[u8]) -> Result<Needs, NotElf> {
    if file.get(..4) != Some(b"\x7fELF") {
        return Err(NotElf::Other);
    }
    if file.get(4..6) != Some(&[2, 1]) {
        return Err(NotElf::Unsupported);
    }
    let whole = || -> Option<Needs> {
        let segments = segments(file)?;
        let within = |s: &Segment| {
            let end = s.offset.checked_add(s.size);
            end.is_some_and(|end| end <= file.len())
        };
        if !segments.iter().all(within) || !segments.iter().any(|s| s.kind == LOAD) {
            return None;
        }
        Some(Needs {
            machine: u16_at(file, 0x12)?,
            glibc: newest_glibc(file, &segments),
        })
    };
    whole().ok_or(NotElf::Damaged)
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let table = usize::try_from(u64_at(file, 0x20)?).ok()?;
    let length = usize::from(u16_at(file, 0x36)?);
    let count = usize::from(u16_at(file, 0x38)?);
    let segment = |index: usize| {
        let at = table.checked_add(index.checked_mul(length)?)?;
        Some(Segment {
            kind: u32_at(file, at)?,
            offset: usize::try_from(u64_at(file, at.checked_add(8)?)?).ok()?,
            address: u64_at(file, at.checked_add(16)?)?,
            size: usize::try_from(u64_at(file, at.checked_add(32)?)?).ok()?,
        })
    };
    (0..count).map(segment).collect()
}

/// The newest `GLIBC_X.Y` among the versions that the program asks for.
fn newest_glibc(file: &[u8], segments: &[Segment]) -> Option<(u32, u32)> {
    let dynamic = segments.iter().find(|segment| segment.kind == DYNAMIC)?;
    let entry = |wanted: u64| {
        (0..dynamic.size / 16).find_map(|index| {
            let at = dynamic.offset.checked_add(index * 16)?;
            (u64_at(file, at)? == wanted).then(|| u64_at(file, at + 8))?
        })
    };
    let place = |address: u64| {
        let holds = |segment: &&Segment| {
            let within = address.checked_sub(segment.address);
            segment.kind == LOAD && within.is_some_and(|within| within < segment.size as u64)
        };
        let segment = segments.iter().find(holds)?;
        usize::try_from(address - segment.address)
            .ok()?
            .checked_add(segment.offset)
    };
    let names = place(entry(STRTAB)?)?;
    let mut library = place(entry(VERNEED)?)?;
    let mut newest = None;
    for _ in 0..entry(VERNEEDNUM)? {
        let versions = u16_at(file, library.checked_add(2)?)?;
        let mut version = library.checked_add(u32_at(file, library.checked_add(8)?)? as usize)?;
        for _ in 0..versions {
            let name = u32_at(file, version.checked_add(8)?)? as usize;
            newest = newest.max(glibc(text_at(file, names.checked_add(name)?)?));
            version = version.checked_add(u32_at(file, version.checked_add(12)?)? as usize)?;
        }
        let next = u32_at(file, library.checked_add(12)?)? as usize;
        if next == 0 {
            break;
        }
        library = library.checked_add(next)?;
    }
    newest
}

/// The version in `GLIBC_2.39`.
pub(crate) fn glibc(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix("GLIBC_")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    let bytes = file.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    let bytes = file.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn text_at(file: &[u8], at: usize) -> Option<&str> {
    let rest = file.get(at..)?;
    let end = rest.iter().take(64).position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test itself is a program.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_program_is_known_by_its_processor_and_its_glibc() {
        let elf = read(&own()).unwrap();
        let machine = if cfg!(target_arch = "x86_64") {
            62
        } else {
            183
        };
        assert_eq!(elf.machine, machine);
        let (major, minor) = elf.glibc.expect("a test is linked to glibc");
        assert!(major == 2 && minor >= 17, "{major}.{minor}");
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc("GLIBC_PRIVATE"), None);
    }

    #[test]
    fn no_cut_or_change_of_a_file_is_more_than_an_error() {
        assert_eq!(read(b"#!/bin/sh"), Err(NotElf::Other));
        assert_eq!(read(b"\x7fELF\x01\x01"), Err(NotElf::Unsupported));
        let file = own();
        let head: Vec<u8> = file[..4096.min(file.len())].to_vec();
        for length in (0..head.len()).step_by(7) {
            assert!(read(&head[..length]).is_err(), "{length}");
        }
        let mut changed = file;
        for at in 0..1024 {
            let old = changed[at];
            for new in [0, 0x7f, 0xff] {
                changed[at] = new;
                let _ = read(&changed);
            }
            changed[at] = old;
        }
    }
}
