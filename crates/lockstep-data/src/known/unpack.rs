//! Archives of known sets, unpacked here: gzipped tar archives, and Debian's packages.
//!
//! Only files that the set has are taken out, by their names and no larger than they may be; whatever else an
//! archive holds is passed over. So nothing in it can be written anywhere else.

use flate2::read::MultiGzDecoder;
use lockstep_base::known::KnownFile;
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// What an `ar` archive begins with.
const AR: &[u8; 8] = b"!<arch>\n";
/// The header of a file in an `ar` archive.
const AR_HEADER: usize = 60;

/// Takes `files`, which lie in `folder` of the gzipped tar archive `packed`, out into the folder `to`.
pub(super) fn tar_gz(
    packed: &Path,
    folder: &str,
    files: &[KnownFile],
    to: &Path,
) -> io::Result<()> {
    let reader = BufReader::new(File::open(packed)?);
    tar(MultiGzDecoder::new(reader), folder, files, to)
}

/// Takes `files`, which a Debian package puts into `folder`, out of it into the folder `to`.
pub(super) fn deb(package: &Path, folder: &str, files: &[KnownFile], to: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(package)?);
    let mut magic = [0; AR.len()];
    reader.read_exact(&mut magic)?;
    if magic != *AR {
        return Err(wrong("it is no Debian package"));
    }
    loop {
        let mut header = [0; AR_HEADER];
        reader.read_exact(&mut header)?;
        let name = text(&header[..16]).trim_end_matches('/').to_owned();
        let size: u64 = text(&header[48..58])
            .parse()
            .map_err(|_| wrong("a size in it is not a number"))?;
        let member = (&mut reader).take(size);
        match name.as_str() {
            "data.tar" => return tar(member, folder, files, to),
            "data.tar.gz" => {
                return tar(
                    MultiGzDecoder::new(BufReader::new(member)),
                    folder,
                    files,
                    to,
                );
            }
            "data.tar.xz" => return tar(XzReader::new(member, true), folder, files, to),
            name if name.starts_with("data.tar") => {
                return Err(wrong(&format!(
                    "{name} in it is packed in a way that is not known"
                )));
            }
            // Members begin at even places.
            _ => skip(&mut reader, size + size % 2)?,
        }
    }
}

/// Takes the files out of a tar archive. Its entries are read raw: long names and other extensions, whose size an
/// archive may choose freely, are passed over like everything else that the set does not have.
///
/// # Errors
/// When it is no such archive, lacks one of the files, or has one that is too large.
pub fn tar(from: impl Read, folder: &str, files: &[KnownFile], to: &Path) -> io::Result<()> {
    let mut missing: Vec<&KnownFile> = files.iter().collect();
    for entry in tar::Archive::new(from).entries()?.raw(true) {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let is_file = entry.header().entry_type().is_file();
        let found = missing
            .iter()
            .position(|file| is_file && path == Path::new(folder).join(file.name));
        let Some(file) = found.map(|at| missing.remove(at)) else {
            continue;
        };
        let size = entry.size();
        // Compressed, no file is larger than what it decodes to.
        if size > file.decoded_bytes {
            return Err(wrong(&format!("{} in it has {size} bytes", file.name)));
        }
        let mut target = File::create(to.join(file.name))?;
        if io::copy(&mut entry, &mut target)? < size {
            return Err(wrong("it ends too early"));
        }
        if missing.is_empty() {
            break;
        }
    }
    match missing.first() {
        Some(file) => Err(wrong(&format!("there is no {folder}/{} in it", file.name))),
        None => Ok(()),
    }
}

/// The text in a field that is filled up with zeros or blanks.
fn text(field: &[u8]) -> &str {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    std::str::from_utf8(&field[..end])
        .unwrap_or_default()
        .trim_end()
}

fn skip(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut from.take(bytes), &mut io::sink())? {
        skipped if skipped < bytes => Err(wrong("it ends too early")),
        _ => Ok(()),
    }
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gzipped;
    use std::fs;

    const FILES: &[KnownFile] = &[
        KnownFile {
            name: "a.bin",
            decoded_bytes: 600,
            decoded_sha256: "",
        },
        KnownFile {
            name: "b.bin",
            decoded_bytes: 3,
            decoded_sha256: "",
        },
    ];

    /// An archive of files by their paths.
    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = tar::Header::new_ustar();
            // Written as it stands: the library refuses paths that lead out.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_cksum();
            archive.append(&header, *content).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn package(member: &str, content: &[u8]) -> Vec<u8> {
        let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", 0);
        let mut bytes = AR.to_vec();
        bytes.extend(header("debian-binary", 3).bytes());
        bytes.extend(b"2.\n\n");
        bytes.extend(header(member, content.len()).bytes());
        bytes.extend(content);
        bytes
    }

    fn unpacked(bytes: &[u8], is_package: bool) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let (packed, to) = (folder.path().join("packed"), folder.path().join("to"));
        fs::create_dir(&to).unwrap();
        fs::write(&packed, bytes).unwrap();
        let unpack = if is_package { deb } else { tar_gz };
        unpack(&packed, "usr/set", FILES, &to).map_err(|error| error.to_string())?;
        let mut names: Vec<_> = fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(fs::read(to.join("a.bin")).unwrap(), [7; 600]);
        Ok(names)
    }

    #[test]
    fn only_the_sets_own_files_are_taken_out() {
        let bytes = archive(&[
            ("./usr/set/a.bin", &[7; 600]),
            ("../../escape", b"x"),
            ("usr/set/c.bin", b"x"),
            ("usr/set/b.bin", b"abc"),
        ]);
        let both = Ok(vec!["a.bin".to_owned(), "b.bin".to_owned()]);
        assert_eq!(unpacked(&gzipped(&bytes), false), both);
        assert_eq!(
            unpacked(&package("data.tar.gz", &gzipped(&bytes)), true),
            both
        );
        assert_eq!(unpacked(&package("data.tar", &bytes), true), both);
    }

    #[test]
    fn what_is_missing_torn_or_too_large_is_refused() {
        let a = ("usr/set/a.bin", &[7; 600][..]);
        let refusal = |bytes: &[u8]| unpacked(&gzipped(bytes), false).unwrap_err();
        let missing = refusal(&archive(&[a]));
        assert_eq!(missing, "there is no usr/set/b.bin in it");
        let large = refusal(&archive(&[a, ("usr/set/b.bin", b"abcd")]));
        assert_eq!(large, "b.bin in it has 4 bytes");
        let whole = archive(&[a, ("usr/set/b.bin", b"abc")]);
        for end in [100, 700, 1200, 1538] {
            refusal(&whole[..end]);
        }
        let mut garbled = whole;
        garbled[124] = b'x';
        refusal(&garbled);
        let strange = unpacked(&package("data.tar.lz4", b""), true).unwrap_err();
        assert!(strange.contains("data.tar.lz4"), "{strange}");
        assert!(unpacked(b"anything", true).is_err());
    }
}
