//! What a rank's ward sends, taken in by a thread.

use super::message::{MOST_BYTES, MessageHeader, MessageKind, MessageReader};
use crate::shm::{KeptStep, KeptWriter, NoteExtra};
use crate::{GangError, Plan};
use lockstep_base::failpoint::reach;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How far a ward's share is, as the thread that takes it in knows.
#[derive(Debug, Default)]
struct Received {
    /// Versions that came whole in this generation.
    kept: u64,
    /// Why nothing more comes.
    ended: Option<String>,
}

/// A rank whose share this one keeps.
#[derive(Debug, Clone)]
pub(super) struct Ward {
    pub(super) rank: usize,
    /// The numbers and the lanes of its share. Everything else here is written by others.
    own: Arc<[Range<usize>]>,
    lanes: Range<usize>,
    received: Arc<(Mutex<Received>, Condvar)>,
}

impl Ward {
    pub(super) fn new(rank: usize, plan: &Plan) -> Self {
        let mut own: Vec<Range<usize>> = Vec::new();
        for chunk in (0..plan.chunks()).filter(|&chunk| plan.owner(chunk) == rank) {
            let range = plan.chunk(chunk);
            match own.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => own.push(range),
            }
        }
        Self {
            rank,
            own: own.into(),
            lanes: plan.lanes_of(rank),
            received: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a moment for so many versions; true once they are there.
    ///
    /// # Errors
    /// When they will not come.
    pub(super) fn wait(&self, kept: u64, time: Duration) -> Result<bool, GangError> {
        let is_missing = |received: &mut Received| received.kept < kept && received.ended.is_none();
        let (_, changed) = &*self.received;
        let waited = changed.wait_timeout_while(self.lock(), time, is_missing);
        let (received, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &received.ended {
            _ if received.kept >= kept => Ok(true),
            None => Ok(false),
            Some(reason) => Err(GangError::PeerLost {
                rank: self.rank,
                reason: format!("its share of the state did not come: {reason}"),
            }),
        }
    }

    /// Does with `writer` what the ward has done, until its link ends.
    pub(super) fn take_in(&self, mut reader: MessageReader, mut writer: KeptWriter) {
        let mut extra = Vec::new();
        let ended = loop {
            let taken = reader.read().and_then(|(header, bytes)| {
                self.take(&mut writer, &mut extra, header, bytes)?;
                Ok(header.kind)
            });
            // A long share that comes slowly is progress, and worth waiting for.
            lockstep_base::progress::advance();
            match taken {
                Ok(MessageKind::Complete) => {
                    self.lock().kept += 1;
                    self.received.1.notify_all();
                    reach("ward.kept");
                }
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        self.lock().ended = Some(match ended {
            GangError::Closed => "its connection ended".to_owned(),
            other => other.to_string(),
        });
        self.received.1.notify_all();
    }

    /// Does what one message says.
    fn take(
        &self,
        writer: &mut KeptWriter,
        extra: &mut Vec<f32>,
        MessageHeader {
            kind, subject, at, ..
        }: MessageHeader,
        bytes: &[u8],
    ) -> Result<(), GangError> {
        let shape = *writer.shape();
        let (subject, at) = (subject as usize, at as usize);
        let end = at.saturating_add(bytes.len() / 4);
        let are_numbers = bytes.len().is_multiple_of(4);
        let is_own = || {
            let mut own = self.own.iter();
            own.any(|part| part.start <= at && end <= part.end)
        };
        match kind {
            MessageKind::Begin => writer.begin(),
            MessageKind::Numbers if are_numbers && subject < shape.vectors && is_own() => {
                writer.write(subject, at, bytemuck::cast_slice(bytes));
            }
            MessageKind::Lane if self.lanes.contains(&subject) => {
                writer.write_lane(subject, self.words(bytes)?);
            }
            MessageKind::Complete => {
                let [step, first, second] = self.words(bytes)?;
                let facts = [first, second].map(f64::from_bits);
                writer.complete(KeptStep { step, facts });
            }
            MessageKind::Extra if are_numbers && at == extra.len() && end <= shape.len => {
                extra.extend_from_slice(bytemuck::cast_slice(bytes));
            }
            MessageKind::Note => {
                let about = match subject {
                    0 => NoteExtra::None,
                    1 => NoteExtra::Same,
                    2 if shape.extra && extra.len() == shape.len => NoteExtra::New(extra),
                    _ => return Err(self.broken("a note without its vector")),
                };
                writer.note(bytes, about);
                extra.clear();
            }
            MessageKind::Forget => writer.forget_newest_note(),
            MessageKind::Numbers | MessageKind::Lane | MessageKind::Extra => {
                return Err(self.broken("a part that its share has not"));
            }
        }
        Ok(())
    }

    fn words(&self, bytes: &[u8]) -> Result<[u64; 3], GangError> {
        let words: Option<&[u64]> = bytemuck::try_cast_slice(bytes).ok();
        let words = words.and_then(|words| words.try_into().ok());
        words.ok_or_else(|| self.broken("words that are not three"))
    }

    fn broken(&self, what: &str) -> GangError {
        GangError::Protocol {
            rank: self.rank,
            what: format!("it sent {what} to its keeper"),
        }
    }
}

/// The most bytes that one message may have where notes have at most so many.
pub(super) fn most_bytes(note: usize) -> usize {
    note.max(MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeldMemory, KeptShape};

    #[test]
    fn a_ward_writes_nothing_but_its_own_share() {
        let plan = Plan::new(vec![0..4, 4..8, 8..12], 3, 3).unwrap();
        let rank = 1;
        let chunk = (0..3).find(|&chunk| plan.owner(chunk) == rank).unwrap();
        let memory = HeldMemory::create(KeptShape {
            vectors: 1,
            len: 12,
            lanes: 3,
            ranks: 3,
            note: 64,
            extra: true,
        });
        let mut writer = memory.unwrap().writer((rank, 3, 1), None, None).unwrap();
        let ward = Ward::new(rank, &plan);
        let mut take = |kind, (subject, at): (u64, u64), words: usize| {
            let numbers = vec![0u64; words];
            let bytes: &[u8] = bytemuck::cast_slice(&numbers);
            let length = bytes.len() as u32;
            let header = MessageHeader {
                kind,
                length,
                subject,
                at,
            };
            ward.take(&mut writer, &mut Vec::new(), header, bytes)
        };
        let own = plan.chunk(chunk).start as u64;
        take(MessageKind::Begin, (0, 0), 0).unwrap();
        take(MessageKind::Numbers, (0, own), 2).unwrap();
        take(MessageKind::Lane, (1, 0), 3).unwrap();
        for (kind, place, words) in [
            (MessageKind::Numbers, (0, (own + 4) % 12), 2),
            (MessageKind::Numbers, (0, own), 3),
            (MessageKind::Numbers, (1, own), 2),
            (MessageKind::Numbers, (0, u64::MAX), 2),
            (MessageKind::Lane, (0, 0), 3),
            (MessageKind::Lane, (1, 0), 2),
            (MessageKind::Complete, (0, 0), 1),
            (MessageKind::Extra, (0, 1), 1),
            (MessageKind::Extra, (0, 0), 7),
            (MessageKind::Note, (2, 0), 1),
            (MessageKind::Note, (3, 0), 1),
        ] {
            let refused = take(kind, place, words);
            assert!(
                matches!(refused, Err(GangError::Protocol { rank: 1, .. })),
                "{kind:?} {place:?}: {refused:?}"
            );
        }
    }
}
