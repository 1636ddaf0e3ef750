//! A power cut at every moment. What is done to the disk is written down while checkpoints are written,
//! and then every beginning of that log is played to a disk that keeps what was synced and loses, of the
//! rest, as much as it likes. Whatever it leaves, the newest checkpoint that had been reported as written
//! is found, or a newer one, and every byte of it is right.
#![cfg(debug_assertions)]

use lockstep_base::fs::log::{Operation, noted, record};
use lockstep_place::{Access, Place};
use lockstep_runs::RunDir;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of the simulated disk.
#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// What of it is safe.
    synced: Vec<u8>,
}

/// A disk with a cache that a power cut empties. Folders are nodes without a file.
#[derive(Clone, Default)]
struct Disk {
    inodes: Vec<Inode>,
    /// What the system shows: the file of each name, none for a folder.
    names: BTreeMap<PathBuf, Option<usize>>,
    /// What is safe of that.
    safe: BTreeMap<PathBuf, Option<usize>>,
}

/// What survives of that which was not synced.
#[derive(Clone, Copy, Debug)]
enum Luck {
    /// Nothing.
    None,
    /// All names, and of the bytes nothing: the order in which many file systems write.
    Names,
    /// Each name or not, by a throw of dice.
    Dice(u64),
}

impl Disk {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::CreateFolder(path) => {
                self.names.insert(path.clone(), None);
            }
            Operation::CreateFile(path) => {
                self.inodes.push(Inode::default());
                self.names.insert(path.clone(), Some(self.inodes.len() - 1));
            }
            Operation::Write(path, bytes) => self.file(path).bytes.extend(bytes),
            Operation::Sync(path) => {
                let file = self.file(path);
                file.synced = file.bytes.clone();
            }
            Operation::Rename(from, to) => {
                let file = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), file);
            }
            Operation::Link(from, to) => {
                let file = self.names[from];
                self.names.insert(to.clone(), file);
            }
            Operation::Remove(path) => self.names.retain(|name, _| !name.starts_with(path)),
            Operation::SyncFolder(folder) => {
                let within = |name: &PathBuf| name.parent() == Some(folder);
                self.safe.retain(|name, _| !within(name));
                let now = self.names.iter().filter(|(name, _)| within(name));
                let now: Vec<_> = now.map(|(name, file)| (name.clone(), *file)).collect();
                self.safe.extend(now);
            }
        }
    }

    fn file(&mut self, path: &Path) -> &mut Inode {
        let file = self.names[path].unwrap();
        &mut self.inodes[file]
    }

    /// What is found below `root` after a power cut.
    fn cut(&self, root: &Path, luck: Luck) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut dice = match luck {
            Luck::Dice(seed) => seed,
            _ => 0,
        };
        let mut throw = || {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            dice >> 63 == 1
        };
        let mut left = BTreeMap::new();
        let every: BTreeMap<_, _> = self.names.iter().chain(&self.safe).collect();
        for name in every.into_keys() {
            let (now, safe) = (self.names.get(name), self.safe.get(name));
            let taken = match luck {
                Luck::None => safe,
                Luck::Names => now,
                Luck::Dice(_) if throw() => now,
                Luck::Dice(_) => safe,
            };
            let Some(file) = taken else { continue };
            // A name in a folder that is lost is lost with it.
            let above = name.parent().unwrap();
            if above != root && !left.contains_key(above) {
                continue;
            }
            let bytes = file.map(|file| self.inodes[file].synced.clone());
            left.insert(name.clone(), bytes);
        }
        left
    }
}

/// Puts what a cut left into a folder.
fn lay_out(left: &BTreeMap<PathBuf, Option<Vec<u8>>>, root: &Path, to: &Path) {
    for (name, file) in left {
        let path = to.join(name.strip_prefix(root).unwrap());
        match file {
            None => fs::create_dir(path).unwrap(),
            Some(bytes) => fs::write(path, bytes).unwrap(),
        }
    }
}

fn place(path: &Path) -> Place {
    Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
}

/// The bytes of a part of the checkpoint that holds `content`.
fn bytes(content: u64, part: u8) -> Vec<u8> {
    (0..200)
        .map(|i| (i as u64 * 7 + content * 31) as u8 ^ part)
        .collect()
}

/// What the newest checkpoint of the only run below `store` holds, all of it checked.
fn newest(store: &Path) -> Option<u64> {
    let run = fs::read_dir(store).ok()?.next()?.unwrap().path();
    let run = RunDir::named("run", place(&run));
    let found = run.checkpoints().newest().unwrap()?;
    assert!(
        found.skipped.is_empty(),
        "something half written was taken for whole: {:?}",
        found.skipped
    );
    let content = found.checkpoint.header()["content"].as_u64().unwrap();
    for (part, name) in [(0, "state"), (1, "best")] {
        let part = bytes(content, part);
        assert_eq!(found.checkpoint.part(name).unwrap(), Some(part));
    }
    Some(content)
}

#[test]
fn whatever_a_power_cut_leaves_the_newest_whole_checkpoint_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a/store");
    // From which number of operations on which content must be found.
    let mut promised = Vec::new();
    let ((), log) = record(|| {
        let (run, lock) = RunDir::create(&place(&store), "job").unwrap();
        let generation = lock.begin(1, None).unwrap();
        let mut writer = run.checkpoints().writer(2, generation).unwrap();
        for content in 1..=4 {
            let parts = [bytes(content, 0), bytes(content, 1)];
            let parts = [("state", &parts[0][..]), ("best", &parts[1][..])];
            writer
                .write("step", json!({ "content": content }), &parts)
                .unwrap();
            promised.push((noted(), content));
        }
    });
    assert!(log.len() > 60, "{} operations were noted", log.len());
    let mut disk = Disk::default();
    let mut cuts = 0;
    for done in 0..=log.len() {
        if let Some(next) = done.checked_sub(1) {
            disk.apply(&log[next]);
        }
        let dice = (0..5).map(|seed| Luck::Dice(seed * 977 + done as u64));
        for luck in [Luck::None, Luck::Names].into_iter().chain(dice) {
            let after = tempfile::tempdir().unwrap();
            lay_out(&disk.cut(folder.path(), luck), folder.path(), after.path());
            let must = promised.iter().rev().find(|(from, _)| *from <= done);
            let must = must.map_or(0, |(_, content)| *content);
            let found = newest(&after.path().join("a/store")).unwrap_or(0);
            assert!(
                found >= must,
                "{luck:?} after {done} of {} operations: {found} instead of {must}; the last was {:?}",
                log.len(),
                done.checked_sub(1).map(|last| &log[last])
            );
            cuts += 1;
        }
    }
    assert!(cuts > 400);
}
