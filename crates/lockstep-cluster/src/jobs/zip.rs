//! ZIP archives as a head unpacks them: names, modes and contents, and nothing that changes from day to day.
//!
//! The same files give the same bytes. An archive is made in memory and is bounded, so the format's 64-bit
//! extensions are never needed.

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Read, Write};

/// Midnight of 1 January 1980, the format's first moment.
const DATE: u16 = (1 << 5) | 1;
/// "Made by Unix", so that modes count; version 2.0.
const MADE_BY: u16 = (3 << 8) | 20;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// Contents are deflated.
const DEFLATED: u16 = 8;
/// A regular file.
const REGULAR: u32 = 0o100_000;

/// An archive that is being made.
pub(crate) struct Zip {
    out: Vec<u8>,
    entries: Vec<Entry>,
    limit: usize,
}

struct Entry {
    name: String,
    mode: u32,
    crc: u32,
    packed: u32,
    size: u32,
    offset: u32,
}

/// Why an archive cannot be made.
pub(crate) enum ZipError {
    /// It would be longer than its limit.
    Full,
    /// A content cannot be read.
    Read(io::Error),
}

impl Zip {
    /// An empty archive that may grow to `limit` bytes, less than 4 GiB.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            out: Vec::new(),
            entries: Vec::new(),
            limit,
        }
    }

    /// Adds a file.
    pub(crate) fn add(
        &mut self,
        name: &str,
        mode: u32,
        content: &mut dyn Read,
    ) -> Result<(), ZipError> {
        let offset = self.out.len() as u32;
        let mut entry = Entry {
            name: name.to_owned(),
            mode: REGULAR | mode,
            crc: 0,
            packed: 0,
            size: 0,
            offset,
        };
        self.out.extend(entry.local());
        let begin = self.out.len();
        let out = std::mem::take(&mut self.out);
        let mut encoder = DeflateEncoder::new(out, Compression::fast());
        let mut crc = Crc::new();
        let mut block = vec![0; 256 << 10];
        loop {
            let count = content.read(&mut block).map_err(ZipError::Read)?;
            if count == 0 {
                break;
            }
            crc.update(&block[..count]);
            encoder.write_all(&block[..count]).map_err(ZipError::Read)?;
            if encoder.get_ref().len() > self.limit {
                return Err(ZipError::Full);
            }
        }
        self.out = encoder.finish().map_err(ZipError::Read)?;
        entry.crc = crc.sum();
        entry.packed = (self.out.len() - begin) as u32;
        entry.size = crc.amount();
        let local = entry.local();
        self.out[begin - local.len()..begin].copy_from_slice(&local);
        self.entries.push(entry);
        Ok(())
    }

    /// The archive's bytes.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, ZipError> {
        let offset = self.out.len() as u32;
        for entry in &self.entries {
            self.out.extend(entry.central());
        }
        let length = self.out.len() as u32 - offset;
        let count = u16::try_from(self.entries.len()).map_err(|_| ZipError::Full)?;
        let mut end = Bytes::new(*b"PK\x05\x06");
        end.u16(0).u16(0).u16(count).u16(count);
        end.u32(length).u32(offset).u16(0);
        self.out.extend(end.0);
        match self.out.len() > self.limit {
            true => Err(ZipError::Full),
            false => Ok(self.out),
        }
    }
}

impl Entry {
    /// What stands before the content.
    fn local(&self) -> Vec<u8> {
        let mut bytes = Bytes::new(*b"PK\x03\x04");
        self.common(&mut bytes);
        bytes.u16(0);
        bytes.0.extend(self.name.as_bytes());
        bytes.0
    }

    /// What stands in the list at the end.
    fn central(&self) -> Vec<u8> {
        let mut bytes = Bytes::new(*b"PK\x01\x02");
        bytes.u16(MADE_BY);
        self.common(&mut bytes);
        bytes.u16(0).u16(0).u16(0).u16(0);
        bytes.u32(self.mode << 16).u32(self.offset);
        bytes.0.extend(self.name.as_bytes());
        bytes.0
    }

    fn common(&self, bytes: &mut Bytes) {
        bytes.u16(20).u16(FLAGS).u16(DEFLATED).u16(0).u16(DATE);
        bytes.u32(self.crc).u32(self.packed).u32(self.size);
        bytes.u16(self.name.len() as u16);
    }
}

/// Numbers as the format writes them: the lowest byte first.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(signature: [u8; 4]) -> Self {
        Self(signature.to_vec())
    }

    fn u16(&mut self, number: u16) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn zip(limit: usize) -> Result<Vec<u8>, ZipError> {
        let mut zip = Zip::new(limit);
        zip.add("a/ü.txt", 0o644, &mut &b"words ".repeat(1000)[..])?;
        zip.add("program", 0o755, &mut &b"\x7fELF"[..])?;
        zip.add("empty", 0o600, &mut &b""[..])?;
        zip.finish()
    }

    fn bytes(limit: usize) -> Vec<u8> {
        zip(limit).unwrap_or_else(|_| panic!("it fits"))
    }

    #[test]
    fn python_reads_names_modes_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zip");
        std::fs::write(&path, bytes(1 << 20)).unwrap();
        let script = "import zipfile, sys; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; \
            print([(i.filename, oct(i.external_attr >> 16), i.file_size) for i in z.infolist()])";
        let output = Command::new("python3")
            .args(["-X", "utf8", "-c", script])
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let wanted =
            "[('a/ü.txt', '0o100644', 6000), ('program', '0o100755', 4), ('empty', '0o100600', 0)]";
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim(), wanted, "{errors}");
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        assert_eq!(bytes(1 << 20), bytes(1 << 20));
    }

    #[test]
    fn an_archive_over_its_limit_is_refused() {
        let length = bytes(1 << 20).len();
        assert!(zip(length).is_ok());
        assert!(matches!(zip(length - 1), Err(ZipError::Full)));
    }
}
