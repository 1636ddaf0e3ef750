//! ViT-B/32 in its real size agrees with `transformers` on random weights.
//!
//! One of the long tests: PyTorch from PyPI takes gigabytes. It is brought into the cache folder, unless
//! `LOCKSTEP_TRANSFORMERS_PYTHON` names a Python that has torch, transformers and safetensors.

use crate::agreement::clip_agreement;
use lockstep_testkit::python;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "brings gigabytes of PyTorch: make test-long"]
fn the_real_size_agrees_with_transformers() {
    let python = std::env::var_os("LOCKSTEP_TRANSFORMERS_PYTHON").map_or_else(
        || python("transformers", &["torch", "transformers", "safetensors"]),
        Into::into,
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clip-real");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clip_reference.py");
    let status = Command::new(python)
        .args([script.as_os_str(), "real".as_ref(), folder.as_os_str()])
        .status()
        .expect("Python can be run");
    assert!(status.success(), "the reference cannot be made");
    let found = clip_agreement(&folder.join("vit-b-32"));
    println!("{found:?}");
    assert!(found.cosine > 0.999_99, "{found:?}");
    assert!(found.error < 1e-4, "{found:?}");
}
