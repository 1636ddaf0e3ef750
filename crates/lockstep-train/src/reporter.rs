//! What a worker tells the coordinator while it trains.

use crate::TrainError;
use crate::control::FromWorker;
use crate::event::Progress;
use lockstep_gang::LinkWriter;
use lockstep_nn::LossSum;
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// Sends messages, and progress no more often than people can read.
pub(crate) struct Reporter {
    link: LinkWriter,
    rank: usize,
    last: Instant,
    steps_since: u64,
}

impl Reporter {
    pub(crate) fn new(link: LinkWriter, rank: usize) -> Self {
        Self {
            link,
            rank,
            last: Instant::now(),
            steps_since: 0,
        }
    }

    pub(crate) fn send(&mut self, message: &FromWorker) -> Result<(), TrainError> {
        Ok(self.link.send(message)?)
    }

    /// Begins to count anew, so that a pause does not look like slow training.
    pub(crate) fn resume(&mut self) {
        self.last = Instant::now();
        self.steps_since = 0;
    }

    /// Reports a finished step if it is time.
    pub(crate) fn step(
        &mut self,
        (epoch, step, steps): (u32, u64, u64),
        sum: &LossSum,
        batch: usize,
    ) -> Result<(), TrainError> {
        self.steps_since += 1;
        let elapsed = self.last.elapsed();
        if elapsed < INTERVAL && step < steps {
            return Ok(());
        }
        let samples = self.steps_since as f64 * batch as f64;
        self.resume();
        self.send(&FromWorker::Progress(Progress {
            epoch,
            step,
            steps,
            loss: sum.loss / sum.rows.max(1) as f64,
            samples_per_s: samples / elapsed.as_secs_f64().max(1e-9),
            rank: self.rank,
        }))
    }
}
