//! Dates and times: read from text in the forms that people and programs write, and taken apart into numbers.
//!
//! A moment in a table is of no use to a model as one large number; its year, month, day, weekday and hour are. All
//! arithmetic is of the Gregorian calendar, also before it began, without time zones: an offset that is written is
//! taken off, so that moments of one column are comparable.

use lockstep_base::calendar::{self, DAY};
use serde::{Deserialize, Serialize};

/// Whether a column says the day, the time of the day, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeForm {
    /// The day alone.
    Day,
    /// The time of the day alone.
    Clock,
    /// Both.
    Both,
}

impl TimeForm {
    /// What its numbers are, in their order.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Day => &["year", "month", "day", "weekday"],
            Self::Clock => &["hour"],
            Self::Both => &["year", "month", "day", "weekday", "hour"],
        }
    }

    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Day => "2024-05-31",
            Self::Clock => "13:45",
            Self::Both => "2024-05-31 13:45:00",
        }
    }

    /// Writes the parts of a moment. Weekdays begin with Monday, which is 0; an hour has its minutes as a fraction.
    pub(crate) fn write(self, moment: Moment, out: &mut [f32]) {
        let seconds = moment.seconds();
        let days = seconds.div_euclid(DAY);
        let hour = seconds.rem_euclid(DAY) as f32 / 3600.0;
        let (year, month, day) = calendar::date(days);
        // The first day of 1970 was a Thursday.
        let weekday = (days + 3).rem_euclid(7);
        let date = [year as f32, month as f32, day as f32, weekday as f32];
        match self {
            Self::Day => out.copy_from_slice(&date),
            Self::Clock => out[0] = hour,
            Self::Both => {
                out[..4].copy_from_slice(&date);
                out[4] = hour;
            }
        }
    }
}

/// A day, a time of the day, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 1970, if a day was said.
    day: Option<i64>,
    /// Seconds since midnight, if a time was said; an offset may have made it less than 0 or more than a day.
    clock: Option<i64>,
}

impl Moment {
    /// So many seconds after 1970 began.
    pub(crate) fn at(seconds: i64) -> Self {
        Self {
            day: Some(seconds.div_euclid(DAY)),
            clock: Some(seconds.rem_euclid(DAY)),
        }
    }

    /// So many seconds after midnight of any day.
    pub(crate) fn of_day(seconds: i64) -> Self {
        Self {
            day: None,
            clock: Some(seconds),
        }
    }

    fn seconds(self) -> i64 {
        self.day.unwrap_or(0) * DAY + self.clock.unwrap_or(0)
    }

    /// What the text says of both; a time that is midnight says nothing of the time.
    pub(crate) fn form(self) -> TimeForm {
        match (self.day, self.clock) {
            (Some(_), None | Some(0)) => TimeForm::Day,
            (Some(_), Some(_)) => TimeForm::Both,
            (None, _) => TimeForm::Clock,
        }
    }

    /// Whether it says what a column of this form must say: the day, or else the time.
    pub(crate) fn fits(self, form: TimeForm) -> bool {
        match form {
            TimeForm::Day | TimeForm::Both => self.day.is_some(),
            TimeForm::Clock => self.clock.is_some(),
        }
    }

    /// Reads a day (`2024-05-31`, `2024/05/31`, `31.05.2024`, and `05/31/2024` or, with `day_first`, `31/05/2024`), a time
    /// (`13:45`, `13:45:07.5`), or both with a space or a `T` between them and perhaps `Z` or an offset such as `+02:00`
    /// behind.
    pub(crate) fn parse(text: &str, day_first: bool) -> Option<Self> {
        let (first, second) = match text.split_once(['T', 't', ' ']) {
            Some((first, second)) => (first, Some(second.trim())),
            None => (text, None),
        };
        if let Some(day) = day(first, day_first) {
            let clock = match second {
                Some(second) => Some(clock(second)?),
                None => None,
            };
            return Some(Self {
                day: Some(day),
                clock,
            });
        }
        let clock = clock(text)?;
        Some(Self {
            day: None,
            clock: Some(clock),
        })
    }
}

/// The days since 1970 of a day.
fn day(text: &str, day_first: bool) -> Option<i64> {
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    if !matches!(separator, '-' | '/' | '.') {
        return None;
    }
    let mut parts = text.split(separator);
    let [a, b, c] = [parts.next()?, parts.next()?, parts.next()?];
    if parts.next().is_some() {
        return None;
    }
    let number = |text: &str, longest: usize| -> Option<i64> {
        let fits = (1..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| fits)
    };
    let (year, month, day) = match (a.len(), c.len(), separator) {
        (4, _, _) => (number(a, 4)?, number(b, 2)?, number(c, 2)?),
        (_, 4, '.' | '-') => (number(c, 4)?, number(b, 2)?, number(a, 2)?),
        (_, 4, _) => {
            let (first, second) = (number(a, 2)?, number(b, 2)?);
            match day_first {
                false => (number(c, 4)?, first, second),
                true => (number(c, 4)?, second, first),
            }
        }
        _ => return None,
    };
    calendar::days(year, month, day)
}

/// The seconds since midnight of a time, less the offset behind it.
fn clock(text: &str) -> Option<i64> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text).trim_end();
    let at = text.rfind(['+', '-']);
    let (time, offset) = match at {
        Some(at) => (&text[..at], Some((&text[at + 1..], &text[at..=at]))),
        None => (text, None),
    };
    let seconds = of_day(time.trim_end())?;
    let Some((offset, sign)) = offset else {
        return Some(seconds);
    };
    let offset = match offset.len() {
        4 if offset.is_ascii() => of_day(&format!("{}:{}", &offset[..2], &offset[2..]))?,
        2 => of_day(&format!("{offset}:00"))?,
        _ => of_day(offset)?,
    };
    Some(seconds - if sign == "-" { -offset } else { offset })
}

fn of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let two = |text: &str, most: i64| -> Option<i64> {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number < most)
    };
    let (hours, minutes) = (two(parts.next()?, 24)?, two(parts.next()?, 60)?);
    let seconds = match parts.next() {
        None => 0,
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
            let digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
            two(whole, 61).filter(|_| digits)?
        }
    };
    match parts.next() {
        None => Some((hours * 60 + minutes) * 60 + seconds),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<Vec<f32>> {
        let moment = Moment::parse(text, text.starts_with("29/"))?;
        let mut out = vec![0.0; moment.form().parts().len()];
        moment.form().write(moment, &mut out);
        Some(out)
    }

    #[test]
    fn the_forms_that_people_write_are_one_moment() {
        for text in [
            "2024-02-29T13:30:00Z",
            "2024-02-29 13:30",
            "2024/2/29 13:30:00.250",
            "29.02.2024 13:30",
            "02/29/2024 13:30",
            "29/02/2024 13:30",
            "2024-02-29T15:30:00+02:00",
            "2024-02-29T12:00:00-0130",
        ] {
            assert_eq!(
                parts(text),
                Some(vec![2024.0, 2.0, 29.0, 3.0, 13.5]),
                "{text}"
            );
        }
        assert_eq!(parts("1969-12-31"), Some(vec![1969.0, 12.0, 31.0, 2.0]));
        assert_eq!(
            parts("2024-01-01 00:00:00"),
            Some(vec![2024.0, 1.0, 1.0, 0.0])
        );
        assert_eq!(parts("7:15"), Some(vec![7.25]));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "2023-02-29",
            "2024-13-01",
            "24:00",
            "12",
            "1.5",
            "1-2-3",
            "a-b-c",
            "",
            "2024-01-01x",
            "2024-01-01 noon",
            "192.168.10.1",
            "12:60",
            "10-20",
            "2024-01",
            "1/2/24",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
