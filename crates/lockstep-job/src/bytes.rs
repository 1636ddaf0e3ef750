//! Amounts of memory: `"512 MiB"`.

use crate::field::Field;
use crate::keys::as_text;
use std::fmt;

const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// What is right.
const EXAMPLE: &str = "write for example \"512 MiB\" or \"2 GiB\"";

/// An amount of memory, in the job file a number and a unit: `"512 MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    fn parse(text: &str) -> Option<Bytes> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(end);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
        let bytes = number.parse::<u64>().ok()?.checked_mul(*size)?;
        (bytes > 0 && bytes <= i64::MAX as u64).then_some(Bytes(bytes))
    }

    /// At least `least`, or a mistake at `field`.
    pub(crate) fn read(field: &Field<'_>, least: Bytes) -> Option<Bytes> {
        let text = field.text()?;
        match Bytes::parse(text) {
            None => field.reject(format!("cannot be {text:?}"), EXAMPLE),
            Some(found) if found < least => field.reject(
                format!("must be at least {least}, found {found}"),
                format!("write \"{least}\" or more"),
            ),
            found => found,
        }
    }
}

/// In the largest unit that needs no fraction.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &&(&str, u64)| self.0.is_multiple_of(unit.1);
        let (unit, size) = UNITS[..4].iter().rev().find(fits).unwrap_or(&UNITS[0]);
        write!(f, "{} {unit}", self.0 / size)
    }
}

as_text!(Bytes, |text| Self::parse(text).ok_or(EXAMPLE), {
    "type": "string",
    "pattern": "^\\s*[0-9]+\\s*(B|KiB|MiB|GiB|kB|MB|GB)\\s*$",
    "examples": ["512 MiB", "2 GiB"],
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_as_it_is_read() {
        for (text, bytes) in [
            ("1 GiB", 1 << 30),
            ("512MiB", 512 << 20),
            ("3 MB", 3_000_000),
        ] {
            let parsed = Bytes::parse(text).unwrap();
            assert_eq!(parsed, Bytes(bytes), "{text}");
            assert_eq!(Bytes::parse(&parsed.to_string()), Some(parsed));
        }
        for wrong in [
            "",
            "12",
            "GiB",
            "0 B",
            "1 gib",
            "-1 MiB",
            "1.5 GiB",
            "99999999999 GiB",
        ] {
            assert_eq!(Bytes::parse(wrong), None, "{wrong}");
        }
    }
}
