//! ViT-B/32 in its real size agrees with `transformers` on random weights.
//!
//! Not run by default: PyTorch takes gigabytes. With a Python that has torch, transformers and
//! safetensors, `LOCKSTEP_TRANSFORMERS_PYTHON=…/bin/python cargo test -p lockstep-nn --release --test
//! clip_real -- --ignored --nocapture` writes model and reference to a folder of the build and compares.

mod agreement;

use agreement::clip_agreement;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs a Python with transformers, named by LOCKSTEP_TRANSFORMERS_PYTHON"]
fn the_real_size_agrees_with_transformers() {
    let python = std::env::var("LOCKSTEP_TRANSFORMERS_PYTHON")
        .expect("LOCKSTEP_TRANSFORMERS_PYTHON names a Python with transformers");
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
