//! The whole state of a run, as a checkpoint holds it.
//!
//! Parameters, running statistics, the optimizer's vectors, the best weights so far, the position, the
//! sums of the epoch in progress, and what the epochs before came to: a run that loads this gives the
//! bits of one never interrupted. Vectors are parts of a checkpoint, little-endian `f32`; the rest is
//! its header.

use crate::TrainError;
use crate::card::Card;
use crate::improvement::{Improvement, Plateaus};
use crate::resume_fingerprint::ResumeFingerprint;
use crate::sets::Sets;
use lockstep_events::Metrics;
use lockstep_learner::ForkFrom;
use lockstep_nn::LossSum;
use lockstep_place::Place;
use lockstep_resolve::TrainingSettings;
use lockstep_runs::checkpoint::{Checkpoint, Damaged};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part with parameters and running statistics.
const STATE: &str = "state";
/// The parts with the optimizer's vectors.
const PLANES: [&str; 2] = ["plane.0", "plane.1"];
/// The part with the weights that are kept so far.
const BEST: &str = "best";
/// The part with the average of the weights, if the job keeps one.
const AVERAGE: &str = "average";
/// The part with what each epoch came to, a JSON object a line.
const EPOCHS: &str = "epochs";

/// Where a run is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Position {
    /// Optimizer steps done.
    pub(crate) step: u64,
    /// Epochs done completely.
    pub(crate) epochs: u32,
    /// Steps done in the epoch in progress.
    pub(crate) step_in_epoch: u64,
    /// What each lane has summed up in the epoch in progress.
    pub(crate) lane_sums: Vec<LossSum>,
    /// For how long no epoch was better on validation data.
    pub(crate) improvement: Improvement,
    /// What has cut the learning rate so far.
    pub(crate) plateaus: Plateaus,
    /// Seconds that were trained before this process.
    pub(crate) seconds_before: f64,
}

/// The weights that will be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Best {
    /// The epoch they are of, counted from 1.
    pub(crate) epoch: u32,
    /// What they were chosen by.
    pub(crate) val: Metrics,
    /// Shared, since a note of it may wait for the next copy of the state.
    pub(crate) state: Arc<Vec<f32>>,
}

/// All of a run's state.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) position: Position,
    pub(crate) state: Vec<f32>,
    pub(crate) planes: [Vec<f32>; 2],
    /// The average of the weights, if the job keeps one.
    pub(crate) average: Option<Vec<f32>>,
    pub(crate) best: Option<Best>,
    /// What each epoch came to, a JSON object a line.
    pub(crate) history: String,
    /// SHA-256 of the file of weights that the run began with.
    pub(crate) pretrained: Option<String>,
    /// The norm of the last gradient before it was clipped, where that is known.
    pub(crate) gradient_norm: Option<f64>,
}

/// A run's state where it lies, to be copied.
pub(crate) struct StateView<'a> {
    pub(crate) position: &'a Position,
    /// Seconds of training up to here.
    pub(crate) seconds: f64,
    pub(crate) state: &'a [f32],
    pub(crate) planes: [&'a [f32]; 2],
    pub(crate) average: Option<&'a [f32]>,
    pub(crate) best: Option<&'a Best>,
    pub(crate) history: &'a str,
}

/// A copy of a run's state in the bytes that files hold. It is used again and again: only the first
/// copy allocates.
#[derive(Default)]
pub(crate) struct Draft {
    position: Position,
    state: Vec<u8>,
    planes: [Vec<u8>; 2],
    /// Empty without an average.
    average: Vec<u8>,
    /// The best epoch and what it was chosen by; its weights are in `best_state`.
    best: Option<(u32, Metrics)>,
    best_state: Vec<u8>,
    history: String,
}

/// What a checkpoint of this run is of, whatever its moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Channels, height, width.
    pub(crate) input_shape: [usize; 3],
    pub(crate) classes: usize,
    /// What the weights are for; not in checkpoints of earlier versions.
    #[serde(default)]
    pub(crate) card: Option<Card>,
    /// What must not change between the parts of a run.
    #[serde(rename = "contract")]
    pub(crate) fingerprint: ResumeFingerprint,
}

/// The part of a snapshot that is not vectors. Floats travel as bits: JSON would round them.
#[derive(Debug, Serialize, Deserialize)]
struct SnapshotHeader {
    step: u64,
    epochs: u32,
    step_in_epoch: u64,
    seconds: f64,
    lane_loss_bits: Vec<u64>,
    lane_correct: Vec<u64>,
    lane_rows: Vec<u64>,
    #[serde(default)]
    improvement: Improvement,
    #[serde(default)]
    plateaus: Plateaus,
    best: Option<BestHeader>,
    #[serde(flatten)]
    subject: Subject,
}

/// The best epoch without its weights.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BestHeader {
    pub(crate) epoch: u32,
    /// What it was chosen by: each name with [`BITS`] behind it.
    #[serde(flatten)]
    val: BTreeMap<String, u64>,
}

/// What the names of floats that travel as bits end with.
const BITS: &str = "_bits";

impl BestHeader {
    pub(crate) fn new(epoch: u32, val: &Metrics) -> Self {
        let bits = |(name, value): (&str, f64)| (format!("{name}{BITS}"), value.to_bits());
        let val = val.iter().map(bits).collect();
        Self { epoch, val }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let named = self.val.iter();
        named
            .filter_map(|(name, bits)| Some((name.strip_suffix(BITS)?, f64::from_bits(*bits))))
            .collect()
    }
}

impl Draft {
    /// Copies the state. This is all that training waits for.
    pub(crate) fn fill(&mut self, view: &StateView<'_>) {
        self.position.clone_from(view.position);
        self.position.seconds_before = view.seconds;
        copy(view.state, &mut self.state);
        for (from, to) in view.planes.iter().zip(&mut self.planes) {
            copy(from, to);
        }
        copy(view.average.unwrap_or_default(), &mut self.average);
        let best = view.best.map(|best| (best.epoch, best.val.clone()));
        if let Some(kept) = view.best
            && best != self.best
        {
            copy(&kept.state, &mut self.best_state);
        }
        self.best = best;
        // What is there already stays: epochs are only added.
        self.history.truncate(0);
        self.history.push_str(view.history);
    }

    /// The name of its moment.
    pub(crate) fn label(&self) -> String {
        format!("step-{}", self.position.step)
    }

    pub(crate) fn header(&self, subject: &Subject) -> Value {
        let Position {
            step,
            epochs,
            step_in_epoch,
            ref lane_sums,
            improvement,
            plateaus,
            seconds_before,
        } = self.position;
        let header = SnapshotHeader {
            step,
            epochs,
            step_in_epoch,
            seconds: seconds_before,
            lane_loss_bits: lane_sums.iter().map(|sum| sum.loss.to_bits()).collect(),
            lane_correct: lane_sums.iter().map(|sum| sum.correct).collect(),
            lane_rows: lane_sums.iter().map(|sum| sum.rows).collect(),
            improvement,
            plateaus,
            best: (self.best.as_ref()).map(|(epoch, val)| BestHeader::new(*epoch, val)),
            subject: subject.clone(),
        };
        serde_json::to_value(header).expect("a header is plain data")
    }

    pub(crate) fn parts(&self) -> Vec<(&'static str, &[u8])> {
        let mut parts: Vec<(&str, &[u8])> = vec![(STATE, &self.state)];
        let planes = PLANES.into_iter().zip(&self.planes);
        parts.extend(
            planes
                .filter(|(_, plane)| !plane.is_empty())
                .map(|(name, plane)| (name, &plane[..])),
        );
        if !self.average.is_empty() {
            parts.push((AVERAGE, &self.average));
        }
        if self.best.is_some() {
            parts.push((BEST, &self.best_state));
        }
        parts.push((EPOCHS, self.history.as_bytes()));
        parts
    }
}

impl Snapshot {
    /// Reads the snapshot in the checkpoint at `place`, from which training must be able to go on with a
    /// state of `len` numbers.
    pub(crate) fn read(
        place: &Place,
        settings: &TrainingSettings,
        sets: &Sets,
        len: usize,
    ) -> Result<Self, TrainError> {
        let refused = |reason| TrainError::resume(place, reason);
        let stored = Stored::open(place)?;
        let header = &stored.header;
        let changes = header.subject.fingerprint.changes(settings, sets);
        if !changes.is_empty() {
            return Err(refused(format!(
                "the job has changed what would change the result: {}; put it back as it was, or begin a new run with \
                 the weights of this one: --resume RUN --fork",
                changes.join("; ")
            )));
        }
        if header.epochs > settings.learner.epochs {
            return Err(refused(format!(
                "the run has trained {} epochs already, and the job asks for {}; ask for more",
                header.epochs, settings.learner.epochs
            )));
        }
        let sums = (header.lane_loss_bits.iter())
            .zip(&header.lane_correct)
            .zip(&header.lane_rows);
        let lane_sums: Vec<_> = sums
            .map(|((&loss, &correct), &rows)| LossSum {
                loss: f64::from_bits(loss),
                correct,
                rows,
            })
            .collect();
        if lane_sums.len() != settings.lanes {
            let (found, lanes) = (lane_sums.len(), settings.lanes);
            return Err(refused(format!("it has {found} lanes, the job {lanes}")));
        }
        let planes = settings.learner.optimizer.planes();
        let plane = |index: usize| match index < planes {
            true => stored.vector(PLANES[index], len),
            false => Ok(Vec::new()),
        };
        let average = settings.learner.average;
        let average = average.map(|_| stored.vector(AVERAGE, len)).transpose()?;
        let best = match &header.best {
            None => None,
            Some(best) => Some(Best {
                epoch: best.epoch,
                val: best.metrics(),
                state: stored.vector(BEST, len)?.into(),
            }),
        };
        let history = String::from_utf8(stored.part(EPOCHS)?)
            .map_err(|error| refused(format!("`{EPOCHS}` is not text: {error}")))?;
        let pretrained = header.subject.fingerprint.pretrained();
        Ok(Self {
            position: Position {
                step: header.step,
                epochs: header.epochs,
                step_in_epoch: header.step_in_epoch,
                lane_sums,
                improvement: header.improvement,
                plateaus: header.plateaus,
                seconds_before: header.seconds,
            },
            state: stored.vector(STATE, len)?,
            planes: [plane(0)?, plane(1)?],
            average,
            best,
            history,
            pretrained: pretrained.map(str::to_owned),
            gradient_norm: None,
        })
    }
}

/// Weights of a checkpoint.
pub(crate) struct Weights {
    /// What they are of.
    pub(crate) subject: Subject,
    pub(crate) state: Vec<f32>,
    /// The epoch that they were kept of as the best, if they were.
    pub(crate) best_epoch: Option<u32>,
}

/// The weights in the checkpoint at `place`.
pub(crate) fn read_weights(place: &Place, which: ForkFrom) -> Result<Weights, TrainError> {
    let stored = Stored::open(place)?;
    let best = (stored.header.best.as_ref()).filter(|_| which == ForkFrom::Best);
    let best_epoch = best.map(|best| best.epoch);
    let kept = match best_epoch {
        Some(_) => Some(stored.part(BEST)?),
        // Where weights are averaged, the average is what a run ends with.
        None => stored.checkpoint.part(AVERAGE)?,
    };
    let state = match kept {
        Some(kept) => kept,
        None => stored.part(STATE)?,
    };
    Ok(Weights {
        state: numbers(&state),
        subject: stored.header.subject,
        best_epoch,
    })
}

/// A checkpoint whose header is one of ours.
struct Stored {
    checkpoint: Checkpoint,
    header: SnapshotHeader,
}

impl Stored {
    fn open(place: &Place) -> Result<Self, TrainError> {
        let checkpoint = Checkpoint::open(place)?;
        let header = checkpoint.header().clone();
        match serde_json::from_value(header) {
            Ok(header) => Ok(Self { checkpoint, header }),
            Err(error) => {
                let reason = format!("it does not hold the state of a run: {error}");
                Err(TrainError::resume(place, reason))
            }
        }
    }

    fn refused(&self, reason: String) -> TrainError {
        TrainError::resume(self.checkpoint.place(), reason)
    }

    fn part(&self, name: &str) -> Result<Vec<u8>, TrainError> {
        let part = self.checkpoint.part(name)?;
        part.ok_or_else(|| self.refused(format!("it has no `{name}`")))
    }

    fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, TrainError> {
        let bytes = self.part(name)?;
        match bytes.len() == 4 * len {
            true => Ok(numbers(&bytes)),
            false => {
                let found = bytes.len();
                Err(self.refused(format!("`{name}` has {found} bytes instead of {}", 4 * len)))
            }
        }
    }
}

impl From<Damaged> for TrainError {
    fn from(damaged: Damaged) -> Self {
        Self::Resume {
            reason: damaged.damage.to_string(),
            path: damaged.place.into(),
        }
    }
}

/// Puts numbers into a buffer of bytes, in place of what was there.
fn copy(from: &[f32], to: &mut Vec<u8>) {
    to.resize(4 * from.len(), 0);
    for (to, x) in to.as_chunks_mut::<4>().0.iter_mut().zip(from) {
        *to = x.to_le_bytes();
    }
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}
