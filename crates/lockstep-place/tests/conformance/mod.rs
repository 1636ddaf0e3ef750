//! What holds for changes of every place, whatever it lies on.

use lockstep_place::{Place, PlaceError};
use std::thread;

/// Runs every check in a folder that is empty. `conditions` is false for a server that ignores them.
pub(crate) fn changes(folder: &Place, conditions: bool) {
    a_stream_is_seen_when_it_is_committed(folder);
    folders_are_named_and_removed(folder);
    if conditions {
        one_of_many_creates(folder);
        one_of_many_replaces(folder);
    }
}

fn a_stream_is_seen_when_it_is_committed(folder: &Place) {
    // More than two pieces of an upload, so that there is a first, a whole and a last one.
    let bytes: Vec<u8> = (0..35_000_000u32).map(|i| (i ^ (i >> 9)) as u8).collect();
    let file = folder.join("stream/file").unwrap();
    let mut writer = file.writer().unwrap();
    for piece in bytes.chunks(3_333_333) {
        writer.write_all(piece).unwrap();
    }
    assert_eq!(file.entry().unwrap(), None, "it is not whole yet");
    writer.commit().unwrap();
    assert!(file.read().unwrap() == bytes, "other bytes came back");

    let mut dropped = folder.join("stream/dropped").unwrap().writer().unwrap();
    dropped.write_all(&bytes[..20_000_000]).unwrap();
    drop(dropped);
    file.writer().unwrap().commit().unwrap();
    assert_eq!(file.read().unwrap(), b"");
    let listed = folder.list().unwrap();
    let names: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["stream/file"]);
}

fn folders_are_named_and_removed(folder: &Place) {
    let tree = folder.join("tree").unwrap();
    assert!(tree.folders().unwrap().is_empty());
    for name in ["b/1", "a/x/2", "a/3", "file"] {
        tree.join(name).unwrap().write(name.as_bytes()).unwrap();
    }
    assert_eq!(tree.folders().unwrap(), ["a", "b"]);
    tree.join("a").unwrap().delete_all().unwrap();
    tree.join("a").unwrap().delete_all().unwrap();
    assert_eq!(tree.folders().unwrap(), ["b"]);
    assert_eq!(tree.list().unwrap().len(), 2);
    assert!(tree.make_new_folder().is_ok());
    tree.sync().unwrap();
    tree.delete_all().unwrap();
    assert!(tree.list().unwrap().is_empty());
}

fn one_of_many_creates(folder: &Place) {
    let file = folder.join("conditional/created").unwrap();
    assert_eq!(file.read_versioned().unwrap(), None);
    let contents: Vec<String> = (0..6).map(|writer| format!("writer {writer}")).collect();
    let created = thread::scope(|scope| {
        let all: Vec<_> = contents
            .iter()
            .map(|content| scope.spawn(|| file.create_new(content.as_bytes()).unwrap()))
            .collect();
        let all = all.into_iter().map(|one| one.join().unwrap());
        all.collect::<Vec<_>>()
    });
    let winners: Vec<usize> = (0..created.len())
        .filter(|&one| created[one].is_some())
        .collect();
    let [winner] = winners[..] else {
        panic!("{winners:?} have all created it");
    };
    let (bytes, version) = file.read_versioned().unwrap().unwrap();
    assert_eq!(bytes, contents[winner].as_bytes());
    assert_eq!(Some(&version), created[winner].as_ref());
}

fn one_of_many_replaces(folder: &Place) {
    let file = folder.join("conditional/replaced").unwrap();
    let first = file.create_new(b"0").unwrap().unwrap();
    // Everyone adds one to what they read, until they succeed: nothing is lost.
    let count = || {
        for _ in 0..5 {
            loop {
                let (bytes, version) = file.read_versioned().unwrap().unwrap();
                let number: u32 = String::from_utf8(bytes).unwrap().parse().unwrap();
                let next = (number + 1).to_string();
                if file
                    .replace_if(&version, next.as_bytes())
                    .unwrap()
                    .is_some()
                {
                    break;
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(count);
        }
    });
    let (bytes, version) = file.read_versioned().unwrap().unwrap();
    assert_eq!(bytes, b"15");
    assert_eq!(file.replace_if(&first, b"late").unwrap(), None);
    let second = file.replace_if(&version, b"second").unwrap().unwrap();
    assert_eq!(file.read_versioned().unwrap().unwrap().1, second);
    file.delete().unwrap();
    assert_eq!(file.replace_if(&second, b"gone").unwrap(), None);
    let error = file.read().unwrap_err();
    assert!(matches!(error, PlaceError::NotFound { .. }), "{error}");
}
