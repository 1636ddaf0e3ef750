//! Whatever the bytes: nothing panics, and nothing is written outside the folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_base::zip::{Limits, unpack};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    entries: 100,
    ratio: 100,
    free: 1 << 16,
};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    // It may be refused or not.
    let _ = unpack(bytes, &folder.path().join("to"), &LIMITS);
    let others = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    for entry in others {
        assert_eq!(entry.file_name(), "to");
    }
});
