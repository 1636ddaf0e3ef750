//! A model for tests: it says the sum of each row, and holds up a batch as long as a test wants.

use lockstep_data::{Dataset, InputColumn, StoredElement, TargetKind, TargetScale};
use lockstep_events::control::Assignment;
use lockstep_learner::{
    Learner, LearnerError, LearnerFailure, LearnerType, Learners, ModelDevice, TrainedModel,
};
use lockstep_model::{Block, Outputs, Predictions};
use lockstep_place::{Access, Place};
use lockstep_runs::RunDir;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// Knows every run.
pub(crate) const SUMS: Learners = Learners(&[&Sums]);
/// A row of this sum is held up until the test says so.
pub(crate) const HELD_UP: f32 = -1.0;

/// What the model waits for, and what tells that it does.
static GATE: Mutex<Option<(Sender<()>, Receiver<()>)>> = Mutex::new(None);

/// Both ends for the test: what tells that a batch is held up, and what lets it go.
pub(crate) fn gate() -> (Receiver<()>, Sender<()>) {
    let (held, is_held) = channel();
    let (let_go, going) = channel();
    *GATE.lock().unwrap_or_else(PoisonError::into_inner) = Some((held, going));
    (is_held, let_go)
}

/// Some run.
pub(crate) fn run() -> RunDir {
    let place = Place::parse("/nowhere/run", &Access::default()).unwrap();
    RunDir::named("run", place)
}

struct Sums;

struct SumModel(Outputs);

impl LearnerType for Sums {
    fn kind(&self) -> &'static str {
        "sums"
    }

    fn open(&self, _: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
        Err(LearnerFailure::new("it learns nothing".to_owned()))
    }

    fn open_model(
        &self,
        _: &RunDir,
        _: ModelDevice,
    ) -> Result<Option<Box<dyn TrainedModel>>, LearnerError> {
        Ok(Some(Box::new(SumModel(Outputs {
            kind: TargetKind::Numbers,
            names: vec!["sum".to_owned()],
            scale: TargetScale::identity(1),
            decision: None,
        }))))
    }
}

impl TrainedModel for SumModel {
    fn outputs(&self) -> &Outputs {
        &self.0
    }

    fn inputs(&self) -> (&[InputColumn], bool) {
        (&[], false)
    }

    fn sample(&self) -> (StoredElement, [usize; 3]) {
        (StoredElement::F32, [2, 1, 1])
    }

    fn check(&self, _: &Dataset) -> Result<(), LearnerError> {
        Ok(())
    }

    fn predict(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        _: bool,
    ) -> Result<Block, LearnerError> {
        let sums = set.floats().chunks_exact(2).map(|row| row.iter().sum());
        let values: Vec<f32> = sums.collect();
        if values.contains(&HELD_UP)
            && let Some((held, going)) = &*GATE.lock().unwrap_or_else(PoisonError::into_inner)
        {
            held.send(()).unwrap();
            going.recv().unwrap();
        }
        Ok(Block {
            first: rows.start,
            predictions: Predictions::Numbers { width: 1, values },
            losses: Vec::new(),
            probabilities: Vec::new(),
        })
    }
}
