//! Checkpoints: a run's states, each whole or not there.
//!
//! A checkpoint is a folder `RUN/checkpoints/NUMBER-LABEL` of *parts*, which are plain bytes, and one
//! *manifest*, which names them with their lengths and hashes. The manifest is written last: a folder
//! without one was never finished and does not count. Numbers grow, so the highest is the newest. In a
//! bucket the label ends with the writer's generation, since there no folder can be made exclusively.
//!
//! - A crash at any moment leaves the checkpoints that were whole before, whole. What it left half
//!   done is removed by the next writer.
//! - What was damaged later is recognised: [`Checkpoints::newest`] passes over it to the one before and
//!   says which file is wrong and how.
//! - Each carries the [generation](crate::Generation) of the gang that wrote it. What one wrote after it
//!   had been replaced does not count, and one that knows it was replaced does not write.
//! - Old ones are removed only after a new one is safe on the disk.
//!
//! What is in the parts, and in the header that a manifest carries along, is the caller's affair.

mod damage;
mod manifest;
mod read;
mod write;

pub use damage::{Damage, Damaged};
pub use read::{Checkpoint, NewestCheckpoint};
pub use write::CheckpointWriter;

use crate::owner::Writing;
use crate::{RunDir, RunsError};
use lockstep_place::Place;

/// The points of a checkpoint's life at which a test can make its writer fail, in their order. Those of
/// a part are reached once for each.
pub const FAILPOINTS: [&str; 10] = [
    "checkpoint.before_part",
    "checkpoint.before_part_rename",
    "checkpoint.after_part",
    "checkpoint.before_manifest",
    "checkpoint.before_rename",
    "checkpoint.after_rename",
    "checkpoint.after_manifest",
    "checkpoint.before_prune",
    "checkpoint.in_prune",
    "checkpoint.after_prune",
];

/// All checkpoints of one run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    run: RunDir,
    folder: Place,
}

impl RunDir {
    /// The run's checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints {
            folder: self.file(crate::files::CHECKPOINTS),
            run: self.clone(),
        }
    }
}

impl Checkpoints {
    /// The folder that holds them.
    pub fn folder(&self) -> &Place {
        &self.folder
    }

    /// Whether there is none that was finished. One that cannot be read counts: it was.
    pub fn is_empty(&self) -> bool {
        self.entries()
            .is_ok_and(|entries| !entries.iter().any(CheckpointFolder::is_finished))
    }

    /// All checkpoints, finished or not, from the oldest to the newest.
    fn entries(&self) -> Result<Vec<CheckpointFolder>, RunsError> {
        let mut entries = Vec::new();
        for name in self.folder.folders()? {
            if let Some(number) = number(&name) {
                let place = self.folder.join(&name)?;
                entries.push(CheckpointFolder { number, place });
            }
        }
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }

    /// Who writes them now, if anyone said so.
    fn writing(&self) -> Result<Option<Writing>, RunsError> {
        Ok(self.run.ownership()?.writing)
    }
}

/// The number of a checkpoint whose folder has this name, if it is one that a writer gives.
fn number(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

/// Steps that were done in the checkpoint whose folder has this name: `NUMBER-step-N`, in a bucket with more behind it.
pub fn step_of(name: &str) -> Option<u64> {
    let (_, step) = name.split_once("-step-")?;
    step.split('-').next()?.parse().ok()
}

/// One folder of a checkpoint.
#[derive(Debug)]
struct CheckpointFolder {
    number: u64,
    place: Place,
}

impl CheckpointFolder {
    fn manifest(&self) -> Place {
        manifest::of(&self.place)
    }

    fn is_finished(&self) -> bool {
        // What cannot be looked at is not taken for something that may be removed.
        !matches!(self.manifest().entry(), Ok(None))
    }
}
