//! A run's record, read from where one stopped reading.
//!
//! `events.jsonl` is a file that grows; in a bucket it is objects one after the other, whose names sort by age. Either
//! way a [`Position`] says how far somebody has read, and only whole lines are read.

use lockstep_events::Recorded;
use lockstep_place::{Place, PlaceError};
use lockstep_runs::RunDir;
use serde::{Deserialize, Serialize};

/// The record of events.
const EVENTS: &str = "events.jsonl";
/// How much is read at a time.
const PIECE: u64 = 4 << 20;

/// How far a record was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Position {
    /// The last object that was read, in a bucket.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Bytes that were read of the file.
    pub bytes: u64,
}

/// The next events after `position`, with where each ends. Empty when there are none yet: ask again later. Lines that
/// are no events that this version knows are passed over.
///
/// # Errors
/// When the record cannot be read.
pub fn read_events(
    run: &RunDir,
    position: &Position,
) -> Result<(Vec<Recorded>, Position), PlaceError> {
    let file = run.file(EVENTS);
    match run.place().local() {
        Some(_) => read_file(&file, position),
        None => read_objects(run, position),
    }
}

fn read_file(file: &Place, position: &Position) -> Result<(Vec<Recorded>, Position), PlaceError> {
    let Some(entry) = file.entry()? else {
        return Ok((Vec::new(), position.clone()));
    };
    let mut next = position.clone();
    let mut piece = PIECE;
    loop {
        let end = entry.size.min(next.bytes + piece);
        if end <= next.bytes {
            return Ok((Vec::new(), next));
        }
        let bytes = file.read_range(next.bytes..end)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            next.bytes += last as u64 + 1;
            return Ok((events(&bytes[..last]), next));
        }
        if end == entry.size {
            return Ok((Vec::new(), next));
        }
        // A line that is longer than a piece.
        piece *= 2;
    }
}

fn read_objects(
    run: &RunDir,
    position: &Position,
) -> Result<(Vec<Recorded>, Position), PlaceError> {
    let prefix = format!("{EVENTS}.");
    let mut names: Vec<String> = run.place().list()?.into_iter().map(|e| e.path).collect();
    names.retain(|name| name.starts_with(&prefix) && *name > position.object);
    names.sort();
    let mut found = Vec::new();
    let mut next = position.clone();
    for name in names {
        found.extend(events(&run.file(&name).read()?));
        next.object = name;
    }
    Ok((found, next))
}

fn events(bytes: &[u8]) -> Vec<Recorded> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::event::Event;
    use lockstep_place::Access;

    #[test]
    fn only_whole_lines_are_read_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let run = RunDir::named("run", place);
        let none = read_events(&run, &Position::default()).unwrap();
        assert_eq!(none, (Vec::new(), Position::default()));
        let event = Recorded::now(Event::Stopping);
        let line = serde_json::to_string(&event).unwrap() + "\n";
        let file = folder.path().join(EVENTS);
        let text = format!(
            "{line}{{\"event\":\"of a later version\"}}\n{line}{}",
            &line[..9]
        );
        std::fs::write(&file, &text).unwrap();
        let (found, at) = read_events(&run, &Position::default()).unwrap();
        assert_eq!(found, [event.clone(), event.clone()]);
        assert_eq!(at.bytes as usize, text.len() - 9);
        std::fs::write(&file, text + &line[9..]).unwrap();
        let (found, at) = read_events(&run, &at).unwrap();
        assert_eq!(found, [event]);
        assert_eq!(read_events(&run, &at).unwrap(), (Vec::new(), at));
    }
}
