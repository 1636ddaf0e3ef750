//! How a table is written: its keys alone, so that they can also stand beside those of another table.

use serde::{Serializer, ser::SerializeMap};

/// A value whose keys stand beside those of another table.
pub(crate) trait WriteKeys {
    /// Writes them.
    fn write_keys<M: SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error>;
}

/// Writes a table that has no other keys.
pub(crate) fn write_table<S: Serializer>(
    table: &impl WriteKeys,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    table.write_keys(&mut map)?;
    map.end()
}
