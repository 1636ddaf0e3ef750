//! Lists the files of the Python package, so that the binary carries all of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("python");
    println!(
        "cargo::rerun-if-changed={}",
        root.join("lockstep").display()
    );
    let mut files = Vec::new();
    collect(&root.join("lockstep"), &mut files);
    files.sort();
    let mut text = "[\n".to_owned();
    for path in files {
        let name = path.strip_prefix(&root).expect("it lies there");
        writeln!(text, "    ({:?}, include_bytes!({:?})),", name, path).expect("memory suffices");
    }
    text += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("package_files.rs"), text).expect("the folder of outputs can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the package is there")
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("__pycache__") {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "py") {
            files.push(path);
        }
    }
}
