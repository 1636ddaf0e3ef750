//! What tests need beside the code that they test: Python packages and servers, kept in the cache folder, servers on
//! whose way things go wrong, an allocator that counts, and processes of their own.
//!
//! Tests hold this program against others: pyarrow, scikit-learn, an S3 server. Those are installed once, into
//! a folder that git ignores, under a lock, since many tests run at a time. A machine without Python fails such a
//! test. What only the system can bring, such as a browser, is brought by `make test-tools`; without it, a test says
//! that it was skipped.

mod allocations;
mod browser;
mod child;
pub mod faults;
mod head;
mod kept;
mod kube;
mod mlflow;
mod onnx;
mod peer;
mod python;
mod ray;
mod server;

pub use allocations::{CountingAllocator, allocations, allocations_of_all_threads, held, peak};
pub use browser::browse;
pub use child::{child, write_child, write_program};
pub use kept::cache;
pub use kube::{
    KubeCluster, KubeParts, assert_schemas_are_the_operators, kube_tools, wrong_manifests,
};
pub use mlflow::{python_with_mlflow, python_with_tensorboard};
pub use onnx::{onnx_answers, onnx_answers_of_table, onnx_distance};
pub use peer::Peer;
pub use python::{python, python_with_scikit_learn, python_with_xgboost, wheel, xgboost_library};
pub use ray::{RayCluster, python_with_ray, python_with_ray_of, ray_version};
pub use server::Server;

use std::process::Command;

/// Runs a command that must succeed.
///
/// # Panics
/// When it does not, with all that it wrote.
pub fn succeed(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}
