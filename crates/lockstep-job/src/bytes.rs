//! Amounts of memory: `"512 MiB"`.

use crate::field::Field;
use crate::keys::as_text;
use lockstep_base::amount::{self, EXAMPLE, UNITS};
use std::fmt;

/// An amount of memory, in the job file a number and a unit: `"512 MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    fn parse(text: &str) -> Option<Bytes> {
        amount::bytes(text).map(Bytes)
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
    }
}
