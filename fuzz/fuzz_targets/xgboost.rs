//! Whatever the bytes: the check of a model of trees does not panic. `crates/lockstep-trees/src/model_file/sample.ubj` is
//! a good model to begin with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_trees::check_model;

fuzz_target!(|bytes: &[u8]| {
    // It may be refused or not.
    let _ = check_model(bytes);
});
