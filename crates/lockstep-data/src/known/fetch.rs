//! The ways to a known data set. Each brings its files to a folder; whether they are the right ones
//! is for the caller to check.

use super::subprocess::run;
use super::unpack;
use crate::file::shown;
use lockstep_base::fs::sha256_of_file;
use lockstep_base::known::{Address, Archive, Debian, KnownFile, KnownSet};
use lockstep_base::offline;
use lockstep_place::{Access, Place};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the package lists may take.
const UPDATE_LIMIT: Duration = Duration::from_secs(120);
/// How long the package may take.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);
/// Bytes that are asked for at a time: each piece has the whole of a request's time.
const PIECE: u64 = 8 << 20;
/// How often a request to a web server is sent again.
const RETRIES: u32 = 2;

/// A way to a known data set.
pub(crate) struct Way {
    /// What it is, for people.
    pub(crate) name: &'static str,
    /// Whether the set has such a place.
    pub(crate) leads_to: fn(&KnownSet) -> bool,
    pub(crate) bring: Bring,
}

/// Brings the files of a set; may use the given empty folder. Returns the folder that holds them, or
/// a sentence that says why it cannot.
type Bring = fn(&KnownSet, &Path, &mut dyn FnMut(&str)) -> Result<PathBuf, String>;

/// All ways, the cheapest first.
pub(crate) const WAYS: &[Way] = &[
    Way {
        name: "the installed Debian package",
        leads_to: |set| set.debian.is_some(),
        bring: from_installed_package,
    },
    Way {
        name: "the Debian package, unpacked without root",
        leads_to: |set| set.debian.is_some(),
        bring: from_downloaded_package,
    },
    Way {
        name: "its public address",
        leads_to: |_| true,
        bring: from_web,
    },
];

fn from_installed_package(
    set: &KnownSet,
    _scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let debian = package_of(set)?;
    let folder = Path::new("/").join(debian.folder);
    if !folder.is_dir() {
        return Err(format!("{} is not installed", debian.package));
    }
    progress(&format!("copying {} from {}", set.name, shown(&folder)));
    Ok(folder)
}

fn may_download() -> Result<(), String> {
    match offline::is_forbidden() {
        true => Err("--offline or LOCKSTEP_OFFLINE forbids to download it".to_owned()),
        false => Ok(()),
    }
}

fn package_of(set: &KnownSet) -> Result<&Debian, String> {
    let none = || format!("there is no package of {}", set.name);
    set.debian.as_ref().ok_or_else(none)
}

/// Downloads and unpacks the package, neither of which needs root: with the system's package lists,
/// or, where these are missing or stale, with fresh ones in a folder of our own.
fn from_downloaded_package(
    set: &KnownSet,
    scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    may_download()?;
    let debian = package_of(set)?;
    let package = debian.package;
    progress(&format!("downloading the Debian package {package}"));
    let download = |settings: &[OsString]| {
        let mut command = apt_get(settings, scratch);
        run(command.args(["download", package]), DOWNLOAD_LIMIT)
    };
    if let Err(first) = download(&[]) {
        if !first.could_start {
            return Err(first.to_string());
        }
        progress("the package lists here do not have it: reading fresh ones");
        let own = own_apt_folders(scratch).map_err(|error| error.to_string())?;
        run(apt_get(&own, scratch).arg("update"), UPDATE_LIMIT)
            .map_err(|error| error.to_string())?;
        download(&own).map_err(|error| error.to_string())?;
    }
    let archive = find_archive(scratch).ok_or("apt-get left no package behind")?;
    unpack::deb(&archive, debian.folder, set.files, scratch)
        .map_err(|error| format!("{}: {error}", shown(&archive)))?;
    Ok(scratch.to_owned())
}

/// `apt-get` in the folder `folder`, impatient with servers that do not answer.
fn apt_get(settings: &[OsString], folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive");
    // As root, apt would fetch as a user that may not write to our folder.
    command.args(["-q", "-o", "APT::Sandbox::User=root"]);
    command.args([
        "-o",
        "Acquire::http::Timeout=15",
        "-o",
        "Acquire::Retries=1",
    ]);
    command.args(settings);
    command
}

/// Settings that make `apt-get` keep its lists and its cache in folders under `scratch`.
fn own_apt_folders(scratch: &Path) -> io::Result<Vec<OsString>> {
    let mut settings = Vec::new();
    for (key, inner) in [
        ("Dir::State", "lists/partial"),
        ("Dir::Cache", "archives/partial"),
    ] {
        let folder = scratch.join(key.replace("::", "-"));
        fs::create_dir_all(folder.join(inner))?;
        let mut setting = OsString::from(format!("{key}="));
        setting.push(folder);
        settings.extend([OsString::from("-o"), setting]);
    }
    Ok(settings)
}

fn find_archive(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

fn from_web(
    set: &KnownSet,
    scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    may_download()?;
    match &set.address {
        Address::Folder(folder) => {
            for file in set.files {
                let address = format!("{folder}/{}", file.name);
                progress(&format!("downloading {address}"));
                // Compressed, no file is larger than what it decodes to.
                download(&address, file.decoded_bytes, &scratch.join(file.name))?;
            }
        }
        Address::Archive(archive) => {
            let megabytes = archive.bytes / 1_000_000;
            progress(&format!("downloading {} ({megabytes} MB)", archive.address));
            let packed = scratch.join("archive.tar.gz");
            download(archive.address, archive.bytes, &packed)?;
            unpack_archive(archive, &packed, set.files, scratch)?;
        }
    }
    Ok(scratch.to_owned())
}

/// Brings what lies at an address of the web, at most `limit` bytes, into the file `target`.
fn download(address: &str, limit: u64, target: &Path) -> Result<(), String> {
    let access = Access {
        retries: RETRIES,
        ..Access::default()
    };
    let failed = |error: &dyn Display| format!("{address}: {error}");
    let place = Place::parse(address, &access).map_err(|error| error.to_string())?;
    let entry = place.entry().map_err(|error| error.to_string())?;
    let entry = entry.ok_or_else(|| failed(&"there is no such file"))?;
    if entry.size > limit {
        let found = entry.size;
        return Err(failed(&format!("it has {found} bytes instead of {limit}")));
    }
    let mut file = File::create(target).map_err(|error| failed(&error))?;
    for start in (0..entry.size).step_by(PIECE as usize) {
        let range = start..entry.size.min(start + PIECE);
        let bytes = place.read_range_of(&entry, range);
        let bytes = bytes.map_err(|error| error.to_string())?;
        file.write_all(&bytes).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Unpacks the archive that came, if it is the published one.
fn unpack_archive(
    archive: &Archive,
    packed: &Path,
    files: &[KnownFile],
    to: &Path,
) -> Result<(), String> {
    let (_, found) = sha256_of_file(packed).map_err(|error| error.to_string())?;
    if found != archive.sha256 {
        return Err(format!(
            "{} gave another file than the published one: its SHA-256 is {found} instead of {}",
            archive.address, archive.sha256
        ));
    }
    unpack::tar_gz(packed, archive.folder, files, to)
        .map_err(|error| format!("{}: {error}", archive.address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    const FILE: KnownFile = KnownFile {
        name: "batch.bin",
        decoded_bytes: 7,
        decoded_sha256: "",
    };

    fn set(archive: Archive) -> KnownSet {
        KnownSet {
            name: "set",
            splits: &[],
            class_names: &[],
            files: &[FILE],
            debian: None,
            address: Address::Archive(archive),
        }
    }

    const NOWHERE: Archive = Archive {
        address: "https://127.0.0.1:1/set.tar.gz",
        bytes: 10,
        sha256: "",
        folder: "set",
    };

    #[test]
    fn an_archive_that_cannot_be_had_is_named_by_its_address_with_the_reason() {
        let scratch = tempfile::tempdir().unwrap();
        let mut heard = Vec::new();
        let mut progress = |message: &str| heard.push(message.to_owned());
        let error = from_web(&set(NOWHERE), scratch.path(), &mut progress).unwrap_err();
        assert!(error.contains("https://127.0.0.1:1/set.tar.gz"), "{error}");
        assert_eq!(heard, ["downloading https://127.0.0.1:1/set.tar.gz (0 MB)"]);
    }

    #[test]
    fn an_archive_is_unpacked_only_if_it_is_the_published_one() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("set")).unwrap();
        fs::write(from.path().join("set/batch.bin"), "content").unwrap();
        let packed = from.path().join("set.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&packed).arg("-C");
        assert!(tar.arg(from.path()).arg("set").status().unwrap().success());

        let refused = unpack_archive(&NOWHERE, &packed, &[FILE], to.path()).unwrap_err();
        assert!(refused.contains("SHA-256"), "{refused}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        let published = Archive {
            sha256: sha256_of_file(&packed).unwrap().1.leak(),
            ..NOWHERE
        };
        unpack_archive(&published, &packed, &[FILE], to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("batch.bin")).unwrap(), b"content");
    }

    /// A web server that has one file, which it gives whole or in part.
    fn serve(content: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).to_lowercase();
                let range = request
                    .lines()
                    .find_map(|line| line.strip_prefix("range: bytes="));
                let all = content.len();
                let (status, part) = match range.and_then(|range| range.trim().split_once('-')) {
                    Some((start, end)) => {
                        let (start, end): (usize, usize) =
                            (start.parse().unwrap(), end.parse().unwrap());
                        let status = format!(
                            "206 Partial Content\r\ncontent-range: bytes {start}-{end}/{all}"
                        );
                        (status, &content[start..=end])
                    }
                    None => ("200 OK".to_owned(), content),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\netag: \"1\"\r\nconnection: close\r\n\r\n",
                    part.len()
                );
                let body = if request.starts_with("head") {
                    &[][..]
                } else {
                    part
                };
                // Whoever hangs up early has seen enough.
                let _ = stream.write_all(&[head.as_bytes(), body].concat());
            }
        });
        address
    }

    #[test]
    fn a_file_comes_from_the_web_whole_and_no_larger_than_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        let address = serve(b"content");
        download(&address, 7, &target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"content");
        let error = download(&address, 6, &target).unwrap_err();
        assert!(error.ends_with("it has 7 bytes instead of 6"), "{error}");
    }
}
