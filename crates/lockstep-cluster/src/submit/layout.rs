//! Where things lie in a package: as they lie here, seen from the lowest folder that holds them all.
//!
//! So every relative path of the job file means there what it means here, and the job file travels unchanged.

use anyhow::Context;
use lockstep_cluster::jobs::Package;
use lockstep_job::LocalInput;
use std::path::{Component, Path, PathBuf};

/// Folders within folders that are followed; a link to a folder above would never end.
const DEEPEST: usize = 32;

/// A package and the name that the job file has in it.
pub(super) struct Layout {
    pub(super) package: Package,
    pub(super) job: String,
}

/// Packs a job file and what moves with it.
pub(super) fn layout(job: &Path, inputs: &[LocalInput]) -> anyhow::Result<Layout> {
    let (files, job) = files(job, inputs)?;
    let mut package = Package::new();
    for (name, path) in files {
        package.add_file(name, path);
    }
    Ok(Layout { package, job })
}

/// A job file and what moves with it, each by its name from the lowest folder that holds them all; and the job file's.
pub(in crate::command) fn files(
    job: &Path,
    inputs: &[LocalInput],
) -> anyhow::Result<(Vec<(String, PathBuf)>, String)> {
    let job = lexical(job)?;
    let mut root = job.parent().unwrap_or(Path::new("/")).to_owned();
    let mut files = Vec::new();
    for input in inputs {
        let name = lexical(&input.path)?;
        while !name.starts_with(&root) {
            root.pop();
        }
        collect(&input.path, &name, 0, &mut files)
            .with_context(|| format!("{}: {} cannot be packed", input.key, input.path.display()))?;
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
) -> anyhow::Result<()> {
    if depth > DEEPEST {
        anyhow::bail!("it is more than {DEEPEST} folders deep");
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
fn below(root: &Path, path: &Path) -> anyhow::Result<String> {
    let path = path.strip_prefix(root)?;
    let name = path.to_str();
    let name = name.with_context(|| format!("the name of {} is no text", path.display()))?;
    Ok(name.to_owned())
}

/// The path without `.` and `..`, as the job file's reader joins it.
fn lexical(path: &Path) -> anyhow::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
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
        let alone = layout(&at("jobs/a/job.toml"), &[input(at("jobs/a/w.bin"))]).unwrap();
        assert_eq!(alone.job, "job.toml");
        assert_eq!(
            alone.package.names().collect::<Vec<_>>(),
            ["job.toml", "w.bin"]
        );
        let above = input(at("jobs/a/../../data/train"));
        let above = layout(&at("jobs/a/job.toml"), &[above]).unwrap();
        assert_eq!(above.job, "jobs/a/job.toml");
        assert_eq!(
            above.package.names().collect::<Vec<_>>(),
            ["data/train/cats/1.jpg", "jobs/a/job.toml"]
        );
    }
}
