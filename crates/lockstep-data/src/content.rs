//! The hash of all that training sees of a set.
//!
//! It goes into checkpoints, so its value never changes: the numbers that describe the set, the names of its
//! classes if it has them, the labels, then the samples. What comes before the samples is small, and depends on
//! the classes that the set was opened with; its own hash tells whether the hash that was kept when the set
//! was decoded is that of the set as it is now.

use crate::layout::Form;
use crate::target::TargetKind;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;

/// The hash of a set's content, and of what comes before its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentHash {
    pub(crate) head: [u8; 32],
    pub(crate) whole: [u8; 32],
}

/// What a set is, beside its labels and samples.
pub(crate) struct About<'a> {
    pub(crate) form: &'a Form,
    /// How many classes there are; 0 if samples have none.
    pub(crate) classes: usize,
    /// Their names, if they are known by them.
    pub(crate) names: &'a [String],
    /// What the numbers of a table stand for, where they are not just numbers.
    pub(crate) meaning: Option<&'a str>,
}

impl About<'_> {
    /// The hash of a set as far as it does not depend on labels and samples.
    pub(crate) fn begin(&self) -> Sha256 {
        let [channels, height, width] = self.form.shape;
        let (count, element) = (self.form.count, self.form.element as usize);
        let mut hash = Sha256::new();
        for number in [count, channels, height, width, element, self.classes] {
            hash.update((number as u64).to_le_bytes());
        }
        for name in self.names {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
        }
        if self.form.target != TargetKind::Classes {
            for number in [self.form.target as usize, self.form.outputs] {
                hash.update((number as u64).to_le_bytes());
            }
        }
        if let Some(meaning) = self.meaning {
            hash.update((meaning.len() as u64).to_le_bytes());
            hash.update(meaning);
        }
        hash
    }
}

/// The hash of a set of which `hash` has seen all but its labels, weights and groups, which lie `before` its samples in the
/// hash, and these, all in `file`.
pub(crate) fn of_file(
    mut hash: Sha256,
    file: &File,
    before: [Range<usize>; 3],
    samples: Range<usize>,
) -> io::Result<ContentHash> {
    let mut buffer = vec![0; AT_ONCE];
    let mut add = |range: Range<usize>, hash: &mut Sha256| {
        for begin in range.clone().step_by(AT_ONCE) {
            let part = &mut buffer[..AT_ONCE.min(range.end - begin)];
            file.read_exact_at(part, begin as u64)?;
            hash.update(part);
            lockstep_base::progress::advance();
        }
        io::Result::Ok(())
    };
    for part in before {
        add(part, &mut hash)?;
    }
    let head = hash.clone().finalize().into();
    add(samples, &mut hash)?;
    let whole = hash.finalize().into();
    Ok(ContentHash { head, whole })
}
