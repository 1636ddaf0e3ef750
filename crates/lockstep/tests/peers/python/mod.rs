//! The Python package beside pandas, polars, pyarrow, scikit-learn and a notebook's kernel.

mod notebook;

use crate::common::Place;
use lockstep_testkit::{python, python_with_xgboost, succeed, xgboost_library};
use std::fs;
use std::process::Command;

/// What the package can use, and what runs a notebook.
const PACKAGES: [&str; 7] = [
    "scikit-learn==1.9.1",
    "pandas==3.1.1",
    "polars==2.1.0",
    "pyarrow==26.0.1",
    "ipykernel",
    "nbclient",
    "nbformat",
];

/// A Python that has all of them and finds the package and the program, in the folder of a place. Its temporary files go
/// to a folder of their own, `tmp`.
fn in_python(place: &Place) -> Command {
    let temporary = place.path("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = Command::new(python("frames", &PACKAGES));
    command
        .current_dir(place.path(""))
        .env(
            "PYTHONPATH",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../lockstep-script/python"),
        )
        .env("TMPDIR", temporary)
        .env("LOCKSTEP_CACHE", place.path("cache"))
        .env("LOCKSTEP_XGBOOST", xgboost_library())
        .env("LOCKSTEP_BINARY", env!("CARGO_BIN_EXE_lockstep"));
    command
}

/// Runs a script of this folder, which fails by itself if something is not as promised.
fn script(name: &str, arguments: &[&str]) {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/python/");
    let mut command = in_python(&place);
    command.arg(format!("{folder}{name}")).args(arguments);
    print!("{}", succeed(&mut command));
    assert_nothing_is_left(&place);
}

/// Fails if a temporary file or a process is still there.
fn assert_nothing_is_left(place: &Place) {
    let left: Vec<_> = fs::read_dir(place.path("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        // Those of libraries, not of the package.
        .filter(|name| name.to_string_lossy().starts_with("lockstep"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    place.assert_no_process_is_left();
}

#[test]
fn tables_of_three_libraries_train_as_their_file_does_and_come_back_as_what_they_were() {
    script("frames.py", &[]);
}

#[test]
fn pandas_without_pyarrow_writes_csv_and_comes_to_the_same() {
    script("without_pyarrow.py", &[]);
}

#[test]
fn scikit_learns_own_checks_pass_for_the_classifier() {
    script("check_estimator.py", &["LockstepClassifier"]);
}

#[test]
#[ignore = "they are much the same for the classifier"]
fn scikit_learns_own_checks_pass_for_the_regressor() {
    script("check_estimator.py", &["LockstepRegressor"]);
}

#[test]
fn estimators_are_scored_searched_chained_and_pickled() {
    script("estimators.py", &[]);
}

#[test]
fn what_is_learned_without_any_setting_is_as_good_as_what_the_libraries_learn() {
    let xgboost = python_with_xgboost();
    let find = "import xgboost, os; print(os.path.dirname(os.path.dirname(xgboost.__file__)))";
    let packages = succeed(Command::new(xgboost).args(["-c", find]));
    script("quality.py", &[packages.trim()]);
}
