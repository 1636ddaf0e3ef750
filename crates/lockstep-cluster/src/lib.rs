//! Jobs on clusters, seen from outside.
//!
//! [`jobs`] is a client of Ray's Jobs API, which a Ray head and `lockstep serve` both speak. [`kube`] writes manifests,
//! applies them, and says why pods do not run.

pub mod jobs;
pub mod kube;
