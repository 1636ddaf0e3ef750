//! What goes wrong on the way: cuts, silence, busy servers, and objects that change meanwhile.

use super::*;
use std::time::{Duration, Instant};

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
        Fault::Drip(100, Duration::from_millis(100))
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
    // All of it would take a minute.
    assert!(began.elapsed() < Duration::from_secs(40));
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
    // Nobody listens on the first port.
    let endpoint = "http://127.0.0.1:1".to_owned();
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
