//! An event file: records of a length, a checksum of it, the bytes, and a checksum of those (TFRecord).

use super::proto::{Event, What};
use crate::SinkError;
use crc_fast::CrcAlgorithm;
use lockstep_place::Place;
use prost::Message;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// The version of the format that is written; from 2 on, a mark says when a session begins.
const VERSION: &str = "brain.Event:2";

/// A file that grows. In a bucket, which cannot add to an object, it is written anew each time, which is small.
pub(super) struct EventFile {
    place: Place,
    /// What was not written yet.
    waiting: Vec<u8>,
    /// What was, in a bucket.
    written: Vec<u8>,
    file: Option<File>,
    bytes: u64,
}

impl EventFile {
    /// Begins a new file, which must not be there.
    pub(super) fn create(place: Place, time: f64) -> Result<Self, SinkError> {
        let file = match place.local() {
            Some(path) => {
                let failed = |error: std::io::Error| {
                    SinkError::Failed(format!("cannot write {}: {error}", path.display()))
                };
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                let file = OpenOptions::new().create_new(true).append(true).open(path);
                Some(file.map_err(failed)?)
            }
            None => None,
        };
        let mut events = Self {
            place,
            waiting: Vec::new(),
            written: Vec::new(),
            file,
            bytes: 0,
        };
        events.add(&Event {
            wall_time: time,
            step: 0,
            what: Some(What::FileVersion(VERSION.to_owned())),
        });
        Ok(events)
    }

    /// Adds an event, which is written with the next ones.
    pub(super) fn add(&mut self, event: &Event) {
        append_record(&mut self.waiting, &event.encode_to_vec());
    }

    /// Writes all that was added. Returns the bytes of the whole file.
    pub(super) fn flush(&mut self) -> Result<u64, SinkError> {
        if self.waiting.is_empty() {
            return Ok(self.bytes);
        }
        match &mut self.file {
            Some(file) => {
                if let Err(error) = file.write_all(&self.waiting) {
                    // Half a record would make all after it unreadable.
                    let _ = file.set_len(self.bytes);
                    let what = format!("cannot write {}: {error}", self.place);
                    return Err(SinkError::Failed(what));
                }
            }
            None => {
                let before = self.written.len();
                self.written.extend_from_slice(&self.waiting);
                if let Err(error) = self.place.write(&self.written) {
                    // It waits still, and is added again the next time.
                    self.written.truncate(before);
                    return Err(error.into());
                }
            }
        }
        self.bytes += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(self.bytes)
    }
}

/// Cuts a file off after so many bytes, if it is longer.
pub(super) fn cut_off(place: &Place, bytes: u64) -> Result<(), SinkError> {
    let failed = |error: std::io::Error| SinkError::Failed(format!("cannot cut {place}: {error}"));
    match (place.local(), place.entry()?) {
        (_, None) => Ok(()),
        (_, Some(entry)) if entry.size <= bytes => Ok(()),
        (Some(path), _) => {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            file.set_len(bytes).map_err(failed)
        }
        (None, _) => {
            let whole = place.read()?;
            let kept = usize::try_from(bytes)
                .unwrap_or(whole.len())
                .min(whole.len());
            Ok(place.write(&whole[..kept])?)
        }
    }
}

fn append_record(to: &mut Vec<u8>, record: &[u8]) {
    let length = (record.len() as u64).to_le_bytes();
    to.extend_from_slice(&length);
    to.extend_from_slice(&masked_crc32c(&length).to_le_bytes());
    to.extend_from_slice(record);
    to.extend_from_slice(&masked_crc32c(record).to_le_bytes());
}

/// TFRecord rotates the checksum and adds a constant, so that data that holds checksums has another one.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_file_is_cut_off_where_it_was_noted_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/events");
        let place = Place::parse(path.to_str().unwrap(), &Access::default()).unwrap();
        let mut file = EventFile::create(place.clone(), 1.0).unwrap();
        let noted = file.flush().unwrap();
        file.add(&Event::default());
        assert!(file.flush().unwrap() > noted);
        cut_off(&place, noted).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), noted);
        assert!(EventFile::create(place, 1.0).is_err(), "another's file");
    }
}
