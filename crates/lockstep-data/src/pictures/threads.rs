//! Threads that read and decode pictures, and hand them over in their order.
//!
//! Each thread takes the next picture that nobody has. What it made is kept until those before it are
//! handed over, so a thread that is far ahead waits: no more than a few pictures a thread are ever kept.
//! Of the memory for decoding, half is cut into shares, one a thread; the other half is for a picture that
//! is larger than a share, one at a time.

use super::Pictures;
use crate::DataError;
use lockstep_base::cores;
use lockstep_image::{ImageError, PictureHeader, Transformer, has_ending, probe};
use lockstep_place::{FileEntry, PlaceError};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Finished pictures that wait for those before them, for each thread.
const AHEAD: usize = 4;

/// What became of a picture: what its file says of it and its pixels, or why there are none. The outer error is the
/// place's.
type Made<P> = Result<Result<(PictureHeader, P), NoPixels>, PlaceError>;

/// Why a file has no pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoPixels {
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It is no picture, and nothing in its name says that it is one.
    NoPicture,
}

/// Takes what became of the picture of an index.
pub(super) type Sink<'a> = &'a mut dyn FnMut(usize, Made<&[u8]>) -> Result<(), DataError>;

/// The threads' common work.
pub(super) struct DecodeThreads<'a> {
    pictures: &'a Pictures,
    entries: &'a [FileEntry],
    /// Bytes of a finished picture.
    sample: usize,
    threads: usize,
    /// How many pictures may be in the making or finished.
    window: usize,
    /// Bytes that a thread may take.
    share: u64,
    /// Bytes that the one large picture may take.
    most: u64,
    /// Held by the thread that has the large picture.
    large: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next picture that nobody has taken.
    next: usize,
    /// How many are handed over.
    handed: usize,
    /// What is finished but not handed over.
    finished: BTreeMap<usize, Made<Vec<u8>>>,
    /// Buffers of pictures that were handed over.
    spare: Vec<Vec<u8>>,
    /// No more pictures are wanted.
    over: bool,
}

impl<'a> DecodeThreads<'a> {
    /// For pictures that become `sample` bytes each.
    pub(super) fn new(
        pictures: &'a Pictures,
        entries: &'a [FileEntry],
        sample: usize,
    ) -> DecodeThreads<'a> {
        let threads = match pictures.threads {
            0 => cores::usable(),
            threads => threads,
        };
        let (memory, sample_bytes) = (pictures.memory, sample as u64);
        let fit = usize::try_from(memory / 2 / sample_bytes).unwrap_or(usize::MAX);
        let window = (AHEAD * threads).min(fit).max(1);
        let threads = threads.min(window).min(entries.len().max(1));
        let most = memory.saturating_sub(window as u64 * sample_bytes) / 2;
        DecodeThreads {
            pictures,
            entries,
            sample,
            threads,
            window,
            share: most / threads as u64,
            most,
            large: Mutex::new(()),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Hands every picture to `sink`, from the first to the last, until that fails.
    pub(super) fn work(&self, sink: Sink<'_>) -> Result<(), DataError> {
        let transformers = (0..self.threads).map(|_| self.transformer());
        let transformers: Vec<_> = transformers.collect::<Result<_, _>>()?;
        thread::scope(|scope| {
            // However this ends, the threads end too.
            let _over = Over(self);
            for transformer in transformers {
                scope.spawn(move || self.make(transformer));
            }
            for index in 0..self.entries.len() {
                let made = self.wait(|state| state.finished.remove(&index));
                let done = match &made {
                    Ok(Ok((header, pixels))) => sink(index, Ok(Ok((*header, pixels)))),
                    Ok(Err(reason)) => sink(index, Ok(Err(reason.clone()))),
                    Err(_) => Ok(()),
                };
                done?;
                let pixels = made?;
                let mut state = self.lock();
                state.spare.extend(pixels.ok().map(|(_, pixels)| pixels));
                state.handed = index + 1;
                self.changed.notify_all();
            }
            Ok(())
        })
    }

    fn transformer(&self) -> Result<Transformer, DataError> {
        Transformer::new(&self.pictures.transform, self.pictures.limits).map_err(super::transform)
    }

    /// What a thread does: picture after picture.
    fn make(&self, mut transformer: Transformer) {
        while let Some((index, mut pixels)) = self.take() {
            pixels.resize(self.sample, 0);
            let made = self.picture(&self.entries[index], &mut transformer, &mut pixels);
            let made = made.map(|made| made.map(|header| (header, pixels)));
            self.lock().finished.insert(index, made);
            self.changed.notify_all();
        }
    }

    /// The next picture and a buffer for it; `None` when there is none left.
    fn take(&self) -> Option<(usize, Vec<u8>)> {
        self.wait(|state| {
            if state.over || state.next == self.entries.len() {
                return Some(None);
            }
            (state.next < state.handed + self.window).then(|| {
                state.next += 1;
                Some((state.next - 1, state.spare.pop().unwrap_or_default()))
            })
        })
    }

    /// Reads and decodes one picture.
    fn picture(
        &self,
        entry: &FileEntry,
        transformer: &mut Transformer,
        pixels: &mut [u8],
    ) -> Result<Result<PictureHeader, NoPixels>, PlaceError> {
        let file = self.pictures.folder.join(&entry.path)?;
        let mut large = None;
        if let Err(reason) = self.allow(entry.size, &mut large) {
            return unreadable(reason);
        }
        let bytes = match file.read() {
            Ok(bytes) => bytes,
            // What is wrong with this one file is counted like any other reason why it cannot be read;
            // what is wrong with the whole place is not.
            Err(error @ (PlaceError::NotFound { .. } | PlaceError::Io { .. })) => {
                return unreadable(error);
            }
            Err(error) => return Err(error),
        };
        let header = match probe(&bytes) {
            Ok(header) => header,
            Err(ImageError::NotAnImage { .. }) if !has_ending(&entry.path) => {
                return Ok(Err(NoPixels::NoPicture));
            }
            Err(error) => return unreadable(error),
        };
        let needed = self.pictures.transform.memory(&header);
        let needed = needed.saturating_add(bytes.len() as u64);
        if let Err(reason) = self.allow(needed, &mut large) {
            return unreadable(reason);
        }
        let applied = transformer.apply(&bytes, pixels);
        if let (Some(_), Ok(fresh)) = (&large, self.transformer()) {
            // The old one would keep its large buffers.
            *transformer = fresh;
        }
        match applied {
            Ok(()) => Ok(Ok(header)),
            Err(error) => unreadable(error),
        }
    }

    /// Waits until a picture may take `needed` bytes; `large` is held from then on if they are more than
    /// a share.
    fn allow<'b>(
        &'b self,
        needed: u64,
        large: &mut Option<MutexGuard<'b, ()>>,
    ) -> Result<(), String> {
        if needed > self.most {
            return Err(format!(
                "reading it takes {needed} bytes, and of the memory of {} bytes one picture may take {}",
                self.pictures.memory, self.most
            ));
        }
        if needed > self.share && large.is_none() {
            *large = Some(self.large.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(())
    }

    /// Waits until `ready` gives something.
    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = self.lock();
        loop {
            if let Some(value) = ready(&mut state) {
                return value;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and every change of the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreadable(reason: impl ToString) -> Result<Result<PictureHeader, NoPixels>, PlaceError> {
    Ok(Err(NoPixels::Unreadable(reason.to_string())))
}

/// Ends the threads' work when it is dropped.
struct Over<'a, 'b>(&'a DecodeThreads<'b>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}
