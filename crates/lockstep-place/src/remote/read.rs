//! Reading an object whole, whatever happens on the way.
//!
//! What the first answer says of the object (size, version) holds for the read. A connection that is cut
//! is taken up where it ended; if the object is another one by then, that is an error. The length is
//! checked at the end, so a server that sends less than it announced gives no short data.

use super::failure::AttemptFailure;
use super::patience::Patience;
use super::{Remote, describe};
use crate::PlaceError;
use futures_util::StreamExt;
use object_store::{GetOptions, GetRange, ObjectStoreExt};
use std::ops::Range;
use tokio::time::timeout;

/// What has come so far.
struct Reading {
    bytes: Vec<u8>,
    /// What was asked for; all if none.
    asked: Option<Range<u64>>,
    /// The version that it must be; any if none.
    expected: Option<String>,
    /// Where the bytes lie in the object, and which version it is, once there was an answer.
    known: Option<(Range<u64>, String)>,
    /// Whether the server can go on in the middle.
    ranges: bool,
}

impl Remote {
    /// The bytes of `asked`, or of the whole object, and of `version` if one is given.
    pub(crate) fn read(
        &self,
        asked: Option<Range<u64>>,
        version: Option<&str>,
    ) -> Result<Vec<u8>, PlaceError> {
        self.block("read", async {
            let mut patience = Patience::new(&self.store.access);
            let mut reading = Reading {
                bytes: Vec::new(),
                asked,
                expected: version.map(Into::into),
                known: None,
                ranges: true,
            };
            loop {
                let failure = match patience.attempt(self.pull(&mut reading)).await {
                    Ok(()) => return Ok(reading.bytes),
                    Err(failure) => failure,
                };
                if let (AttemptFailure::PastTheEnd(size), Some(range)) = (&failure, &reading.asked)
                {
                    return Err(PlaceError::PastTheEnd {
                        place: self.to_string(),
                        size: *size,
                        range: range.clone(),
                    });
                }
                if let AttemptFailure::NoRanges = failure {
                    if reading.asked.is_some() {
                        let place = self.to_string();
                        return Err(PlaceError::NoRanges { place });
                    }
                    reading.ranges = false;
                }
                let progress = reading.progress();
                let paused = patience.pause(failure).await;
                paused.map_err(|failure| self.explain("read", failure, &patience, progress))?;
            }
        })
    }

    /// Reads on to the end.
    async fn pull(&self, reading: &mut Reading) -> Result<(), AttemptFailure> {
        if !reading.ranges {
            reading.bytes.clear();
        }
        let options = GetOptions {
            range: reading.next_range().map(GetRange::Bounded),
            ..GetOptions::default()
        };
        let answer = match self
            .objects()
            .get_opts(&self.path, options)
            .await
            .map_err(AttemptFailure::from)
        {
            Err(AttemptFailure::Answer(answer))
                if answer.status == 416 && reading.known.is_none() =>
            {
                return Err(AttemptFailure::PastTheEnd(
                    self.objects().head(&self.path).await?.size,
                ));
            }
            answer => answer?,
        };
        let found = describe("", &answer.meta).version;
        match &reading.known {
            None if reading
                .expected
                .as_ref()
                .is_some_and(|expected| *expected != found) =>
            {
                return Err(AttemptFailure::Changed);
            }
            None => {
                if let Some(asked) = &reading.asked
                    && answer.range != *asked
                {
                    return Err(AttemptFailure::PastTheEnd(answer.meta.size));
                }
                let length = answer.range.end - answer.range.start;
                let reserved =
                    usize::try_from(length).map(|length| reading.bytes.try_reserve_exact(length));
                if !matches!(reserved, Ok(Ok(()))) {
                    let cause = format!("its {length} bytes do not fit into memory");
                    return Err(AttemptFailure::Other(cause));
                }
                reading.known = Some((answer.range.clone(), found));
            }
            Some((_, before)) if *before != found => return Err(AttemptFailure::Changed),
            Some(_) => {}
        }
        let wanted = reading.wanted();
        let stall = self.store.access.stall();
        let mut stream = answer.into_stream();
        loop {
            match timeout(stall, stream.next()).await {
                // Whatever ends a body early may end differently the next time.
                Ok(Some(Err(error))) => match AttemptFailure::from(error) {
                    AttemptFailure::Transport { cause, .. } => {
                        return Err(AttemptFailure::Transport {
                            cause,
                            passing: true,
                        });
                    }
                    other => return Err(other),
                },
                Ok(Some(Ok(piece))) => reading.bytes.extend_from_slice(&piece),
                Ok(None) => break,
                Err(_) => return Err(AttemptFailure::Stalled(stall)),
            }
            if reading.bytes.len() as u64 > wanted {
                return Err(AttemptFailure::Other(format!(
                    "more than its {wanted} bytes came"
                )));
            }
        }
        match reading.bytes.len() as u64 {
            got if got == wanted => Ok(()),
            got => Err(AttemptFailure::Short { got, wanted }),
        }
    }
}

impl Reading {
    /// What to ask for next; all if none.
    fn next_range(&self) -> Option<Range<u64>> {
        match &self.known {
            Some((range, _)) if self.ranges && !self.bytes.is_empty() => {
                Some(range.start + self.bytes.len() as u64..range.end)
            }
            _ => self.asked.clone(),
        }
    }

    fn wanted(&self) -> u64 {
        self.known
            .as_ref()
            .map_or(0, |(range, _)| range.end - range.start)
    }

    fn progress(&self) -> String {
        match &self.known {
            Some(_) => format!("{} of {} bytes came", self.bytes.len(), self.wanted()),
            None => String::new(),
        }
    }
}
