//! Everything about a job that can be known before a worker exists: the data is opened and checked, the
//! model laid out, the exchange planned.

use crate::TrainError;
use crate::copies;
use crate::evaluate::{measures, metrics, rows_at_once};
use crate::exchange::{ExchangePlan, Workload};
use crate::lanes::LaneProgram;
use crate::layer_rates;
use crate::network;
use crate::pretrained;
use crate::sets::{DataFacts, FoundSets, Sets};
use crate::snapshot::Snapshot;
use crate::targets::{self, loss};
use crate::threads;
use lockstep_base::cores;
use lockstep_base::fs::CacheDir;
use lockstep_data::{TargetKind, lane_rows};
use lockstep_events::event::WorkerThreads;
use lockstep_gang::{KeptShape, Plan, ShmCollective};
use lockstep_learner::LayerLine;
use lockstep_measure::BestBy;
use lockstep_nn::fixed16::Engine;
use lockstep_nn::{Capacity, Dims, LayerSummary, Layout, Loss, Model, Precision, Threads};
use lockstep_place::Place;
use lockstep_resolve::{ClassWeights, ImageChanges, ResolvedJob, TrainingSettings};

/// A job that can be trained.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What the data is.
    pub data: DataFacts,
    /// Parameters of the model.
    pub parameters: usize,
    /// Numbers in the state vector: parameters and running statistics.
    pub state_len: usize,
    /// Optimizer steps in an epoch.
    pub steps_per_epoch: u64,
    /// Who exchanges what with whom.
    pub plan: Plan,
    /// Threads of a worker.
    pub threads: WorkerThreads,
    /// What training will take.
    pub memory: MemoryEstimate,
    /// What is copied of the state to memory that outlives a worker, where copies are kept.
    pub copies: KeptShape,
    /// The model's layers.
    pub layers: Vec<LayerLine>,
    /// What the model is measured by; what training minimises comes first.
    pub metrics: &'static [&'static str],
    /// What a person may not expect, each a sentence.
    pub notes: Vec<String>,
}

fn layer_line(layer: &LayerSummary) -> LayerLine {
    LayerLine {
        name: layer.name.clone(),
        kind: layer.kind.to_owned(),
        output: layer.output.to_string(),
        parameters: layer.parameters,
    }
}

/// Memory that training will take, beside the data's pages, which the workers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// In the worker that takes most, which is the first.
    pub per_worker_bytes: usize,
    /// As much of it is copies for checkpoints and for the file of weights, which only the first has.
    pub copies_bytes: usize,
    /// Shared by all workers.
    pub shared_bytes: usize,
}

/// Opens and checks all that the job names, and says where its sets were found: they are looked for here, once.
/// Says through `progress` what may take a while.
///
/// # Errors
/// When the data is missing, damaged or does not fit the job, or the model cannot be built.
pub fn prepare(
    job: &ResolvedJob,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<(Prepared, FoundSets), TrainError> {
    let settings = &job.training;
    let sets = Sets::open(settings, &job.sets, cache, progress)?;
    let mut prepared = plan(settings, &sets.facts())?;
    prepared.notes.extend(targets::note(settings, &sets.train));
    prepared.notes.extend(sets.notes(settings));
    Ok((prepared, sets.found()))
}

/// What is odd about a job, though it can be done.
fn odd(settings: &TrainingSettings, data: &DataFacts, outputs: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let (batch, samples) = (settings.learner.batch, data.train);
    if batch > samples {
        notes.push(format!(
            "train.batch is {batch}, but there are only {samples} training samples: each step sees all of them"
        ));
    }
    let classes = data.names.len();
    if data.kind == TargetKind::Classes && outputs > classes {
        notes.push(format!(
            "the last layer has {outputs} outputs, and the data has {classes} classes: the others are never right; \
             leave its `out` away"
        ));
    }
    if settings.weights.is_none() && !settings.learner.freeze.is_empty() {
        notes.push(
            "train.freeze is set, and model.weights is not: what is frozen keeps the random weights that it begins with"
                .to_owned(),
        );
    }
    let steps = samples.div_ceil(batch) as u64 * u64::from(settings.learner.epochs);
    let warmup = settings.learner.schedule.warmup();
    if warmup >= steps {
        notes.push(format!(
            "train.schedule.warmup_steps is {warmup}, and training ends after step {steps}: the learning rate is \
             never reached"
        ));
    }
    notes
}

/// Rows of a lane from which on products in fixed point are worth what it takes to make their operands on a processor; and rows of
/// a batch for which they are on a GPU, which computes all lanes of a worker together.
const ROWS_FOR_FIXED16: usize = 64;
const ROWS_FOR_FIXED16_ON_A_GPU: usize = 1024;

/// What to say of products in fixed point where they are not faster.
fn precision_note(settings: &TrainingSettings, data: &DataFacts, model: &Model) -> Option<String> {
    let on_gpu = settings.gradients_only;
    if settings.learner.precision == Precision::F32 {
        return None;
    }
    let engine = Engine::current();
    if !on_gpu && !engine.is_fast() {
        return Some(format!(
            "train.precision is \"fixed16\", and this machine has no AMX: it computes the same weights as one that has \
             it, but with {} it is no faster than with \"f32\"",
            engine.name()
        ));
    }
    let (what, rows, least) = match on_gpu {
        true => ("a batch", settings.learner.batch, ROWS_FOR_FIXED16_ON_A_GPU),
        false => ("a lane", largest_lane(settings, data), ROWS_FOR_FIXED16),
    };
    let is_of_images = model
        .summary()
        .iter()
        .any(|layer| layer.output.pixels() > 1);
    (!is_of_images && rows < least).then(|| {
        let device = if on_gpu { "on a GPU " } else { "" };
        format!(
            "train.precision is \"fixed16\", and {what} has {rows} rows: dense layers are {device}faster with it from about \
             {least} on"
        )
    })
}

/// Plans a job on data of which only this is known: none of it need be there yet.
///
/// # Errors
/// When the job does not fit such data, or the model cannot be built.
pub fn plan(settings: &TrainingSettings, data: &DataFacts) -> Result<Prepared, TrainError> {
    let model = model_for(settings, data, 1, 1)?;
    // Of workers elsewhere this is a guess: each has as many as its own machine has cores for.
    let threads = threads::of_worker(settings, data, &model, cores::share(settings.workers));
    let model = model_for(settings, data, 1, threads.count)?;
    check(settings, data, &model)?;
    let layout = model.layout();
    let exchange = exchange_plan(settings, data, layout)?;
    let batches = if exchange.reads_whole_batch() { 2 } else { 1 };
    let plan = exchange.plan;
    let solo = plan.workers() == 1;
    // Of a gang they lie in shared memory.
    let shares: usize = match solo {
        true => (plan.chunks()..plan.pieces())
            .map(|piece| plan.chunk(piece).len())
            .sum(),
        false => 0,
    };
    // The replica, its optimizer's planes, the average and the best weights, those of a checkpoint again on rank 0,
    // gradients, and the file that weights go to.
    let best = usize::from(data.val > 0);
    let average = usize::from(settings.learner.average.is_some());
    let planes = settings.learner.optimizer.planes();
    let copies = 1 + planes + average + best;
    let vectors = 2 * copies + gradient_vectors(settings, data, &plan) + 1;
    let evaluation = evaluation_rows(settings, data, &model);
    let workspace = model.workspace_bytes_for(capacity(settings, data, &model).rows);
    let inputs =
        (batches * full_batch(settings, data) + evaluation) * data.shape.iter().product::<usize>();
    Ok(Prepared {
        parameters: layout.parameters,
        state_len: layout.len(),
        steps_per_epoch: steps_per_epoch(settings, data),
        memory: MemoryEstimate {
            per_worker_bytes: (vectors * layout.len() + shares + inputs) * 4 + workspace,
            copies_bytes: (copies + 1) * layout.len() * 4,
            shared_bytes: if solo {
                0
            } else {
                ShmCollective::bytes_needed(&plan)
            },
        },
        copies: copies::shape(settings, data, layout.len()),
        plan,
        threads,
        layers: model.summary().iter().map(layer_line).collect(),
        metrics: metrics(model.loss()),
        notes: (odd(settings, data, model.outputs()).into_iter())
            .chain(precision_note(settings, data, &model))
            .chain(layer_rates::note(layout))
            .collect(),
        data: data.clone(),
    })
}

/// Vectors of gradients in the worker that has most: partial sums, and lanes kept aside.
fn gradient_vectors(settings: &TrainingSettings, data: &DataFacts, plan: &Plan) -> usize {
    if plan.lanes() == 1 && settings.learner.clip_norm.is_none() {
        // Used where it is formed.
        return 0;
    }
    let of_rank = |rank| {
        let program = LaneProgram::new(plan, rank, full_batch(settings, data));
        plan.partials_of(rank).len() + program.aside
    };
    (0..plan.workers()).map(of_rank).max().unwrap_or(0)
}

/// How a run begins that does not go on from a state.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// SHA-256 of the file of weights to begin with, for [`LearnerPart::pretrained`](crate::LearnerPart::pretrained).
    pub pretrained: Option<String>,
    /// What a person may not expect, each a sentence.
    pub notes: Vec<String>,
}

/// Checks that training can begin with the weights that the settings name.
///
/// # Errors
/// When they are missing, damaged or do not fit the model.
pub fn check_start(settings: &TrainingSettings, data: &DataFacts) -> Result<Start, TrainError> {
    let Some(path) = &settings.weights else {
        return Ok(Start::default());
    };
    let model = model_for(settings, data, 1, 1)?;
    let begin = pretrained::read(path, &model, settings.seed, None)?;
    Ok(Start {
        pretrained: Some(begin.sha256),
        notes: begin.note.into_iter().collect(),
    })
}

/// The state of the checkpoint at `place`, from which training can go on.
///
/// # Errors
/// When the checkpoint is missing or damaged, or the job has changed what would change the result.
pub(crate) fn read_snapshot(
    settings: &TrainingSettings,
    place: &Place,
    found: &FoundSets,
) -> Result<Snapshot, TrainError> {
    let sets = Sets::reopen(settings, found)?;
    let len = model_for(settings, &sets.facts(), 1, 1)?.layout().len();
    Snapshot::read(place, settings, &sets, len)
}

/// The job's model for its lanes and for evaluation, and how many rows that may compute at a time.
pub(crate) fn working_model(
    settings: &TrainingSettings,
    data: &DataFacts,
    threads: &Threads,
) -> Result<(Model, usize), TrainError> {
    let smallest = model_for(settings, data, 1, threads.count())?;
    let capacity = capacity(settings, data, &smallest);
    let model = model_on(threads, settings, data, capacity)?;
    Ok((model, evaluation_rows(settings, data, &smallest)))
}

/// The threads of this process, which is a worker of the job.
pub(crate) fn threads_here(
    settings: &TrainingSettings,
    data: &DataFacts,
) -> Result<Threads, TrainError> {
    let model = model_for(settings, data, 1, 1)?;
    let threads = threads::of_worker(settings, data, &model, cores::usable());
    let started = Threads::with_threads(threads.count);
    started.map_err(|error| TrainError::misfit("train.threads", error.to_string()))
}

/// What a worker computes in one pass, at the most: as many of its lanes as leave the network's memory below
/// [`PASS_BYTES`], and one in any case; and the rows of an evaluation.
fn capacity(settings: &TrainingSettings, data: &DataFacts, model: &Model) -> Capacity {
    let lane = largest_lane(settings, data);
    let own = settings.lanes.div_ceil(settings.workers);
    let fits = |lanes: &usize| model.workspace_bytes_for(lanes * lane) <= PASS_BYTES;
    let lanes = (2..=own).take_while(fits).last().unwrap_or(1);
    let rows = evaluation_rows(settings, data, model).max(lanes * lane);
    Capacity { rows, lanes }
}

/// Rows that an evaluation computes at a time.
pub(crate) fn evaluation_rows(
    settings: &TrainingSettings,
    data: &DataFacts,
    model: &Model,
) -> usize {
    let row = model.workspace_bytes_for(2) - model.workspace_bytes_for(1);
    rows_at_once(largest_lane(settings, data), row)
}

/// Memory that a network may work in for the sake of computing lanes together.
const PASS_BYTES: usize = 1 << 30;

/// The job's model for at most so many rows at a time on so many threads, to be looked at.
fn model_for(
    settings: &TrainingSettings,
    data: &DataFacts,
    rows: usize,
    threads: usize,
) -> Result<Model, TrainError> {
    let capacity = Capacity { rows, lanes: 1 };
    model_on(&Threads::planned(threads), settings, data, capacity)
}

/// The job's model for passes of so many rows and lanes, at the most.
pub(crate) fn model_on(
    threads: &Threads,
    settings: &TrainingSettings,
    data: &DataFacts,
    capacity: Capacity,
) -> Result<Model, TrainError> {
    let tables = data.embeddings.clone();
    let layers = network::layers_behind(tables, &settings.network, data.names.len());
    let [channels, height, width] = data.shape;
    let input = Dims::image(height, width, channels);
    let rates = layer_rates::of(&settings.learner);
    let precision = settings.learner.precision;
    let model = Model::in_precision(precision, &rates, threads, &layers, input, capacity);
    let model = model.map_err(|error| network::refusal(&settings.network, error))?;
    let said = settings.learner.loss;
    Ok(model.minimising(said.unwrap_or(loss(data.kind))))
}

/// Who exchanges what with whom.
pub(crate) fn exchange_plan(
    settings: &TrainingSettings,
    data: &DataFacts,
    layout: &Layout,
) -> Result<ExchangePlan, TrainError> {
    let workload = Workload {
        lanes: settings.lanes,
        workers: settings.workers,
        batch: full_batch(settings, data),
        planes: settings.learner.optimizer.planes(),
        clips: settings.learner.clip_norm.is_some(),
        averages: settings.learner.average.is_some(),
        gradients_only: settings.gradients_only,
    };
    ExchangePlan::new(layout, workload)
}

/// Samples of a full batch: not more than there are.
pub(crate) fn full_batch(settings: &TrainingSettings, data: &DataFacts) -> usize {
    settings.learner.batch.min(data.train)
}

/// Rows of the largest lane of a full batch.
pub(crate) fn largest_lane(settings: &TrainingSettings, data: &DataFacts) -> usize {
    full_batch(settings, data).div_ceil(settings.lanes)
}

pub(crate) fn steps_per_epoch(settings: &TrainingSettings, data: &DataFacts) -> u64 {
    data.train.div_ceil(settings.learner.batch) as u64
}

fn check(settings: &TrainingSettings, data: &DataFacts, model: &Model) -> Result<(), TrainError> {
    let samples = data.train;
    if samples == 0 {
        return Err(TrainError::misfit(
            "data.val_split",
            "no training samples are left; set a smaller share aside",
        ));
    }
    if settings.val_share > 0.0 && data.val == 0 {
        return Err(TrainError::misfit(
            "data.val_split",
            format!(
                "{} of {samples} samples is none; set a larger share aside, or leave it out",
                settings.val_share
            ),
        ));
    }
    if let (TargetKind::Classes, [only]) = (data.kind, &data.names[..]) {
        return Err(TrainError::misfit(
            "data.train",
            format!("all samples are of the class `{only}`: there is nothing to tell apart"),
        ));
    }
    if settings.workers > samples {
        return Err(TrainError::misfit(
            "train.workers",
            format!(
                "{} workers for {samples} training samples; use at most one worker a sample",
                settings.workers
            ),
        ));
    }
    let (outputs, wanted) = (model.outputs(), data.names.len());
    let kind = data.kind;
    // A class more or less is one that is never right; a number more would be compared with nothing.
    if outputs < wanted || (kind != TargetKind::Classes && outputs != wanted) {
        let what = match kind {
            TargetKind::Classes => "classes",
            TargetKind::Numbers => "numbers to predict",
            TargetKind::Labels => "labels",
        };
        return Err(TrainError::misfit(
            "model.layers",
            format!(
                "the last layer has {outputs} outputs, but the data has {wanted} {what}; leave its `out` away"
            ),
        ));
    }
    let measures = measures(model.loss(), outputs);
    if let BestBy::Measure(measure) = settings.checkpoint.best
        && !measures.contains(&measure)
    {
        let what = match kind {
            TargetKind::Classes => format!("{outputs} classes are told apart"),
            kind => format!("{kind} are predicted"),
        };
        return Err(TrainError::misfit(
            "checkpoint.best",
            format!(
                "\"{}\" is not measured where {what}; use one of: {}",
                measure.word(),
                measures
                    .iter()
                    .map(|measure| measure.word())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ));
    }
    let learner = &settings.learner;
    layer_rates::check(learner, model.layout())?;
    let waiting = [
        (learner.patience.is_some(), "train.patience"),
        (learner.schedule.plateau().is_some(), "train.schedule"),
    ];
    if let Some((_, key)) = waiting.iter().find(|(waits, _)| *waits && data.val == 0) {
        return Err(TrainError::misfit(
            key,
            "it counts epochs that are not better on validation data, and there is none; add `val_split = 0.1` or \
             `val` to [data]",
        ));
    }
    let mixes = |spread: fn(&ImageChanges) -> Option<f64>| {
        settings.augment.as_ref().and_then(spread).is_some()
    };
    let shaped = [
        (learner.label_smoothing > 0.0, "train.label_smoothing"),
        (learner.class_weights.is_some(), "train.class_weights"),
        (mixes(|augment| augment.mixup), "data.augment.mixup"),
        (mixes(|augment| augment.cutmix), "data.augment.cutmix"),
    ];
    if let Some((_, key)) = shaped
        .iter()
        .find(|(set, _)| *set && kind != TargetKind::Classes)
    {
        return Err(TrainError::misfit(
            key,
            format!("it is for classes, and {kind} are predicted; leave it out"),
        ));
    }
    let blends = |key: &str| key != "train.class_weights";
    let blended = shaped.iter().find(|(set, key)| *set && blends(key));
    if let (Loss::Focal { .. }, Some((_, key))) = (model.loss(), blended) {
        return Err(TrainError::misfit(
            key,
            "the loss \"focal\" looks at one class of each sample; leave this out, or use the loss \"cross-entropy\"",
        ));
    }
    let weights = learner.class_weights.as_ref();
    if let Some(reason) = weights.and_then(|weights| weights.misfit(&data.names)) {
        return Err(TrainError::misfit("train.class_weights", reason));
    }
    if settings.balance && kind != TargetKind::Classes {
        return Err(TrainError::misfit(
            "data.balance",
            format!("it draws all classes equally often, and {kind} are predicted; leave it out"),
        ));
    }
    if settings.balance && learner.class_weights == Some(ClassWeights::Balanced) {
        return Err(TrainError::misfit(
            "data.balance",
            "rare classes would count twice, drawn more often and weighted; leave out this or `train.class_weights`",
        ));
    }
    if settings.stratify && kind != TargetKind::Classes {
        return Err(TrainError::misfit(
            "data.stratify",
            format!(
                "it sets aside the same share of every class, and {kind} are predicted; leave it out"
            ),
        ));
    }
    if model.normalises_vectors() {
        let last = samples % settings.learner.batch;
        for batch in [
            settings.learner.batch.min(samples),
            if last == 0 {
                settings.learner.batch
            } else {
                last
            },
        ] {
            let lanes = settings.lanes;
            let single = (0..lanes).find(|&lane| lane_rows(lane, lanes, batch).len() == 1);
            if let Some(lane) = single {
                return Err(TrainError::misfit(
                    "train.batch",
                    format!(
                        "a batch of {batch} leaves lane {lane} of {lanes} with one row, and batch-norm needs \
                         two: {samples} samples are cut into batches of {}; use another batch size or \
                         fewer train.lanes",
                        settings.learner.batch
                    ),
                ));
            }
        }
    }
    Ok(())
}
