//! What places promise, held against real servers of object stores.

mod azure;
#[path = "../conformance/mod.rs"]
mod conformance;
mod gcs;
mod s3;
mod smoke;
