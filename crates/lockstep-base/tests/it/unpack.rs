//! Archives that want out of their folder, or to grow without bound.

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use lockstep_base::zip::{Limits, unpack};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

const FILE: u32 = 0o100_644;
const FOLDER: u32 = 0o040_755;

/// An entry, with what is said of it.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    /// Its name in the header before its content, where that is another.
    local_name: Option<Vec<u8>>,
    content: Vec<u8>,
    mode: u32,
    deflated: bool,
    /// The size that is said instead of the right one.
    said: Option<u32>,
    flags: u16,
}

fn file(name: &str, content: &[u8]) -> Entry {
    Entry {
        name: name.into(),
        local_name: None,
        content: content.to_vec(),
        mode: FILE,
        deflated: false,
        said: None,
        flags: 1 << 11,
    }
}

/// An archive of these entries.
fn zip(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = Vec::new();
    for entry in entries {
        let mut crc = Crc::new();
        crc.update(&entry.content);
        let packed = match entry.deflated {
            false => entry.content.clone(),
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(&entry.content).unwrap();
                encoder.finish().unwrap()
            }
        };
        let at = bytes.len() as u32;
        let size = entry.said.unwrap_or(entry.content.len() as u32);
        let mut said = Vec::new();
        said.extend(20u16.to_le_bytes());
        said.extend(entry.flags.to_le_bytes());
        said.extend(if entry.deflated { 8u16 } else { 0 }.to_le_bytes());
        said.extend([0; 4]);
        said.extend(crc.sum().to_le_bytes());
        said.extend((packed.len() as u32).to_le_bytes());
        said.extend(size.to_le_bytes());
        let local_name = entry.local_name.as_ref().unwrap_or(&entry.name);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&said);
        bytes.extend((local_name.len() as u16).to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(local_name);
        bytes.extend(packed);
        list.extend(b"PK\x01\x02\x14\x03");
        list.extend(&said);
        list.extend((entry.name.len() as u16).to_le_bytes());
        list.extend([0; 8]);
        list.extend((entry.mode << 16).to_le_bytes());
        list.extend(at.to_le_bytes());
        list.extend(&entry.name);
    }
    finish(bytes, &list, entries.len() as u16)
}

/// Puts the list of contents behind the contents.
fn finish(mut bytes: Vec<u8>, list: &[u8], count: u16) -> Vec<u8> {
    let at = bytes.len() as u32;
    bytes.extend(list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend((list.len() as u32).to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn unpacked(archive: &[u8], limits: &Limits) -> (TempDir, Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    let result = unpack(archive, &folder.path().join("to"), limits);
    let others = fs::read_dir(folder.path()).unwrap().flatten();
    let others: Vec<_> = others.map(|entry| entry.file_name()).collect();
    assert!(others.iter().all(|name| name == "to"), "{others:?}");
    (folder, result.map_err(|error| error.to_string()))
}

fn refused(archive: &[u8], word: &str) {
    let (_folder, result) = unpacked(archive, &Limits::default());
    let error = result.expect_err(word);
    assert!(error.contains(word), "{word}: {error}");
}

#[test]
fn plain_files_and_folders_are_unpacked_as_they_were() {
    let mut program = file("bin/run", b"#!/bin/sh\n");
    program.mode = 0o100_755;
    let mut packed = file("deep/er/zeros", &[0; 100_000]);
    packed.deflated = true;
    let mut folder = file("empty/", b"");
    folder.mode = FOLDER;
    let archive = zip(&[file("ü", b"text"), program, packed, folder]);
    let (folder, result) = unpacked(&archive, &Limits::default());
    result.unwrap();
    let at = |name: &str| folder.path().join("to").join(name);
    assert_eq!(fs::read(at("ü")).unwrap(), b"text");
    assert_eq!(fs::read(at("deep/er/zeros")).unwrap(), [0; 100_000]);
    assert!(at("empty").is_dir());
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("bin/run"), mode("ü")), (0o700, 0o600));
}

#[test]
fn a_folder_that_is_there_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (to, elsewhere) = (folder.path().join("to"), folder.path().join("elsewhere"));
    fs::create_dir(&to).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    // Through a link that lies there, a plain name would lead out.
    std::os::unix::fs::symlink(&elsewhere, to.join("a")).unwrap();
    let archive = zip(&[file("a/b", b"x")]);
    assert!(unpack(&archive, &to, &Limits::default()).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn no_name_leads_out_of_the_folder() {
    for name in [
        "../a",
        "a/../../b",
        "..",
        ".",
        "./a",
        "/a",
        "/etc/passwd",
        "//a",
        "a//b",
        "a/./b",
        "a/..",
        "..\\a",
        "C:\\a",
        "a\0b",
        "a\nb",
        "",
    ] {
        let (_folder, result) = unpacked(&zip(&[file(name, b"x")]), &Limits::default());
        assert!(result.is_err(), "{name:?}");
    }
    let deep = "a/".repeat(100) + "b";
    refused(&zip(&[file(&deep, b"x")]), "too long");
    refused(&zip(&[file(&"a".repeat(300), b"x")]), "no name within");
    let mut unknown = file("a", b"x");
    unknown.name = b"\xff\xfe".to_vec();
    refused(&zip(&[unknown]), "no name");
}

#[test]
fn what_is_neither_a_file_nor_a_folder_is_refused() {
    // A link, a block device, a character device, a FIFO, a socket.
    for kind in [0o120_000, 0o060_000, 0o020_000, 0o010_000, 0o140_000] {
        let mut entry = file("a", b"/etc/passwd");
        entry.mode = kind | 0o777;
        refused(&zip(&[entry.clone()]), "neither a file nor a folder");
        // With a file behind it that would go through the link.
        refused(
            &zip(&[entry, file("a/b", b"x")]),
            "neither a file nor a folder",
        );
    }
    let mut folder = file("a/", b"content");
    folder.mode = FOLDER;
    refused(&zip(&[folder]), "a folder with a content");
}

#[test]
fn a_name_is_there_once_and_in_both_headers() {
    refused(&zip(&[file("a", b"1"), file("a", b"2")]), "twice");
    refused(
        &zip(&[file("a", b"1"), file("a/b", b"2")]),
        "both a file and a folder",
    );
    let mut two_faced = file("good", b"x");
    two_faced.local_name = Some(b"evil".to_vec());
    refused(&zip(&[two_faced]), "not where the archive says");
    let mut encrypted = file("a", b"x");
    encrypted.flags |= 1;
    refused(&zip(&[encrypted]), "encrypted");
}

#[test]
fn a_bomb_is_refused_before_it_grows() {
    let mut zeros = file("zeros", &vec![0; 4 << 20]);
    zeros.deflated = true;
    let limits = Limits {
        bytes: 1 << 20,
        ..Limits::default()
    };
    let (folder, result) = unpacked(&zip(&[zeros.clone()]), &limits);
    assert!(result.unwrap_err().contains("1048576 is the most"));
    assert!(!folder.path().join("to").exists());
    let limits = Limits {
        free: 1 << 20,
        ..Limits::default()
    };
    let (folder, result) = unpacked(&zip(&[zeros.clone()]), &limits);
    assert!(result.unwrap_err().contains("100 times its size"));
    assert!(!folder.path().join("to").exists());
    // One that says that it is small stops where it says.
    zeros.said = Some(1000);
    let (folder, result) = unpacked(&zip(&[zeros]), &Limits::default());
    assert!(result.unwrap_err().contains("longer than the archive says"));
    let written = fs::metadata(folder.path().join("to/zeros")).unwrap().len();
    assert!(written <= 1000, "{written}");
    let many: Vec<Entry> = (0..11).map(|n| file(&n.to_string(), b"")).collect();
    let limits = Limits {
        entries: 10,
        ..Limits::default()
    };
    assert!(
        unpacked(&zip(&many), &limits)
            .1
            .unwrap_err()
            .contains("10 is the most")
    );
}

#[test]
fn contents_that_share_their_bytes_are_refused() {
    let one = zip(&[file("a", &[7; 1000])]);
    let list = one
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
        .unwrap();
    let end = one.len() - 22;
    // The same content twice, once under a name of the same length that its header does not have.
    let twice = [&one[list..end], &one[list..end]].concat();
    refused(&finish(one[..list].to_vec(), &twice, 2), "overlap");
}

#[test]
fn what_is_damaged_is_refused() {
    let mut wrong = zip(&[file("a", b"content")]);
    let at = wrong
        .windows(7)
        .position(|seven| seven == b"content")
        .unwrap();
    wrong[at] ^= 1;
    refused(&wrong, "not what the archive says");
    let good = zip(&[file("a", b"content"), file("b/c", &[1; 100])]);
    for length in 0..good.len() {
        let (_folder, result) = unpacked(&good[..length], &Limits::default());
        assert!(result.is_err(), "{length}");
    }
    refused(b"", "no ZIP archive");
}

/// Small bounds: what is unpacked here is unpacked often.
const SMALL: Limits = Limits {
    bytes: 1 << 20,
    entries: 100,
    ratio: 100,
    free: 1 << 16,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = unpacked(&bytes, &SMALL);
    }

    #[test]
    fn an_archive_that_was_tampered_with_stays_in_its_folder(
        names in prop::collection::vec("[a./\\\\]{1,6}", 1..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        deflated in any::<bool>(),
    ) {
        let entry = |name: &String| Entry { deflated, ..file(name, name.as_bytes()) };
        let entries: Vec<Entry> = names.iter().map(entry).collect();
        let mut archive = zip(&entries);
        for (at, byte) in changes {
            let at = at.index(archive.len());
            archive[at] = byte;
        }
        let _ = unpacked(&archive, &SMALL);
    }
}
