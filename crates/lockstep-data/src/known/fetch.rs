//! The ways to a known data set. Each brings its files to a folder; whether they are the right ones
//! is for the caller to check.

use super::catalogue::{Address, Archive, Debian, KnownSet};
use super::subprocess::run;
use crate::file::shown;
use crate::hex::hex;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the package lists may take.
const UPDATE_LIMIT: Duration = Duration::from_secs(120);
/// How long the package may take.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);
/// How long unpacking may take.
const UNPACK_LIMIT: Duration = Duration::from_secs(60);
/// How long a web server may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a file may take from a web server.
const TRANSFER_LIMIT: Duration = Duration::from_secs(300);
/// How long an archive may take from a web server, as long as something of it comes.
const ARCHIVE_LIMIT: Duration = Duration::from_secs(3600);

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
    let unpacked = scratch.join("unpacked");
    run(
        Command::new("dpkg-deb")
            .arg("-x")
            .args([&archive, &unpacked]),
        UNPACK_LIMIT,
    )
    .map_err(|error| error.to_string())?;
    Ok(unpacked.join(debian.folder))
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
    match &set.address {
        Address::Folder(folder) => from_web_folder(set, folder, scratch, progress),
        Address::Archive(archive) => from_web_archive(archive, scratch, progress),
    }
}

fn from_web_folder(
    set: &KnownSet,
    folder: &str,
    scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_LIMIT))
        .timeout_global(Some(TRANSFER_LIMIT))
        .build()
        .into();
    for file in set.files {
        let address = format!("{folder}/{}", file.name);
        progress(&format!("downloading {address}"));
        let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
        let mut response = agent.get(&address).call().map_err(|error| failed(&error))?;
        // Compressed, no file is larger than what it decodes to.
        let limited = response.body_mut().with_config().limit(file.decoded_bytes);
        let mut target = File::create(scratch.join(file.name)).map_err(|error| failed(&error))?;
        io::copy(&mut limited.reader(), &mut target).map_err(|error| failed(&error))?;
    }
    Ok(scratch.to_owned())
}

fn from_web_archive(
    archive: &Archive,
    scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let megabytes = archive.bytes / 1_000_000;
    progress(&format!("downloading {} ({megabytes} MB)", archive.address));
    let packed = scratch.join("archive.tar.gz");
    run(&mut curl(archive, &packed), ARCHIVE_LIMIT)
        .map_err(|error| format!("{}: {error}", archive.address))?;
    unpack(archive, &packed, scratch)
}

/// Unpacks the archive that came, if it is the published one.
fn unpack(archive: &Archive, packed: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let found = sha256_of(packed).map_err(|error| error.to_string())?;
    if found != archive.sha256 {
        return Err(format!(
            "{} gave another file than the published one: its SHA-256 is {found} instead of {}",
            archive.address, archive.sha256
        ));
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(packed).arg("-C").arg(scratch);
    run(&mut tar, UNPACK_LIMIT).map_err(|error| error.to_string())?;
    Ok(scratch.join(archive.folder))
}

/// `curl` for an encrypted address: a system has it with the certificates it trusts, and what comes is
/// checked by its hash anyway.
fn curl(archive: &Archive, target: &Path) -> Command {
    let mut command = Command::new("curl");
    command.args(["--fail", "--silent", "--show-error", "--location"]);
    command.args(["--proto", "=https", "--connect-timeout"]);
    command.arg(CONNECT_LIMIT.as_secs().to_string());
    // Ends when less than so many bytes a second came for so many seconds.
    command.args(["--speed-limit", "1000", "--speed-time", "30"]);
    command.args(["--max-filesize", &archive.bytes.to_string()]);
    command.arg("--output").arg(target).arg(archive.address);
    command
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut hash = Sha256::new();
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(block);
        let read = block.len();
        reader.consume(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let error = from_web_archive(&NOWHERE, scratch.path(), &mut progress).unwrap_err();
        assert!(
            error.starts_with("https://127.0.0.1:1/set.tar.gz: curl"),
            "{error}"
        );
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

        let refused = unpack(&NOWHERE, &packed, to.path()).unwrap_err();
        assert!(refused.contains("SHA-256"), "{refused}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        let published = Archive {
            sha256: sha256_of(&packed).unwrap().leak(),
            ..NOWHERE
        };
        let folder = unpack(&published, &packed, to.path()).unwrap();
        assert_eq!(fs::read(folder.join("batch.bin")).unwrap(), b"content");
    }
}
