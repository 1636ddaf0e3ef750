//! What a coordinator and its hosts say to each other over their link.
//!
//! Both ends say at least twice a second that they are there. A host that has not heard the coordinator for the length
//! of the lease ends its workers; the coordinator takes a host to be gone only when that must have happened.

use crate::WorkerEnd;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often each end says that it is there.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(500);

/// The most bytes of text in a message. As JSON they may become six times as many, and a link takes a megabyte.
const PIECE: usize = 128 * 1024;

/// How a host introduces itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Its machine's name, for people.
    pub(crate) name: String,
    /// The version of its program, which must be the coordinator's.
    pub(crate) version: String,
}

impl Hello {
    /// This process's.
    pub(crate) fn own() -> Self {
        let system = rustix::system::uname();
        Self {
            name: system.nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What a host is told. Launches are numbered over the life of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToHost {
    /// It is let in, and ends its workers when it has not heard the coordinator for so long.
    Welcome { lease_s: f64 },
    /// Start a worker.
    Start {
        launch: u64,
        command: String,
        invitation: String,
        speaks: bool,
    },
    /// Tell it a line.
    Tell { launch: u64, line: String },
    /// End it at once.
    End { launch: u64 },
    /// The coordinator is there.
    Alive,
    /// The run is over.
    Over { success: bool },
    /// It is not wanted here.
    GoAway { why: String },
}

/// What a host says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromHost {
    /// A worker is a process now.
    Started { launch: u64, pid: u32 },
    /// It said something: any part of its output.
    Said { launch: u64, text: String },
    /// It wrote something for people.
    Wrote { launch: u64, text: String },
    /// All that it said and wrote was told.
    Silent { launch: u64 },
    /// It ended.
    Ended { launch: u64, end: WorkerEnd },
    /// The host is about to be taken away, in words. Told again and again while it has a worker.
    Leaving { why: String },
    /// The host is there.
    Alive,
}

/// A line and its end, in pieces that each fit into a message.
pub(crate) fn pieces(line: &str) -> Vec<String> {
    let mut line = format!("{line}\n");
    let mut pieces = Vec::new();
    while line.len() > PIECE {
        let rest = line.split_off(line.floor_char_boundary(PIECE));
        pieces.push(std::mem::replace(&mut line, rest));
    }
    pieces.push(line);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_any_length_travels_in_pieces_and_no_character_is_torn() {
        assert_eq!(pieces("short"), ["short\n"]);
        let long = "xé".repeat(PIECE);
        let cut = pieces(&long);
        assert!(cut.len() >= 3 && cut.iter().all(|piece| piece.len() <= PIECE));
        assert_eq!(cut.concat(), long + "\n");
        let worst = serde_json_len(&"\u{1}".repeat(PIECE));
        assert!(worst < lockstep_gang::MAX_MESSAGE, "{worst}");
    }

    /// As long as JSON makes a control character.
    fn serde_json_len(text: &str) -> usize {
        text.len() * "\\u0001".len() + 100
    }
}
