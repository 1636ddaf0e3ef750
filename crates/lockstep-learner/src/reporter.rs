//! What a learner tells the coordinator while it trains.

use crate::usage::UsageMeter;
use lockstep_events::Metrics;
use lockstep_events::control::FromWorker;
use lockstep_events::event::Progress;
use lockstep_gang::{GangError, LinkWriter};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time between two signs of life.
const LIFE: Duration = Duration::from_millis(500);

/// Signs of life between two words about what this process takes of its machine.
const USAGE: u64 = 10;

/// How often in that time it is looked whether this process is to leave.
const TICKS: u64 = 10;

/// Sends messages, and progress no more often than people can read.
pub struct Reporter {
    link: Arc<Mutex<LinkWriter>>,
    rank: usize,
    last: Instant,
    steps_since: u64,
}

impl Reporter {
    pub(crate) fn new(link: LinkWriter) -> Self {
        Self {
            link: Arc::new(Mutex::new(link)),
            rank: 0,
            last: Instant::now(),
            steps_since: 0,
        }
    }

    /// Shows, from a thread of its own and until the link ends, that this process lives, which one that is
    /// stopped cannot, how far its work is, and that it is `leaving` once it is.
    pub(crate) fn show_life(&self, leaving: Arc<AtomicBool>) {
        let link = self.link.clone();
        let show = move || {
            let mut said = false;
            let mut meter = UsageMeter::new();
            for tick in 0u64.. {
                if !said && leaving.load(Ordering::Relaxed) {
                    said = send(&link, &FromWorker::Leaving).is_ok();
                }
                if tick.is_multiple_of(TICKS) && send(&link, &alive()).is_err() {
                    return;
                }
                let usage = (tick > 0 && tick.is_multiple_of(TICKS * USAGE))
                    .then(|| meter.as_mut()?.read())
                    .flatten();
                if let Some(usage) = usage
                    && send(&link, &FromWorker::Usage(usage)).is_err()
                {
                    return;
                }
                std::thread::sleep(LIFE / TICKS as u32);
            }
        };
        std::thread::spawn(show);
    }

    /// Sends warnings, also while somebody else holds the reporter.
    pub fn warnings(&self) -> impl Fn(String) + use<> {
        let link = self.link.clone();
        move |words| {
            // A link that is at its end is noticed by whoever needs it next.
            let _ = send(&link, &FromWorker::Warning { words });
        }
    }

    /// Shares values with all workers, also while somebody else holds the reporter.
    pub(crate) fn shares(&self) -> impl Fn(u16, &str, Value) -> Result<(), GangError> + use<> {
        let link = self.link.clone();
        move |generation, name, value| {
            let name = name.to_owned();
            let share = FromWorker::Share {
                generation,
                name,
                value,
            };
            send(&link, &share)
        }
    }

    /// From here on reports are of this rank.
    pub(crate) fn begin(&mut self, rank: usize) {
        self.rank = rank;
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the coordinator is gone.
    pub fn send(&mut self, message: &FromWorker) -> Result<(), GangError> {
        send(&self.link, message)
    }

    /// Begins to count anew, so that a pause does not look like slow training.
    pub fn resume(&mut self) {
        self.last = Instant::now();
        self.steps_since = 0;
    }

    /// Reports a finished step of `batch` samples, if it is time: where training is (epoch, step, and steps of
    /// the epoch) and what it has come to.
    ///
    /// # Errors
    /// When the coordinator is gone.
    pub fn step(
        &mut self,
        (epoch, step, steps): (u32, u64, u64),
        metrics: impl FnOnce() -> Metrics,
        batch: usize,
    ) -> Result<(), GangError> {
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
            metrics: metrics(),
            samples_per_s: samples / elapsed.as_secs_f64().max(1e-9),
            rank: self.rank,
        }))
    }
}

fn alive() -> FromWorker {
    FromWorker::Alive {
        progress: lockstep_base::progress::count(),
    }
}

fn send(link: &Mutex<LinkWriter>, message: &FromWorker) -> Result<(), GangError> {
    link.lock()
        .expect("nobody panics while sending")
        .send(message)
}
