//! A model that is open, and the thread that owns it.
//!
//! Nobody else touches the model: libraries of others are called by this thread alone. Requests wait in a bounded queue,
//! and the thread takes all that are there, up to so many rows, as one batch. If nothing else is on its way, a request is
//! computed at once; requests that have arrived but are still being read are waited for, but not for long. The thread ends
//! when nobody holds the model any more, after it has answered all that were waiting.

use crate::about::About;
use crate::answer::Said;
use crate::metrics::Counters;
use crate::takes::Takes;
use crate::{Refusal, ServingError, ServingSettings};
use lockstep_data::{Dataset, SampleValues, StoredElement};
use lockstep_learner::{LearnerError, Learners, ModelDevice, TrainedModel};
use lockstep_model::{Block, Predictions};
use lockstep_runs::RunDir;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::thread;
use std::time::Instant;
use tokio::sync::oneshot;

/// A model that is open.
#[derive(Debug)]
pub(crate) struct Live {
    /// What is known of it.
    pub(crate) about: Arc<About>,
    queue: SyncSender<Waiting>,
    coming: Arc<AtomicUsize>,
}

/// A request that waits for the model.
struct Waiting {
    values: SampleValues,
    rows: usize,
    probabilities: bool,
    until: Instant,
    reply: oneshot::Sender<Result<Said, Refusal>>,
}

/// A request that has arrived and is being read. It is waited for as long as there is one of these.
#[derive(Debug)]
pub(crate) struct Coming(Arc<AtomicUsize>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which model is to be opened.
pub(crate) struct ToOpen {
    pub(crate) name: String,
    pub(crate) version: Option<u64>,
    pub(crate) files: String,
    pub(crate) run: RunDir,
}

impl Live {
    /// Opens a model in a thread of its own. Blocks until it is ready.
    ///
    /// # Errors
    /// When its files cannot be used.
    pub(crate) fn open(
        to_open: ToOpen,
        learners: Learners,
        settings: &ServingSettings,
        counters: Arc<Counters>,
    ) -> Result<Self, ServingError> {
        let (queue, waiting) = mpsc::sync_channel(settings.queue);
        let coming = Arc::new(AtomicUsize::new(0));
        let (ready, opened) = mpsc::sync_channel(1);
        let title = match to_open.version {
            Some(version) => format!("{}@{version}", to_open.name),
            None => to_open.name.clone(),
        };
        let own = (settings.clone(), Arc::clone(&coming));
        let started = thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || {
                let (settings, coming) = own;
                let opened = open(to_open, learners, settings.threads);
                let (about, model) = match opened {
                    Ok(opened) => opened,
                    Err(error) => {
                        // Nobody hears it if whoever waited is gone.
                        let _ = ready.send(Err(error));
                        return;
                    }
                };
                if ready.send(Ok(Arc::clone(&about))).is_err() {
                    return;
                }
                drop(ready);
                Batches {
                    model,
                    about,
                    settings,
                    coming,
                    counters,
                }
                .answer(&waiting);
            });
        let model = || title.clone();
        started.map_err(|source| ServingError::Thread {
            model: model(),
            source,
        })?;
        let about = match opened.recv() {
            Ok(Ok(about)) => about,
            Ok(Err(source)) => {
                return Err(ServingError::Model {
                    model: model(),
                    source,
                });
            }
            Err(_) => return Err(ServingError::Ended { model: model() }),
        };
        Ok(Self {
            about,
            queue,
            coming,
        })
    }

    /// Says that a request has arrived, and is being read.
    pub(crate) fn coming(&self) -> Coming {
        self.coming.fetch_add(1, Ordering::Relaxed);
        Coming(Arc::clone(&self.coming))
    }

    /// Asks the model. The answer comes later.
    ///
    /// # Errors
    /// When too many are waiting.
    pub(crate) fn ask(
        &self,
        values: SampleValues,
        probabilities: bool,
        until: Instant,
    ) -> Result<oneshot::Receiver<Result<Said, Refusal>>, Refusal> {
        let (reply, answer) = oneshot::channel();
        let sample: usize = self.about.takes.shape().iter().product();
        let waiting = Waiting {
            rows: values.len() / sample.max(1),
            values,
            probabilities,
            until,
            reply,
        };
        match self.queue.try_send(waiting) {
            Ok(()) => Ok(answer),
            Err(TrySendError::Full(_)) => Err(Refusal::busy()),
            Err(TrySendError::Disconnected(_)) => Err(Refusal::internal(format!(
                "the thread of {} has ended",
                self.about.title()
            ))),
        }
    }
}

type Opened = (Arc<About>, Box<dyn TrainedModel>);

fn open(to_open: ToOpen, learners: Learners, threads: usize) -> Result<Opened, LearnerError> {
    let model = learners.open_model(&to_open.run, ModelDevice::processor(threads))?;
    let about = About {
        takes: Takes::of(&*model),
        outputs: model.outputs().clone(),
        name: to_open.name,
        version: to_open.version,
        files: to_open.files,
    };
    Ok((Arc::new(about), model))
}

/// What the thread has.
struct Batches {
    model: Box<dyn TrainedModel>,
    about: Arc<About>,
    settings: ServingSettings,
    coming: Arc<AtomicUsize>,
    counters: Arc<Counters>,
}

impl Batches {
    /// Answers until nobody can ask any more.
    fn answer(mut self, waiting: &Receiver<Waiting>) {
        while let Ok(first) = waiting.recv() {
            let mut batch = self.gather(first, waiting);
            let now = Instant::now();
            batch.retain(|one| !one.reply.is_closed() && one.until > now);
            if batch.is_empty() {
                continue;
            }
            match self.compute(&batch) {
                Ok(block) => self.reply(batch, &block),
                Err(error) => {
                    let refusal = Refusal::internal(error);
                    for one in batch {
                        // Whoever is gone needs no answer.
                        let _ = one.reply.send(Err(refusal.clone()));
                    }
                }
            }
        }
    }

    /// The first request, and those that are waiting or coming, as far as they have room in one batch.
    fn gather(&self, first: Waiting, waiting: &Receiver<Waiting>) -> Vec<Waiting> {
        let patience = Instant::now() + self.settings.batch_wait;
        let mut rows = first.rows;
        let mut batch = vec![first];
        while rows < self.settings.max_batch {
            let next = match waiting.try_recv() {
                Err(TryRecvError::Empty) if self.coming.load(Ordering::Relaxed) > 0 => {
                    let left = patience.saturating_duration_since(Instant::now());
                    waiting.recv_timeout(left)
                }
                Err(_) => Err(RecvTimeoutError::Timeout),
                Ok(next) => Ok(next),
            };
            let Ok(next) = next else { break };
            rows += next.rows;
            batch.push(next);
        }
        batch
    }

    fn compute(&mut self, batch: &[Waiting]) -> Result<Block, LearnerError> {
        lockstep_base::failpoint::reach("serving.batch");
        let shape = self.about.takes.shape();
        let kind = self.about.outputs.kind;
        let all = batch.iter().any(|one| one.probabilities);
        let together;
        let values = match batch {
            [one] => &one.values,
            several => {
                let mut values = match several[0].values {
                    SampleValues::Bytes(_) => SampleValues::new(StoredElement::U8),
                    SampleValues::Numbers(_) => SampleValues::new(StoredElement::F32),
                };
                several.iter().for_each(|one| values.append(&one.values));
                together = values;
                &together
            }
        };
        let set = Dataset::in_memory("the request", values, shape, kind);
        self.model.check(&set)?;
        self.counters.batch(set.len());
        self.model.predict(&set, 0..set.len(), all)
    }

    /// Gives everybody what is said of their own rows.
    fn reply(&self, batch: Vec<Waiting>, block: &Block) {
        let classes = self.about.outputs.names.len();
        let mut first = 0;
        for one in batch {
            let rows = first..first + one.rows;
            first = rows.end;
            let said = Said {
                about: Arc::clone(&self.about),
                predictions: match &block.predictions {
                    Predictions::Classes(said) => Predictions::Classes(said[rows.clone()].to_vec()),
                    Predictions::Numbers { width, values } => Predictions::Numbers {
                        width: *width,
                        values: values[rows.start * width..rows.end * width].to_vec(),
                    },
                },
                probabilities: match one.probabilities && !block.probabilities.is_empty() {
                    true => block.probabilities[rows.start * classes..rows.end * classes].to_vec(),
                    false => Vec::new(),
                },
            };
            // Whoever is gone needs no answer.
            let _ = one.reply.send(Ok(said));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HELD_UP, SUMS, gate, run};
    use std::time::Duration;

    #[test]
    fn what_waits_is_computed_as_one_batch_and_everybody_gets_their_own_rows() {
        let (is_held, let_go) = gate();
        let counters = Arc::new(Counters::default());
        let to_open = ToOpen {
            name: "run".to_owned(),
            version: None,
            files: "run".to_owned(),
            run: run(),
        };
        let settings = ServingSettings {
            queue: 3,
            ..ServingSettings::default()
        };
        let live = Live::open(to_open, SUMS, &settings, Arc::clone(&counters)).unwrap();
        let far = Instant::now() + Duration::from_secs(3600);
        let ask =
            |row: [f32; 2], until| live.ask(SampleValues::Numbers(row.to_vec()), false, until);
        let first = ask([HELD_UP, 0.0], far).unwrap();
        is_held.recv().unwrap();
        let second = ask([1.0, 2.0], far).unwrap();
        let late = ask([5.0, 5.0], Instant::now()).unwrap();
        let third = ask([3.0, 4.0], far).unwrap();
        assert_eq!(ask([0.0, 0.0], far).unwrap_err(), Refusal::busy());
        let_go.send(()).unwrap();
        let sum = |answer: oneshot::Receiver<Result<Said, Refusal>>| {
            let said = answer.blocking_recv().unwrap().unwrap();
            said.predictions
        };
        let number = |number| Predictions::Numbers {
            width: 1,
            values: vec![number],
        };
        assert_eq!(sum(first), number(HELD_UP));
        assert_eq!(sum(second), number(3.0));
        assert_eq!(sum(third), number(7.0));
        assert!(late.blocking_recv().is_err(), "its time had passed");
        let text = counters.text(&[]);
        assert!(
            text.contains("lockstep_serving_batch_rows_count 2\n"),
            "{text}"
        );
        assert!(text.contains("lockstep_serving_rows_total 3\n"), "{text}");
    }
}
