//! The conversation that `make test` holds with Azurite, if it is in the cache already. S3 is asked by the program's own
//! tests.

use lockstep_testkit::Peer;

#[test]
fn azure() {
    if Peer::Azurite.is_here() {
        crate::azure::blobs_are_written_read_listed_and_deleted_and_errors_are_clear();
    }
}
