//! Checkpoints under crashes, full and read-only disks, and damage. The crashing writer is this very
//! binary, started again.

use lockstep_base::fs::{FsError, sha256};
use lockstep_place::{Access, Place, PlaceError};
use lockstep_runs::checkpoint::{Checkpoint, CheckpointWriter, Checkpoints, Damage};
use lockstep_runs::{Generation, RunDir, RunsError};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEEP: usize = 2;
const PARTS: [&str; 3] = ["state", "plane.0", "best"];

/// The bytes of a part of the checkpoint that holds `content`.
fn bytes(content: u64, part: usize) -> Vec<u8> {
    (0..40_000 + part)
        .map(|i| (i as u64 * 7 + content * 31 + part as u64) as u8)
        .collect()
}

fn write(writer: &mut CheckpointWriter, content: u64) -> Result<Place, RunsError> {
    let parts: Vec<Vec<u8>> = (0..PARTS.len()).map(|part| bytes(content, part)).collect();
    let parts: Vec<(&str, &[u8])> = PARTS
        .into_iter()
        .zip(parts.iter().map(|p| &p[..]))
        .collect();
    writer.write(
        &format!("step-{content}"),
        json!({ "content": content }),
        &parts,
    )
}

/// What a checkpoint holds, all of it checked.
fn content(checkpoint: &Checkpoint) -> u64 {
    let content = checkpoint.header()["content"].as_u64().unwrap();
    for (index, name) in PARTS.into_iter().enumerate() {
        assert_eq!(checkpoint.part(name).unwrap(), Some(bytes(content, index)));
    }
    assert_eq!(checkpoint.part("other").unwrap(), None);
    content
}

/// The newest whole one, and what was passed over.
fn newest(checkpoints: &Checkpoints) -> (u64, Vec<String>) {
    let found = checkpoints.newest().unwrap().unwrap();
    let skipped = found.skipped.iter().map(ToString::to_string).collect();
    (content(&found.checkpoint), skipped)
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    all.sort();
    all
}

/// The files of whole checkpoints of these names.
fn whole(names: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        let parts = ["best", "manifest.json", "plane.0", "state"];
        all.extend(parts.map(|part| format!("{name}/{part}")));
    }
    all
}

/// The checkpoints of a run in `folder`, in which nobody said who writes.
fn checkpoints(folder: &Path) -> Checkpoints {
    let place = Place::parse(folder.to_str().unwrap(), &Access::default()).unwrap();
    RunDir::named("run", place).checkpoints()
}

fn writer(checkpoints: &Checkpoints, keep: usize) -> Result<CheckpointWriter, RunsError> {
    let generation = Generation {
        incarnation: "test".into(),
        generation: 1,
    };
    checkpoints.writer(keep, generation)
}

struct Scratch {
    run: tempfile::TempDir,
    checkpoints: Checkpoints,
}

impl Scratch {
    /// With checkpoints of the contents 1 to `written`.
    fn new(written: u64) -> Self {
        let run = tempfile::tempdir().unwrap();
        let checkpoints = checkpoints(run.path());
        let mut writer = writer(&checkpoints, KEEP).unwrap();
        for content in 1..=written {
            write(&mut writer, content).unwrap();
        }
        Self { run, checkpoints }
    }

    fn folder(&self) -> PathBuf {
        self.run.path().join("checkpoints")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }
}

/// This binary, to be started again as a scenario of [`a_child_process`].
fn child(scenario: &str, folder: &Path) -> Command {
    let mut command = lockstep_testkit::child!(a_child_process);
    command
        .env("CHECKPOINT_SCENARIO", scenario)
        .env("CHECKPOINT_FOLDER", folder);
    command
}

#[test]
fn a_child_process() {
    let Ok(scenario) = std::env::var("CHECKPOINT_SCENARIO") else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os("CHECKPOINT_FOLDER").unwrap());
    let run = folder.parent().unwrap().to_owned();
    let checkpoints = checkpoints(&run);
    let refused = |error: &RunsError, kind: io::ErrorKind| {
        let source = match error {
            RunsError::Fs(FsError::Io { source, .. }) => source,
            RunsError::Place(PlaceError::Io { source, .. }) => source,
            RunsError::Place(PlaceError::Write(FsError::Io { source, .. })) => source,
            error => panic!("{error}"),
        };
        assert_eq!(source.kind(), kind, "{error}");
        assert!(error.to_string().contains(run.to_str().unwrap()), "{error}");
    };
    match scenario.as_str() {
        "write" => {
            write(&mut writer(&checkpoints, KEEP).unwrap(), 4).unwrap();
        }
        // The third part of the second checkpoint finds no room.
        "full" => {
            let mut writer = writer(&checkpoints, KEEP).unwrap();
            write(&mut writer, 1).unwrap();
            let before = files(&folder);
            let ballast = folder.with_file_name("ballast");
            if std::env::var_os("LOCKSTEP_FAILPOINTS").is_none() {
                fs::write(&ballast, vec![0; 80_000]).unwrap();
            }
            let error = write(&mut writer, 2).unwrap_err();
            refused(&error, io::ErrorKind::StorageFull);
            assert_eq!(files(&folder), before, "the room was not given back");
            assert_eq!(newest(&checkpoints), (1, vec![]));
            let _ = fs::remove_file(ballast);
            write(&mut writer, 3).unwrap();
            assert_eq!(newest(&checkpoints), (3, vec![]));
        }
        "read-only" => {
            refused(
                &writer(&checkpoints, KEEP).unwrap_err(),
                io::ErrorKind::ReadOnlyFilesystem,
            );
        }
        other => panic!("{other}"),
    }
    println!("scenario done");
}

fn assert_done(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("scenario done"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[cfg(debug_assertions)]
#[test]
fn a_crash_anywhere_leaves_a_whole_checkpoint_and_nothing_astray_after_the_next() {
    use std::os::unix::process::ExitStatusExt;
    // The new one counts from the moment at which its manifest has its name.
    let counts_from = "checkpoint.after_rename";
    let mut counts = false;
    for point in lockstep_runs::checkpoint::FAILPOINTS {
        counts |= point == counts_from;
        let times = if point.contains("part") {
            PARTS.len()
        } else {
            1
        };
        for time in 1..=times {
            let place = Scratch::new(3);
            let status = child("write", &place.folder())
                .env("LOCKSTEP_FAILPOINTS", format!("{point}=kill@{time}"))
                .output()
                .unwrap()
                .status;
            assert_eq!(status.signal(), Some(9), "{point}@{time} was not reached");

            let expected = if counts { 4 } else { 3 };
            assert_eq!(
                newest(&place.checkpoints),
                (expected, vec![]),
                "{point}@{time}"
            );
            let mut writer = writer(&place.checkpoints, KEEP).unwrap();
            let last = write(&mut writer, 5).unwrap();
            let last = last.local().unwrap().file_name().unwrap();
            let last = last.to_str().unwrap();
            let before = if counts {
                "000004-step-4"
            } else {
                "000003-step-3"
            };
            assert_eq!(
                files(&place.folder()),
                whole(&[before, last]),
                "{point}@{time}"
            );
            assert_eq!(newest(&place.checkpoints), (5, vec![]));
        }
    }
    assert!(counts);
}

#[cfg(debug_assertions)]
#[test]
fn an_error_of_the_disk_at_any_edge_takes_nothing_that_was_whole() {
    for point in lockstep_runs::checkpoint::FAILPOINTS {
        let place = Scratch::new(3);
        let output = child("write", &place.folder())
            .env("LOCKSTEP_FAILPOINTS", format!("{point}=error:5@1"))
            .output()
            .unwrap();
        assert!(!output.status.success(), "{point} was not reached");
        let (content, skipped) = newest(&place.checkpoints);
        assert!(content >= 3 && skipped.is_empty(), "{point}: {content}");
        write(&mut writer(&place.checkpoints, KEEP).unwrap(), 5).unwrap();
        assert_eq!(files(&place.folder()).len(), KEEP * 4, "{point}");
    }
}

/// A child with a file system of its own, mounted at `folder`'s parent, where the system allows it.
fn in_own_file_system(scenario: &str, folder: &Path, prepare: &str) -> Option<Command> {
    let mount = folder.parent().unwrap();
    fs::create_dir_all(mount).unwrap();
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(mount);
        command
    };
    let script = format!("mount -t tmpfs -o size=300k none \"$1\" && {prepare}");
    if !namespace(&script)
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        eprintln!("no file system of our own on this machine: only injected errors are tested");
        return None;
    }
    let inner = child(scenario, folder);
    let mut command = namespace(&format!("{script} && shift && exec \"$@\""));
    command.arg(inner.get_program()).args(inner.get_args());
    command.envs(
        inner
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    Some(command)
}

#[test]
fn a_full_disk_refuses_the_new_one_and_keeps_the_old() {
    let place = Scratch::new(0);
    let folder = place.file("mounted/checkpoints");
    if let Some(command) = in_own_file_system("full", &folder, "true") {
        assert_done(command);
    }
    if cfg!(debug_assertions) {
        // ENOSPC where the sixth part is about to be written.
        let run = place.run.path().join("injected");
        fs::create_dir(&run).unwrap();
        let mut command = child("full", &run.join("checkpoints"));
        command.env("LOCKSTEP_FAILPOINTS", "checkpoint.before_part=error:28@6");
        assert_done(command);
    }
}

#[test]
fn a_read_only_folder_is_named() {
    let place = Scratch::new(0);
    let folder = place.file("mounted/checkpoints");
    let prepare = "mount -o remount,ro \"$1\"";
    if let Some(command) = in_own_file_system("read-only", &folder, prepare) {
        assert_done(command);
    }
    // A file in the place of the folder refuses everybody, root too.
    let file = place.file("file");
    fs::write(&file, "").unwrap();
    let error = writer(&checkpoints(&file), KEEP).unwrap_err().to_string();
    assert!(error.contains(file.to_str().unwrap()), "{error}");
}

#[test]
fn the_newest_are_kept_and_numbers_go_on() {
    let place = Scratch::new(5);
    let expected = whole(&["000004-step-4", "000005-step-5"]);
    assert_eq!(files(&place.folder()), expected);
    assert_eq!(newest(&place.checkpoints), (5, vec![]));
    // The order is that of writing, whatever the labels say.
    let path = write(&mut writer(&place.checkpoints, 1).unwrap(), 2).unwrap();
    assert_eq!(path.local(), Some(&*place.file("000006-step-2")));
    assert_eq!(newest(&place.checkpoints), (2, vec![]));
    assert_eq!(files(&place.folder()), whole(&["000006-step-2"]));
}

#[test]
fn a_run_without_checkpoints_has_none_and_one_without_a_manifest_is_none() {
    let place = Scratch::new(0);
    assert!(place.checkpoints.newest().unwrap().is_none());
    assert!(place.checkpoints.is_empty());
    let missing = checkpoints(&place.file("missing"));
    assert!(missing.newest().unwrap().is_none() && missing.is_empty());
    fs::create_dir(place.file("000001-step-1")).unwrap();
    fs::write(place.file("000001-step-1/state"), "half").unwrap();
    assert!(place.checkpoints.newest().unwrap().is_none());
    assert!(place.checkpoints.is_empty());
    // What a person put there is nobody's business.
    fs::write(place.file("notes.txt"), "mine").unwrap();
    writer(&place.checkpoints, KEEP).unwrap();
    assert_eq!(files(&place.folder()), ["notes.txt"]);
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_the_file_and_the_reason() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm, &str); 6] = [
        (
            "state",
            |path| truncate(path, 39_999),
            "39999 bytes instead of 40000",
        ),
        ("plane.0", |path| flip(path, 17), "hash"),
        ("best", |path| fs::remove_file(path).unwrap(), "missing"),
        ("manifest.json", |path| flip(path, 30), "damaged"),
        ("manifest.json", |path| truncate(path, 0), "damaged"),
        ("manifest.json", rewrite_as_newer, "its format is 99"),
    ];
    for (file, harm, reason) in harms {
        let place = Scratch::new(3);
        let path = place.file("000003-step-3").join(file);
        harm(&path);
        let (content, skipped) = newest(&place.checkpoints);
        assert_eq!(content, 2, "{file}");
        let [said] = &skipped[..] else {
            panic!("{skipped:?}");
        };
        assert!(
            said.starts_with(path.to_str().unwrap()) && said.contains(reason),
            "{said}"
        );
        assert!(!place.checkpoints.is_empty());

        // When no other is left, this is an error, which says the same.
        fs::remove_dir_all(place.file("000002-step-2")).unwrap();
        let error = place.checkpoints.newest().unwrap_err();
        assert!(error.to_string().contains(said.as_str()), "{error}");

        // The run goes on, and the damaged one gives way in its turn.
        let mut writer = writer(&place.checkpoints, KEEP).unwrap();
        for content in 4..=5 {
            write(&mut writer, content).unwrap();
        }
        let expected = whole(&["000004-step-4", "000005-step-5"]);
        assert_eq!(files(&place.folder()), expected);
    }
}

#[test]
fn damage_that_comes_after_the_search_is_noticed_when_a_part_is_read() {
    let place = Scratch::new(1);
    let found = place.checkpoints.newest().unwrap().unwrap();
    flip(&place.file("000001-step-1/state"), 0);
    let error = found.checkpoint.part("state").unwrap_err();
    assert!(matches!(error.damage, Damage::Hash), "{error}");
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn truncate(path: &Path, len: u64) {
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

/// A manifest as a later program may write it.
fn rewrite_as_newer(path: &Path) {
    let line = r#"{"format":99,"shards":[]}"#;
    let hash = sha256(line.as_bytes());
    fs::write(path, format!("{line}\n{hash}\n")).unwrap();
}
