//! Plain web servers, each answer as one that was seen in the wild.

use lockstep_place::{Access, Place, PlaceError, Variables};
use lockstep_testkit::faults::{Fault, Proxy, answer};

/// No server lies behind: every answer is planned.
const NOWHERE: &str = "127.0.0.1:1";

fn place(server: &Proxy, path: &str, access: Access) -> Place {
    let url = format!("{}{path}", server.endpoint());
    Place::parse_with(&url, &access, &Variables::default()).unwrap()
}

fn file(body: &[u8]) -> Fault {
    Fault::Say(answer("200 OK", "ETag: \"one\"\r\n", body))
}

/// An answer that ends before its announced length.
fn cut(etag: &str, announced: usize, body: &[u8]) -> Fault {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\nETag: \"{etag}\"\r\n\r\n");
    Fault::Say([head.as_bytes(), body].concat())
}

#[test]
fn a_file_is_read_under_its_encoded_name_with_its_query() {
    let server = Proxy::new(NOWHERE, [file(b"hello"), file(b"hello")]);
    let place = place(&server, "/data%20set/a.csv?sig=hunter2", Access::default());
    assert_eq!(place.read().unwrap(), b"hello");
    assert_eq!(place.entry().unwrap().unwrap().size, 5);
    let heads = server.heads();
    assert!(
        heads[0].starts_with("GET /data%20set/a.csv?sig=hunter2 HTTP/1.1"),
        "{}",
        heads[0]
    );
    assert!(
        heads[1].starts_with("HEAD /data%20set/a.csv?sig=hunter2 "),
        "{}",
        heads[1]
    );
    assert!(!format!("{place}{place:?}").contains("hunter2"));
}

#[test]
fn a_query_is_in_no_error() {
    let server = Proxy::new(
        NOWHERE,
        [Fault::Say(answer("403 Forbidden", "", b"<h1>no</h1>"))],
    );
    let place = place(
        &server,
        "/a?sig=hunter2",
        Access {
            retries: 0,
            ..Access::default()
        },
    );
    let refused = place.read().unwrap_err();
    assert!(matches!(refused, PlaceError::Refused { .. }), "{refused}");
    // The connection is closed without an answer now.
    let gone = Proxy::forever(NOWHERE, [], || Fault::None);
    let gone = self::place(
        &gone,
        "/a?sig=hunter2",
        Access {
            retries: 1,
            ..Access::default()
        },
    );
    let gone = gone.read().unwrap_err();
    assert!(
        matches!(gone, PlaceError::Unreachable { tries: 2, .. }),
        "{gone}"
    );
    let shown = format!("{refused}{refused:?}{gone}{gone:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_read_that_was_cut_begins_anew_where_the_server_knows_no_ranges() {
    let plan = [
        cut("one", 10, b"01234"),
        file(b"0123456789"),
        file(b"0123456789"),
    ];
    let server = Proxy::new(NOWHERE, plan);
    assert_eq!(
        place(&server, "/a", Access::default()).read().unwrap(),
        b"0123456789"
    );
    let heads = server.heads();
    assert!(
        heads[1].to_lowercase().contains("range: bytes=5-9"),
        "{}",
        heads[1]
    );
    assert!(!heads[2].to_lowercase().contains("range:"), "{}", heads[2]);
}

#[test]
fn a_read_that_was_cut_goes_on_where_the_server_knows_ranges() {
    let rest = "ETag: \"one\"\r\nContent-Range: bytes 5-9/10\r\n";
    let rest = Fault::Say(answer("206 Partial Content", rest, b"56789"));
    let server = Proxy::new(NOWHERE, [cut("one", 10, b"01234"), rest]);
    assert_eq!(
        place(&server, "/a", Access::default()).read().unwrap(),
        b"0123456789"
    );
}

#[test]
fn two_versions_are_never_joined() {
    let rest = "ETag: \"two\"\r\nContent-Range: bytes 5-9/10\r\n";
    let rest = Fault::Say(answer("206 Partial Content", rest, b"56789"));
    let server = Proxy::new(NOWHERE, [cut("one", 10, b"01234"), rest]);
    let error = place(&server, "/a", Access::default()).read().unwrap_err();
    assert!(matches!(error, PlaceError::Changed { .. }), "{error}");
    // The same without ranges, and with a new length.
    let plan = [
        cut("one", 10, b"01234"),
        file(b"anything"),
        cut("two", 3, b"abc"),
    ];
    let server = Proxy::new(NOWHERE, plan);
    let error = place(&server, "/a", Access::default()).read().unwrap_err();
    assert!(matches!(error, PlaceError::Changed { .. }), "{error}");
}

#[test]
fn a_range_of_a_server_that_knows_none_is_an_error() {
    let server = Proxy::new(NOWHERE, [file(b"0123456789")]);
    let error = place(&server, "/a", Access::default())
        .read_range(2..4)
        .unwrap_err();
    assert!(matches!(error, PlaceError::NoRanges { .. }), "{error}");
}

#[test]
fn a_missing_file_is_named_and_a_list_is_refused() {
    let missing = || Fault::Say(answer("404 Not Found", "", b"<html>not here</html>"));
    let server = Proxy::forever(NOWHERE, [], missing);
    let place = place(&server, "/a", Access::default());
    let error = place.read().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}/a does not exist", server.endpoint())
    );
    assert_eq!(place.entry().unwrap(), None);
    let error = place.list().unwrap_err().to_string();
    assert!(
        error.contains("a web server has no list of its files"),
        "{error}"
    );
}

#[test]
fn an_answer_without_a_length_is_an_error() {
    let endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello".to_vec();
    let server = Proxy::new(NOWHERE, [Fault::Say(endless)]);
    let error = place(&server, "/a", Access::default())
        .read()
        .unwrap_err()
        .to_string();
    assert!(
        error.to_lowercase().contains("content-length") || error.contains("length"),
        "{error}"
    );
}
