//! Google's storage: its language of requests is S3's own dialect, so moto answers it too.
//!
//! This checks names, pages, ranges and errors. Google's signatures are not checked by it.

use lockstep_place::{Access, Place, PlaceError, Variables};
use lockstep_testkit::Server;

#[test]
fn objects_are_written_read_listed_and_deleted() {
    let server = Server::moto(&[]).quiet();
    let access = Access {
        endpoint: Some(server.endpoint().parse().unwrap()),
        ..Access::default()
    };
    let place = |url: &str| {
        let variables = Variables::from_iter([("GOOGLE_BEARER_TOKEN", "hunter2")]);
        Place::parse_with(url, &access, &variables).unwrap()
    };
    // The server does not know Google's conditions.
    crate::conformance::changes(&place("gs://data/changes"), false);
    let folder = place("gs://data/gcs");
    let file = folder.join("a/ü b.jpg").unwrap();
    assert_eq!(file.entry().unwrap(), None);
    file.write(b"0123456789").unwrap();
    assert_eq!(file.read().unwrap(), b"0123456789");
    assert_eq!(file.read_range(3..5).unwrap(), b"34");
    assert_eq!(folder.list().unwrap()[0].path, "a/ü b.jpg");
    file.delete().unwrap();
    assert!(folder.list().unwrap().is_empty());
    assert_eq!(place("gs://many/train").list().unwrap().len(), 1203);
    let error = place("gs://no-such-bucket/a").list().unwrap_err();
    assert!(matches!(error, PlaceError::NoBucket { .. }), "{error}");
}
