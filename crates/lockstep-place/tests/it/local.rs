//! Folders of this machine do what stores do.

use lockstep_place::{Access, Place};

#[test]
fn changes_are_whole_and_one_of_many_wins() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
    crate::conformance::changes(&place, true);
}
