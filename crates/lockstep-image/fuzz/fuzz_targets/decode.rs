//! Any bytes through the front door. Panics of decoders are caught there, so the fuzzer is told of them here.
//!
//!     cargo install cargo-fuzz
//!     cd crates/lockstep-image
//!     cargo +nightly fuzz run decode fuzz/corpus tests/pictures -- -rss_limit_mb=512 -max_len=20000

#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_image::{Limits, decode};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_memory: 16 << 20, ..Limits::default() };
    if let Err(error) = decode(bytes, &limits) {
        assert!(!error.to_string().contains("gave up"), "a decoder panicked");
    }
});
