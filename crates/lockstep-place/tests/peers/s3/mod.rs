//! S3 as it is and as it fails: a real server (moto), and a way to it on which things go wrong.

mod credentials;
mod faults;
use lockstep_place::{Access, Place, PlaceError, Variables};
use lockstep_testkit::Server;
use lockstep_testkit::faults::{Fault, Proxy, answer};
use std::sync::LazyLock;

/// Anyone may do anything here.
static OPEN: LazyLock<Server> = LazyLock::new(|| Server::moto(&[]).quiet());
/// Signatures and permissions are checked here.
static GUARDED: LazyLock<Server> = LazyLock::new(|| Server::moto(&["--auth"]).quiet());

fn keys(key: &str, secret: &str) -> Variables {
    Variables::from_iter([
        ("AWS_ACCESS_KEY_ID", key),
        ("AWS_SECRET_ACCESS_KEY", secret),
    ])
}

fn access(endpoint: &str) -> Access {
    Access {
        endpoint: Some(endpoint.parse().unwrap()),
        timeout_s: 60,
        ..Access::default()
    }
}

fn place(url: &str, access: &Access) -> Place {
    Place::parse_with(url, access, &keys("AKIAEXAMPLE", "hunter2")).unwrap()
}

/// A place of the open server.
fn at(url: &str) -> Place {
    place(url, &access(OPEN.endpoint()))
}

/// The same place with `proxy` on the way.
fn through(proxy: &Proxy, url: &str) -> Place {
    place(url, &access(&proxy.endpoint()))
}

/// Bytes of which no piece is like another.
fn content(length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}

#[test]
fn what_was_written_is_read_listed_and_deleted() {
    let folder = at("s3://data/round trip");
    let names = [
        "a/b.bin",
        "a/ü é.jpg",
        "a/odd %20+&?#[]{}~.jpg",
        "empty",
        ".hidden",
        "_SUCCESS",
    ];
    for name in names {
        let file = folder.join(name).unwrap();
        assert_eq!(file.entry().unwrap(), None, "{name}");
        file.write(name.as_bytes()).unwrap();
        assert_eq!(file.read().unwrap(), name.as_bytes());
        let entry = file.entry().unwrap().unwrap();
        assert_eq!(entry.path, name.rsplit('/').next().unwrap());
        assert_eq!(entry.size, name.len() as u64);
    }
    folder.join("empty").unwrap().write(b"").unwrap();
    assert_eq!(folder.join("empty").unwrap().read().unwrap(), b"");
    let listed = folder.list().unwrap();
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(
        listed
            .iter()
            .map(|entry| entry.path.as_str())
            .collect::<Vec<_>>(),
        sorted
    );
    for entry in &listed {
        let file = folder.join(&entry.path).unwrap();
        assert_eq!(file.entry().unwrap().unwrap().version, entry.version);
        file.delete().unwrap();
        file.delete().unwrap();
    }
    assert!(folder.list().unwrap().is_empty());
}

#[test]
fn changes_are_whole_and_one_of_many_wins() {
    crate::conformance::changes(&at("s3://data/changes"), true);
}

#[test]
fn a_write_whose_answer_is_lost_counts_as_the_one_that_was_made() {
    // The server has done it; the client hears nothing of that and asks again.
    let proxy = Proxy::new(OPEN.address(), [Fault::CutAnswer(0)]);
    let file = through(&proxy, "s3://data/lost/created");
    let version = file.create_new(b"mine").unwrap().unwrap();
    assert!(proxy.connections() > 1);
    assert_eq!(file.create_new(b"yours").unwrap(), None);
    let proxy = Proxy::new(OPEN.address(), [Fault::CutAnswer(0)]);
    let file = through(&proxy, "s3://data/lost/created");
    file.replace_if(&version, b"mine again").unwrap().unwrap();
    assert_eq!(file.read().unwrap(), b"mine again");
}

#[test]
fn a_piece_that_is_cut_is_sent_again_and_the_whole_is_right() {
    // Begin, the first piece cut in its middle, then again, and the answer to the end is lost.
    let faults = [
        Fault::None,
        Fault::CutRequest(5_000_000),
        Fault::None,
        Fault::None,
        Fault::CutAnswer(0),
    ];
    let bytes = content(20_000_000);
    let proxy = Proxy::new(OPEN.address(), faults);
    let file = through(&proxy, "s3://data/pieces");
    file.write(&bytes).unwrap();
    assert!(proxy.connections() > 5, "{}", proxy.connections());
    assert!(at("s3://data/pieces").read().unwrap() == bytes);
}

#[test]
fn a_range_is_all_there_or_an_error() {
    let file = at("s3://data/range");
    file.write(b"0123456789").unwrap();
    assert_eq!(file.read_range(2..5).unwrap(), b"234");
    assert_eq!(file.read_range(9..10).unwrap(), b"9");
    for range in [5..11, 10..11, 100..200] {
        let error = file.read_range(range).unwrap_err();
        assert!(
            matches!(error, PlaceError::PastTheEnd { size: 10, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_new_content_replaces_the_old_and_has_another_version() {
    let file = at("s3://data/replaced");
    file.write(&content(5000)).unwrap();
    let before = file.entry().unwrap().unwrap();
    file.write(b"short").unwrap();
    let after = file.entry().unwrap().unwrap();
    assert_eq!(file.read().unwrap(), b"short");
    assert_ne!(before.version, after.version);
    assert_eq!(file.read_range_of(&after, 1..3).unwrap(), b"ho");
    let error = file.read_range_of(&before, 1..3).unwrap_err();
    assert!(matches!(error, PlaceError::Changed { .. }), "{error}");
}

#[test]
fn a_list_of_many_pages_is_whole_sorted_and_without_folder_markers() {
    let expect_all = |place: Place| {
        let listed = place.list().unwrap();
        assert_eq!(listed.len(), 1203);
        assert!(listed.is_sorted_by(|a, b| a.path.as_bytes() < b.path.as_bytes()));
        assert_eq!(listed[0].path, "class-0/00000.jpg");
        assert!(listed.iter().all(|entry| entry.path.starts_with("class-")));
    };
    expect_all(at("s3://many/train"));
    assert_eq!(at("s3://many").list().unwrap().len(), 1203);
    assert_eq!(at("s3://many/train/class-1").list().unwrap().len(), 172);
    // Names end with a slash or not at all: `class-1` is not the beginning of `class-10`.
    assert!(at("s3://many/train/class").list().unwrap().is_empty());
    // The second page fails twice, once in its middle.
    let slow_down = answer("503 Slow Down", "", b"<Error><Code>SlowDown</Code></Error>");
    let plan = [Fault::None, Fault::Say(slow_down), Fault::CutAnswer(2000)];
    let proxy = Proxy::new(OPEN.address(), plan);
    expect_all(through(&proxy, "s3://many/train"));
    assert_eq!(proxy.connections(), 4);
}

#[test]
fn a_missing_bucket_is_named() {
    let file = at("s3://no-such-bucket/a");
    let errors = [
        file.list().unwrap_err(),
        file.entry().unwrap_err(),
        file.read().unwrap_err(),
        file.read_range(0..1).unwrap_err(),
        file.write(b"x").unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, PlaceError::NoBucket { .. }), "{error}");
        let shown = error.to_string();
        assert!(
            shown.contains("`no-such-bucket`") && shown.contains(OPEN.endpoint()),
            "{shown}"
        );
    }
}

#[test]
fn a_missing_object_is_named() {
    let file = at("s3://data/missing/a");
    let error = file.read().unwrap_err();
    assert!(matches!(error, PlaceError::NotFound { .. }), "{error}");
    assert_eq!(error.to_string(), "s3://data/missing/a does not exist");
    assert_eq!(file.entry().unwrap(), None);
}

#[test]
fn a_bucket_in_another_region_is_said_to_be_there() {
    let moved = answer(
        "301 Moved Permanently",
        "x-amz-bucket-region: eu-west-1\r\n",
        b"<Error><Code>PermanentRedirect</Code><Message>Use the other endpoint.</Message></Error>",
    );
    let proxy = Proxy::new(OPEN.address(), [Fault::Say(moved)]);
    let error = through(&proxy, "s3://data/x")
        .read()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("PermanentRedirect") && error.contains("region = \"eu-west-1\""),
        "{error}"
    );
}

#[test]
fn many_threads_share_one_place() {
    let folder = at("s3://data/shared");
    std::thread::scope(|scope| {
        for number in 0..16u8 {
            let file = folder.join(&format!("{number}")).unwrap();
            scope.spawn(move || {
                file.write(&[number; 1000]).unwrap();
                assert_eq!(file.read().unwrap(), [number; 1000]);
            });
        }
    });
    assert_eq!(folder.list().unwrap().len(), 16);
}
