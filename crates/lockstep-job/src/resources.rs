//! `[resources]`: what a worker needs of a cluster, and how workers are spread over it.

use crate::Bytes;
use crate::field::{Field, Rule};
use crate::keys::{Any, By, keys, words};
use std::collections::BTreeMap;

/// The least memory that a worker can ask for: less than any has.
const LEAST_MEMORY: Bytes = Bytes(1 << 20);

keys! {
    /// What a worker needs of a cluster, and how workers are spread over it. On one machine nobody asks.
    pub struct Resources: all default {
        /// Processors that are kept for each worker; a part of one is allowed.
        cpus: f64 = default(1.0) => Rule::POSITIVE;
        /// GPUs that are kept for each worker; a part of one is allowed.
        gpus: f64 = default(0.0) => Rule::NOT_NEGATIVE;
        /// Memory that is kept for each worker, such as `"4 GiB"`; if left out, it is not counted.
        memory: Option<Bytes> = optional => By(|field: &Field<'_>| Bytes::read(field, LEAST_MEMORY));
        /// How workers are spread over the nodes.
        place: Placement = default(Placement::Pack) => Any;
        /// Labels that a node must have for workers to be placed there, each with its value.
        labels: BTreeMap<String, String> = default(BTreeMap::new()) => By(texts);
    }
}

words! {
    /// How workers are spread over the nodes of a cluster.
    pub enum Placement {
        /// On as few nodes as possible.
        "pack" Pack
        /// On as many nodes as possible.
        "spread" Spread
        /// Each on a node of its own.
        "strict-spread" StrictSpread
    }
}

/// A table of texts, by any key.
pub(crate) fn texts(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    let expected = "a table such as { zone = \"a\" }";
    field.map(expected, |_, field| field.text().map(str::to_owned))
}
