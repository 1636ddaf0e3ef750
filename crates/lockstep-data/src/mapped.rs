//! A file of the cache, mapped for reading and seen as numbers; or what is in memory alone, seen the same way.

use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Range;

/// The bytes of a file that nobody changes: files of the cache are only ever replaced as a whole, by
/// renaming, which leaves what is mapped as it is.
#[derive(Debug)]
pub(crate) struct Mapped {
    held: Held,
}

#[derive(Debug)]
enum Held {
    File(Mmap),
    /// Words, so that they are aligned as numbers are.
    Memory(Vec<u32>),
}

impl Mapped {
    /// Maps a file of the cache.
    pub(crate) fn of(file: &File) -> io::Result<Mapped> {
        // SAFETY: the file is written under another name and never again once it has its own.
        let map = unsafe { Mmap::map(file)? };
        let held = Held::File(map);
        Ok(Mapped { held })
    }

    /// What is in memory, and in no file.
    pub(crate) fn in_memory(words: Vec<u32>) -> Mapped {
        let held = Held::Memory(words);
        Mapped { held }
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.held {
            Held::File(map) => map,
            Held::Memory(words) => bytemuck::cast_slice(words),
        }
    }

    /// Gives the memory that the bytes in `range` take back to the system. They come back from the file when they are
    /// looked at again.
    pub(crate) fn release(&self, range: Range<usize>) {
        let Held::File(map) = &self.held else {
            // It could not come back.
            return;
        };
        // SAFETY: what is mapped is shared with the file and never written, so nothing is lost.
        let released = unsafe {
            map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
        };
        // A system that does not take the advice keeps the memory, and nothing else changes.
        drop(released);
    }

    /// The bytes in `range` as `u32`.
    ///
    /// # Panics
    /// When `range` does not lie within the file or is not aligned to four bytes.
    pub(crate) fn words(&self, range: Range<usize>) -> &[u32] {
        bytemuck::cast_slice(&self.bytes()[range])
    }

    /// The bytes in `range` as `f32`.
    ///
    /// # Panics
    /// As for [`Mapped::words`].
    pub(crate) fn floats(&self, range: Range<usize>) -> &[f32] {
        bytemuck::cast_slice(&self.bytes()[range])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_was_given_back_is_read_again() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_ne_bytes).collect();
        file.write_all(&bytes).unwrap();
        let mapped = Mapped::of(&file).unwrap();
        assert_eq!(mapped.bytes(), bytes);
        for range in [0..0, 0..bytes.len(), 5..20_001, 399_999..400_000] {
            mapped.release(range);
            assert_eq!(mapped.bytes(), bytes);
        }
    }
}
