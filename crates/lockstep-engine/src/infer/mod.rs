//! A trained model on a whole set, the rows shared by a crew of task workers.
//!
//! The set is cut into pieces of whole blocks; whoever is idle takes the next. What the model says of a row
//! does not depend on who computes it or together with which others, and pieces are handed on in the order
//! of the set: so everything that is made of them is the same for any number of workers.
//!
//! [`NamedModel`] finds the run whose model is meant, [`NamedSamples`] says what it is to look at, and an
//! [`Inference`] opens both.

mod error;
mod find;
mod inference;
mod samples;

pub use error::InferError;
pub use find::{FindLearner, NamedModel, open_run, open_trained};
pub use inference::{Inference, OpenLauncher, OpenRequest, Samples};
pub use samples::NamedSamples;

use crate::ready::ready;
use crate::tasks::{self, CrewSettings, TaskEvent, TaskFailure, Work};
use crate::{EngineError, StopFlag};
use lockstep_base::cores;
use lockstep_base::fs::CacheDir;
use lockstep_cuda::DeviceChoice;
use lockstep_data::{DataError, Dataset, DecodedSet, Source};
use lockstep_events::event::Event;
use lockstep_launch::Launcher;
use lockstep_learner::{Learners, ModelDevice};
use lockstep_model::{BLOCK_ROWS, Block, Outputs, Prediction, Predictions, open_test};
use lockstep_place::{Access, Place};
use lockstep_resolve::Precision;
use lockstep_runs::RunDir;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of this work among those that task workers do.
pub const KIND: &str = "predict";
/// Pieces for every worker, so that none waits long for the last one.
const PIECES: usize = 4;
/// Rows of the largest piece.
const MOST_ROWS: usize = 4096;

/// What is to be predicted, and by whom.
struct InferRequest<'a> {
    /// The run whose model it is.
    pub run: &'a RunDir,
    /// How the run is reached.
    pub access: &'a Access,
    /// Where the samples come from, for workers that have not what is decoded of them here.
    pub source: &'a Source,
    /// Threads of a worker, if the job says how many.
    pub threads: Option<usize>,
    /// What the model is computed on.
    pub device: DeviceChoice,
    /// How precisely, if not as it was trained.
    pub precision: Option<Precision>,
    /// Whether the probabilities of all classes are wanted.
    pub probabilities: bool,
    /// Who does it.
    pub crew: CrewSettings,
    /// Raised by whoever wants the work to end early.
    pub stop: StopFlag,
    /// Where the workers run.
    pub launcher: &'a mut dyn Launcher,
}

/// What all pieces have in common, for the workers.
#[derive(Serialize, Deserialize)]
struct InferSetup {
    run: String,
    access: Access,
    threads: Option<usize>,
    device: DeviceChoice,
    precision: Option<Precision>,
    set: DecodedSet,
    source: Source,
    probabilities: bool,
}

/// What a worker says of a piece. Numbers are told by their bits, since JSON rounds.
#[derive(Serialize, Deserialize)]
struct ToldBlock {
    said: ToldPredictions,
    losses: Vec<u64>,
    all: Vec<u32>,
}

/// What a worker says of the rows of a piece.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldPredictions {
    Classes {
        classes: Vec<u32>,
        probabilities: Vec<u32>,
        in_top5: Vec<bool>,
    },
    Numbers {
        width: usize,
        values: Vec<u32>,
    },
}

/// Predicts every row of `set`, and hands the pieces to `each` in the order of the set. Returns whether that was all: not when a stop was asked for.
///
/// # Errors
/// When the model or the set cannot be used, a worker fails too often, or `each` fails, which ends the work.
fn infer<E: From<EngineError>>(
    request: InferRequest<'_>,
    set: &Dataset,
    events: &mut dyn FnMut(Event),
    each: &mut dyn FnMut(Block) -> Result<(), E>,
) -> Result<bool, E> {
    let pieces = pieces(set.len(), request.crew.workers);
    let setup = InferSetup {
        run: whole_name(request.run.place()),
        access: request.access.clone(),
        threads: request.threads,
        device: request.device,
        precision: request.precision,
        set: set.decoded(),
        source: request.source.clone(),
        probabilities: request.probabilities,
    };
    let patience = request.crew.start_deadline;
    if !ready(request.launcher, patience, &request.stop, events)? {
        return Ok(false);
    }
    let rows = |first: &usize| serde_json::json!([first, pieces.1.min(set.len() - first)]);
    let tasks = tasks::Request {
        launcher: request.launcher,
        deadline: request.crew.deadline,
        workers: request.crew.workers,
        kind: KIND,
        setup: serde_json::to_value(setup).map_err(EngineError::unspeakable)?,
        tasks: pieces.0.iter().map(rows).collect(),
        stop: request.stop.clone(),
        max_restarts: request.crew.max_restarts,
    };
    let mut early: BTreeMap<usize, Value> = BTreeMap::new();
    let mut next = 0;
    let mut failed = None;
    let summary = tasks::run(tasks, &mut |event| match event {
        TaskEvent::Done { task, payload } => {
            early.insert(task, payload);
            while let Some(payload) = early.remove(&next) {
                let told = read(pieces.0[next], payload).map_err(E::from);
                if failed.is_none()
                    && let Err(error) = told.and_then(&mut *each)
                {
                    failed = Some(error);
                    request.stop.raise(crate::Stop::Now);
                }
                next += 1;
            }
        }
        other => other.news().into_iter().for_each(&mut *events),
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(!summary?.stopped),
    }
}

/// The name of a place that means the same in every folder: workers may run in another.
fn whole_name(place: &Place) -> String {
    let whole = place
        .local()
        .and_then(|path| std::path::absolute(path).ok());
    whole.map_or_else(
        || place.to_string(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// Where the pieces of so many rows begin, and how many rows each has at most.
fn pieces(rows: usize, workers: usize) -> (Vec<usize>, usize) {
    let wanted = rows.div_ceil(workers.max(1) * PIECES);
    let size = wanted
        .next_multiple_of(BLOCK_ROWS)
        .clamp(BLOCK_ROWS, MOST_ROWS);
    ((0..rows).step_by(size).collect(), size)
}

/// The worker's side, of the worker of this number: predicts the pieces that it is handed, with a model of one of
/// `learners`.
///
/// # Errors
/// When the model or the set cannot be opened, or the GPU that was asked for cannot be used.
pub fn work(worker: usize, setup: Value, learners: Learners) -> Result<Work, TaskFailure> {
    let setup: InferSetup = serde_json::from_value(setup).map_err(|error| error.to_string())?;
    let place = Place::parse(&setup.run, &setup.access);
    let run = RunDir::open(&place.map_err(|error| TaskFailure::of(&error))?)
        .map_err(|error| TaskFailure::of(&error))?;
    let on = ModelDevice {
        threads: setup.threads.unwrap_or_else(cores::usable),
        choice: setup.device,
        precision: setup.precision,
        worker,
    };
    let trained = learners.open_model(&run, on);
    let mut trained = trained.map_err(|error| TaskFailure::of(&error))?;
    let set = match Dataset::reopen(&setup.set) {
        Err(DataError::DecodedGone { .. }) => open_here(&setup, trained.outputs())?,
        set => set.map_err(|error| TaskFailure::of(&error))?,
    };
    trained
        .check(&set)
        .map_err(|error| TaskFailure::of(&error))?;
    Ok(Box::new(move |task, _| {
        let rows: [usize; 2] = serde_json::from_value(task).map_err(|error| error.to_string())?;
        let rows = rows[0]..rows[0] + rows[1];
        let block = trained.predict(&set, rows, setup.probabilities);
        let block = block.map_err(|error| TaskFailure::of(&error))?;
        serde_json::to_value(tell(&block)).map_err(|error| error.to_string().into())
    }))
}

/// Opens the set where it comes from, as on another machine than the coordinator's. Its samples must be the same.
fn open_here(setup: &InferSetup, outputs: &Outputs) -> Result<Dataset, TaskFailure> {
    let cache = CacheDir::locate().map_err(|error| TaskFailure::of(&error))?;
    let set = open_test(&setup.source, outputs, &cache, &mut |_| {});
    let set = set.map_err(|error| TaskFailure::of(&error))?;
    match set.sha256() == setup.set.sha256 {
        true => Ok(set),
        false => Err(TaskFailure::from(format!(
            "{}: the samples on this machine are not those that the coordinator found",
            set.name()
        ))),
    }
}

fn tell(block: &Block) -> ToldBlock {
    ToldBlock {
        said: match &block.predictions {
            Predictions::Classes(said) => ToldPredictions::Classes {
                classes: said.iter().map(|said| said.class).collect(),
                probabilities: said.iter().map(|said| said.probability.to_bits()).collect(),
                in_top5: said.iter().map(|said| said.in_top5).collect(),
            },
            Predictions::Numbers { width, values } => ToldPredictions::Numbers {
                width: *width,
                values: values.iter().map(|value| value.to_bits()).collect(),
            },
        },
        losses: block.losses.iter().map(|loss| loss.to_bits()).collect(),
        all: block.probabilities.iter().map(|p| p.to_bits()).collect(),
    }
}

fn read(first: usize, payload: Value) -> Result<Block, EngineError> {
    let told: ToldBlock = serde_json::from_value(payload).map_err(EngineError::unspeakable)?;
    let predictions = match told.said {
        ToldPredictions::Classes {
            classes,
            probabilities,
            in_top5,
        } => {
            let said = classes.into_iter().zip(probabilities).zip(in_top5);
            let said = said.map(|((class, probability), in_top5)| Prediction {
                class,
                probability: f32::from_bits(probability),
                in_top5,
            });
            Predictions::Classes(said.collect())
        }
        ToldPredictions::Numbers { width, values } => Predictions::Numbers {
            width: width.max(1),
            values: values.into_iter().map(f32::from_bits).collect(),
        },
    };
    Ok(Block {
        first,
        predictions,
        losses: told.losses.into_iter().map(f64::from_bits).collect(),
        probabilities: told.all.into_iter().map(f32::from_bits).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_piece_of_whole_blocks() {
        for (rows, workers) in [
            (1, 1),
            (255, 2),
            (256, 2),
            (10_000, 1),
            (10_000, 3),
            (99_999, 8),
        ] {
            let (firsts, size) = pieces(rows, workers);
            assert!(size.is_multiple_of(BLOCK_ROWS) && size <= MOST_ROWS);
            let ends = firsts.iter().map(|first| (first + size).min(rows));
            let next = firsts.iter().skip(1).copied().chain([rows]);
            assert!(ends.eq(next), "{rows} rows: {firsts:?}");
            assert!(firsts.len() >= workers.min(rows.div_ceil(BLOCK_ROWS)));
        }
    }

    #[test]
    fn what_a_worker_says_arrives_to_the_bit() {
        let block = Block {
            first: 512,
            predictions: Predictions::Classes(vec![Prediction {
                class: 7,
                probability: 0.1 + 0.2,
                in_top5: true,
            }]),
            losses: vec![0.1 + 0.2, f64::MIN_POSITIVE],
            probabilities: vec![1.0 / 3.0, f32::NAN.abs()],
        };
        let payload = serde_json::to_value(tell(&block)).unwrap();
        let text = payload.to_string();
        let back = read(512, serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(back.predictions, block.predictions);
        assert_eq!(back.losses, block.losses);
        let bits = |block: &Block| block.probabilities.iter().map(|p| p.to_bits()).collect();
        let (back, sent): (Vec<u32>, Vec<u32>) = (bits(&back), bits(&block));
        assert_eq!(back, sent);
    }
}
