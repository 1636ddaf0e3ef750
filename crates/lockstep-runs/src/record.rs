//! The one reader of a run's events, from wherever one stopped reading.
//!
//! `events.jsonl` is a file that grows; in a bucket it is objects one after the other, whose names sort by age. Either
//! way a [`Position`] says how far somebody has read. Only whole lines are read: one that is being written is read the
//! next time, and one that a crash cut short is passed over, as is everything else that is no event. The writer is
//! [`Journal::events`](crate::Journal::events).

use crate::RunDir;
use crate::files::{EVENTS, is_part_of};
use lockstep_events::Recorded;
use lockstep_place::{FileEntry, PlaceError};
use serde::{Deserialize, Serialize};

/// How many bytes are read at a time. A longer line is no event of ours.
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

/// What was read of a record in one go.
#[derive(Debug, Default)]
pub struct Piece {
    lines: Vec<u8>,
    /// Where to go on.
    pub next: Position,
    /// Whether more is there already.
    pub more: bool,
    /// Whether the record is another than the one that the position was of, so that it was read from its beginning.
    pub anew: bool,
}

impl Piece {
    /// The events, in the order in which they were written. Those of later versions are
    /// [`Event::Unknown`](lockstep_events::event::Event::Unknown).
    pub fn events(&self) -> impl Iterator<Item = Recorded> {
        let lines = self.lines.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok())
    }
}

impl RunDir {
    /// The next events after `position`. If there are none yet, ask again later.
    ///
    /// # Errors
    /// When the record cannot be read. One that is not there is empty.
    pub fn read_events(&self, position: &Position) -> Result<Piece, PlaceError> {
        let files = match self.place().local() {
            Some(_) => self.file(EVENTS).entry()?.into_iter().collect(),
            None => self.place().list()?,
        };
        self.read_events_among(&files, position)
    }

    /// The same, for whoever has listed the `files` of the run anyway.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn read_events_among(
        &self,
        files: &[FileEntry],
        position: &Position,
    ) -> Result<Piece, PlaceError> {
        match self.place().local() {
            Some(_) => self.read_file(files, position),
            None => self.read_objects(files, position),
        }
    }

    /// Reads all events that there are, one after the other.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn each_event(&self, mut read: impl FnMut(Recorded)) -> Result<(), PlaceError> {
        let mut position = Position::default();
        loop {
            let piece = self.read_events(&position)?;
            piece.events().for_each(&mut read);
            if !piece.more {
                return Ok(());
            }
            position = piece.next;
        }
    }

    fn read_file(&self, files: &[FileEntry], position: &Position) -> Result<Piece, PlaceError> {
        let entry = files.iter().find(|file| file.path == EVENTS);
        let size = entry.map_or(0, |file| file.size);
        let anew = size < position.bytes;
        let from = if anew { 0 } else { position.bytes };
        let end = size.min(from + PIECE);
        let mut lines = match from < end {
            true => self.file(EVENTS).read_range(from..end)?,
            false => Vec::new(),
        };
        let whole = match lines.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if end - from == PIECE => lines.len(),
            None => 0,
        };
        lines.truncate(whole);
        Ok(Piece {
            lines,
            next: Position {
                bytes: from + whole as u64,
                ..Position::default()
            },
            more: end < size,
            anew,
        })
    }

    fn read_objects(&self, files: &[FileEntry], position: &Position) -> Result<Piece, PlaceError> {
        let paths = files.iter().map(|file| file.path.as_str());
        let mut names: Vec<&str> = paths.filter(|path| is_part_of(path, EVENTS)).collect();
        names.sort_unstable();
        let mut piece = Piece {
            next: position.clone(),
            ..Piece::default()
        };
        if !position.object.is_empty() && !names.contains(&position.object.as_str()) {
            piece.anew = true;
            piece.next = Position::default();
        }
        names.retain(|name| **name > *piece.next.object);
        for name in names {
            if piece.lines.len() as u64 > PIECE {
                piece.more = true;
                break;
            }
            piece.lines.extend(self.file(name).read()?);
            piece.lines.push(b'\n');
            name.clone_into(&mut piece.next.object);
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Journal;
    use lockstep_events::event::Event;
    use lockstep_place::{Access, Place};
    use std::path::Path;

    fn run(folder: &Path) -> RunDir {
        let place = Place::parse(folder.to_str().unwrap(), &Access::default()).unwrap();
        RunDir::named("run", place)
    }

    fn found(piece: &Piece) -> Vec<Event> {
        piece.events().map(|recorded| recorded.event).collect()
    }

    #[test]
    fn only_whole_lines_are_read_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let none = run.read_events(&Position::default()).unwrap();
        assert_eq!((found(&none), none.next), (vec![], Position::default()));
        let line = serde_json::to_string(&Recorded::now(Event::Stopping)).unwrap() + "\n";
        let later = r#"{"v":9,"time":1.5,"event":"of a later version"}"#;
        let text = format!(
            "{line}{later}\nno event\n{{\"event\":\"stopping\"}}\n{line}{}",
            &line[..9]
        );
        let file = folder.path().join(EVENTS);
        std::fs::write(&file, &text).unwrap();
        let piece = run.read_events(&Position::default()).unwrap();
        let wanted = [Event::Stopping, Event::Unknown, Event::Stopping];
        assert_eq!(found(&piece), wanted);
        assert_eq!(piece.next.bytes as usize, text.len() - 9);
        std::fs::write(&file, text + &line[9..]).unwrap();
        let rest = run.read_events(&piece.next).unwrap();
        assert_eq!(found(&rest), [Event::Stopping]);
        let end = run.read_events(&rest.next).unwrap();
        assert_eq!(
            (found(&end), &end.next, end.anew),
            (vec![], &rest.next, false)
        );
        // Another record in its place is read from its beginning.
        std::fs::write(&file, &line).unwrap();
        let other = run.read_events(&rest.next).unwrap();
        assert_eq!((found(&other), other.anew), (vec![Event::Stopping], true));
    }

    #[test]
    fn a_line_that_was_cut_short_does_not_swallow_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let event = Recorded::now(Event::Stopping);
        let mut journal = Journal::open(&run).unwrap();
        journal.events(std::slice::from_ref(&event)).unwrap();
        let file = folder.path().join(EVENTS);
        let text = std::fs::read_to_string(&file).unwrap() + "{\"v\":2,\"ti";
        std::fs::write(&file, text).unwrap();
        let mut journal = Journal::open(&run).unwrap();
        journal.events(&[event.clone(), event.clone()]).unwrap();
        journal.events(&[]).unwrap();
        let mut all = Vec::new();
        run.each_event(|recorded| all.push(recorded)).unwrap();
        assert_eq!(all, vec![event; 3]);
    }

    #[test]
    fn a_record_of_any_length_is_read_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let message = "x".repeat(1 << 20);
        let mut journal = Journal::open(&run).unwrap();
        for _ in 0..20 {
            let message = message.clone();
            journal
                .events(&[Recorded::now(Event::Note { message })])
                .unwrap();
        }
        let first = run.read_events(&Position::default()).unwrap();
        assert!(first.more && first.next.bytes <= PIECE);
        let mut all = 0;
        run.each_event(|_| all += 1).unwrap();
        assert_eq!(all, 20);
    }
}
