//! How far an embedding is, in pictures.

use lockstep_events::event::{Embedding, Event};
use std::time::{Duration, Instant};

/// How often progress is told at most.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// How far the embedding is.
pub(super) struct EmbedProgress {
    began: Instant,
    last: Instant,
    /// Pictures of each task that are done.
    tasks: Vec<usize>,
    sizes: Vec<usize>,
    parts_done: usize,
    parts: usize,
    /// Pictures that were done before.
    before: usize,
    pictures: usize,
}

impl EmbedProgress {
    /// Before anything is made: the pictures of each task, and how many parts and pictures there are in all.
    pub(super) fn new(sizes: Vec<usize>, parts: usize, pictures: usize) -> EmbedProgress {
        EmbedProgress {
            began: Instant::now(),
            last: Instant::now(),
            tasks: vec![0; sizes.len()],
            parts_done: parts - sizes.len(),
            parts,
            before: pictures - sizes.iter().sum::<usize>(),
            sizes,
            pictures,
        }
    }

    /// So many pictures of a task are done.
    pub(super) fn task(&mut self, task: usize, done: usize) {
        self.tasks[task] = done;
    }

    /// A task is done.
    pub(super) fn done(&mut self, task: usize) {
        self.tasks[task] = self.sizes[task];
        self.parts_done += 1;
    }

    /// Says how far it is, `now` or if that was not said lately.
    pub(super) fn tell(&mut self, now: bool, events: &mut dyn FnMut(Event)) {
        if !now && self.last.elapsed() < TELL_EVERY {
            return;
        }
        self.last = Instant::now();
        let done: usize = self.tasks.iter().sum();
        events(Event::Embedding(Embedding {
            parts_done: self.parts_done,
            parts: self.parts,
            pictures_done: self.before + done,
            pictures: self.pictures,
            pictures_per_s: done as f64 / self.began.elapsed().as_secs_f64().max(1e-9),
        }));
    }
}
