//! An event as it is kept: with the version of its format, and when it happened.

use crate::event::Event;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The version of the events' format. Fields are added without a new one, which readers pass over; it
/// grows when a field changes its meaning or goes. Events of all earlier ones are read.
///
/// | version | what it changed |
/// |---|---|
/// | 2 | `epoch` has the metrics of training under `train`, as those of `val` and `test`; before it had `train_loss` |
pub const VERSION: u32 = 2;

/// One line of a run's `events.jsonl`: `{"v":2,"time":1763245426.125,"event":"epoch",...}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
        Self::at(Self::clock(), event)
    }

    /// An event that happened at `time`, in seconds since 1970 in UTC.
    pub fn at(time: f64, event: Event) -> Self {
        Self {
            v: VERSION,
            time,
            event,
        }
    }

    /// The time now, as events have it.
    pub fn clock() -> f64 {
        lockstep_base::calendar::now()
    }
}

/// The keys that come before those of the event.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    V,
    Time,
    Event,
    Other(String),
}

/// The events that are many or large, which are read in one pass.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Kind {
    Started,
    Progress,
    Usage,
    Epoch,
    Reported,
    Log,
    Result,
    Other(String),
}

impl<'de> Deserialize<'de> for Recorded {
    /// A record has thousands of events, and derived code would go over the keys of each three times. Written in our
    /// order, they are read once; in any other order, or of a kind that is rare, by way of a map.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Line;
        impl<'de> Visitor<'de> for Line {
            type Value = Recorded;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an event with the time at which it happened")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Recorded, A::Error> {
                let (mut v, mut time, mut fields) = (0, None, Map::new());
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::V => v = map.next_value()?,
                        Key::Time => time = Some(map.next_value()?),
                        Key::Event if time.is_some() && fields.is_empty() => {
                            let event = event(map.next_value()?, map)?;
                            let time = time.unwrap_or_default();
                            return Ok(Recorded { v, time, event });
                        }
                        Key::Event => drop(fields.insert("event".to_owned(), map.next_value()?)),
                        Key::Other(name) => drop(fields.insert(name, map.next_value()?)),
                    }
                }
                let time = time.ok_or_else(|| Error::missing_field("time"))?;
                let event = Event::deserialize(Value::Object(fields)).map_err(Error::custom)?;
                Ok(Recorded { v, time, event })
            }
        }
        from.deserialize_map(Line)
    }
}

/// The event of this kind that the rest of the keys are of.
fn event<'de, A: MapAccess<'de>>(kind: Kind, rest: A) -> Result<Event, A::Error> {
    let rest = MapAccessDeserializer::new(rest);
    Ok(match kind {
        Kind::Started => Event::Started(Deserialize::deserialize(rest)?),
        Kind::Progress => Event::Progress(Deserialize::deserialize(rest)?),
        Kind::Usage => Event::Usage(Deserialize::deserialize(rest)?),
        Kind::Epoch => Event::Epoch(Deserialize::deserialize(rest)?),
        Kind::Reported => Event::Reported(Deserialize::deserialize(rest)?),
        Kind::Log => Event::Log(Deserialize::deserialize(rest)?),
        Kind::Result => Event::Result(Deserialize::deserialize(rest)?),
        Kind::Other(kind) => {
            let mut fields = Map::deserialize(rest)?;
            fields.insert("event".to_owned(), kind.into());
            Event::deserialize(Value::Object(fields)).map_err(Error::custom)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_event_is_one_object_that_reads_back_as_itself() {
        let recorded = Recorded::at(1_763_245_426.125, Event::FirstStep { seconds: 0.5 });
        let text = serde_json::to_string(&recorded).unwrap();
        let wanted = r#"{"v":2,"time":1763245426.125,"event":"first_step","seconds":0.5}"#;
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Recorded>(&text).unwrap(), recorded);
    }

    #[test]
    fn keys_may_come_in_any_order_and_a_kind_that_is_not_known_has_its_time() {
        let epoch = r#""epoch":1,"step":2,"train":{"loss":0.5}"#;
        let ours = format!(r#"{{"v":1,"time":3.5,"event":"epoch",{epoch}}}"#);
        let other = format!(r#"{{{epoch},"event":"epoch","time":3.5,"v":1}}"#);
        let read = |text: &str| serde_json::from_str::<Recorded>(text);
        let [ours, other] = [ours, other].map(|text| read(&text).unwrap());
        let text = |recorded: &Recorded| serde_json::to_string(recorded).unwrap();
        assert_eq!(text(&ours), text(&other));
        assert!(matches!(ours.event, Event::Epoch(epoch) if epoch.step == 2));
        let later = Recorded {
            v: 9,
            time: 3.5,
            event: Event::Unknown,
        };
        let text = r#"{"v":9,"time":3.5,"event":"of a later version","x":[1]}"#;
        assert_eq!(read(text).unwrap(), later);
        let text = r#"{"event":"of a later version","time":3.5,"v":9,"x":[1]}"#;
        assert_eq!(read(text).unwrap(), later);
        let wrong = [
            r#"{"v":1,"event":"stopping"}"#,
            r#"{"v":1,"time":3.5}"#,
            r#"{"v":1,"time":3.5,"event":"progress","epoch":"x"}"#,
            r#"{"v":1,"time":3.5,"event":"stop"#,
            "[]",
        ];
        for text in wrong {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
