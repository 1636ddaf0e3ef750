//! Threads that wait for jobs: a job is a function of numbered tiles, and whoever is free takes the next tile.
//!
//! The thread that has a job opens it, computes tiles of it like all others, and closes it when none is left. Others
//! join while it is open. So nobody waits for a thread that sleeps, or that the system has put aside, unless it is in
//! the middle of a tile. Who has nothing to do looks out for [`LOOK_OUT`], since the next layer's job is usually near,
//! and then sleeps. Nothing here allocates memory after the threads are started.

use lockstep_base::progress::{self, Activity};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a thread looks out for what it waits for, before it sleeps. To wake one takes about half as long.
const LOOK_OUT: Duration = Duration::from_micros(100);

/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

/// What is done with a tile: it is given the number of the thread, and that of the tile.
pub(super) type Work<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Threads that help the one that has a job.
pub(super) struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

/// What all threads of a pool see.
struct Shared {
    state: Line<AtomicU64>,
    /// The next tile of the job.
    next: Line<AtomicUsize>,
    job: UnsafeCell<Job>,
    /// Whether somebody has a job. Who comes second computes alone.
    is_taken: AtomicBool,
    /// Whether a helper has panicked in this job.
    has_panicked: AtomicBool,
    is_over: AtomicBool,
    /// How many helpers sleep, or are about to; and whether the owner of the job does.
    sleepers: AtomicUsize,
    owner_sleeps: AtomicBool,
    /// Held by who goes to sleep while it looks for the last time, and by who wakes others.
    door: Mutex<()>,
    opened: Condvar,
    left: Condvar,
}

/// A job: its tiles, and what to do with each.
#[derive(Clone, Copy)]
struct Job {
    tiles: usize,
    work: Option<*const Work<'static>>,
    /// What its owner is doing, for a profile.
    activity: Option<Activity>,
}

// SAFETY: `job` is written only by who has taken the pool, while nobody is in a job, and read only by who is in one.
// What it points to may be used by several threads at once, and lives until all have left the job.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing of it belongs to a thread.
unsafe impl Send for Shared {}

/// Something on a cache line of its own, so that writing to it does not disturb who reads its neighbours.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

/// The number of the newest job, whether it is open, and how many helpers are in it, in one number that changes at once.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    const HELPERS: u64 = (1 << 16) - 1;
    const OPEN: u64 = 1 << 16;

    fn number(self) -> u64 {
        self.0 >> 17
    }

    fn is_open(self) -> bool {
        self.0 & Self::OPEN != 0
    }

    fn helpers(self) -> u64 {
        self.0 & Self::HELPERS
    }

    /// The next job, open, with nobody in it.
    fn next(self) -> Self {
        Self((self.number() + 1) << 17 | Self::OPEN)
    }
}

impl Pool {
    /// So many helpers.
    ///
    /// # Errors
    /// When the system refuses to start them.
    pub(super) fn new(helpers: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Line::default(),
            next: Line::default(),
            job: UnsafeCell::new(Job {
                tiles: 0,
                work: None,
                activity: None,
            }),
            is_taken: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            owner_sleeps: AtomicBool::new(false),
            door: Mutex::new(()),
            opened: Condvar::new(),
            left: Condvar::new(),
        });
        // Dropped with those that were started, if one is not.
        let mut pool = Self {
            shared,
            helpers: Vec::with_capacity(helpers),
        };
        for number in 1..=helpers {
            let shared = pool.shared.clone();
            let builder = thread::Builder::new().name(format!("compute-{number}"));
            pool.helpers
                .push(builder.spawn(move || shared.help(number))?);
        }
        Ok(pool)
    }

    /// Whether somebody has a job for the pool.
    pub(super) fn is_taken(&self) -> bool {
        self.shared.is_taken.load(Ordering::Relaxed)
    }

    /// Calls `work` once with each tile below `tiles` and the number of the thread that it is called on; the calling one
    /// is 0. Returns false, and calls nothing, if somebody has a job for the pool already.
    ///
    /// # Panics
    /// When `work` does, on whichever thread.
    pub(super) fn run(&self, tiles: usize, work: &Work<'_>) -> bool {
        let shared = &*self.shared;
        if shared.is_taken.swap(true, Ordering::Acquire) {
            return false;
        }
        // SAFETY: only the lifetime is another one. `OpenJob` is dropped before this function returns, also by a panic,
        // and then all helpers have left the job.
        let work = unsafe { std::mem::transmute::<&Work<'_>, &Work<'static>>(work) };
        // SAFETY: this thread has taken the pool, and all have left the job before.
        unsafe {
            *shared.job.get() = Job {
                tiles,
                work: Some(work),
                activity: progress::activity(),
            };
        }
        let job = OpenJob::new(shared, tiles);
        shared.compute(0);
        drop(job);
        let has_panicked = shared.has_panicked.load(Ordering::Relaxed);
        assert!(!has_panicked, "a thread that helps has panicked");
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        drop(self.shared.lock());
        self.shared.opened.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper does not panic outside of a job, and there it is caught.
            let _ = helper.join();
        }
    }
}

/// A job that is open until this is dropped.
struct OpenJob<'a>(&'a Shared);

impl<'a> OpenJob<'a> {
    /// Opens the job that was written down, and wakes those who sleep.
    fn new(shared: &'a Shared, tiles: usize) -> Self {
        shared.has_panicked.store(false, Ordering::Relaxed);
        shared.next.0.store(0, Ordering::Relaxed);
        let job = State(shared.state.0.load(Ordering::Relaxed)).next();
        // Sequentially consistent, as are the last looks before sleep: either the helper sees the job, or it is seen here.
        shared.state.0.store(job.0, Ordering::SeqCst);
        let sleepers = shared.sleepers.load(Ordering::SeqCst);
        if sleepers > 0 {
            drop(shared.lock());
            for _ in 0..sleepers.min(tiles - 1) {
                shared.opened.notify_one();
            }
        }
        Self(shared)
    }
}

impl Drop for OpenJob<'_> {
    /// Closes the job, waits until all have left it, and gives the pool back.
    fn drop(&mut self) {
        let shared = self.0;
        shared.state.0.fetch_and(!State::OPEN, Ordering::SeqCst);
        let is_empty = || State(shared.state.0.load(Ordering::SeqCst)).helpers() == 0;
        if !look_out(is_empty) {
            let mut door = shared.lock();
            shared.owner_sleeps.store(true, Ordering::SeqCst);
            while !is_empty() {
                door = unpoisoned(shared.left.wait(door));
            }
            shared.owner_sleeps.store(false, Ordering::SeqCst);
        }
        shared.is_taken.store(false, Ordering::Release);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        unpoisoned(self.door.lock())
    }

    /// What helper `number` does as long as it lives.
    fn help(&self, number: usize) {
        let mut done = 0;
        while let Some(job) = self.wait_for_job(done) {
            done = job;
            if self.enter(job) {
                // SAFETY: this thread is in the job: nobody writes to it.
                progress::join(unsafe { (*self.job.get()).activity });
                let outcome = catch_unwind(AssertUnwindSafe(|| self.compute(number)));
                progress::leave();
                if outcome.is_err() {
                    self.has_panicked.store(true, Ordering::Relaxed);
                }
                self.leave();
            }
        }
    }

    /// Waits for a job that is open, other than the last one, and returns its number; none at the end.
    fn wait_for_job(&self, last: u64) -> Option<u64> {
        let newest = || State(self.state.0.load(Ordering::SeqCst));
        let is_new = |state: State| state.is_open() && state.number() != last;
        let is_over = || self.is_over.load(Ordering::SeqCst);
        if !look_out(|| is_new(newest()) || is_over()) {
            let mut door = self.lock();
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            while !is_new(newest()) && !is_over() {
                door = unpoisoned(self.opened.wait(door));
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
        (!is_over()).then(|| newest().number())
    }

    /// Joins a job, if it is still open.
    fn enter(&self, job: u64) -> bool {
        let mut state = self.state.0.load(Ordering::Relaxed);
        while State(state).is_open() && State(state).number() == job {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match (self.state.0).compare_exchange_weak(state, state + 1, success, failure) {
                Ok(_) => return true,
                Err(found) => state = found,
            }
        }
        false
    }

    /// Leaves the job, and wakes its owner if it waits for that.
    fn leave(&self) {
        let before = State(self.state.0.fetch_sub(1, Ordering::SeqCst));
        if before.helpers() == 1 && self.owner_sleeps.load(Ordering::SeqCst) {
            drop(self.lock());
            self.left.notify_one();
        }
    }

    /// Computes tiles until none is left.
    fn compute(&self, thread: usize) {
        // SAFETY: this thread is in the job, or is its owner: nobody writes to it.
        let Job { tiles, work, .. } = unsafe { *self.job.get() };
        // SAFETY: the work lives until all have left the job.
        let work = unsafe { &*work.expect("an open job has work") };
        loop {
            let tile = self.next.0.fetch_add(1, Ordering::Relaxed);
            if tile >= tiles {
                return;
            }
            work(thread, tile);
        }
    }
}

/// Waits for something for [`LOOK_OUT`] at the most, and returns whether it came.
fn look_out(mut is_there: impl FnMut() -> bool) -> bool {
    let mut since = None;
    loop {
        for _ in 0..LOOKS {
            if is_there() {
                return true;
            }
            spin_loop();
        }
        let now = Instant::now();
        if now - *since.get_or_insert(now) > LOOK_OUT {
            return is_there();
        }
    }
}

/// The lock protects nothing, so a panic of its holder spoils nothing.
fn unpoisoned<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each tile of a job is called.
    fn calls(pool: &Pool, tiles: usize) -> Vec<usize> {
        let called: Vec<_> = (0..tiles).map(|_| AtomicUsize::new(0)).collect();
        let is_run = pool.run(tiles, &|thread, tile| {
            assert!(thread <= pool.helpers.len());
            called[tile].fetch_add(1, Ordering::Relaxed);
        });
        assert!(is_run);
        called.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_tile_is_called_once_in_many_jobs_also_after_sleep() {
        let pool = Pool::new(3).unwrap();
        for job in 0..2000 {
            let tiles = 1 + job % 9;
            assert_eq!(calls(&pool, tiles), vec![1; tiles], "job {job}");
            if job % 500 == 0 {
                thread::sleep(5 * LOOK_OUT);
            }
        }
    }

    #[test]
    fn all_threads_take_part_and_who_comes_second_computes_alone() {
        let pool = Pool::new(3).unwrap();
        // Each tile waits for the three others.
        let waiting = std::sync::Barrier::new(4);
        let threads = Mutex::new(Vec::new());
        pool.run(4, &|thread, _| {
            threads.lock().unwrap().push(thread);
            waiting.wait();
            assert!(!pool.run(2, &|_, _| ()));
        });
        let mut threads = threads.into_inner().unwrap();
        threads.sort_unstable();
        assert_eq!(threads, [0, 1, 2, 3]);
    }

    #[test]
    fn a_panic_on_any_thread_reaches_the_owner_and_the_pool_goes_on() {
        let pool = Pool::new(1).unwrap();
        for from in [0, 1] {
            let both = std::sync::Barrier::new(2);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(2, &|thread, _| {
                    both.wait();
                    assert_ne!(thread, from, "as asked");
                })
            }));
            assert!(outcome.is_err(), "thread {from}");
            assert_eq!(calls(&pool, 5), [1; 5]);
        }
    }
}
