//! An event as it is kept: with the version of its format, and when it happened.

use crate::event::Event;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the events' format. Fields are added without a new one, which readers pass over; it
/// grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// One line of a run's `events.jsonl`: `{"v":1,"time":1763245426.125,"event":"epoch",...}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The [`VERSION`] of whoever wrote it.
    pub v: u32,
    /// When, in seconds since 1970 in UTC.
    pub time: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Recorded {
    /// An event that happens now.
    pub fn now(event: Event) -> Self {
        Self {
            v: VERSION,
            time: Self::clock(),
            event,
        }
    }

    /// The time now, in seconds since 1970 in UTC. Milliseconds are enough, and short to write.
    pub fn clock() -> f64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_millis() as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_event_is_one_object_that_reads_back_as_itself() {
        let recorded = Recorded {
            time: 1_763_245_426.125,
            ..Recorded::now(Event::FirstStep { seconds: 0.5 })
        };
        let text = serde_json::to_string(&recorded).unwrap();
        let wanted = r#"{"v":1,"time":1763245426.125,"event":"first_step","seconds":0.5}"#;
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Recorded>(&text).unwrap(), recorded);
    }
}
