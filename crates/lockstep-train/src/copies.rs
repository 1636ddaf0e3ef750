//! Copies of the state in shared memory that outlives a worker.
//!
//! After a step, each rank copies its share of the new state to memory that the coordinator holds too
//! ([`KeptState`](lockstep_gang::KeptState)), and a step counts as done only once all have. If a worker is lost, the gang
//! goes on from the newest copy, and not from a checkpoint: no step up to it is done again.
//!
//! How often this happens does not change a bit of the result, so rank 0 may decide it by its clock: as often as it costs
//! next to nothing, unless the job wants every step. What changes with an epoch alone, such as the best weights and what
//! the epochs came to, is written by rank 0 at the end of one.

use crate::TrainError;
use crate::device::{DeviceReplica, StateVectors};
use crate::improvement::{Improvement, Plateaus};
use crate::sets::DataFacts;
use crate::snapshot::{Best, BestHeader, Position, Snapshot};
use lockstep_base::failpoint::reach;
use lockstep_events::control::CopyPlace;
use lockstep_gang::{
    CollectiveExt, KeptShape, KeptState, KeptStep, KeptVersion, KeptWriter, NoteExtra, Segment,
};
use lockstep_nn::LossSum;
use lockstep_resolve::TrainingSettings;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The most of the time that copies may take, unless the job wants one of every step.
const SHARE: f64 = 0.01;

/// The weight of a new measurement of time.
const NEW: f64 = 0.25;

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

/// What changes with an epoch alone.
#[derive(Serialize, Deserialize)]
struct EpochNote {
    epochs: u32,
    improvement: Improvement,
    plateaus: Plateaus,
    best: Option<BestHeader>,
    history: String,
    pretrained: Option<String>,
}

/// Opens what the assignment names.
pub(crate) fn open(place: &CopyPlace) -> Result<KeptState, TrainError> {
    let segment = Segment::inherited(place.fd)?;
    Ok(KeptState::open(&segment, place.at)?)
}

/// The copy that the assignment names, if it names any.
pub(crate) fn version(place: &CopyPlace) -> Option<KeptVersion> {
    place.from.map(|from| KeptVersion {
        number: from.number,
        step: from.step,
    })
}

/// Reads a copy of the state of a network with `len` numbers.
pub(crate) fn read(
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
    let note = kept
        .note()
        .ok_or_else(|| damaged("it has no note of its epochs".to_owned()))?;
    let EpochNote {
        epochs,
        improvement,
        plateaus,
        best,
        history,
        pretrained,
    } = serde_json::from_slice(&note.text).map_err(|error| damaged(error.to_string()))?;
    let step_in_epoch = (version
        .step
        .checked_sub(u64::from(epochs) * steps_per_epoch))
    .filter(|steps| *steps <= steps_per_epoch)
    .ok_or_else(|| {
        damaged(format!(
            "step {} does not follow {epochs} epochs",
            version.step
        ))
    })?;
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
            epochs,
            step_in_epoch,
            lane_sums,
            improvement,
            plateaus,
            seconds_before,
        },
        state: kept.vector(version, 0),
        planes: [plane(0), plane(1)],
        average: (average == 1).then(|| kept.vector(version, 1 + planes)),
        best: best.zip(note.extra).map(|(header, state)| Best {
            epoch: header.epoch,
            val: header.metrics(),
            state,
        }),
        history,
        pretrained,
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
    /// Whether this rank is the one that decides when, and writes what changes with an epoch.
    leads: bool,
    every_step: bool,
    /// Copies of this generation.
    copies: u64,
    pace: Pace,
    pretrained: Option<String>,
    /// There is no room for what the epochs came to, so that copies would be of no use.
    full: bool,
}

impl StateCopies {
    /// Copies nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Of `rank` in a generation of so many ranks that begins with `beginning`.
    pub(crate) fn new(
        (kept, place): (KeptState, &CopyPlace),
        (rank, ranks, generation): (usize, usize, u16),
        beginning: &Snapshot,
    ) -> Self {
        let from = version(place);
        let mut duty = CopyDuty {
            writer: kept.writer(rank, ranks, generation, from),
            leads: rank == 0,
            every_step: place.every_step,
            copies: 0,
            pace: Pace::new(),
            pretrained: beginning.pretrained.clone(),
            full: false,
        };
        if from.is_none() {
            let Snapshot {
                position,
                best,
                history,
                ..
            } = beginning;
            duty.note(position, (best.as_ref(), true), history);
        }
        Self(Some(duty))
    }

    /// What a generation begins with, or goes on with after a pause, takes no time of steps.
    pub(crate) fn resume(&mut self) {
        if let Some(duty) = &mut self.0 {
            duty.pace.resume();
        }
    }

    /// Whether this rank wants the step in progress copied. Of one that ends an epoch all do: what is noted of the epoch
    /// does not fit an earlier step. One that goes to a checkpoint is copied too, so that no copy is older than that.
    pub(crate) fn wants(&mut self, ends_epoch: bool, goes_to_checkpoint: bool) -> bool {
        let duty = self.0.as_mut();
        duty.is_some_and(|duty| duty.wants(goes_to_checkpoint) || ends_epoch)
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
        let duty = self.0.as_mut()?;
        let was = duty.full;
        duty.note(position, best, history);
        (duty.full && !was).then(|| {
            "what the epochs came to is too long to be kept beside copies of the state: from here on, a worker that is \
             lost costs the steps since the last checkpoint"
                .to_owned()
        })
    }
}

impl CopyDuty {
    fn wants(&mut self, always: bool) -> bool {
        self.pace.step();
        self.leads && !self.full && (self.every_step || always || self.pace.is_due())
    }

    fn copy(
        &mut self,
        replica: &mut dyn DeviceReplica,
        (step, seconds): (u64, f64),
    ) -> Result<(), TrainError> {
        let since = Instant::now();
        self.pace.pause(since);
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
        if !self.full {
            self.writer.complete(KeptStep {
                step,
                facts: [seconds, norm],
            });
        }
        reach("copy.completed");
        self.copies += 1;
        replica.collective().barrier()?;
        reach("copy.counts");
        self.pace.copied(since.elapsed().as_secs_f64());
        Ok(())
    }

    fn note(&mut self, position: &Position, (best, is_new): (Option<&Best>, bool), history: &str) {
        if !self.leads || self.full {
            return;
        }
        let extra = match best {
            None => NoteExtra::None,
            Some(best) if is_new => NoteExtra::New(&best.state),
            Some(_) => NoteExtra::Same,
        };
        let note = EpochNote {
            epochs: position.epochs,
            improvement: position.improvement,
            plateaus: position.plateaus,
            best: best.map(|best| BestHeader::new(best.epoch, &best.val)),
            history: history.to_owned(),
            pretrained: self.pretrained.clone(),
        };
        let text = serde_json::to_vec(&note).expect("a note is plain data");
        reach("copy.note");
        self.full = !self.writer.note(&text, extra);
        reach("copy.noted");
    }
}

/// Copies all of the state, where one process has it.
pub(crate) fn copy_whole(vectors: &StateVectors<'_>, to: &mut KeptWriter) {
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
        to.write(number, 0, vector);
    }
}

/// How often copies are made, so that they take no more than [`SHARE`] of the time.
struct Pace {
    /// Seconds that a copy takes, and a step without; 0 before they were measured.
    copy_s: f64,
    step_s: f64,
    /// Steps since the last copy, that in progress included.
    since: u64,
    /// When the steps that are measured began, and how many there were, that in progress included.
    began: Instant,
    measured: u64,
}

impl Pace {
    fn new() -> Self {
        Self {
            copy_s: 0.0,
            step_s: 0.0,
            since: 0,
            began: Instant::now(),
            measured: 0,
        }
    }

    /// Begins to measure steps.
    fn resume(&mut self) {
        self.began = Instant::now();
        self.measured = 0;
    }

    fn step(&mut self) {
        self.since += 1;
        self.measured += 1;
    }

    fn is_due(&self) -> bool {
        self.copy_s == 0.0 || self.since as f64 * SHARE * self.step_s >= self.copy_s
    }

    /// The steps that are measured end here.
    fn pause(&mut self, now: Instant) {
        if self.measured > 0 {
            let took = now.duration_since(self.began).as_secs_f64() / self.measured as f64;
            mix(&mut self.step_s, took);
        }
    }

    fn copied(&mut self, took: f64) {
        mix(&mut self.copy_s, took);
        self.since = 0;
        self.resume();
    }
}

/// Takes a measurement into a mean, of which the first is all.
fn mix(mean: &mut f64, new: f64) {
    *mean = match *mean {
        0.0 => new,
        before => before + NEW * (new - before),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps, of so many, that are copied if a step takes 1 s and a copy `cost`.
    fn copied(cost: f64, steps: u64) -> Vec<u64> {
        let mut pace = Pace::new();
        let mut copied = Vec::new();
        for step in 1..=steps {
            pace.step();
            if pace.is_due() {
                pace.step_s = 1.0;
                pace.copied(cost);
                copied.push(step);
            }
        }
        copied
    }

    #[test]
    fn copies_that_cost_little_are_made_of_every_step_and_dear_ones_now_and_then() {
        assert_eq!(copied(SHARE, 3), [1, 2, 3]);
        assert_eq!(copied(3.0 * SHARE, 10), [1, 4, 7, 10]);
    }
}
