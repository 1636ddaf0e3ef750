//! Names that never collide: a UTC time that sorts, and random letters.

use crate::RunsError;
use lockstep_base::fs::is_random_letter;

/// `YYYYMMDD-HHMMSS` in UTC of so many seconds since 1970.
pub(crate) fn timestamp(seconds: i64) -> String {
    let shown = lockstep_base::calendar::show(seconds);
    shown.replace(['-', ':'], "").replace(' ', "-")
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

/// The letters of a [run's suffix](is_run_suffix).
const SUFFIX: usize = 20;

/// A run's name as that of its job and the suffix after it. Nothing if it is not the name of a run.
pub(crate) fn split_run_name(name: &str) -> Option<(&str, &str)> {
    let at = name.len().checked_sub(SUFFIX)?;
    let (job, suffix) = (name.get(..at)?, name.get(at..)?);
    let job = job.strip_suffix('-')?;
    is_run_suffix(suffix).then_some((job, suffix))
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

    #[test]
    fn a_timestamp_is_the_utc_time() {
        let at = timestamp;
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
