//! The words that a user gives to a run: tags and a note.
//!
//! They are nobody else's to make again, so they lie in the run's folder, in `tags.json`. It is changed on the condition
//! that it is as it was read, so of several who change it at once none is lost.

use crate::IndexError;
use lockstep_runs::RunDir;
use lockstep_runs::document::{self, Format};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of `tags.json`.
const VERSION: u32 = 1;
/// The file's name.
const FILE: &str = lockstep_runs::files::TAGS;
const FORMAT: Format = Format {
    key: "version",
    known: VERSION,
};

/// What a user says of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tags {
    /// The version of the format.
    #[serde(default)]
    pub version: u32,
    /// Words by their keys. A tag without a value has an empty one.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// A sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Reads what a user said of a run; nothing if that is not known.
///
/// # Errors
/// When the file cannot be read, is none of ours, or is of a later version.
pub fn read(run: &RunDir) -> Result<Tags, IndexError> {
    Ok(document::read(&run.file(FILE), FORMAT)?.unwrap_or_default())
}

/// Changes what is said of a run, and returns what it is then.
///
/// # Errors
/// When the file cannot be read or written, is none of ours, or is of a later version.
pub fn change(run: &RunDir, change: &dyn Fn(&mut Tags)) -> Result<Tags, IndexError> {
    let changed = document::change(&run.file(FILE), FORMAT, |tags: &mut Tags| {
        change(tags);
        tags.version = VERSION;
        tags.clone()
    });
    Ok(changed?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};
    use std::thread;

    #[test]
    fn of_many_who_tag_a_run_at_once_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let (run, _lock) = RunDir::create(&store, "job").unwrap();
        thread::scope(|scope| {
            for number in 0..8 {
                let run = &run;
                scope.spawn(move || {
                    change(run, &|tags| {
                        tags.tags.insert(format!("t{number}"), "x".into());
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(read(&run).unwrap().tags.len(), 8);
        run.file(FILE).write(br#"{"version":7}"#).unwrap();
        let error = read(&run).unwrap_err().to_string();
        assert!(
            error.contains("newer") && error.contains("tags.json"),
            "{error}"
        );
    }
}
