//! Where things lie in a package: as they lie here, seen from the lowest folder that holds them all.
//!
//! So every relative path of the job file means there what it means here, and the job file travels unchanged.

use crate::ClusterError;
use lockstep_job::LocalInput;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Folders within folders that are followed; a link to a folder above would never end.
const DEEPEST: usize = 32;

/// A job file and what moves with it, each by its name from the lowest folder that holds them all; and the job file's.
pub(super) fn files(
    job: &Path,
    inputs: &[LocalInput],
) -> Result<(Vec<(String, PathBuf)>, String), ClusterError> {
    let job = lexical(job)?;
    let mut root = job.parent().unwrap_or(Path::new("/")).to_owned();
    let mut files = Vec::new();
    for input in inputs {
        let name = lexical(&input.path)?;
        while !name.starts_with(&root) {
            root.pop();
        }
        collect(&input.path, &name, 0, &mut files).map_err(|source| ClusterError::Pack {
            key: input.key,
            path: input.path.clone(),
            source,
        })?;
    }
    let name = below(&root, &job)?;
    let mut named = vec![(name.clone(), job)];
    for (name, path) in files {
        named.push((below(&root, &name)?, path));
    }
    Ok((named, name))
}

/// All files at or below `path`, each with the name under which it was reached.
fn collect(
    path: &Path,
    name: &Path,
    depth: usize,
    files: &mut Vec<(PathBuf, PathBuf)>,
) -> io::Result<()> {
    if depth > DEEPEST {
        let deep = format!("it is more than {DEEPEST} folders deep");
        return Err(io::Error::other(deep));
    }
    if path.is_file() {
        files.push((name.to_owned(), path.to_owned()));
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        // A link that leads nowhere, a FIFO: nothing that could be read there.
        if path.is_file() || path.is_dir() {
            collect(&path, &name, depth + 1, files)?;
        }
    }
    Ok(())
}

/// A path in the words of a package.
fn below(root: &Path, path: &Path) -> Result<String, ClusterError> {
    let path = path.strip_prefix(root).unwrap_or(path);
    let name = path.to_str().ok_or_else(|| ClusterError::NoText {
        path: path.to_owned(),
    })?;
    Ok(name.to_owned())
}

/// The path without `.` and `..`, as the job file's reader joins it.
fn lexical(path: &Path) -> Result<PathBuf, ClusterError> {
    let mut plain = PathBuf::new();
    let path = std::path::absolute(path).map_err(ClusterError::Folder)?;
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => (),
            part => plain.push(part),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn relative_paths_mean_in_the_package_what_they_mean_here() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["jobs/a", "data/train/cats"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in [
            "jobs/a/job.toml",
            "jobs/a/w.bin",
            "data/train/cats/1.jpg",
            "data/other",
        ] {
            fs::write(at(name), name).unwrap();
        }
        let input = |path: PathBuf| LocalInput {
            key: "data.train",
            path,
        };
        let names = |input: LocalInput| {
            let (files, job) = files(&at("jobs/a/job.toml"), &[input]).unwrap();
            let names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
            (names, job)
        };
        let (alone, job) = names(input(at("jobs/a/w.bin")));
        assert_eq!(job, "job.toml");
        assert_eq!(alone, ["job.toml", "w.bin"]);
        let (above, job) = names(input(at("jobs/a/../../data/train")));
        assert_eq!(job, "jobs/a/job.toml");
        assert_eq!(above, ["jobs/a/job.toml", "data/train/cats/1.jpg"]);
    }
}
