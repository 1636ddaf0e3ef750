//! TensorBoard as a sink of a run.

use super::file::{EventFile, cut_off};
use super::histogram::histogram;
use super::proto::{Datum, Value};
use super::write::{WrittenSteps, summary};
use crate::{Begun, Sink, SinkError};
use lockstep_base::fs::private_folder;
use lockstep_events::Recorded;
use lockstep_place::{Access, Place};
use lockstep_runs::checkpoint::step_of;
use lockstep_runs::{Position, RunDir, files};
use lockstep_tensors::TensorFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often what was recorded is written.
const EVERY: Duration = Duration::from_secs(5);
/// How far was written.
const WRITTEN: &str = "written.json";

/// Writes the weights of a checkpoint to a file of named tensors, or says why it cannot.
pub type WeightsOf = fn(&Place, &Path) -> Result<(), String>;

/// What is written, and where.
#[derive(Debug, Clone)]
pub struct TensorBoardSettings {
    /// The folder in which each run gets one of its own; if not given, `tensorboard` in the run's.
    pub folder: Option<PathBuf>,
    /// Whether what workers use is written.
    pub system: bool,
    /// How weights are found for histograms, if those are wanted.
    pub histograms: Option<WeightsOf>,
}

/// How far was written: `written.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    /// The newest file, and its bytes.
    file: String,
    bytes: u64,
    /// How many files there are.
    parts: u32,
    /// Up to where the record was read.
    events: Position,
    told: WrittenSteps,
    /// Checkpoints whose weights were counted.
    checkpoints: BTreeSet<String>,
}

/// Writes event files for TensorBoard while a run goes on.
pub struct TensorBoard {
    settings: TensorBoardSettings,
    board: Option<Board>,
    due: Instant,
}

/// A run that is written.
struct Board {
    run: RunDir,
    folder: Place,
    user: String,
    written: Written,
    file: EventFile,
}

impl TensorBoard {
    /// A sink for one run.
    pub fn new(settings: TensorBoardSettings) -> Self {
        Self {
            settings,
            board: None,
            due: Instant::now(),
        }
    }

    fn advance(&mut self) -> Result<(), SinkError> {
        self.due = Instant::now() + EVERY;
        match &mut self.board {
            Some(board) => board.advance(&self.settings),
            None => Ok(()),
        }
    }
}

impl Board {
    fn open(begun: &Begun, settings: &TensorBoardSettings) -> Result<Self, SinkError> {
        let run = begun.run.clone();
        let folder = match &settings.folder {
            Some(folder) => {
                let folder = folder.join(&run.name);
                Place::parse(&folder.to_string_lossy(), &Access::default())?
            }
            None => run.file(files::TENSORBOARD),
        };
        let written = folder.join(WRITTEN)?.read().unwrap_or_default();
        let mut written: Written = serde_json::from_slice(&written).unwrap_or_default();
        if !written.file.is_empty() {
            // What the process before us wrote and had no time to note is written again.
            cut_off(&folder.join(&written.file)?, written.bytes)?;
        }
        let time = Recorded::clock();
        let host = begun.origin.machine.host.replace(['/', ' '], "-");
        let file = loop {
            // Files are read in the order of their names.
            let name = format!(
                "events.out.tfevents.{:010}.{host}.{:04}",
                time as u64, written.parts
            );
            written.parts += 1;
            let place = folder.join(&name)?;
            // One that was begun and not noted holds nothing that counts.
            match place.entry()? {
                Some(_) => place.delete()?,
                None => {
                    (written.file, written.bytes) = (name, 0);
                    break EventFile::create(place, time)?;
                }
            }
        };
        Ok(Self {
            run,
            folder,
            user: begun.origin.user.clone(),
            written,
            file,
        })
    }

    fn advance(&mut self, settings: &TensorBoardSettings) -> Result<(), SinkError> {
        loop {
            let piece = self.run.read_events(&self.written.events)?;
            let is_end = piece.next == self.written.events;
            for recorded in piece.events() {
                let evaluation = || self.run.evaluation().read().unwrap_or_default();
                let told =
                    self.written
                        .told
                        .events(&recorded, &self.user, settings.system, &evaluation);
                told.iter().for_each(|event| self.file.add(event));
            }
            if is_end && let Some(weights) = settings.histograms {
                self.histograms(weights);
            }
            self.written.events = piece.next;
            let bytes = self.file.flush()?;
            if bytes != self.written.bytes {
                self.written.bytes = bytes;
                let text = serde_json::to_string(&self.written).unwrap_or_default();
                self.folder.join(WRITTEN)?.write(text.as_bytes())?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Adds histograms of checkpoints that are new. One that goes while it is read is passed over.
    fn histograms(&mut self, weights: WeightsOf) {
        let checkpoints = self.run.checkpoints();
        let folder = checkpoints.folder();
        for name in folder.folders().unwrap_or_default() {
            let step = step_of(&name);
            let Ok(checkpoint) = folder.join(&name) else {
                continue;
            };
            let whole = checkpoint
                .join(files::MANIFEST)
                .and_then(|manifest| manifest.entry());
            let (Some(step), Ok(Some(_))) = (step, whole) else {
                continue;
            };
            if !self.written.checkpoints.insert(name) {
                continue;
            }
            let Ok(private) = private_folder() else {
                continue;
            };
            let file = private.path().join("weights.safetensors");
            let values = match weights(&checkpoint, &file) {
                Ok(()) => read_histograms(&file),
                Err(_) => Vec::new(),
            };
            if !values.is_empty() {
                self.file.add(&summary(Recorded::clock(), step, values));
            }
        }
    }
}

fn read_histograms(file: &Path) -> Vec<Value> {
    let Ok(tensors) = TensorFile::open(file) else {
        return Vec::new();
    };
    let names: Vec<&str> = tensors.names().collect();
    let value = |name: &str| {
        let histogram = histogram(&tensors.read(name).ok()?)?;
        Some(Value {
            tag: format!("weights/{name}"),
            metadata: None,
            datum: Some(Datum::Histogram(histogram)),
        })
    };
    names.into_iter().filter_map(value).collect()
}

impl Sink for TensorBoard {
    fn name(&self) -> &str {
        "TensorBoard"
    }

    fn begin(&mut self, begun: &Begun) -> Result<(), SinkError> {
        self.board = Some(Board::open(begun, &self.settings)?);
        self.advance()
    }

    fn event(&mut self, _event: &Recorded) -> Result<(), SinkError> {
        match Instant::now() < self.due {
            true => Ok(()),
            false => self.advance(),
        }
    }

    fn finish(&mut self, _deadline: Instant) -> Result<(), SinkError> {
        self.advance()
    }
}
