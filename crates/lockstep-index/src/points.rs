//! Points of a metric, packed.
//!
//! A row of its own for each point would take several times the room, and reading ten thousand rows takes longer than
//! drawing them. So some thousand points are one row: step, time and value of each, eight bytes each, little-endian.

use rusqlite::Row;
use rusqlite::types::Type;

/// How many points one row holds at most.
pub(crate) const ROW: usize = 2048;

const BYTES: usize = 24;

/// A value that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The optimizer step since the beginning of the run, or the number of a script's report.
    pub step: u64,
    /// When, in seconds since 1970 in UTC.
    pub time: f64,
    /// What it was.
    pub value: f64,
}

/// The points as bytes.
pub(crate) fn pack(points: &[Point]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(points.len() * BYTES);
    for point in points {
        bytes.extend(point.step.to_le_bytes());
        bytes.extend(point.time.to_le_bytes());
        bytes.extend(point.value.to_le_bytes());
    }
    bytes
}

/// The points of these bytes; none if they are cut off.
fn unpack(bytes: &[u8]) -> Option<Vec<Point>> {
    let (points, []) = bytes.as_chunks::<BYTES>() else {
        return None;
    };
    let point = |bytes: &[u8; BYTES]| {
        let number = |at: usize| -> Option<[u8; 8]> { bytes[at..at + 8].try_into().ok() };
        Some(Point {
            step: u64::from_le_bytes(number(0)?),
            time: f64::from_le_bytes(number(8)?),
            value: f64::from_le_bytes(number(16)?),
        })
    };
    points.iter().map(point).collect()
}

/// The points in a column of a row.
pub(crate) fn points_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Point>> {
    let bytes: Vec<u8> = row.get(column)?;
    unpack(&bytes).ok_or_else(|| {
        let what = "points that are cut off".into();
        rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_back_as_they_were_and_cut_bytes_are_refused() {
        let points = [(0, 0.5), (1, f64::NAN), (u64::MAX, -0.0)].map(|(step, value)| Point {
            step,
            time: 1.75e9,
            value,
        });
        let bytes = pack(&points);
        assert_eq!(pack(&unpack(&bytes).unwrap()), bytes);
        assert_eq!(unpack(&bytes[..30]), None);
    }
}
