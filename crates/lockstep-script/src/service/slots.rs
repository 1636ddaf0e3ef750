//! Memory that batches lie in, shared with the script.
//!
//! A file that exists in memory alone is cut into slots of one size. The script maps the slots that it is handed, and
//! says when it is done with them. There are more of them when it keeps many.

use crate::ScriptError;
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Slots begin at multiples of this: pages of any machine.
const PAGE: usize = 1 << 16;
/// The most memory that the slots of one iterator take.
const MOST: usize = 8 << 30;

/// The slots of one iterator.
pub(super) struct Slots {
    file: File,
    bytes: usize,
    count: usize,
    free: Vec<usize>,
}

impl Slots {
    /// Slots for batches of so many bytes.
    pub(super) fn new(bytes: usize) -> Result<Self, ScriptError> {
        let failed = ScriptError::system("make memory for batches");
        let file = memfd_create("lockstep-batches", MemfdFlags::CLOEXEC);
        Ok(Self {
            file: File::from(file.map_err(|error| failed(error.into()))?),
            bytes: bytes.max(1).next_multiple_of(PAGE),
            count: 0,
            free: Vec::new(),
        })
    }

    /// The size of a slot.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Under which path other processes of this user open the file.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// The script is done with these.
    pub(super) fn give_back(&mut self, slots: &[usize]) {
        let known = slots.iter().filter(|slot| **slot < self.count);
        for slot in known {
            if !self.free.contains(slot) {
                self.free.push(*slot);
            }
        }
    }

    /// A slot that nobody uses, mapped. There is one more if there was none.
    pub(super) fn take(&mut self) -> Result<(usize, MmapMut), ScriptError> {
        let failed = || ScriptError::system("make memory for batches");
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                if (self.count + 1) * self.bytes > MOST {
                    let words = "the script keeps more than 8 GiB of batches that it was handed";
                    return Err(failed()(std::io::Error::other(words)));
                }
                self.count += 1;
                let length = (self.count * self.bytes) as u64;
                self.file.set_len(length).map_err(failed())?;
                self.count - 1
            }
        };
        let at = (slot * self.bytes) as u64;
        let mut options = MmapOptions::new();
        options.offset(at).len(self.bytes);
        // SAFETY: the file is this iterator's own and is never made shorter. A slot that is free is written here
        // alone; a script that writes into slots that it gave back spoils its own batches and nothing else, since
        // what is read from them here is never trusted.
        let map = unsafe { options.map_mut(&self.file) }.map_err(failed())?;
        Ok((slot, map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_when_they_were_given_back() {
        let mut slots = Slots::new(10).unwrap();
        let (first, mut map) = slots.take().unwrap();
        map[..2].copy_from_slice(b"ab");
        let (second, _) = slots.take().unwrap();
        assert_ne!(first, second);
        slots.give_back(&[first, 99]);
        slots.give_back(&[first]);
        assert_eq!(slots.take().unwrap().0, first);
        assert_eq!(slots.take().unwrap().0, 2, "{first} was given back once");
        let seen = std::fs::read(slots.path()).unwrap();
        assert_eq!((seen.len(), &seen[..2]), (3 * slots.bytes(), &b"ab"[..]));
    }
}
