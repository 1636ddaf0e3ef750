//! The Gregorian calendar, also before it began, in UTC.
//!
//! Years are counted from 1 March, so that the leap day is the last of a year, in eras of 400 years that all have the
//! same number of days (Hinnant, "chrono-compatible low-level date algorithms").

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Days of an era.
const ERA: i64 = 146_097;
/// Days from the beginning of an era to that of 1970.
const TO_1970: i64 = 719_468;

/// The time now, in seconds since 1970; a clock before that reads as 1970. Milliseconds are enough, and short to write.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as f64 / 1000.0
}

/// The days from 1970-01-01 to a date; none if there is no such date.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let from_march = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - TO_1970;
    // What there is in the calendar comes back as it was.
    (date(days) == (year, month, day)).then_some(days)
}

/// The year, month and day that lie so many days after 1970-01-01.
pub fn date(days: i64) -> (i64, i64, i64) {
    let days = days + TO_1970;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// `2026-11-01 13:45:02` of so many seconds since 1970.
pub fn show(seconds: i64) -> String {
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_three_eras_follows_the_one_before_and_comes_back() {
        let mut before = date(-2 * ERA - 1);
        for day in -2 * ERA..ERA {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), Some(day));
            let follows = match before {
                (y, m, d) if (y, m) == (year, month) => of_month == d + 1,
                (y, m, d) if y == year => (month, of_month) == (m + 1, 1) && d >= 28,
                (y, m, d) => (year, month, of_month) == (y + 1, 1, 1) && (m, d) == (12, 31),
            };
            assert!(follows, "{before:?} {year}-{month}-{of_month}");
            before = (year, month, of_month);
        }
    }

    #[test]
    fn a_date_that_the_calendar_does_not_have_is_none() {
        assert_eq!(days(2000, 2, 29), Some(11_016));
        for (year, month, day) in [
            (1900, 2, 29),
            (2023, 2, 29),
            (2026, 0, 1),
            (2026, 13, 1),
            (2026, 4, 31),
            (2026, 1, 0),
        ] {
            assert_eq!(days(year, month, day), None, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn a_moment_is_shown_in_utc() {
        assert_eq!(show(0), "1970-01-01 00:00:00");
        assert_eq!(show(-1), "1969-12-31 23:59:59");
        assert_eq!(show(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(show(4_107_542_400), "2100-03-01 00:00:00");
    }
}
