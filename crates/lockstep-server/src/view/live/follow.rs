//! Follows the log of a job, for all pages that show it.

use super::Topic;
use crate::Server;
use lockstep_queue::Log;
use serde::Serialize;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How much of a log is read at a time.
const PIECE: usize = 64 << 10;
/// A log is read at most so often.
const PAUSE: Duration = Duration::from_millis(100);

/// A part of a log.
#[derive(Debug, Serialize)]
struct Part<'a> {
    id: &'a str,
    /// Where in the log it begins and ends, in bytes.
    from: u64,
    to: u64,
    text: String,
}

/// Tells what the log of a job gains, until nobody listens any more.
pub(super) fn start(server: &Server, id: String, log: Log) {
    let server = server.clone();
    tokio::spawn(async move {
        let topic = Topic::Log(id.clone());
        let mut growth = server.logs().follow(&log);
        // What is there already is asked for by the page, which knows how much of it it wants.
        let of = log.clone();
        let bounds = spawn_blocking(move || of.bounds()).await;
        let mut at = bounds.map_or(0, |bounds| bounds.map_or(0, |(_, end)| end));
        let mut rest = Vec::new();
        let live = server.view().live.clone();
        let mut wishes = live.wishes.subscribe();
        while live.listeners(&topic) > 0 {
            tokio::select! {
                () = growth.heard() => (),
                _ = wishes.changed() => continue,
            }
            loop {
                let of = log.clone();
                let read = spawn_blocking(move || of.read(at, PIECE)).await;
                let Ok(Ok((from, bytes))) = read else { break };
                if bytes.is_empty() {
                    break;
                }
                if from != at {
                    // What was between was dropped, and the letter that began there with it.
                    rest.clear();
                }
                at = from + bytes.len() as u64;
                let began = from - rest.len() as u64;
                rest.extend(bytes);
                let whole = whole_letters(&rest);
                let kept = rest.split_off(whole);
                let part = Part {
                    id: &id,
                    from: began,
                    to: began + whole as u64,
                    text: String::from_utf8_lossy(&rest).into_owned(),
                };
                live.tell(topic.clone(), "log", &part);
                rest = kept;
            }
            sleep(PAUSE).await;
        }
    });
}

/// How many bytes are whole letters: a piece may end in the middle of one.
pub(in crate::view) fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_that_is_cut_waits_for_its_rest_and_what_is_none_does_not() {
        let text = "aé".as_bytes();
        assert_eq!(whole_letters(text), 3);
        assert_eq!(whole_letters(&text[..2]), 1);
        assert_eq!(whole_letters(b"a\xff\xffb"), 4);
    }
}
