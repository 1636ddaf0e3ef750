//! How a rank waits for a word of shared memory to change.
//!
//! In a healthy gang the wait is a few microseconds, and asking the operating system for anything
//! would take longer: spin. If it lasts, let others run, for there may be more workers than cores;
//! if it lasts longer still, sleep. All along, look now and then whether waiting still makes sense.

use std::thread;
use std::time::{Duration, Instant};

/// How long to spin before the first yield: more than workers usually differ by within a step, far
/// less than what the scheduler gives a process at a time.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// Looks at the word between two looks at the clock.
const SPINS: u32 = 16;
/// How long to yield before sleeping.
const YIELD_TIME: Duration = Duration::from_millis(1);
/// How long to sleep at a time: short against a training step, long against a look at a word.
const SLEEP: Duration = Duration::from_micros(50);

/// Waits until `ready` says so.
///
/// `spin` is whether every worker can have a core to itself. `check` is asked again and again, once
/// the wait is more than a moment, whether to go on, and told how long it has been; its error ends
/// the wait.
pub(crate) fn wait_until<E>(
    spin: bool,
    mut ready: impl FnMut() -> bool,
    mut check: impl FnMut(Duration) -> Result<(), E>,
) -> Result<(), E> {
    let backoff = Backoff::new(spin);
    while !backoff.is_due() {
        for _ in 0..SPINS {
            if ready() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }
    loop {
        if ready() {
            return Ok(());
        }
        check(backoff.begin.elapsed())?;
        backoff.pause();
    }
}

/// How somebody waits who has other things to do meanwhile.
pub(crate) struct Backoff {
    begin: Instant,
    spin: bool,
}

impl Backoff {
    /// A wait begins.
    pub(crate) fn new(spin: bool) -> Self {
        let begin = Instant::now();
        Self { begin, spin }
    }

    /// Whether it is time to let others run, and to look whether waiting still makes sense.
    pub(crate) fn is_due(&self) -> bool {
        !self.spin || self.begin.elapsed() >= SPIN_TIME
    }

    /// Lets others run for a moment.
    pub(crate) fn pause(&self) {
        match self.begin.elapsed() < YIELD_TIME {
            true => thread::yield_now(),
            false => thread::sleep(SLEEP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_wait_ends_with_what_it_waits_for() {
        for (spin, delay) in [(true, 0), (false, 0), (true, 5), (false, 5)] {
            let flag = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(delay));
                    flag.store(true, Ordering::Release);
                });
                wait_until(spin, || flag.load(Ordering::Acquire), |_| Ok::<_, ()>(())).unwrap();
            });
        }
    }

    #[test]
    fn a_long_wait_sleeps_instead_of_burning_its_core() {
        let mut looks = 0;
        let result = wait_until(
            true,
            || {
                looks += 1;
                false
            },
            |waited| {
                if waited < Duration::from_millis(200) {
                    Ok(())
                } else {
                    Err("over")
                }
            },
        );
        assert_eq!(result, Err("over"));
        // 200 ms of spinning would be millions of looks; of sleeping, a few thousand.
        assert!(looks < 100_000, "{looks}");
    }
}
