//! Names that never collide: a UTC time that sorts, and random letters.

use crate::RunsError;
use lockstep_base::fs::is_random_letter;
use std::time::{SystemTime, UNIX_EPOCH};

/// `YYYYMMDD-HHMMSS` in UTC. A clock before 1970 reads as 1970.
pub(crate) fn timestamp(now: SystemTime) -> String {
    let seconds = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| passed.as_secs());
    let (year, month, day) = civil_date(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The Gregorian date that lies `days` days after 1970-01-01.
///
/// Years are counted from 1 March, so that the leap day is the last of a year, in eras of 400 years
/// that all have the same number of days (Hinnant, "chrono-compatible low-level date algorithms").
pub fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Whether `text` looks like what [`timestamp`] and four [`random_letters`](lockstep_base::fs::random_letters) make: the ending of a
/// run's name after the job's name and a `-`.
pub(crate) fn is_run_suffix(text: &str) -> bool {
    let mut pattern = "dddddddd-dddddd-xxxx".bytes();
    let fits = text.bytes().all(|byte| match pattern.next() {
        Some(b'd') => byte.is_ascii_digit(),
        Some(b'x') => is_random_letter(byte),
        Some(other) => byte == other,
        None => false,
    });
    fits && pattern.next().is_none()
}

/// Refuses names that would escape the store's folder or hide in it.
pub(crate) fn check_job_name(name: &str) -> Result<(), RunsError> {
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let all_well = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if starts_well && all_well && name.len() <= 100 {
        Ok(())
    } else {
        Err(RunsError::Name {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_timestamp_is_the_utc_time() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101-000000");
        assert_eq!(at(951_782_399), "20000228-235959");
        assert_eq!(at(951_782_400), "20000229-000000");
        assert_eq!(at(1_709_251_199), "20240229-235959");
        assert_eq!(at(1_767_225_599), "20251231-235959");
        assert_eq!(at(4_107_542_400), "21000301-000000");
    }

    #[test]
    fn a_run_suffix_is_recognised_whole() {
        assert!(is_run_suffix("20251231-235959-ab27"));
        for wrong in [
            "20251231-235959-ab2",
            "20251231-235959-ab278",
            "20251231-235959-AB27",
            "",
        ] {
            assert!(!is_run_suffix(wrong), "{wrong}");
        }
        assert!(!is_run_suffix("more-20251231-235959-ab27"));
    }

    #[test]
    fn a_name_cannot_escape_the_store() {
        for wrong in [
            "",
            "..",
            ".hidden",
            "a/b",
            "a\\b",
            "-x",
            "a b",
            "ä",
            &"x".repeat(101),
        ] {
            assert!(check_job_name(wrong).is_err(), "{wrong}");
        }
        for right in ["fashion-mnist", "a", "v1.2_x", &"x".repeat(100)] {
            assert!(check_job_name(right).is_ok(), "{right}");
        }
    }
}
