//! EmbedPlan as a crew: parts that need nothing of each other, made by whoever is idle.
//!
//! The coordinator lists the pictures, looks which parts are there already, and hands the others out. It
//! keeps nothing of its own: the finished parts are the record. So whenever it is killed, the next run
//! finds what is missing in the same way.

mod progress;

use crate::ready::ready;
use crate::tasks::{self, CrewSettings, TaskEvent, TaskFailure, Work};
use crate::{EngineError, StopFlag};
use lockstep_base::cores;
use lockstep_base::fs::remove_leftover;
use lockstep_cuda::DeviceChoice;
use lockstep_embed::{
    EmbedError, EmbedRecipe, EncoderModel, FinishedPart, Inventory, ListedPicture, PartMaker,
    PartTask, SkippedPicture, check_share, find, gpu_memory, part_number, write_list,
};
use lockstep_events::event::{Embedded, Event};
use lockstep_launch::Launcher;
use lockstep_model::SampleUse;
use lockstep_place::{Access, Place};
use lockstep_resolve::EmbedPlan;
use progress::EmbedProgress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

/// The name of this work among those that task workers do.
pub const KIND: &str = "embed pictures";
/// Files that are looked at together, since a store answers each request late.
const AT_ONCE: usize = 16;

/// What to embed.
pub struct EmbedRequest<'a> {
    /// The pictures, and where their vectors go.
    pub embedding: &'a EmbedPlan,
    /// How its places are reached.
    pub access: &'a Access,
    /// What the vectors are for, if not for training: some of the pictures, whose classes need not be known.
    pub samples: SampleUse<'a>,
    /// Who does it.
    pub crew: CrewSettings,
    /// Where the workers run.
    pub launcher: &'a mut dyn Launcher,
    /// Raised by whoever wants the work to end early.
    pub stop: StopFlag,
}

/// What all parts have in common, for the workers.
#[derive(Serialize, Deserialize)]
struct EmbedSetup {
    recipe: EmbedRecipe,
    batch: usize,
    device: DeviceChoice,
    memory: u64,
    access: Access,
}

/// One part, for the worker that makes it.
#[derive(Serialize, Deserialize)]
struct PartOrder {
    folder: String,
    store: String,
    part: PartTask,
}

/// One set: what there is of it, and what is missing.
struct Set {
    name: &'static str,
    inventory: Inventory,
    store: Place,
    parts: Vec<PartTask>,
    finished: Vec<Option<FinishedPart>>,
}

/// Embeds all pictures of the sets that are not embedded yet, and returns how that was done once they all are: nothing
/// when a stop was asked for.
///
/// # Guarantees
/// A part that is there is whole, whenever this ends. The same pictures, weights and transform give the
/// same bytes.
///
/// # Errors
/// When a place or the encoder fails, or more pictures than allowed cannot be read.
pub fn embed(
    request: EmbedRequest<'_>,
    events: &mut dyn FnMut(Event),
) -> Result<Option<EmbedRecipe>, EngineError> {
    let began = Instant::now();
    let embedding = request.embedding;
    let (_, recipe) = recipe(embedding, events)?;
    let mut sets = take_stock(embedding, request.samples, &recipe, events)?;
    let missing: Vec<(usize, usize)> = sets.iter().enumerate().flat_map(missing_parts).collect();
    let all_done = missing.is_empty() || {
        let setup = EmbedSetup {
            recipe: recipe.clone(),
            batch: embedding.batch,
            device: decide(embedding, events),
            memory: embedding.memory,
            access: request.access.clone(),
        };
        make(request, &setup, &mut sets, &missing, events)?
    };
    if !all_done {
        return Ok(None);
    }
    for (number, set) in sets.into_iter().enumerate() {
        let made = missing.iter().filter(|(set, _)| *set == number).count();
        conclude(set, made, embedding.max_bad, began, events)?;
    }
    Ok(Some(recipe))
}

/// Decides what the workers encode on, and says so if it is a GPU, or why it is none.
fn decide(embedding: &EmbedPlan, events: &mut dyn FnMut(Event)) -> DeviceChoice {
    let decision = embedding.decide();
    if let Some(gpu) = &decision.gpu {
        let message = format!("encoding on {gpu}");
        events(Event::Preparing { message });
    }
    if let Some(message) = decision.note {
        events(Event::Note { message });
    }
    decision.choice
}

/// The encoder, and what is done with every picture.
fn recipe(
    embedding: &EmbedPlan,
    events: &mut dyn FnMut(Event),
) -> Result<(EncoderModel, EmbedRecipe), EmbedError> {
    let model = EncoderModel::open(&embedding.model, &mut |message| {
        events(Event::Preparing {
            message: message.to_owned(),
        });
    })?;
    if let Some(wanted) = embedding
        .model_sha256
        .as_ref()
        .filter(|&sha256| *sha256 != model.sha256)
    {
        return Err(EmbedError::OtherEncoder {
            encoder: embedding.model.clone(),
            wanted: wanted.clone(),
            found: model.sha256,
        });
    }
    let (transform, normalise) = (embedding.transform.clone(), embedding.normalise);
    let recipe = EmbedRecipe::new(&model, transform, normalise)?;
    let recipe = recipe.in_precision(embedding.precision, embedding.device)?;
    Ok((model, recipe))
}

/// What embedding pictures would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Numbers in a vector.
    pub width: usize,
    /// What it is computed on, in words.
    pub device: String,
    /// The sets: `train` is the first.
    pub sets: Vec<SetForecast>,
}

/// What embedding one set would come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetForecast {
    /// `train`, `val` or `test`.
    pub set: &'static str,
    /// The folder of its pictures.
    pub folder: String,
    /// The folder of its vectors.
    pub store: String,
    /// Pictures that there are, those that cannot be read among them.
    pub pictures: usize,
    /// Parts that they make.
    pub parts: usize,
    /// Parts that are not there yet.
    pub parts_missing: usize,
    /// The names of its classes, sorted.
    #[serde(skip)]
    pub classes: Vec<String>,
}

/// Says what [`embed`] would do, and does nothing.
///
/// # Errors
/// As [`embed`], as far as nothing needs to be read of the pictures.
pub fn forecast(
    embedding: &EmbedPlan,
    events: &mut dyn FnMut(Event),
) -> Result<Forecast, EngineError> {
    let (model, recipe) = recipe(embedding, events)?;
    let parts = model.parts()?;
    let decision = embedding.decide();
    let device = match &decision.gpu {
        None => decision.words().to_owned(),
        Some(gpu) => {
            let bytes = gpu_memory(&parts, embedding.batch)? as f64 / 1e6;
            format!("{gpu}, with {bytes:.1} MB of its memory in each worker")
        }
    };
    let sets = take_stock(embedding, SampleUse::Measure, &recipe, events)?;
    let of_set = |set: Set| {
        let classes: BTreeSet<&str> = set
            .inventory
            .pictures
            .iter()
            .filter_map(ListedPicture::class)
            .collect();
        SetForecast {
            set: set.name,
            folder: set.inventory.folder().to_owned(),
            store: set.store.to_string(),
            pictures: set.inventory.pictures.len(),
            parts: set.parts.len(),
            parts_missing: set.finished.iter().filter(|part| part.is_none()).count(),
            classes: classes.into_iter().map(str::to_owned).collect(),
        }
    };
    Ok(Forecast {
        width: parts.width(),
        device,
        sets: sets.into_iter().map(of_set).collect(),
    })
}

/// Lists the pictures of every set, and finds the parts that are there.
fn take_stock(
    embedding: &EmbedPlan,
    samples: SampleUse<'_>,
    recipe: &EmbedRecipe,
    events: &mut dyn FnMut(Event),
) -> Result<Vec<Set>, EngineError> {
    let mut stock = Vec::new();
    for set in &embedding.sets {
        events(Event::Preparing {
            message: format!("listing the pictures in {}", set.folder),
        });
        let inventory = match samples {
            SampleUse::Predict { pictures } => Inventory::take_samples(&set.folder, pictures)?,
            SampleUse::Measure => Inventory::take(&set.folder)?,
        };
        let parts = inventory.parts(embedding.part, recipe);
        let finished = find_all(&parts, &set.store, embedding.memory)?;
        stock.push(Set {
            name: set.name,
            inventory,
            store: set.store.clone(),
            parts,
            finished,
        });
    }
    Ok(stock)
}

fn find_all(
    parts: &[PartTask],
    store: &Place,
    memory: u64,
) -> Result<Vec<Option<FinishedPart>>, EmbedError> {
    thread::scope(|scope| {
        let share = parts.len().div_ceil(AT_ONCE).max(1);
        let seekers: Vec<_> = parts
            .chunks(share)
            .map(|some| {
                let seek = move || some.iter().map(|part| find(part, store, memory)).collect();
                scope.spawn(seek)
            })
            .collect();
        let mut all = Vec::with_capacity(parts.len());
        for seeker in seekers {
            let found: Result<Vec<_>, EmbedError> = match seeker.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            all.extend(found?);
        }
        Ok(all)
    })
}

/// The parts of a set that are not there, as (set, part).
fn missing_parts((number, set): (usize, &Set)) -> Vec<(usize, usize)> {
    let parts = set.finished.iter().enumerate();
    let missing = parts.filter(|(_, finished)| finished.is_none());
    missing.map(|(part, _)| (number, part)).collect()
}

/// Has the missing parts made, and returns whether all are.
fn make(
    request: EmbedRequest<'_>,
    setup: &EmbedSetup,
    sets: &mut [Set],
    missing: &[(usize, usize)],
    events: &mut dyn FnMut(Event),
) -> Result<bool, EngineError> {
    let mut orders = Vec::with_capacity(missing.len());
    for &(set, part) in missing {
        orders.push(json(&PartOrder {
            folder: sets[set].inventory.folder().to_owned(),
            store: sets[set].store.to_string(),
            part: sets[set].parts[part].clone(),
        })?);
    }
    let mut progress = {
        let sizes = missing
            .iter()
            .map(|&(set, part)| sets[set].parts[part].pictures.len());
        let parts = sets.iter().map(|set| set.parts.len()).sum();
        let pictures = sets.iter().map(|set| set.inventory.pictures.len()).sum();
        EmbedProgress::new(sizes.collect(), parts, pictures)
    };
    let patience = request.crew.start_deadline;
    if !ready(request.launcher, patience, &request.stop, events)? {
        return Ok(false);
    }
    let mut unreadable = None;
    let summary = tasks::run(
        tasks::Request {
            launcher: request.launcher,
            deadline: request.crew.deadline,
            workers: request.crew.workers,
            kind: KIND,
            setup: json(setup)?,
            tasks: orders,
            stop: request.stop,
            max_restarts: request.crew.max_restarts,
        },
        &mut |event| match event {
            TaskEvent::Progress { task, value } => {
                progress.task(task, value.as_u64().unwrap_or(0) as usize);
                progress.tell(false, events);
            }
            TaskEvent::Done { task, payload } => match serde_json::from_value(payload) {
                Ok(finished) => {
                    let (set, part) = missing[task];
                    sets[set].finished[part] = Some(finished);
                    progress.done(task);
                    progress.tell(true, events);
                }
                Err(error) => unreadable = Some(error),
            },
            other => other.news().into_iter().for_each(&mut *events),
        },
    )?;
    match unreadable {
        Some(error) => Err(EngineError::unspeakable(error)),
        None => Ok(!summary.stopped),
    }
}

/// Clears what an earlier run left, lists what could not be read, and refuses too much of it.
fn conclude(
    set: Set,
    made: usize,
    max_bad: f64,
    began: Instant,
    events: &mut dyn FnMut(Event),
) -> Result<(), EngineError> {
    remove_strays(&set)?;
    let finished: Vec<FinishedPart> = set.finished.into_iter().flatten().collect();
    let skipped: Vec<SkippedPicture> = finished.into_iter().flat_map(|part| part.skipped).collect();
    let folder = set.inventory.folder();
    let others = set.inventory.others.iter();
    let others = others.map(|path| SkippedPicture::not_looked_at(folder, path));
    let listed: Vec<SkippedPicture> = skipped.iter().cloned().chain(others).collect();
    write_list(&listed, &set.store)?;
    let (skipped, no_pictures): (Vec<_>, Vec<_>) =
        skipped.into_iter().partition(SkippedPicture::is_bad);
    let all = set.inventory.pictures.len() - no_pictures.len();
    check_share(&skipped, all, max_bad, set.inventory.folder(), &set.store)?;
    events(Event::Embedded(Embedded {
        set: set.name.to_owned(),
        store: set.store.to_string(),
        pictures: all,
        skipped: skipped.len(),
        parts: set.parts.len(),
        parts_made: made,
        seconds: began.elapsed().as_secs_f64(),
    }));
    Ok(())
}

/// Removes what earlier runs left: parts beyond the last one, of a time when there were more pictures, and
/// what workers were writing when they were killed. What another run is writing at this moment stays.
fn remove_strays(set: &Set) -> Result<(), EmbedError> {
    for entry in set.store.list()? {
        let number = part_number(&entry.path);
        let beyond = number.is_some_and(|number| number >= set.parts.len());
        if beyond {
            set.store.join(&entry.path)?.delete()?;
        } else if let Some(folder) = set.store.local() {
            remove_leftover(&folder.join(&entry.path));
        }
    }
    Ok(())
}

/// The worker's side, of the worker of this number: makes the parts that it is handed.
///
/// # Errors
/// When the encoder cannot be built, or the GPU that was asked for cannot be used.
pub fn work(worker: usize, setup: Value) -> Result<Work, TaskFailure> {
    let setup: EmbedSetup = serde_json::from_value(setup).map_err(|error| error.to_string())?;
    let opened = setup.device.open(worker);
    let opened = opened.map_err(|error| TaskFailure::of(&error))?;
    if let Some(note) = &opened.note {
        eprintln!("{note}");
    }
    let on = (cores::usable(), opened.gpu.as_ref());
    let maker = PartMaker::open(&setup.recipe, setup.batch, setup.memory, on);
    let mut maker = maker.map_err(|error| TaskFailure::of(&error))?;
    Ok(Box::new(move |order, progress| {
        let order: PartOrder = serde_json::from_value(order).map_err(|error| error.to_string())?;
        let place =
            |text: &str| Place::parse(text, &setup.access).map_err(|error| TaskFailure::of(&error));
        let (folder, store) = (place(&order.folder)?, place(&order.store)?);
        let mut tell = |pictures: usize| progress(Value::from(pictures));
        let finished = maker.make(&order.part, &folder, &store, &mut tell);
        let finished = finished.map_err(|error| TaskFailure {
            ends_process: error.is_of_process(),
            ..TaskFailure::of(&error)
        })?;
        serde_json::to_value(finished).map_err(|error| error.to_string().into())
    }))
}

fn json<T: Serialize>(value: &T) -> Result<Value, EngineError> {
    serde_json::to_value(value).map_err(EngineError::unspeakable)
}
