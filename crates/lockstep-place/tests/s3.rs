//! S3 as it is and as it fails: a real server (moto), and a way to it on which things go wrong.

mod support;

use lockstep_place::{Access, Place, PlaceError, Variables};
use lockstep_testkit::Server;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::{Fault, Proxy, answer};

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
    support::conformance::changes(&at("s3://data/changes"), true);
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
fn wrong_credentials_are_refused_with_the_variables_that_held_them() {
    let server = &*GUARDED;
    let proxy = Proxy::new(server.address(), []);
    let access = access(&proxy.endpoint());
    let tries = [
        ("AKIAUNKNOWN", "hunter2", "InvalidAccessKeyId"),
        (&server.said["key"], "hunter2", "SignatureDoesNotMatch"),
    ];
    for (key, secret, code) in tries {
        let place = Place::parse_with("s3://data/x", &access, &keys(key, secret)).unwrap();
        for error in [
            place.read().unwrap_err(),
            place.list().unwrap_err(),
            place.write(b"x").unwrap_err(),
        ] {
            assert!(matches!(error, PlaceError::Refused { .. }), "{error}");
            let shown = format!("{error}{error:?}");
            for word in [
                "s3://data/x",
                code,
                "403",
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
            ] {
                assert!(shown.contains(word), "{word} is missing in {shown}");
            }
            assert!(
                !shown.contains("hunter2") && !shown.contains(key),
                "{shown}"
            );
        }
    }
    assert_eq!(proxy.connections(), 6, "what cannot pass is not repeated");
}

#[test]
fn right_credentials_without_permission_are_refused() {
    let server = &*GUARDED;
    let variables = keys(&server.said["key"], &server.said["secret"]);
    let place = Place::parse_with("s3://data/x", &access(server.endpoint()), &variables).unwrap();
    let error = place.list().unwrap_err().to_string();
    assert!(error.contains("AccessDenied"), "{error}");
}

#[test]
fn anonymous_access_is_not_signed() {
    let refusal = || {
        let body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
        Fault::Say(answer("403 Forbidden", "", body))
    };
    let proxy = Proxy::forever(OPEN.address(), [], refusal);
    let signed = through(&proxy, "s3://data/x")
        .read()
        .unwrap_err()
        .to_string();
    assert!(signed.contains("AWS_ACCESS_KEY_ID"), "{signed}");
    let anonymous = Access {
        anonymous: true,
        ..access(&proxy.endpoint())
    };
    let error = place("s3://data/x", &anonymous)
        .read()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("anonymous") && error.contains("AccessDenied"),
        "{error}"
    );
    let heads = proxy.heads();
    assert!(
        heads[0]
            .to_lowercase()
            .contains("authorization: aws4-hmac-sha256")
    );
    assert!(
        !heads[1].to_lowercase().contains("authorization"),
        "{}",
        heads[1]
    );
    let anonymous = Access {
        anonymous: true,
        ..access(OPEN.endpoint())
    };
    let public = place("s3://public/a", &anonymous);
    assert_eq!(public.read().unwrap(), b"for all");
    at("s3://data/private").write(b"x").unwrap();
    let private = place("s3://data/private", &anonymous).read();
    assert!(matches!(private, Err(PlaceError::Refused { .. })));
}

#[test]
fn without_credentials_the_variables_that_were_looked_at_are_named() {
    let access = access(OPEN.endpoint());
    let place = Place::parse_with("s3://data/x", &access, &Variables::default()).unwrap();
    let error = place.read().unwrap_err();
    assert!(matches!(error, PlaceError::NoCredentials { .. }), "{error}");
    let shown = error.to_string();
    for word in [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "anonymous = true",
    ] {
        assert!(shown.contains(word), "{word} is missing in {shown}");
    }
}

#[test]
fn a_role_is_assumed_once_and_its_credentials_are_used() {
    let server = &*GUARDED;
    let sts = Proxy::new(server.address(), []);
    let access = Access {
        role_arn: Some(server.said["role"].clone()),
        external_id: Some("customer 7".into()),
        session_name: "lockstep-test".into(),
        sts_endpoint: Some(sts.endpoint().parse().unwrap()),
        ..access(server.endpoint())
    };
    let variables = keys(&server.said["key"], &server.said["secret"]);
    let folder = Place::parse_with("s3://data/role", &access, &variables).unwrap();
    folder.join("a").unwrap().write(b"by the role").unwrap();
    assert_eq!(folder.join("a").unwrap().read().unwrap(), b"by the role");
    assert_eq!(folder.list().unwrap().len(), 1);
    assert_eq!(sts.connections(), 1);
    let other = Place::parse_with("s3://many", &access, &variables).unwrap();
    assert!(
        matches!(other.list(), Err(PlaceError::Refused { .. })),
        "the role may not read this"
    );
}

#[test]
fn a_role_that_is_not_given_is_said_to_be_refused_by_sts() {
    let server = &*GUARDED;
    let role = server.said["role"].clone();
    let access = Access {
        role_arn: Some(role.clone()),
        ..access(server.endpoint())
    };
    let variables = keys(&server.said["key"], "hunter2");
    let place = Place::parse_with("s3://data/role", &access, &variables).unwrap();
    let error = place.list().unwrap_err().to_string();
    for word in [
        "STS",
        "SignatureDoesNotMatch",
        &role,
        "AWS_SECRET_ACCESS_KEY",
    ] {
        assert!(error.contains(word), "{word} is missing in {error}");
    }
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_role_is_assumed_anew_before_its_credentials_end() {
    let role = |expiration: &str| {
        let credentials = format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA</AccessKeyId>\
             <SecretAccessKey>hunter2</SecretAccessKey><SessionToken>token</SessionToken>\
             <Expiration>{expiration}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
        );
        Fault::Say(answer("200 OK", "", credentials.as_bytes()))
    };
    let refused = Fault::Say(answer("403 Forbidden", "", b"<ErrorResponse/>"));
    let plan = [
        role("2020-01-01T00:00:00Z"),
        role("2099-01-01T00:00:00Z"),
        refused,
    ];
    let sts = Proxy::new(OPEN.address(), plan);
    let access = Access {
        role_arn: Some("arn:aws:iam::123456789012:role/reader".into()),
        sts_endpoint: Some(sts.endpoint().parse().unwrap()),
        ..access(OPEN.endpoint())
    };
    let folder = place("s3://many/train/class-0", &access);
    for connections in [1, 2, 2, 2] {
        folder.list().unwrap();
        assert_eq!(sts.connections(), connections);
    }
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
fn a_connection_cut_in_mid_object_is_taken_up_again() {
    let bytes = content(3_000_000);
    at("s3://data/cut").write(&bytes).unwrap();
    let plan = [
        Fault::CutAnswer(1_000_000),
        Fault::CutAnswer(40),
        Fault::CutAnswer(1_000_001),
    ];
    let proxy = Proxy::new(OPEN.address(), plan);
    assert!(through(&proxy, "s3://data/cut").read().unwrap() == bytes);
    assert_eq!(proxy.connections(), 4);
    let proxy = Proxy::new(OPEN.address(), [Fault::CutAnswer(10_000)]);
    let range = through(&proxy, "s3://data/cut")
        .read_range(5..100_005)
        .unwrap();
    assert!(range == bytes[5..100_005]);
}

#[test]
fn a_connection_that_is_always_cut_is_an_error_and_never_short_data() {
    at("s3://data/always-cut").write(&content(300_000)).unwrap();
    let proxy = Proxy::forever(OPEN.address(), [], || Fault::CutAnswer(50_000));
    let access = Access {
        retries: 2,
        ..access(&proxy.endpoint())
    };
    let error = place("s3://data/always-cut", &access).read().unwrap_err();
    assert!(
        matches!(error, PlaceError::Unreachable { tries: 3, .. }),
        "{error}"
    );
    let shown = error.to_string();
    assert!(
        shown.contains("of 300000 bytes came") && shown.contains("3 times"),
        "{shown}"
    );
    assert_eq!(proxy.connections(), 3);
}

#[test]
fn an_object_that_changes_while_it_is_read_is_an_error() {
    let file = at("s3://data/changing");
    file.write(&content(300_000)).unwrap();
    let writer = file.clone();
    let change = move || writer.write(&vec![7; 300_000]).unwrap();
    let proxy = Proxy::new(
        OPEN.address(),
        [Fault::CutAnswerThen(100_000, Box::new(change))],
    );
    let access = Access {
        retries: 9,
        ..access(&proxy.endpoint())
    };
    let error = place("s3://data/changing", &access).read().unwrap_err();
    assert!(matches!(error, PlaceError::Changed { .. }), "{error}");
    assert!(
        error.to_string().contains("s3://data/changing changed"),
        "{error}"
    );
}

#[test]
fn slow_reads_are_waited_for_and_end_at_the_deadline() {
    let bytes = content(60_000);
    at("s3://data/slow").write(&bytes).unwrap();
    let drip = || Fault::Drip(1_000, Duration::from_millis(20));
    let proxy = Proxy::new(OPEN.address(), [drip()]);
    assert!(through(&proxy, "s3://data/slow").read().unwrap() == bytes);

    let proxy = Proxy::forever(OPEN.address(), [], || {
        Fault::Drip(100, Duration::from_millis(20))
    });
    let access = Access {
        timeout_s: 4,
        ..access(&proxy.endpoint())
    };
    let began = Instant::now();
    let error = place("s3://data/slow", &access).read().unwrap_err();
    assert!(
        matches!(error, PlaceError::TimedOut { seconds: 4, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("of 60000 bytes came"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(8));
}

#[test]
fn silence_counts_as_a_cut() {
    let bytes = content(60_000);
    at("s3://data/silent").write(&bytes).unwrap();
    let proxy = Proxy::new(OPEN.address(), [Fault::Hang(30_000), Fault::Hang(0)]);
    let access = Access {
        stall_s: 2,
        ..access(&proxy.endpoint())
    };
    assert!(place("s3://data/silent", &access).read().unwrap() == bytes);
    assert!(proxy.connections() >= 3);
}

#[test]
fn a_server_that_is_down_is_named_with_how_often_it_was_tried() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let access = Access {
        retries: 2,
        ..access(&endpoint)
    };
    let file = place("s3://data/x", &access);
    for error in [
        file.read().unwrap_err(),
        file.list().unwrap_err(),
        file.write(b"x").unwrap_err(),
    ] {
        assert!(
            matches!(error, PlaceError::Unreachable { tries: 3, .. }),
            "{error}"
        );
        let shown = error.to_string();
        assert!(
            shown.contains(&endpoint) && shown.contains("refused"),
            "{shown}"
        );
    }
}

#[test]
fn a_busy_server_is_asked_again_and_not_without_end() {
    let slow_down = || {
        let body =
            b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>";
        Fault::Say(answer("503 Slow Down", "", body))
    };
    at("s3://data/busy").write(b"x").unwrap();
    let proxy = Proxy::new(OPEN.address(), [slow_down(), slow_down()]);
    assert_eq!(through(&proxy, "s3://data/busy").read().unwrap(), b"x");
    let proxy = Proxy::forever(OPEN.address(), [], slow_down);
    let access = Access {
        retries: 3,
        ..access(&proxy.endpoint())
    };
    let error = place("s3://data/busy", &access)
        .write(b"y")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("4 times: 503 SlowDown: Reduce your request rate."),
        "{error}"
    );
    assert_eq!(proxy.connections(), 4);
}

#[test]
fn a_write_is_seen_whole_or_not_at_all() {
    let file = at("s3://data/atomic");
    file.write(b"old").unwrap();
    let new = content(1_000_000);
    let proxy = Proxy::forever(OPEN.address(), [], || Fault::CutRequest(400_000));
    let access = Access {
        retries: 1,
        ..access(&proxy.endpoint())
    };
    place("s3://data/atomic", &access).write(&new).unwrap_err();
    assert_eq!(file.read().unwrap(), b"old");
    place("s3://data/atomic-new", &access)
        .write(&new)
        .unwrap_err();
    assert_eq!(at("s3://data/atomic-new").entry().unwrap(), None);
    // The answer is lost after the server has taken the object: writing it again changes nothing.
    let proxy = Proxy::new(
        OPEN.address(),
        [Fault::CutRequest(400_000), Fault::CutAnswer(0)],
    );
    through(&proxy, "s3://data/atomic").write(&new).unwrap();
    assert!(file.read().unwrap() == new);
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

#[test]
fn a_certificate_is_checked_and_variables_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::moto(&["--tls", folder.path().to_str().unwrap()]).quiet();
    let error = place(
        "s3://data/tls",
        &Access {
            retries: 0,
            ..access(server.endpoint())
        },
    )
    .read()
    .unwrap_err()
    .to_string();
    assert!(error.contains("certificate"), "{error}");
    // The variables must be there before the process has threads: it is started anew.
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "in_a_process_of_its_own",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("SSL_CERT_FILE", folder.path().join("ca.pem"))
        .env("AWS_ENDPOINT_URL", server.endpoint())
        .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "hunter2")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        said.contains("read over TLS"),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[test]
#[ignore = "the test before starts it"]
fn in_a_process_of_its_own() {
    let place = Place::parse("s3://data/tls", &Access::default()).unwrap();
    place.write(b"read over TLS").unwrap();
    println!("{}", String::from_utf8(place.read().unwrap()).unwrap());
}
