//! Times as people write them: `2026-11-01`, `2026-11-01 13:45`, `7d`. All in UTC.

use lockstep_base::calendar::{self, DAY};

/// The seconds since 1970 of a date, or of a date and a time of day after a space or a `T`.
pub fn parse(text: &str) -> Option<f64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let [year, month, day] = [(); 3].map(|()| parts.next().and_then(digits));
    let (year, month, day) = (year?, month?, day?);
    if parts.next().is_some() || !(1970..10_000).contains(&year) {
        return None;
    }
    let mut seconds = calendar::days(year, month, day)? * DAY;
    if let Some(time) = time {
        let mut parts = time.split(':');
        let [hour, minute, second] = [(); 3].map(|()| parts.next().map(digits));
        let (hour, minute) = (hour??, minute??);
        let second = second.unwrap_or(Some(0))?;
        if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        seconds += hour * 3600 + minute * 60 + second;
    }
    Some(seconds as f64)
}

/// The seconds of a span such as `90`, `90s`, `5min`, `2h`, `7d`, `3w`.
pub fn parse_span(text: &str) -> Option<f64> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.trim().parse().ok()?;
    let unit = match unit {
        "" | "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 7.0 * 86_400.0,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number * unit)
}

/// `2026-11-01 13:45:02` of so many seconds since 1970.
pub fn show(seconds: f64) -> String {
    calendar::show(seconds.clamp(0.0, 2.5e11) as i64)
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_reads_back_as_it_was_shown() {
        for seconds in [
            0.0,
            951_782_399.0,
            951_782_400.0,
            1_793_973_902.0,
            4_107_542_400.0,
        ] {
            assert_eq!(parse(&show(seconds)), Some(seconds));
        }
        assert_eq!(parse("2000-02-29"), Some(951_782_400.0));
        assert_eq!(parse("2000-02-29T00:01Z"), Some(951_782_460.0));
        for wrong in [
            "2001-02-29",
            "2026-13-01",
            "2026-1",
            "x",
            "2026-11-01 25:00",
            "+1-1-1",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_span_has_a_unit_or_is_in_seconds() {
        assert_eq!(parse_span("90"), Some(90.0));
        assert_eq!(parse_span("1.5h"), Some(5400.0));
        assert_eq!(parse_span("2min"), Some(120.0));
        assert_eq!(parse_span("7d"), Some(604_800.0));
        for wrong in ["", "h", "-1s", "3 parsecs", "inf"] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }
}
