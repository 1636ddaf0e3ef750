//! Numbers as people read them.

use lockstep_events::event::{Started, WorkerThreads};
use std::time::Duration;

/// `60000` as `60,000`.
pub(crate) fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A rate, rounded to whole things a second: `52,311`.
pub(crate) fn rate(per_second: f64) -> String {
    count(per_second.max(0.0).round() as u64)
}

/// Bytes in the unit that keeps the number short: `2.7 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// A span of time with the precision that matters at its size: `132 ms`, `12.3 s`, `4 min 05 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    let span = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let whole = span.as_secs();
    if span < Duration::from_millis(999) {
        format!("{:.0} ms", span.as_secs_f64() * 1e3)
    } else if span < Duration::from_secs(100) {
        format!("{:.1} s", span.as_secs_f64())
    } else if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole / 60 % 60)
    }
}

/// A span of time for a narrow column: `132 ms`, `12.3 s`, `4:05`, `2:01:00`.
pub(crate) fn clock(span: f64) -> String {
    if span < 100.0 {
        return seconds(span);
    }
    let whole = span as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A loss: four decimals, or the exponent when these would say nothing.
pub(crate) fn loss(loss: f64) -> String {
    if loss == 0.0 || (1e-3..1e4).contains(&loss.abs()) || !loss.is_finite() {
        format!("{loss:.4}")
    } else {
        format!("{loss:.3e}")
    }
}

/// A measured value, as its name wants it: an accuracy is a share of 1, with four decimals. What is in the units
/// of the data may be large, and has six digits.
pub(crate) fn metric(name: &str, value: f64) -> String {
    match (name, value.abs()) {
        ("accuracy", _) => format!("{value:.4}"),
        ("mse" | "mae", 1e2..1e3) => format!("{value:.3}"),
        ("mse" | "mae", 1e3..1e4) => format!("{value:.2}"),
        ("mse" | "mae", 1e4..1e5) => format!("{value:.1}"),
        _ => loss(value),
    }
}

/// How many workers a run has: `2 workers`, or `2 to 8 workers` of an elastic gang. And what they compute on: a GPU, or
/// how many threads each of them has, if it is not one.
pub(crate) fn workers(started: &Started) -> String {
    let most = plural(started.workers, "worker");
    let workers = match started.min_workers {
        Some(least) => format!("{least} to {most}"),
        None => most,
    };
    match (&started.device, &started.threads) {
        (Some(device), _) => format!("{workers} on {device}"),
        (None, Some(threads)) if threads.count > 1 => {
            format!("{workers} with {}", threads_of(threads))
        }
        _ => workers,
    }
}

/// The threads of a worker: `16 threads (all cores that it may use)`.
pub(crate) fn threads_of(threads: &WorkerThreads) -> String {
    let count = plural(threads.count, "thread");
    match &threads.why {
        Some(why) => format!("{count} ({why})"),
        None => count,
    }
}

/// One or many of something: `1 worker`, `2 workers`.
pub(crate) fn plural(number: usize, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elastic_gang_is_told_by_its_range() {
        let mut started = Started {
            workers: 8,
            ..Started::default()
        };
        assert_eq!(workers(&started), "8 workers");
        started.min_workers = Some(2);
        assert_eq!(workers(&started), "2 to 8 workers");
        started.threads = Some(WorkerThreads::choose(None, 4, 9));
        assert_eq!(
            workers(&started),
            "2 to 8 workers with 4 threads (all cores that it may use)"
        );
        started.threads = Some(WorkerThreads::choose(Some(1), 4, 9));
        assert_eq!(workers(&started), "2 to 8 workers");
        started.device = Some("NVIDIA H200".to_owned());
        assert_eq!(workers(&started), "2 to 8 workers on NVIDIA H200");
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(count(0u64), "0");
        assert_eq!(count(999u64), "999");
        assert_eq!(count(1000u64), "1,000");
        assert_eq!(count(1234567u64), "1,234,567");
        assert_eq!(rate(52310.6), "52,311");
    }

    #[test]
    fn a_span_is_as_precise_as_its_size_asks_for() {
        assert_eq!(seconds(0.1324), "132 ms");
        assert_eq!(seconds(0.9996), "1.0 s");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(245.0), "4 min 05 s");
        assert_eq!(seconds(7260.0), "2 h 01 min");
        assert_eq!(seconds(-1.0), "0 ms");
        assert_eq!(clock(12.34), "12.3 s");
        assert_eq!(clock(245.0), "4:05");
        assert_eq!(clock(7265.0), "2:01:05");
    }

    #[test]
    fn bytes_come_in_the_unit_that_fits() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(2_678_824), "2.6 MiB");
    }

    #[test]
    fn a_tiny_loss_is_not_shown_as_nothing() {
        assert_eq!(loss(0.45678), "0.4568");
        assert_eq!(loss(0.000012), "1.200e-5");
        assert_eq!(loss(f64::NAN), "NaN");
    }
}
