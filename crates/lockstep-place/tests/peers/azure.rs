//! Azure's blobs, against Azurite, the emulator that Microsoft keeps.

use lockstep_place::{Access, Place, PlaceError, Variables};
use lockstep_testkit::Server;

/// The account and the key that every Azurite has; both are public.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[test]
pub(crate) fn blobs_are_written_read_listed_and_deleted_and_errors_are_clear() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::azurite(folder.path()).quiet();
    let access = Access {
        endpoint: Some(format!("{}/{ACCOUNT}", server.endpoint()).parse().unwrap()),
        account: Some(ACCOUNT.into()),
        ..Access::default()
    };
    let place = |url: &str, key: &str| {
        let variables = Variables::from_iter([("AZURE_STORAGE_ACCOUNT_KEY", key)]);
        Place::parse_with(url, &access, &variables).unwrap()
    };

    let missing = place("az://no-such-container/a", KEY);
    for error in [
        missing.list().unwrap_err(),
        missing.entry().unwrap_err(),
        missing.write(b"x").unwrap_err(),
    ] {
        assert!(matches!(error, PlaceError::NoBucket { .. }), "{error}");
    }

    server.make_container(ACCOUNT, KEY, "photos");
    crate::conformance::changes(&place("az://photos/changes", KEY), true);
    let photos = place("az://photos/train", KEY);
    assert!(photos.list().unwrap().is_empty());
    for name in ["b/2.jpg", "a/1 ü.jpg", "c"] {
        let file = photos.join(name).unwrap();
        assert_eq!(file.entry().unwrap(), None);
        file.write(name.as_bytes()).unwrap();
        assert_eq!(file.read().unwrap(), name.as_bytes());
        assert_eq!(file.entry().unwrap().unwrap().size, name.len() as u64);
    }
    let listed = photos.list().unwrap();
    let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["a/1 ü.jpg", "b/2.jpg", "c"]);
    for entry in &listed {
        let file = photos.join(&entry.path).unwrap();
        assert_eq!(file.entry().unwrap().unwrap().version, entry.version);
    }
    assert_eq!(
        photos.join("b/2.jpg").unwrap().read_range(2..5).unwrap(),
        b"2.j"
    );
    let error = photos.join("c").unwrap().read_range(0..9).unwrap_err();
    assert!(
        matches!(error, PlaceError::PastTheEnd { size: 1, .. }),
        "{error}"
    );
    photos.join("c").unwrap().delete().unwrap();
    photos.join("c").unwrap().delete().unwrap();
    assert_eq!(photos.list().unwrap().len(), 2);

    let error = place("abfs://photos/train/c", "aHVudGVyMg==")
        .read()
        .unwrap_err();
    let shown = format!("{error}{error:?}");
    assert!(matches!(error, PlaceError::Refused { .. }), "{shown}");
    assert!(
        shown.contains("AZURE_STORAGE_ACCOUNT_KEY") && !shown.contains("aHVudGVyMg"),
        "{shown}"
    );
}
