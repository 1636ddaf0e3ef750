//! How a rank waits for a word of shared memory to change.
//!
//! In a healthy gang the wait is a few microseconds, and asking the operating system for anything
//! would take longer: spin. If it lasts, let others run, for there may be more workers than cores;
//! if it lasts longer still, sleep. All along, look now and then whether waiting still makes sense.

use std::thread;
use std::time::{Duration, Instant};

/// Looks at the word before the first yield, about ten microseconds' worth.
const SPINS: u32 = 256;
/// How long to yield before sleeping.
const YIELD_TIME: Duration = Duration::from_millis(1);
/// How long to sleep at a time: short against a training step, long against a look at a word.
const SLEEP: Duration = Duration::from_micros(50);

/// Waits until `ready` says so.
///
/// `check` is asked every few microseconds whether to go on, and told how long it has been; its
/// error ends the wait.
pub(crate) fn wait_until<E>(
    spin: bool,
    mut ready: impl FnMut() -> bool,
    mut check: impl FnMut(Duration) -> Result<(), E>,
) -> Result<(), E> {
    if spin {
        for _ in 0..SPINS {
            if ready() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }
    let begin = Instant::now();
    loop {
        if ready() {
            return Ok(());
        }
        let waited = begin.elapsed();
        check(waited)?;
        if waited < YIELD_TIME {
            thread::yield_now();
        } else {
            thread::sleep(SLEEP);
        }
    }
}
