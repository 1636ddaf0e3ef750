//! Copies of the state in shared memory that outlives a worker.
//!
//! After a step, each rank copies its share of the new state to memory that outlives it
//! ([`KeptState`](lockstep_gang::KeptState)), and a step counts as done only once all have. Where the gang shares memory, that
//! is memory that the coordinator holds too; elsewhere it is a process's own, and another rank's
//! ([`HeldMemory`](lockstep_gang::HeldMemory)). If a worker is lost, the gang goes on from the newest copy, and not from a
//! checkpoint: no step up to it is done again.
//!
//! How often this happens does not change a bit of the result, so rank 0 may decide it by its clock ([`pace`]): as often as
//! it costs next to nothing, unless the job wants every step. What changes with an epoch alone, such as the best weights and
//! what the epochs came to, is written by rank 0 in [`notes`].

mod here;
mod notes;
mod pace;

pub(crate) use here::CopiesHere;

use crate::TrainError;
use crate::device::{DeviceReplica, StateVectors};
use crate::sets::DataFacts;
use crate::snapshot::{Best, Position, Snapshot};
use lockstep_base::failpoint::reach;
use lockstep_gang::{KeptShape, KeptState, KeptStep, KeptVersion, KeptWriter};
use lockstep_nn::LossSum;
use lockstep_resolve::TrainingSettings;
use notes::{EpochNotes, fitting};
use pace::Pace;
use std::ops::Range;
use std::time::Instant;

/// Bytes for what an epoch came to, and the most for all of them.
const EPOCH_BYTES: usize = 4 << 10;
const MOST_NOTE_BYTES: usize = 16 << 20;

/// What is copied of the training of a network with a state of `len` numbers.
pub(crate) fn shape(settings: &TrainingSettings, data: &DataFacts, len: usize) -> KeptShape {
    let epochs = settings.learner.epochs as usize;
    let average = usize::from(settings.learner.average.is_some());
    KeptShape {
        vectors: 1 + settings.learner.optimizer.planes() + average,
        len,
        lanes: settings.lanes,
        ranks: settings.workers,
        note: epochs
            .saturating_add(16)
            .saturating_mul(EPOCH_BYTES)
            .min(MOST_NOTE_BYTES),
        extra: data.val > 0,
    }
}

/// Reads a copy of the state of a network with `len` numbers.
fn read(
    kept: &KeptState,
    version: KeptVersion,
    settings: &TrainingSettings,
    (len, steps_per_epoch): (usize, u64),
) -> Result<Snapshot, TrainError> {
    let damaged = |what: String| TrainError::Copy { what };
    let (shape, planes) = (kept.shape(), settings.learner.optimizer.planes());
    let average = usize::from(settings.learner.average.is_some());
    if (shape.len, shape.lanes, shape.vectors) != (len, settings.lanes, 1 + planes + average) {
        return Err(damaged(format!("it is of another network: {shape:?}")));
    }
    let (note, extra) = fitting(kept, version.step, steps_per_epoch)
        .ok_or_else(|| damaged(format!("no note of its epochs fits step {}", version.step)))?;
    let step_in_epoch = version.step - u64::from(note.epochs) * steps_per_epoch;
    let [seconds_before, norm] = kept.facts(version);
    let lane_sums = match step_in_epoch {
        0 => vec![LossSum::default(); settings.lanes],
        _ => kept.lanes(version).into_iter().map(lane_sum).collect(),
    };
    let plane = |number: usize| match number < planes {
        true => kept.vector(version, 1 + number),
        false => Vec::new(),
    };
    Ok(Snapshot {
        position: Position {
            step: version.step,
            epochs: note.epochs,
            step_in_epoch,
            lane_sums,
            improvement: note.improvement,
            plateaus: note.plateaus,
            seconds_before,
        },
        state: kept.vector(version, 0),
        planes: [plane(0), plane(1)],
        average: (average == 1).then(|| kept.vector(version, 1 + planes)),
        best: note.best.zip(extra).map(|(header, state)| Best {
            epoch: header.epoch,
            val: header.metrics(),
            state: state.into(),
        }),
        history: note.history,
        pretrained: note.pretrained,
        gradient_norm: (!norm.is_nan()).then_some(norm),
    })
}

fn lane_sum([loss, correct, rows]: [u64; 3]) -> LossSum {
    LossSum {
        loss: f64::from_bits(loss),
        correct,
        rows,
    }
}

/// A rank's part in the copies of its gang's state. Without memory for them it does nothing.
pub(crate) struct StateCopies(Option<CopyDuty>);

struct CopyDuty {
    writer: KeptWriter,
    /// What epochs came to. The rank that has it is the one that decides when to copy.
    notes: Option<EpochNotes>,
    every_step: bool,
    /// Copies of this generation.
    copies: u64,
    pace: Pace,
}

impl StateCopies {
    /// Copies nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Of a rank with this hand to write, in a generation that begins with `beginning`.
    pub(crate) fn new(
        mut writer: KeptWriter,
        (rank, from): (usize, Option<KeptVersion>),
        every_step: bool,
        beginning: &Snapshot,
    ) -> Self {
        let notes = (rank == 0).then(|| EpochNotes::new(from, beginning));
        let notes = notes.map(|notes| notes.begun(&mut writer, beginning));
        Self(Some(CopyDuty {
            writer,
            notes,
            every_step,
            copies: 0,
            pace: Pace::new(),
        }))
    }

    /// What a generation begins with, or goes on with after a pause, takes no time of steps.
    pub(crate) fn resume(&mut self) {
        if let Some(duty) = &mut self.0 {
            duty.pace.resume();
        }
    }

    /// Whether this rank wants the step in progress copied. One that goes to a checkpoint is copied too, so that no copy is
    /// older than that.
    pub(crate) fn wants(&mut self, goes_to_checkpoint: bool) -> bool {
        let duty = self.0.as_mut();
        duty.is_some_and(|duty| duty.wants(goes_to_checkpoint))
    }

    /// Copies what this rank holds of the state after a step, and waits until all ranks have. The step counts as done only
    /// then.
    pub(crate) fn copy(
        &mut self,
        replica: &mut dyn DeviceReplica,
        (step, seconds): (u64, f64),
    ) -> Result<(), TrainError> {
        match &mut self.0 {
            Some(duty) => duty.copy(replica, (step, seconds)),
            None => Ok(()),
        }
    }

    /// Notes the end of an epoch, with the best weights so far and whether these are new. Says what a person should know,
    /// if there is no room for it.
    pub(crate) fn note(
        &mut self,
        position: &Position,
        best: (Option<&Best>, bool),
        history: &str,
    ) -> Option<String> {
        let CopyDuty { writer, notes, .. } = self.0.as_mut()?;
        notes.as_mut()?.epoch_ended(writer, position, best, history)
    }
}

impl CopyDuty {
    fn wants(&mut self, always: bool) -> bool {
        self.pace.step();
        let leads = self.notes.as_ref().is_some_and(|notes| !notes.is_full());
        leads && (self.every_step || always || self.pace.is_due())
    }

    fn copy(
        &mut self,
        replica: &mut dyn DeviceReplica,
        (step, seconds): (u64, f64),
    ) -> Result<(), TrainError> {
        let since = Instant::now();
        self.pace.pause(since);
        if let Some(notes) = &mut self.notes {
            notes.before_copy(&mut self.writer);
        }
        reach("copy.begin");
        self.writer.begin();
        // What is frozen is the same in every copy, once it is in both.
        replica.copy_state(&mut self.writer, self.copies < 2)?;
        let (rank, plan) = (replica.collective().rank(), replica.collective().plan());
        let lanes = plan.lanes_of(rank);
        let sums = replica.epoch_losses()?;
        for lane in lanes {
            let LossSum {
                loss,
                correct,
                rows,
            } = sums[lane];
            self.writer
                .write_lane(lane, [loss.to_bits(), correct, rows]);
        }
        let norm = replica.gradient_norm()?.unwrap_or(f64::NAN);
        reach("copy.complete");
        // What no note fits must not count.
        if !self.notes.as_ref().is_some_and(EpochNotes::is_full) {
            self.writer.complete(KeptStep {
                step,
                facts: [seconds, norm],
            });
        }
        if let Some(notes) = &mut self.notes {
            notes.copied(step);
        }
        reach("copy.completed");
        self.copies += 1;
        self.writer.settle(replica.collective())?;
        reach("copy.counts");
        self.pace.copied(since.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Copies these parts of the state, where one process has all of it.
pub(crate) fn copy_parts(vectors: &StateVectors<'_>, parts: &[Range<usize>], to: &mut KeptWriter) {
    let [first, second] = vectors.planes;
    let all = [
        Some(vectors.values),
        Some(first),
        Some(second),
        vectors.average,
    ];
    let there = all
        .into_iter()
        .flatten()
        .filter(|vector| !vector.is_empty());
    for (number, vector) in there.enumerate() {
        for part in parts {
            to.write(number, part.start, &vector[part.clone()]);
        }
    }
}
