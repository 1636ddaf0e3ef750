//! Who owns a run, and who may write its states.
//!
//! A run's `.lock` says both. The *owner* is the coordinator that has the run now. *Writing* is the
//! generation of the gang that trains it, and the number of the checkpoint that it began with: what
//! carries a later number and another generation was written by one that had been replaced, and does
//! not count. So a worker that wakes up after it was replaced can add nothing, even if it was in the
//! middle of a write.

use crate::process::Process;
use crate::{RunDir, RunsError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest `.lock`, in bytes. A larger one is none of ours, and says nothing.
const LARGEST: u64 = 64 << 10;

/// The gang that writes a run's states: one generation of the workers of one coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Random letters that no other coordinator has.
    pub incarnation: String,
    /// The generation of its gang.
    pub generation: u16,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.incarnation, self.generation)
    }
}

/// What a run's `.lock` holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ownership {
    /// The process that has the run; none when it was let go.
    pub(crate) owner: Option<Process>,
    /// Counts, so that a renewal is another content than the one before.
    pub(crate) renewal: u64,
    pub(crate) writing: Option<Writing>,
}

/// Who writes states, and since when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Writing {
    #[serde(flatten)]
    pub(crate) generation: Generation,
    /// The number of the checkpoint that it began with; 0 if with none.
    pub(crate) after: u64,
}

impl Ownership {
    /// Understands a `.lock`. One that is empty, or torn by a power cut, says nothing.
    pub(crate) fn read(bytes: &[u8]) -> Ownership {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("plain data");
        text.push(b'\n');
        text
    }

    /// Who has the run, in words.
    pub(crate) fn holder(&self) -> String {
        self.owner.as_ref().map_or(String::new(), Process::words)
    }
}

impl Writing {
    /// Whether a checkpoint of this number and generation was written by one that had been replaced.
    /// Those of programs that did not say who they are count.
    pub(crate) fn excludes(&self, number: u64, generation: Option<&Generation>) -> bool {
        number > self.after && generation.is_some_and(|written| *written != self.generation)
    }
}

impl RunDir {
    pub(crate) fn ownership(&self) -> Result<Ownership, RunsError> {
        let file = self.lock_file();
        let size = file.entry()?.map_or(0, |entry| entry.size);
        if size > LARGEST {
            return Ok(Ownership::default());
        }
        let found = file.read_versioned()?;
        Ok(found.map_or(Ownership::default(), |(bytes, _)| Ownership::read(&bytes)))
    }

    /// Checks that the run, which has begun, is still where it was: that its job is. Whoever wrote to it else would make a
    /// folder in which there is nothing else.
    ///
    /// # Errors
    /// [`RunsError::Gone`] when it was removed; or when it cannot be reached.
    pub fn check_there(&self) -> Result<(), RunsError> {
        match self.job().entry()? {
            Some(_) => Ok(()),
            None => Err(RunsError::Gone {
                place: self.place().to_string(),
            }),
        }
    }

    /// Checks that `generation` is still the one that writes this run.
    ///
    /// # Errors
    /// [`RunsError::Stale`] when another has begun; or when the run cannot be reached.
    pub fn check(&self, generation: &Generation) -> Result<(), RunsError> {
        let ownership = self.ownership()?;
        match &ownership.writing {
            Some(writing) if writing.generation != *generation => {
                let holder = match ownership.holder().as_str() {
                    "" => String::new(),
                    holder => format!(" of {holder}"),
                };
                Err(RunsError::Stale {
                    name: self.name.clone(),
                    current: format!("{}{holder}", writing.generation),
                    own: generation.to_string(),
                })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};
    use serde_json::json;

    #[test]
    fn a_run_that_was_removed_gets_no_checkpoint_and_is_not_made_again() {
        let store = tempfile::tempdir().unwrap();
        let place = Place::parse(store.path().to_str().unwrap(), &Access::default()).unwrap();
        let (run, lock) = RunDir::create(&place, "job").unwrap();
        run.job().write(b"x").unwrap();
        run.check_there().unwrap();
        let writer = lock.begin(1, None).unwrap();
        let mut writer = run.checkpoints().writer(1, writer).unwrap();
        writer.write("a", json!({}), &[("part", b"x")]).unwrap();
        run.clone().discard().unwrap();
        let error = writer.write("b", json!({}), &[("part", b"x")]).unwrap_err();
        assert!(error.ends_the_run(), "{error}");
        let words = format!("{} is gone", run.place());
        assert!(error.to_string().contains(&words), "{error}");
        assert_eq!(std::fs::read_dir(store.path()).unwrap().count(), 0);
    }

    fn generation(number: u16) -> Generation {
        Generation {
            incarnation: "abcd".into(),
            generation: number,
        }
    }

    #[test]
    fn what_a_replaced_generation_adds_does_not_count_and_what_it_had_added_does() {
        let writing = Writing {
            generation: generation(2),
            after: 7,
        };
        assert!(!writing.excludes(7, Some(&generation(1))));
        assert!(writing.excludes(8, Some(&generation(1))));
        assert!(!writing.excludes(8, Some(&generation(2))));
        assert!(!writing.excludes(8, None));
    }

    #[test]
    fn an_empty_or_torn_file_says_nothing() {
        let whole = Ownership {
            owner: Some(Process::own()),
            renewal: 3,
            writing: Some(Writing {
                generation: generation(1),
                after: 4,
            }),
        };
        assert_eq!(Ownership::read(&whole.to_bytes()), whole);
        assert_eq!(Ownership::read(b""), Ownership::default());
        assert_eq!(
            Ownership::read(&whole.to_bytes()[..20]),
            Ownership::default()
        );
    }
}
