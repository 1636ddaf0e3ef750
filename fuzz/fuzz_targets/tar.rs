//! Whatever the archive: nothing panics, and nothing is written but the files that are known, no larger than they may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_base::known::KnownFile;
use lockstep_data::known::tar;

const LARGEST: u64 = 4096;
const NAMES: [&str; 2] = ["a.bin", "b.bin"];

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("to");
    std::fs::create_dir(&to).expect("a folder");
    let files = NAMES.map(|name| KnownFile {
        name,
        decoded_bytes: LARGEST,
        decoded_sha256: "",
    });
    // It may be refused or not.
    let _ = tar(bytes, "set", &files, &to);
    let others = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    assert_eq!(others.count(), 1);
    for entry in std::fs::read_dir(&to).expect("a folder").flatten() {
        assert!(NAMES.iter().any(|name| entry.file_name() == *name));
        let found = entry.path().symlink_metadata().expect("a file");
        assert!(found.is_file() && found.len() <= LARGEST);
    }
});
