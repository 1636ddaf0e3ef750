//! A job's log: all that its command writes, of which the newest part is kept.
//!
//! It is a folder of pieces, each named by where in the whole log it begins. So a place in the log is one number, from
//! the first byte on, whatever was dropped since; and to drop the oldest part is to remove a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A log has about so many pieces.
const PIECES: u64 = 8;
/// The smallest piece, so that a small limit does not make a file a line.
const SMALLEST: u64 = 4 << 10;

/// A job's log, to be read.
#[derive(Debug, Clone)]
pub struct Log {
    folder: PathBuf,
}

impl Log {
    pub(crate) fn new(folder: PathBuf) -> Log {
        Log { folder }
    }

    /// Where its pieces lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where what is kept of it begins, and where it ends now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bounds(&self) -> io::Result<(u64, u64)> {
        let pieces = self.pieces()?;
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
            return Ok((0, 0));
        };
        let length = fs::metadata(self.piece(*last)).map_or(0, |found| found.len());
        Ok((*first, last + length))
    }

    /// What the log has at `from`, at most `most` bytes, and where that begins: later than `from` if that part was
    /// dropped. Nothing at its end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, from: u64, most: usize) -> io::Result<(u64, Vec<u8>)> {
        let mut from = from;
        for _ in 0..3 {
            let pieces = self.pieces()?;
            let Some(first) = pieces.first() else {
                return Ok((from, Vec::new()));
            };
            from = from.max(*first);
            let after = pieces.partition_point(|begin| *begin <= from);
            let begin = pieces[after - 1];
            let mut file = match File::open(self.piece(begin)) {
                Ok(file) => file,
                // Dropped in this moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            file.seek(SeekFrom::Start(from - begin))?;
            let mut bytes = Vec::new();
            file.take(most as u64).read_to_end(&mut bytes)?;
            match pieces.get(after) {
                // The next piece is there, so this one is whole.
                Some(next) if bytes.is_empty() => from = *next,
                _ => return Ok((from, bytes)),
            }
        }
        Ok((from, Vec::new()))
    }

    /// All that is kept of it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn whole(&self) -> io::Result<Vec<u8>> {
        let (mut at, end) = self.bounds()?;
        let mut whole = Vec::with_capacity((end - at) as usize);
        loop {
            let (from, bytes) = self.read(at, 1 << 20)?;
            if bytes.is_empty() {
                return Ok(whole);
            }
            at = from + bytes.len() as u64;
            whole.extend(bytes);
        }
    }

    /// Its last lines, at most so many, and at most so many bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_lines(&self, lines: usize, most: usize) -> io::Result<String> {
        let (begin, end) = self.bounds()?;
        let mut at = end.saturating_sub(most as u64).max(begin);
        let mut bytes = Vec::new();
        while at < end {
            let (from, more) = self.read(at, most)?;
            if more.is_empty() {
                break;
            }
            at = from + more.len() as u64;
            bytes.extend(more);
        }
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<&str> = text.split_inclusive('\n').collect();
        Ok(found[found.len().saturating_sub(lines)..].concat())
    }

    fn piece(&self, begin: u64) -> PathBuf {
        self.folder.join(format!("{begin:020}"))
    }

    fn pieces(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// A job's log, to be written by its keeper.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Log,
    file: File,
    begin: u64,
    length: u64,
    limit: u64,
}

impl LogWriter {
    /// Goes on at the log's end. About `limit` bytes of it are kept.
    pub(crate) fn open(log: Log, limit: u64) -> io::Result<LogWriter> {
        let pieces = log.pieces()?;
        let begin = pieces.last().copied().unwrap_or(0);
        let file = open(&log.piece(begin))?;
        let length = file.metadata()?.len();
        Ok(LogWriter {
            log,
            file,
            begin,
            length,
            limit,
        })
    }

    /// Adds to the log's end, and drops its beginning when it is too long.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let most = (self.limit / PIECES).max(SMALLEST);
        if self.length > 0 && self.length + bytes.len() as u64 > most {
            self.begin += self.length;
            self.file = open(&self.log.piece(self.begin))?;
            self.length = 0;
            let pieces = self.log.pieces()?;
            let keep = (self.limit / most).max(1) as usize;
            for old in &pieces[..pieces.len().saturating_sub(keep)] {
                // What stays is removed next time.
                let _ = fs::remove_file(self.log.piece(*old));
            }
        }
        let written = self.file.write_all(bytes);
        self.length = match written {
            Ok(()) => self.length + bytes.len() as u64,
            // A part of it may be there; the next piece begins where this one ends.
            Err(_) => self.file.metadata()?.len(),
        };
        written
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, Log) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(folder.path().to_owned());
        (folder, log)
    }

    #[test]
    fn a_log_is_bounded_and_its_newest_part_is_kept_whole() {
        let (_folder, log) = log();
        let limit = PIECES * SMALLEST;
        let mut writer = LogWriter::open(log.clone(), limit).unwrap();
        let mut all = Vec::new();
        for number in 0..20_000 {
            let line = format!("line {number}\n");
            writer.write(line.as_bytes()).unwrap();
            all.extend(line.into_bytes());
        }
        let (begin, end) = log.bounds().unwrap();
        assert_eq!(end, all.len() as u64);
        assert!(end - begin <= limit && end - begin > limit / 2);
        assert_eq!(log.whole().unwrap(), all[begin as usize..]);
        // From a place that was dropped, reading goes on with what is kept.
        let (from, bytes) = log.read(0, 10).unwrap();
        assert_eq!((from, bytes.len()), (begin, 10));
        assert_eq!(log.read(end, 10).unwrap(), (end, vec![]));
        assert_eq!(
            log.last_lines(2, 20_000).unwrap(),
            "line 19998\nline 19999\n"
        );
    }

    #[test]
    fn a_writer_that_comes_later_goes_on_at_the_end() {
        let (_folder, log) = log();
        assert_eq!(log.bounds().unwrap(), (0, 0));
        assert_eq!(log.read(0, 10).unwrap(), (0, vec![]));
        for text in ["a\n", "b\n"] {
            let mut writer = LogWriter::open(log.clone(), 1 << 20).unwrap();
            writer.write(text.as_bytes()).unwrap();
        }
        assert_eq!(log.whole().unwrap(), b"a\nb\n");
        assert_eq!(log.last_lines(10, 3).unwrap(), "\nb\n");
    }
}
