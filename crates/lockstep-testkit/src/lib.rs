//! What tests need of the outside: Python packages and servers, kept in the cache folder.
//!
//! Tests hold this program against others: pyarrow, scikit-learn, an S3 server. Those are installed once, into
//! a folder that git ignores, under a lock, since many tests run at a time. A machine without Python fails such a
//! test; it is not passed over in silence.

mod allocations;
mod browser;
mod child;
pub mod faults;
mod head;
mod kube;
mod mlflow;
mod onnx;
mod ray;
mod server;

pub use allocations::{CountingAllocator, allocations, allocations_of_all_threads, held, peak};
pub use browser::browse;
pub use child::{child, write_child, write_program};
pub use kube::{
    KubeCluster, KubeParts, assert_schemas_are_the_operators, kube_tools, wrong_manifests,
};
pub use mlflow::{python_with_mlflow, python_with_tensorboard};
pub use onnx::{onnx_answers, onnx_distance};
pub use ray::{RayCluster, python_with_ray, python_with_ray_of, ray_version};
pub use server::Server;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python of an environment with these packages, each as `pip install` takes it.
///
/// # Panics
/// When there is no Python, or a package cannot be installed.
pub fn python(name: &str, packages: &[&str]) -> PathBuf {
    let folder = cache().join("python").join(name);
    once(&folder, &packages.join("\n"), |folder| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        succeed(
            Command::new(folder.join("bin/python"))
                .args(install)
                .args(packages),
        );
    });
    folder.join("bin/python")
}

/// The folder that the wheel of a package, such as `name==1.0`, unpacks to. Nothing of it is run.
///
/// # Panics
/// When there is no Python, or the package cannot be downloaded.
pub fn wheel(package: &str) -> PathBuf {
    let folder = cache().join("wheels").join(package);
    once(&folder, package, |folder| {
        let download = [
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
        ];
        let what = ["--no-deps", "--only-binary", ":all:", package, "--dest"];
        succeed(
            Command::new("python3")
                .args(download)
                .args(what)
                .arg(folder),
        );
        for file in fs::read_dir(folder).expect("a folder").flatten() {
            succeed(
                Command::new("python3")
                    .args(["-m", "zipfile", "-e"])
                    .arg(file.path())
                    .arg(folder),
            );
        }
    });
    folder
}

/// Where things are kept between runs of the tests.
pub fn cache() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let folder = std::env::var_os("LOCKSTEP_CACHE").map_or_else(beside, PathBuf::from);
    fs::create_dir_all(&folder).expect("a cache folder");
    folder.canonicalize().expect("a cache folder")
}

/// Makes a folder, unless it was made before, whole and from the same words.
pub(crate) fn once(folder: &Path, words: &str, make: impl FnOnce(&Path)) {
    fs::create_dir_all(folder.parent().expect("a folder in the cache")).expect("a cache folder");
    let beside = |extension: &str| {
        let mut name = folder.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    };
    let lock = File::create(beside(".lock")).expect("a lock");
    lock.lock().expect("a lock");
    let done = beside(".done");
    if fs::read_to_string(&done).is_ok_and(|found| found == words) {
        return;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).expect("what is left of an earlier try goes away");
    }
    fs::create_dir_all(folder).expect("a cache folder");
    make(folder);
    fs::write(done, words).expect("a note that it is done");
}

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

/// The Python of an environment with XGBoost, of the version that `LOCKSTEP_TEST_XGBOOST` names or 3.2.0.
pub fn python_with_xgboost() -> PathBuf {
    let version = std::env::var("LOCKSTEP_TEST_XGBOOST").unwrap_or_else(|_| "3.2.0".to_owned());
    let package = format!("xgboost-cpu=={version}");
    python(&format!("xgboost-{version}"), &[&package])
}

/// XGBoost's library, of that environment.
pub fn xgboost_library() -> PathBuf {
    let find = "import xgboost.libpath as l; print(l.find_lib_path()[0])";
    let found = succeed(Command::new(python_with_xgboost()).args(["-c", find]));
    PathBuf::from(found.trim())
}
