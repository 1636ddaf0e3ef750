//! Checksums of a decoded file, block by block.
//!
//! They are computed once, when the file is made, and kept in it. Whoever opens a set by its source compares
//! every block with its sum, so that samples which the disk damaged are never trained on. The sums find
//! accidents, not forgery: whoever may write to the cache may write its sums too. Blocks are read, not mapped,
//! so that checking a set takes a buffer a thread, however large the set is.

use lockstep_base::cores;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use twox_hash::XxHash64;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 256 << 10;

/// More threads than this wait for the memory.
const MOST_THREADS: usize = 4;

/// Blocks that are worth a thread.
const BLOCKS_A_THREAD: usize = 32;

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// How many blocks so many bytes have.
pub(crate) fn blocks(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK)
}

/// The checksums of the first `bytes` bytes of `file`, one a block.
pub(crate) fn of_file(file: &File, bytes: usize) -> io::Result<Vec<u64>> {
    let mut buffer = vec![0; BLOCK.min(bytes)];
    (0..blocks(bytes))
        .map(|block| of_block(file, bytes, block, &mut buffer))
        .collect()
}

/// Whether the first `bytes` bytes of `file` have the checksums `expected`. A file that cannot be read has not.
pub(crate) fn agree(file: &File, bytes: usize, expected: &[u64]) -> bool {
    let threads = cores::usable()
        .min(MOST_THREADS)
        .min(expected.len().div_ceil(BLOCKS_A_THREAD))
        .max(1);
    let sound = AtomicBool::new(expected.len() == blocks(bytes));
    // Blocks are dealt out by turns: the threads read the file side by side, from its beginning to its end.
    let check = |first: usize| {
        let mut buffer = vec![0; BLOCK.min(bytes)];
        for (block, sum) in expected.iter().enumerate().skip(first).step_by(threads) {
            if !sound.load(Ordering::Relaxed) {
                return;
            }
            if of_block(file, bytes, block, &mut buffer).ok() != Some(*sum) {
                sound.store(false, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for first in 1..threads {
            scope.spawn(move || check(first));
        }
        check(0);
    });
    sound.into_inner()
}

fn of_block(file: &File, bytes: usize, block: usize, buffer: &mut [u8]) -> io::Result<u64> {
    let begin = block * BLOCK;
    let part = &mut buffer[..BLOCK.min(bytes - begin)];
    file.read_exact_at(part, begin as u64)?;
    lockstep_base::progress::advance();
    Ok(checksum(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::fs;

    #[test]
    fn every_changed_bit_is_noticed_wherever_it_lies() {
        let folder = Folder::new();
        let mut bytes: Vec<u8> = (0..70 * BLOCK + 77).map(|i| ((i * i) >> 7) as u8).collect();
        let path = folder.file(&bytes);
        let open = || File::open(&path).unwrap();
        let sums = of_file(&open(), bytes.len()).unwrap();
        assert_eq!(sums.len(), 71);
        assert!(agree(&open(), bytes.len(), &sums));
        assert!(!agree(&open(), bytes.len(), &sums[..70]));
        for at in [0, BLOCK - 1, BLOCK, 7 * BLOCK + 12_345, bytes.len() - 1] {
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            assert!(!agree(&open(), bytes.len(), &sums), "byte {at}");
            bytes[at] ^= 0x10;
        }
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(!agree(&open(), bytes.len(), &sums), "a byte is missing");
    }
}
