//! Whatever happens to an index: no fact is lost, and runs can be looked at.

use crate::common::{Written, place, whole};
use lockstep_base::fs::CacheDir;
use lockstep_index::{Index, Keys, State};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

/// The variable that makes this test program the child of one of its tests.
const CHILD: &str = "LOCKSTEP_INDEX_CHILD";

fn names(index: &mut Index) -> Vec<String> {
    let asked = index.ask(|index| {
        index.refresh_all()?;
        index.runs(&Keys::All)
    });
    asked.unwrap().into_iter().map(|run| run.name).collect()
}

fn open(store: &Path, cache: Option<&Path>) -> Index {
    let cache = cache.map(|path| CacheDir::at(path).unwrap());
    Index::open(&place(store), cache.as_ref()).unwrap()
}

fn loss_points(index: &Index, run: &str) -> usize {
    let series = index.series(run, |_, name| name == "loss").unwrap();
    series.iter().map(|series| series.points.len()).sum()
}

#[test]
fn a_hundred_coordinators_that_write_at_once_lose_nothing() {
    let store = tempfile::tempdir().unwrap();
    let names: Vec<String> = thread::scope(|scope| {
        let coordinator = |number: u64| {
            let mut written = Written::begin(store.path(), "digits", 0.1);
            let mut index = Index::open_shared(&place(store.path()), None).unwrap();
            for epoch in 1..=3 {
                for step in 1..=20 {
                    written.progress(epoch, step, number as f64);
                }
                index.refresh(&written.run).unwrap();
            }
            written.end(0.5);
            index.refresh(&written.run).unwrap();
            written.run.name
        };
        let all: Vec<_> = (0..100)
            .map(|number| scope.spawn(move || coordinator(number)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    // As it was written, without reading a folder again.
    let index = Index::open_shared(&place(store.path()), None).unwrap();
    let runs = index.runs(&Keys::All).unwrap();
    assert_eq!(runs.len(), 100);
    assert!(runs.iter().all(|run| run.state == State::Succeeded));
    for name in &names {
        assert_eq!(loss_points(&index, name), 60, "{name}");
    }
}

#[test]
fn of_many_who_read_the_same_run_at_once_each_point_is_written_once() {
    let store = tempfile::tempdir().unwrap();
    let written = Written::begin(store.path(), "digits", 0.1);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut index = Index::open_shared(&place(store.path()), None).unwrap();
                for _ in 0..20 {
                    index.refresh(&written.run).unwrap();
                }
            });
        }
        for step in 1..=100 {
            written.progress(1, step, 1.0);
        }
    });
    let mut index = open(store.path(), None);
    index.refresh(&written.run).unwrap();
    assert_eq!(loss_points(&index, &written.run.name), 100);
    let system = index
        .series(&written.run.name, |_, name| name == "samples_per_s")
        .unwrap();
    assert_eq!(system[0].points.len(), 100);
}

/// Not a test of its own: what the child of others does.
#[test]
fn child() {
    let Ok(store) = std::env::var(CHILD) else {
        return;
    };
    let mut index = Index::open_shared(&place(Path::new(&store)), None).unwrap();
    index.refresh_all().unwrap();
}

/// This program as a child that reads a store into its index.
fn reader(store: &Path) -> Command {
    let mut command = lockstep_testkit::child!(child);
    command.env(CHILD, store);
    command
}

#[cfg(debug_assertions)]
#[test]
fn a_kill_in_the_middle_of_a_write_changes_nothing() {
    for point in [
        "index.in_write=kill@2",
        "index.before_commit=kill",
        "index.before_commit=kill@3",
    ] {
        let store = tempfile::tempdir().unwrap();
        let runs: Vec<String> = (0..4).map(|_| whole(store.path(), "a", 0.1, 0.5)).collect();
        let output = reader(store.path())
            .env("LOCKSTEP_FAILPOINTS", point)
            .output()
            .unwrap();
        assert!(!output.status.success(), "{point} was not reached");
        let mut index = open(store.path(), None);
        assert_eq!(index.notes(), [] as [String; 0], "{point}");
        let mut found = names(&mut index);
        found.sort();
        let mut wanted = runs.clone();
        wanted.sort();
        assert_eq!(found, wanted, "{point}");
        assert!(
            runs.iter().all(|run| loss_points(&index, run) == 9),
            "{point}"
        );
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_full_disk_fails_whoever_writes_the_index_and_nobody_who_reads_it() {
    let store = tempfile::tempdir().unwrap();
    whole(store.path(), "a", 0.1, 0.5);
    let output = reader(store.path())
        .env("LOCKSTEP_FAILPOINTS", "index.before_write=error:28")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("No space left") && said.contains("index.sqlite"),
        "{said}"
    );
}

#[test]
fn on_a_file_system_that_is_full_runs_are_still_found() {
    let store = tempfile::tempdir().unwrap();
    let mounted = store.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let script = "mount -t tmpfs -o size=64k none \"$1\" && cp -r \"$2\"/. \"$1\" && \
                  (dd if=/dev/zero of=\"$1\"/filler bs=1k 2>/dev/null; true) && shift 2 && exec \"$@\"";
    let runs = tempfile::tempdir().unwrap();
    whole(runs.path(), "a", 0.1, 0.5);
    let inner = lockstep_testkit::child!(full_child);
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(&mounted)
        .arg(runs.path())
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(CHILD, &mounted)
        .output();
    let Ok(output) = output else {
        eprintln!("no file system of our own on this machine");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !said.contains("running 1 test") {
        eprintln!("no file system of our own on this machine");
        return;
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains("found 1 run in memory"), "{said}");
}

/// Not a test of its own: what the child of another does.
#[test]
fn full_child() {
    let Ok(store) = std::env::var(CHILD) else {
        return;
    };
    let mut index = open(Path::new(&store), None);
    let found = names(&mut index).len();
    println!("found {found} run {}", index.place());
}

#[test]
fn a_damaged_index_is_made_again() {
    for damage in [
        "nonsense".repeat(2000).into_bytes(),
        vec![0; 5000],
        Vec::new(),
    ] {
        let store = tempfile::tempdir().unwrap();
        let name = whole(store.path(), "a", 0.1, 0.5);
        drop(names(&mut open(store.path(), None)));
        fs::write(store.path().join("index.sqlite"), &damage).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(store.path().join(format!("index.sqlite{ending}")));
        }
        assert_eq!(names(&mut open(store.path(), None)), [name]);
    }
}

#[test]
fn damage_in_the_middle_is_found_when_it_is_read() {
    let store = tempfile::tempdir().unwrap();
    let name = whole(store.path(), "a", 0.1, 0.5);
    drop(names(&mut open(store.path(), None)));
    let path = store.path().join("index.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    // All but the first page, which says what the file is.
    bytes[4096..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let mut index = open(store.path(), None);
    assert_eq!(names(&mut index), [name.as_str()]);
    assert_eq!(loss_points(&index, &name), 9);
}

#[test]
fn an_index_of_a_newer_version_is_left_alone_and_one_of_an_older_is_made_again() {
    let store = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let name = whole(store.path(), "a", 0.1, 0.5);
    drop(names(&mut open(store.path(), None)));
    let path = store.path().join("index.sqlite");
    let set = |version: u32| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!("PRAGMA user_version = {version}"))
            .unwrap();
    };
    set(99);
    let error = Index::open_shared(&place(store.path()), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("newer") && error.contains("reindex"),
        "{error}"
    );
    // Who only looks has one of their own meanwhile.
    let mut index = open(store.path(), Some(cache.path()));
    assert!(index.notes()[0].contains("newer"), "{:?}", index.notes());
    assert_eq!(names(&mut index), [name.as_str()]);
    assert!(
        index.place().starts_with(cache.path().to_str().unwrap()),
        "{}",
        index.place()
    );
    let version: u32 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
    set(0);
    let mut index = open(store.path(), None);
    assert_eq!(index.notes(), [] as [String; 0]);
    assert_eq!(names(&mut index), [name]);
}
