//! Where MLflow keeps files: behind the server, or in a place that is written to directly.

use super::server::Server;
use crate::SinkError;
use lockstep_place::{Access, FileEntry, Place, PlaceError};
use lockstep_runs::{RunDir, files};

/// Larger files are not sent.
const LARGEST: u64 = 1 << 30;
/// Bytes of files that are sent together.
const TOGETHER: u64 = 64 << 20;
/// Files that are as they will be when the run has begun.
pub(super) const EARLY: [&str; 2] = [files::JOB, files::UNCOMMITTED];
/// Files of a run that are sent as they are; of folders, all that is in them. What MLflow has as tags, parameters and
/// metrics (`origin.json`, `events.jsonl`, `metrics.jsonl`) or with the model is not sent once more.
const SENT: [&str; 6] = [
    files::JOB,
    files::EVALUATION,
    files::CONFUSION,
    files::IMPORTANCE,
    files::RESULT,
    files::LOGS,
];

/// Where files go.
#[derive(Debug)]
pub(super) enum Artifacts {
    /// Through the server, under this path.
    Server(String),
    /// Into a folder or a bucket.
    Place(Place),
}

impl Artifacts {
    /// What an `artifact_uri` of MLflow means.
    pub(super) fn of(uri: &str, access: &Access) -> Result<Self, SinkError> {
        if let Some(rest) = uri.strip_prefix("mlflow-artifacts:") {
            // `mlflow-artifacts:/path` or `mlflow-artifacts://host/path`.
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
                None => rest,
            };
            return Ok(Self::Server(path.trim_matches('/').to_owned()));
        }
        let place = uri.strip_prefix("file://").unwrap_or(uri);
        // A server that names a folder of its own machine may mean one here. It cannot know where this process runs.
        let whole = place.contains("://") || place.starts_with('/');
        if !whole || place.split('/').any(|part| part == "..") {
            return Err(SinkError::Failed(format!(
                "MLflow's server keeps artifacts in {uri:?}, which is no whole path; start it with --serve-artifacts, or \
                 with --default-artifact-root and a path from the root or a bucket"
            )));
        }
        Ok(Self::Place(Place::parse(place, access)?))
    }

    /// Writes files.
    pub(super) fn put(
        &self,
        server: &Server,
        files: Vec<(String, Vec<u8>)>,
    ) -> Result<(), SinkError> {
        match self {
            Self::Server(folder) => server.put_artifacts(folder, files),
            Self::Place(folder) => {
                for (name, bytes) in files {
                    folder.join(&name)?.write(&bytes)?;
                }
                Ok(())
            }
        }
    }
}

/// The files of a run that are sent. What was not committed may be private, and is sent only to those who ask for it.
pub(super) fn files(run: &RunDir, uncommitted: bool) -> Result<Vec<FileEntry>, PlaceError> {
    let is_sent = |entry: &FileEntry| {
        let path = entry.path.as_str();
        let known = |name: &&str| {
            let rest = path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let asked = uncommitted && path == files::UNCOMMITTED;
        (1..=LARGEST).contains(&entry.size) && (asked || SENT.iter().any(known))
    };
    let mut files = run.place().list()?;
    files.retain(is_sent);
    Ok(files)
}

/// Files in groups that are sent together: a large one by itself, so that they need not all be in memory.
pub(super) fn groups(files: Vec<FileEntry>) -> Vec<Vec<FileEntry>> {
    let mut groups: Vec<Vec<FileEntry>> = Vec::new();
    let mut bytes = 0;
    for file in files {
        bytes += file.size;
        match groups.last_mut() {
            Some(group) if bytes <= TOGETHER => group.push(file),
            _ => {
                bytes = file.size;
                groups.push(vec![file]);
            }
        }
    }
    groups
}

/// The files of a run's model, by their names within `model/`.
pub(super) fn model_files(run: &RunDir) -> Result<Vec<FileEntry>, PlaceError> {
    let mut files = run.file(files::MODEL).list()?;
    let start = files::START.rsplit('/').next();
    files.retain(|entry| entry.size <= LARGEST && Some(entry.path.as_str()) != start);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_of_mlflow_is_a_path_behind_the_server_or_a_place() {
        let of = |uri: &str| Artifacts::of(uri, &Access::default()).unwrap();
        for uri in [
            "mlflow-artifacts:/1/a/artifacts",
            "mlflow-artifacts://h:5/1/a/artifacts",
        ] {
            assert!(matches!(of(uri), Artifacts::Server(path) if path == "1/a/artifacts"));
        }
        for uri in ["file:///tmp/x", "/tmp/x"] {
            let Artifacts::Place(place) = of(uri) else {
                panic!("{uri}");
            };
            assert_eq!(place.local().unwrap().to_str(), Some("/tmp/x"));
        }
    }

    #[test]
    fn what_is_not_committed_is_sent_only_to_those_who_ask_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let run = RunDir::named("a", place);
        for name in [files::JOB, files::UNCOMMITTED] {
            run.file(name).write(b"x").unwrap();
        }
        let sent = |uncommitted| -> Vec<String> {
            let files = files(&run, uncommitted).unwrap();
            files.into_iter().map(|entry| entry.path).collect()
        };
        assert_eq!(sent(false), [files::JOB]);
        assert_eq!(sent(true).len(), 2);
    }

    #[test]
    fn a_folder_that_depends_on_where_this_process_runs_is_refused() {
        for uri in [
            "./mlruns/1",
            "mlruns",
            "",
            "file://mlruns",
            "/a/../b",
            "../x",
        ] {
            let error = Artifacts::of(uri, &Access::default()).unwrap_err();
            assert!(error.to_string().contains("whole path"), "{uri}: {error}");
        }
    }

    #[test]
    fn small_files_are_sent_together_and_large_ones_alone() {
        let file = |size: u64| FileEntry {
            path: size.to_string(),
            size,
            version: String::new(),
            inode: String::new(),
        };
        let sizes = |sizes: &[u64]| -> Vec<usize> {
            let groups = groups(sizes.iter().copied().map(file).collect());
            groups.iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[1, 2, 3]), [3]);
        assert_eq!(sizes(&[1, TOGETHER, 2, 3, TOGETHER + 1]), [1, 1, 2, 1]);
    }
}
