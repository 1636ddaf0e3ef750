//! `[train]`: how the network is trained.

use crate::field::{Field, Rule};
use crate::section::Section;
use crate::{Optimizer, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the network is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Passes over the training set.
    #[schemars(range(min = 1))]
    pub epochs: u32,
    /// Samples in an optimizer step, over all workers.
    #[schemars(range(min = 1))]
    pub batch: usize,
    /// What turns gradients into new weights.
    pub optimizer: Optimizer,
    /// How the learning rate changes over the run.
    #[serde(default)]
    pub schedule: Schedule,
    /// Gradients whose norm is larger are scaled down to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub clip_norm: Option<f64>,
    /// Worker processes. Any number up to `lanes` gives the same weights.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub workers: usize,
    /// The parts that a batch is cut into: the unit of arithmetic, fixed for the run's life. If left
    /// out, the job file's `workers`.
    #[schemars(with = "Option<usize>", range(min = 1))]
    pub lanes: usize,
    /// Threads of a worker.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub threads: usize,
    /// Where all random numbers of the run come from.
    #[serde(default)]
    pub seed: u64,
}

pub(crate) fn one() -> usize {
    1
}

/// More processes than any gang has, few enough that a slip of the finger starts no storm.
pub(crate) const MAX_WORKERS: usize = 65_536;
/// Samples, far beyond what a step takes, so that sizes made from it cannot overflow.
const MAX_BATCH: usize = 1 << 24;
/// More than any machine has cores.
const MAX_THREADS: usize = 4_096;
/// The largest integer that TOML can hold.
const MAX_SEED: u64 = i64::MAX as u64;

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
        let epochs = section
            .need("epochs", "add `epochs = 10`")
            .and_then(|field| field.integer(1..=u32::MAX));
        let batch_field = section.need("batch", "add `batch = 32`");
        let batch = batch_field
            .as_ref()
            .and_then(|field| field.integer(1..=MAX_BATCH));
        let optimizer = section
            .need(
                "optimizer",
                "add `optimizer = { kind = \"sgd\", lr = 1e-3 }`",
            )
            .and_then(|field| Optimizer::read(field.section()?));
        let lr = optimizer.as_ref().map(Optimizer::lr);
        let schedule = section.or("schedule", Schedule::default(), |field| {
            Schedule::read(field.section()?, lr)
        });
        let clip_norm = section.maybe("clip_norm", |field| field.number(Rule::POSITIVE));

        let count = |field: &Field<'_>| field.integer(1..=MAX_WORKERS);
        let in_file = section.get("workers");
        let in_file_count = in_file.as_ref().map_or(Some(one()), count);
        let lanes_field = section.get("lanes");
        let lanes = lanes_field.as_ref().map_or(in_file_count, count);
        let workers = match workers.as_ref().or(in_file.as_ref()) {
            Some(field) => {
                count(field).and_then(|n| fits_lanes(n, lanes, field, lanes_field.as_ref()))
            }
            None => Some(one()),
        };
        let threads = section.or("threads", one(), |field| field.integer(1..=MAX_THREADS));
        let seed = section.or("seed", 0, |field| field.integer(0..=MAX_SEED));
        section.finish();

        let (batch, lanes) = (batch?, lanes?);
        let rows = if uses_batch_norm { 2 } else { 1 };
        check_rows(rows, batch, lanes, &batch_field?, lanes_field.as_ref())?;
        Some(Train {
            epochs: epochs?,
            batch,
            optimizer: optimizer?,
            schedule: schedule?,
            clip_norm: clip_norm?,
            workers: workers?,
            lanes,
            threads: threads?,
            seed: seed?,
        })
    }
}

/// Of two values that do not fit each other, the lanes are to blame where the command line sets them
/// against a value of the file, which was right before.
fn blamed<'a, 'b>(other: &Field<'_>, lanes: Option<&'a Field<'b>>) -> Option<&'a Field<'b>> {
    lanes.filter(|lanes| lanes.is_override() && !other.is_override())
}

/// Lanes decide the result's bits, so they are never raised silently to fit the workers.
fn fits_lanes(
    workers: usize,
    lanes: Option<usize>,
    field: &Field<'_>,
    lanes_field: Option<&Field<'_>>,
) -> Option<usize> {
    let Some(lanes) = lanes.filter(|&lanes| workers > lanes) else {
        return Some(workers);
    };
    if let Some(lanes_field) = blamed(field, lanes_field) {
        return lanes_field.reject(
            format!("is {lanes}, but `train.workers` is {workers}"),
            format!("must be at least {workers}, unless there are fewer workers"),
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

/// Every lane of a full batch has `rows` rows: one, or two where they are batch-normalised.
fn check_rows(
    rows: usize,
    batch: usize,
    lanes: usize,
    field: &Field<'_>,
    lanes_field: Option<&Field<'_>>,
) -> Option<()> {
    if batch / lanes >= rows {
        return Some(());
    }
    // No number of lanes is right for a batch that is too small for one.
    if let Some(lanes_field) = blamed(field, lanes_field).filter(|_| batch >= rows) {
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
