//! `[train]`: how the job's learner trains, and on how many workers.
//!
//! Workers, lanes, threads and the seed mean the same to every learner. The other keys are the learner's own.

mod class_weights;
mod decision;
mod network;
mod workers;

pub use class_weights::{ClassWeights, WeightRule};
pub use decision::{JobDecision, JobThreshold, PositiveClass, ThresholdRule};
pub use network::{JobLoss, JobPrecision, NetworkTraining};
pub use workers::{Workers, WorkersRange};

use crate::field::Field;
use crate::keys::{Any, By, FromField, keys};
use crate::section::Section;
use crate::{Bytes, JobDevice};

keys! {
    /// How the network is trained.
    pub struct Train {
        /// What belongs to the learner.
        #[serde(flatten)]
        learner: NetworkTraining = flat(NetworkTraining::read_keys) => Any;
        /// Worker processes. Any number up to `lanes` gives the same weights. With `{ min = 2, max = 8 }` the run
        /// begins with two, takes in others when they come, and goes on when some leave.
        workers: Workers = default(Workers::exactly(1)) => Any;
        /// The parts that a batch is cut into: the unit of arithmetic, fixed for the run's life. If left
        /// out, the job file's `workers`.
        lanes: usize = otherwise(workers.map(|workers| workers.max)) => 1..=MAX_WORKERS;
        /// Threads of a worker. Any number gives the same weights. If left out, the workers of a machine share the cores
        /// that the run may use.
        threads: Option<usize> = optional => 1..=MAX_THREADS;
        /// What the network is computed on. It does not change the weights.
        device: JobDevice = default(JobDevice::Auto) => Any;
        /// The most memory of a GPU that the training set may take there. A larger set is gathered by the processor,
        /// batch by batch.
        gpu_data: Bytes = default(Bytes(8 << 30)) => By(|field: &Field<'_>| Bytes::read(field, Bytes(0)));
        /// Where all random numbers of the run come from.
        seed: u64 = default(0) => 0..=MAX_SEED;
    }
}

/// More processes than any gang has, few enough that a slip of the finger starts no storm.
pub(crate) const MAX_WORKERS: usize = 65_536;
/// More than any machine has cores.
pub(crate) const MAX_THREADS: usize = 4_096;
/// The largest integer that TOML can hold.
pub(crate) const MAX_SEED: u64 = i64::MAX as u64;

impl Train {
    /// Reads the table.
    ///
    /// `workers` is what the command line says about them: it takes the place of the file's number
    /// after that has served as the default of `lanes`.
    pub(crate) fn read(
        mut section: Section<'_>,
        workers: Option<Field<'_>>,
        uses_batch_norm: bool,
    ) -> Option<Train> {
        let train = Train::read_keys(&mut section);
        let flag = workers.as_ref().map(Workers::from_field);
        let (batch, lanes) = (section.get("batch"), section.get("lanes"));
        let carriers = workers.or(section.get("workers"));
        section.finish();
        let mut train = train?;
        if let Some(workers) = flag {
            train.workers = workers?;
        }
        if let Some(field) = &carriers {
            fits_lanes(train.workers.max, train.lanes, field, lanes.as_ref())?;
        }
        let rows = if uses_batch_norm { 2 } else { 1 };
        check_rows(
            rows,
            train.learner.batch,
            train.lanes,
            batch.as_ref(),
            lanes.as_ref().or(carriers.as_ref()),
        )?;
        Some(train)
    }
}

/// Of two values that do not fit each other, the lanes are wrong where the command line sets them
/// against a value of the file, which was right before.
fn wrong_lanes<'a, 'b>(other: &Field<'_>, lanes: Option<&'a Field<'b>>) -> Option<&'a Field<'b>> {
    lanes.filter(|lanes| lanes.is_override() && !other.is_override())
}

/// Lanes decide the result's bits, so they are never raised silently to fit the workers.
fn fits_lanes(
    workers: usize,
    lanes: usize,
    field: &Field<'_>,
    lanes_field: Option<&Field<'_>>,
) -> Option<()> {
    if workers <= lanes {
        return Some(());
    }
    if let Some(lanes_field) = wrong_lanes(field, lanes_field) {
        return lanes_field.reject(
            format!("is {lanes}, but `train.workers` is {workers}"),
            format!("must be at least {workers}, unless there are fewer workers"),
        );
    }
    if lanes_field.is_none() {
        return field.reject(
            format!("is {workers}, but a batch has {}", plural_lanes(lanes)),
            format!(
                "a lane is a part of every batch, and a worker computes whole ones; \
                 add `lanes = {workers}` to [train], or `--set train.lanes={workers}` to the command"
            ),
        );
    }
    field.reject(
        format!("is {workers}, but `train.lanes` is {lanes}"),
        format!(
            "must be at most {lanes}, unless `train.lanes` is set to {workers} or more \
             (which changes the weights)"
        ),
    )
}

fn plural_lanes(lanes: usize) -> String {
    match lanes {
        1 => "1 lane".to_owned(),
        _ => format!("{lanes} lanes"),
    }
}

/// Every lane of a full batch has `rows` rows: one, or two where they are batch-normalised.
fn check_rows(
    rows: usize,
    batch: usize,
    lanes: usize,
    batch_field: Option<&Field<'_>>,
    lanes_field: Option<&Field<'_>>,
) -> Option<()> {
    if batch / lanes >= rows {
        return Some(());
    }
    let wrong_lanes = match batch_field {
        Some(batch) => wrong_lanes(batch, lanes_field),
        None => lanes_field,
    };
    // No number of lanes is right for a batch that is too small for one.
    if let Some(lanes_field) = wrong_lanes.filter(|_| batch >= rows) {
        return if batch < lanes {
            lanes_field.reject(
                format!("must be at most `train.batch` ({batch}), found {lanes}"),
                "every lane needs a sample of the batch",
            )
        } else {
            lanes_field.reject(
                format!("is too large for batch-norm on batches of {batch}, found {lanes}"),
                format!("must be at most {}: two samples a lane", batch / rows),
            )
        };
    }
    // One lane is enough for the batch that a job has without saying so.
    let field = batch_field?;
    if batch < lanes {
        field.reject(
            format!("must be at least `train.lanes` ({lanes}), found {batch}"),
            "every lane needs a sample of the batch",
        )
    } else {
        field.reject(
            format!("is too small for batch-norm on {lanes} lanes, found {batch}"),
            format!("must be at least {}: two samples a lane", rows * lanes),
        )
    }
}
