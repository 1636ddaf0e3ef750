//! What changes with an epoch alone, beside the copies of the state: what the epochs came to, and the best weights.
//!
//! There are places for two notes, and the newer one is not overwritten. A note *fits* a copy if the copy's step is of the
//! epoch that follows those of the note, its end included. An epoch may end without a copy. What it came to is then not
//! written before the next copy begins, which it fits. So of the two notes there is always one that fits the newest copy,
//! whenever the writer dies:
//!
//! - the newest note was written before the copy, and fits it; or
//! - the copy ended an epoch, and so fits both the note before that end and the one after; or
//! - the newest note waits for a copy that was never completed, and the one before fits the copy that was.

use crate::improvement::{Improvement, Plateaus};
use crate::snapshot::{Best, BestHeader, Position, Snapshot};
use lockstep_base::failpoint::reach;
use lockstep_gang::{KeptState, KeptVersion, KeptWriter, NoteExtra};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What epochs came to.
#[derive(Serialize, Deserialize)]
pub(super) struct EpochNote {
    pub(super) epochs: u32,
    pub(super) improvement: Improvement,
    pub(super) plateaus: Plateaus,
    pub(super) best: Option<BestHeader>,
    pub(super) history: String,
    pub(super) pretrained: Option<String>,
}

/// The newest note that fits a copy of so many steps, and the best weights.
pub(super) fn fitting(
    kept: &KeptState,
    step: u64,
    steps_per_epoch: u64,
) -> Option<(EpochNote, Option<Vec<f32>>)> {
    let fits = |note: &EpochNote| {
        let since = step.checked_sub(u64::from(note.epochs) * steps_per_epoch);
        since.is_some_and(|steps| steps <= steps_per_epoch)
    };
    kept.notes().into_iter().find_map(|note| {
        let found: EpochNote = serde_json::from_slice(&note.text).ok()?;
        fits(&found).then(|| (found, kept.extra(&note)))
    })
}

/// Writes notes.
pub(super) struct EpochNotes {
    /// Steps of the newest copy.
    copied: Option<u64>,
    /// What is written before the next copy.
    waiting: Option<WaitingNote>,
    pretrained: Option<String>,
    /// There is no room for what the epochs came to, so that copies would be of no use.
    full: bool,
    /// Whether a person knows.
    is_told: bool,
}

struct WaitingNote {
    text: Vec<u8>,
    best: Option<Arc<Vec<f32>>>,
    /// Whether the best weights are other ones than those of the last note.
    is_new: bool,
}

impl EpochNotes {
    /// Of a generation that goes on from a copy, or from `beginning` alone.
    pub(super) fn new(from: Option<KeptVersion>, beginning: &Snapshot) -> Self {
        Self {
            copied: from.map(|from| from.step),
            waiting: None,
            pretrained: beginning.pretrained.clone(),
            full: false,
            is_told: false,
        }
    }

    /// Sees to it that the newest note is that of the beginning.
    pub(super) fn begun(mut self, writer: &mut KeptWriter, beginning: &Snapshot) -> Self {
        let Snapshot {
            position,
            best,
            history,
            ..
        } = beginning;
        if self.copied.is_none() {
            self.epoch_ended(writer, position, (best.as_ref(), true), history);
            return self;
        }
        // One that waited for a copy which was never completed would be taken for the one that fits.
        let is_ahead = |text: &[u8]| {
            let note = serde_json::from_slice::<EpochNote>(text);
            note.is_ok_and(|note| note.epochs != position.epochs)
        };
        if writer
            .notes()
            .first()
            .is_some_and(|note| is_ahead(&note.text))
        {
            writer.forget_newest_note();
        }
        self
    }

    /// Whether no further copy is of use.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Notes the end of an epoch, with the best weights so far and whether these are new. Says what a person should know,
    /// if there is no room for it.
    pub(super) fn epoch_ended(
        &mut self,
        writer: &mut KeptWriter,
        position: &Position,
        (best, is_new): (Option<&Best>, bool),
        history: &str,
    ) -> Option<String> {
        let note = EpochNote {
            epochs: position.epochs,
            improvement: position.improvement,
            plateaus: position.plateaus,
            best: best.map(|best| BestHeader::new(best.epoch, &best.val)),
            history: history.to_owned(),
            pretrained: self.pretrained.clone(),
        };
        let before = self.waiting.take();
        self.waiting = Some(WaitingNote {
            text: serde_json::to_vec(&note).expect("a note is plain data"),
            best: best.map(|best| best.state.clone()),
            is_new: is_new || before.is_some_and(|before| before.is_new),
        });
        // Without a copy there is none that it could not fit.
        if self.copied.is_none_or(|step| step == position.step) {
            self.write(writer);
        }
        let is_news = self.full && !self.is_told;
        self.is_told |= is_news;
        is_news.then(|| {
            "what the epochs came to is too long to be kept beside copies of the state: from here on, a worker that is \
             lost costs the steps since the last checkpoint"
                .to_owned()
        })
    }

    /// Writes what has waited for a copy, which begins now.
    pub(super) fn before_copy(&mut self, writer: &mut KeptWriter) {
        self.write(writer);
    }

    /// There is a copy of so many steps.
    pub(super) fn copied(&mut self, step: u64) {
        self.copied = Some(step);
    }

    fn write(&mut self, writer: &mut KeptWriter) {
        let Some(note) = self.waiting.take().filter(|_| !self.full) else {
            return;
        };
        let extra = match &note.best {
            None => NoteExtra::None,
            Some(best) if note.is_new => NoteExtra::New(best),
            Some(_) => NoteExtra::Same,
        };
        reach("copy.note");
        self.full = !writer.note(&note.text, extra);
        reach("copy.noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_gang::{KeptShape, KeptStep, Segment};

    const EPOCHS: u32 = 3;
    const STEPS: u64 = 2;
    const SHAPE: KeptShape = KeptShape {
        vectors: 1,
        len: 1,
        lanes: 1,
        ranks: 1,
        note: 4096,
        extra: true,
    };

    /// The best weights after so many epochs: those of the last epoch that is no multiple of 3.
    fn best(epochs: u32) -> Option<Best> {
        let epoch = if epochs.is_multiple_of(3) {
            epochs.max(1) - 1
        } else {
            epochs
        };
        (epoch > 0).then(|| Best {
            epoch,
            val: Default::default(),
            state: vec![epoch as f32].into(),
        })
    }

    fn position(step: u64) -> Position {
        Position {
            step,
            epochs: (step / STEPS) as u32,
            step_in_epoch: step % STEPS,
            ..Position::default()
        }
    }

    /// What a generation would begin with: the step of the newest copy and the snapshot that a note makes of it.
    fn newest(segment: &Segment) -> Option<(KeptVersion, Snapshot)> {
        let kept = KeptState::open(segment, 0).unwrap();
        let version = kept.newest()?;
        let (note, extra) = fitting(&kept, version.step, STEPS).expect("a note fits");
        let expected = best(note.epochs);
        assert_eq!(
            note.best.as_ref().map(|best| best.epoch),
            expected.as_ref().map(|best| best.epoch)
        );
        assert_eq!(extra.as_ref(), expected.as_ref().map(|best| &*best.state));
        let position = Position {
            epochs: note.epochs,
            step_in_epoch: version.step - u64::from(note.epochs) * STEPS,
            ..position(version.step)
        };
        let snapshot = Snapshot {
            position,
            best: expected,
            ..Snapshot::default()
        };
        Some((version, snapshot))
    }

    /// Trains from the newest copy to the end, unless it dies after so many acts; the bits of `copied` say after which steps
    /// the state is copied. Whatever it has done, a note fits the newest copy. Returns whether it came to the end.
    fn generation(segment: &Segment, number: u16, copied: u64, mut acts: usize) -> bool {
        let (from, beginning) = match newest(segment) {
            Some((from, beginning)) => (Some(from), beginning),
            None => (None, Snapshot::default()),
        };
        let kept = KeptState::open(segment, 0).unwrap();
        let notes = EpochNotes::new(from, &beginning);
        let mut writer = kept.writer(0, 1, number, from);
        let mut notes = notes.begun(&mut writer, &beginning);
        let mut may_go_on = || {
            newest(segment);
            acts = acts.saturating_sub(1);
            acts > 0
        };
        let Position { step, epochs, .. } = beginning.position;
        // An epoch may have ended with the copy, and not yet with its note.
        let mut ended = epochs;
        for step in step..=u64::from(EPOCHS) * STEPS {
            if step > beginning.position.step && copied >> step & 1 == 1 {
                notes.before_copy(&mut writer);
                if !may_go_on() {
                    return false;
                }
                writer.begin();
                if !may_go_on() {
                    return false;
                }
                writer.complete(KeptStep {
                    step,
                    facts: [0.0; 2],
                });
                notes.copied(step);
                if !may_go_on() {
                    return false;
                }
            }
            if step == (u64::from(ended) + 1) * STEPS {
                ended += 1;
                let best = best(ended);
                let is_new = ended % 3 > 0;
                let told =
                    notes.epoch_ended(&mut writer, &position(step), (best.as_ref(), is_new), "");
                assert_eq!(told, None);
                if !may_go_on() {
                    return false;
                }
            }
        }
        true
    }

    #[test]
    fn whichever_steps_are_copied_and_whenever_it_dies_a_note_fits_the_newest_copy() {
        for copied in 0..1 << (u64::from(EPOCHS) * STEPS) {
            let copied = copied << 1;
            for acts in 1.. {
                let segment = Segment::create(SHAPE.bytes()).unwrap();
                KeptState::create(&segment, 0, SHAPE).unwrap();
                let whole = generation(&segment, 1, copied, acts);
                // The next one dies as soon, having copied other steps, and the one after it comes to the end.
                generation(&segment, 2, !copied, acts);
                assert!(generation(&segment, 3, copied, usize::MAX));
                if whole {
                    break;
                }
            }
        }
    }
}
