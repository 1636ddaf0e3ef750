//! Amounts of memory and of time as people write them: `512 MiB`, `30d`.

use std::time::Duration;

/// What bytes are counted in; those that are powers of two first.
pub const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// What is right, for messages.
pub const EXAMPLE: &str = "write for example \"512 MiB\" or \"2 GiB\"";

const TIMES: [(&str, u64); 5] = [
    ("s", 1),
    ("min", 60),
    ("h", 3600),
    ("d", 86_400),
    ("w", 604_800),
];

/// The bytes of a whole number and a unit of [`UNITS`]; nothing for no bytes, and for what no file can hold.
pub fn bytes(text: &str) -> Option<u64> {
    let bytes = amount(text, &UNITS)?;
    (bytes > 0 && bytes <= i64::MAX as u64).then_some(bytes)
}

/// The time of a whole number and one of `s`, `min`, `h`, `d` and `w`.
pub fn time(text: &str) -> Option<Duration> {
    amount(text, &TIMES).map(Duration::from_secs)
}

fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let (_, size) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_number_and_a_unit() {
        assert_eq!(bytes("512MiB"), Some(512 << 20));
        assert_eq!(bytes(" 3 MB "), Some(3_000_000));
        assert_eq!(time("30d"), Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(time("2 h"), Some(Duration::from_secs(7200)));
        for wrong in [
            "",
            "12",
            "GiB",
            "1 gib",
            "-1 MiB",
            "1.5 GiB",
            "99999999999 GiB",
            "0 B",
        ] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        for wrong in ["", "30", "d", "1 month", "99999999999999999999 s"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
