//! Where a repository is, and what is checked out in it: read from its files, with bounds.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// No file that says what is checked out is larger, but for the list of all references.
const SMALL: u64 = 64 << 10;
/// Nor that list.
const MOST_REFERENCES: u64 = 64 << 20;
/// So many references may name each other.
const MOST_HOPS: usize = 5;

/// The folders of a repository.
#[derive(Debug)]
pub(super) struct GitFolder {
    /// The folder that its files are checked out in.
    pub(super) root: PathBuf,
    /// What belongs to these files alone: the index, and what is checked out.
    pub(super) own: PathBuf,
    /// What belongs to all that is checked out from it: objects, references, the configuration.
    pub(super) common: PathBuf,
}

/// What is checked out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) commit: String,
    pub(super) branch: Option<String>,
}

impl GitFolder {
    /// The repository that a folder lies in.
    pub(super) fn around(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        folder.ancestors().find_map(Self::at)
    }

    /// The repository whose files are checked out here.
    fn at(root: &Path) -> Option<Self> {
        let named = root.join(".git");
        let own = match read(&named, SMALL) {
            Some(text) => root.join(text.trim_end().strip_prefix("gitdir: ")?),
            None => named,
        };
        let common = match read(&own.join("commondir"), SMALL) {
            Some(text) => own.join(text.trim_end()),
            None => own.clone(),
        };
        let is_one = common.join("objects").is_dir() && own.join("HEAD").is_file();
        is_one.then(|| Self {
            root: root.to_owned(),
            own,
            common,
        })
    }

    /// What is checked out; none before the first commit.
    pub(super) fn head(&self) -> Option<Head> {
        let mut branch = None;
        let mut text = read(&self.own.join("HEAD"), SMALL)?;
        for _ in 0..MOST_HOPS {
            let said = text.trim_end();
            let Some(name) = said.strip_prefix("ref: ") else {
                let commit = said.to_owned();
                return is_hash(&commit).then_some(Head { commit, branch });
            };
            let is_plain = |part: &str| !matches!(part, "" | "." | "..");
            if !name.starts_with("refs/") || !name.split('/').all(is_plain) {
                return None;
            }
            let name = name.to_owned();
            text = self.reference(&name)?;
            let short = name.strip_prefix("refs/heads/").unwrap_or(&name);
            branch.get_or_insert_with(|| short.to_owned());
        }
        None
    }

    /// What a reference says.
    fn reference(&self, name: &str) -> Option<String> {
        let alone = [&self.own, &self.common].map(|folder| folder.join(name));
        if let Some(text) = alone.iter().find_map(|path| read(path, SMALL)) {
            return Some(text);
        }
        let packed = read(&self.common.join("packed-refs"), MOST_REFERENCES)?;
        packed.lines().find_map(|line| {
            let (hash, of) = line.split_once(' ')?;
            (of == name).then(|| hash.to_owned())
        })
    }
}

impl Head {
    /// Whether the repository's hashes are the longer ones.
    pub(super) fn is_sha256(&self) -> bool {
        self.commit.len() == 64
    }
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The text of a file that is one, and not larger than `most`. What would have to be waited for is none.
fn read(path: &Path, most: u64) -> Option<String> {
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let file: File = options.read(true).custom_flags(no_wait).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}
