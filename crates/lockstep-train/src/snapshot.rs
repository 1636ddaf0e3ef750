//! The whole state of a run in one file: what an interrupted run leaves, and what it goes on from.
//!
//! Parameters, running statistics, the optimizer's vectors, the best weights so far, the position, and
//! the sums of the epoch in progress: a run that loads this gives the bits of one never interrupted.

use crate::TrainError;
use crate::pretrained;
use crate::sets::Sets;
use crate::spec;
use crate::weights::{self, little_endian, write_safetensors};
use lockstep_job::Job;
use lockstep_nn::LossSum;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;

const VERSION: u32 = 1;
const METADATA: &str = "lockstep";

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
    /// Seconds that were trained before this process.
    pub(crate) seconds_before: f64,
}

/// The weights that will be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Best {
    /// The epoch they are of, counted from 1.
    pub(crate) epoch: u32,
    /// The validation loss they were chosen by.
    pub(crate) loss: f64,
    pub(crate) state: Vec<f32>,
}

/// All of a run's state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) position: Position,
    pub(crate) state: Vec<f32>,
    pub(crate) planes: [Vec<f32>; 2],
    pub(crate) best: Option<Best>,
    /// SHA-256 of the file of weights that the run began with.
    pub(crate) pretrained: Option<String>,
}

/// The part of a snapshot that is not tensors. Floats travel as bits: JSON would round them.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    step: u64,
    epochs: u32,
    step_in_epoch: u64,
    lane_loss_bits: Vec<u64>,
    lane_correct: Vec<u64>,
    lane_rows: Vec<u64>,
    best_epoch: Option<u32>,
    best_loss_bits: u64,
    seconds: f64,
    /// SHA-256 of all vectors, in the order of their names here: state, planes, best.
    sha256: Vec<String>,
    /// What must not change between the parts of a run.
    contract: Value,
}

impl Snapshot {
    fn sha256(&self) -> Vec<String> {
        let best = self.best.as_ref().map(|best| &best.state);
        let vectors = std::iter::once(&self.state).chain(&self.planes).chain(best);
        vectors.map(|vector| weights::sha256(vector)).collect()
    }

    /// Writes the snapshot atomically.
    pub(crate) fn write(&self, path: &Path, job: &Job, sets: &Sets) -> Result<(), TrainError> {
        let sums = &self.position.lane_sums;
        let header = Header {
            version: VERSION,
            step: self.position.step,
            epochs: self.position.epochs,
            step_in_epoch: self.position.step_in_epoch,
            lane_loss_bits: sums.iter().map(|sum| sum.loss.to_bits()).collect(),
            lane_correct: sums.iter().map(|sum| sum.correct).collect(),
            lane_rows: sums.iter().map(|sum| sum.rows).collect(),
            best_epoch: self.best.as_ref().map(|best| best.epoch),
            best_loss_bits: self.best.as_ref().map_or(0, |best| best.loss.to_bits()),
            seconds: self.position.seconds_before,
            sha256: self.sha256(),
            contract: contract(job, sets, json!(self.pretrained)),
        };
        let header = serde_json::to_string(&header).map_err(|error| TrainError::Weights {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let mut vectors = vec![("state", &self.state)];
        vectors.extend(
            ["plane.0", "plane.1"]
                .into_iter()
                .zip(&self.planes)
                .filter(|(_, plane)| !plane.is_empty()),
        );
        vectors.extend(self.best.as_ref().map(|best| ("best", &best.state)));
        let tensors = vectors.into_iter().map(|(name, numbers)| {
            let shape = [numbers.len()];
            (name, Whole { numbers, shape })
        });
        write_safetensors(path, tensors, Some((METADATA, header)))
    }

    /// Reads a snapshot that `job` can go on from.
    pub(crate) fn read(
        path: &Path,
        job: &Job,
        sets: &Sets,
        len: usize,
    ) -> Result<Self, TrainError> {
        let planes = spec::optimizer(job).planes();
        let refused = |reason: String| TrainError::Resume {
            path: path.to_owned(),
            reason,
        };
        let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let damaged = |error: &dyn std::fmt::Display| refused(format!("it is damaged: {error}"));
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(&error))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get(METADATA));
        let header = header.ok_or_else(|| refused("it is no state of a run".to_owned()))?;
        let header: Header = serde_json::from_str(header).map_err(|error| damaged(&error))?;
        if header.version != VERSION {
            let found = header.version;
            return Err(refused(format!(
                "its format is {found}, and this program reads {VERSION}"
            )));
        }
        let pretrained = &header.contract["model"]["weights"];
        let same = contract(job, sets, pretrained_now(job, pretrained));
        let differences = differences("", &header.contract, &same);
        if !differences.is_empty() {
            let list = differences.join("; ");
            return Err(refused(format!(
                "the job has changed what would change the result: {list}"
            )));
        }
        if header.epochs >= job.train.epochs {
            return Err(refused(format!(
                "the run has trained {} epochs already, and the job asks for {}; ask for more",
                header.epochs, job.train.epochs
            )));
        }
        let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(&error))?;
        let vector = |name: &str| {
            let tensor = file.tensor(name).map_err(|error| damaged(&error))?;
            let numbers: Vec<f32> = tensor
                .data()
                .as_chunks::<4>()
                .0
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect();
            if numbers.len() != len {
                return Err(refused(format!(
                    "`{name}` has {} numbers instead of {len}",
                    numbers.len()
                )));
            }
            Ok(numbers)
        };
        let plane = |index: usize| match index < planes {
            true => vector(["plane.0", "plane.1"][index]),
            false => Ok(Vec::new()),
        };
        let sums = header
            .lane_loss_bits
            .iter()
            .zip(&header.lane_correct)
            .zip(&header.lane_rows);
        let lane_sums: Vec<_> = sums
            .map(|((&loss, &correct), &rows)| LossSum {
                loss: f64::from_bits(loss),
                correct,
                rows,
            })
            .collect();
        if lane_sums.len() != job.train.lanes {
            return Err(refused(format!(
                "it has {} lanes, the job {}",
                lane_sums.len(),
                job.train.lanes
            )));
        }
        let best = match header.best_epoch {
            None => None,
            Some(epoch) => Some(Best {
                epoch,
                loss: f64::from_bits(header.best_loss_bits),
                state: vector("best")?,
            }),
        };
        let snapshot = Self {
            position: Position {
                step: header.step,
                epochs: header.epochs,
                step_in_epoch: header.step_in_epoch,
                lane_sums,
                seconds_before: header.seconds,
            },
            state: vector("state")?,
            planes: [plane(0)?, plane(1)?],
            best,
            pretrained: pretrained.as_str().map(str::to_owned),
        };
        if snapshot.sha256() != header.sha256 {
            return Err(refused(
                "it is damaged: its hash is not that of its content".to_owned(),
            ));
        }
        Ok(snapshot)
    }
}

/// A vector as it is.
struct Whole<'a> {
    numbers: &'a [f32],
    shape: [usize; 1],
}

impl View for Whole<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        little_endian(self.numbers).into()
    }

    fn data_len(&self) -> usize {
        4 * self.numbers.len()
    }
}

/// What decides the result's bits: data, model and training, without what may change between the parts
/// of a run. Of the weights that it began with only the contents matter, not where they lie.
fn contract(job: &Job, sets: &Sets, pretrained: Value) -> Value {
    let mut value = json!({
        "data": job.data,
        "model": job.model,
        "train": job.train,
        "samples": sets.sha256(),
    });
    let depends_on_total = matches!(
        job.train.schedule,
        lockstep_job::Schedule::Cosine { steps: None, .. }
    );
    value["model"]["weights"] = pretrained;
    if let Some(train) = value["train"].as_object_mut() {
        train.remove("workers");
        train.remove("threads");
        if !depends_on_total {
            train.remove("epochs");
        }
    }
    value
}

/// The weights that the job begins with now, as [`contract`] holds them. A run that went on from them
/// does not need them any more: the file may be gone.
fn pretrained_now(job: &Job, before: &Value) -> Value {
    match &job.model.weights {
        None => Value::Null,
        Some(path) => match pretrained::sha256_of(path) {
            Some(sha256) => json!(sha256),
            None if before.is_string() => before.clone(),
            None => json!(path),
        },
    }
}

/// The keys in which two values differ, with both values.
fn differences(key: &str, was: &Value, is: &Value) -> Vec<String> {
    match (was, is) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a
                .keys()
                .chain(b.keys().filter(|key| !a.contains_key(*key)))
                .collect();
            keys.sort();
            keys.into_iter()
                .flat_map(|name| {
                    let path = if key.is_empty() {
                        name.clone()
                    } else {
                        format!("{key}.{name}")
                    };
                    let missing = &Value::Null;
                    differences(
                        &path,
                        a.get(name).unwrap_or(missing),
                        b.get(name).unwrap_or(missing),
                    )
                })
                .collect()
        }
        _ if was == is => Vec::new(),
        _ => vec![format!("{key} was {was}, is {is}")],
    }
}
