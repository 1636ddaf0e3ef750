//! How long is waited for a GPU: never for ever.
//!
//! A call of the driver's that waits cannot be given up, and one that waits for a GPU that has fallen off its bus may never
//! return. So the driver is asked again and again whether something is done: at once at first, since most waits of a step
//! are short, then in pauses that are a small part of the time that was waited already.

use std::time::{Duration, Instant};

/// After so long a GPU is taken for lost. What is waited for is some dozens of steps at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// Until then the driver is asked without pauses.
const AT_ONCE: Duration = Duration::from_micros(100);

/// The longest pause, and which part of the time that was waited a pause is.
const LONGEST_PAUSE: Duration = Duration::from_micros(500);
const PART: u32 = 32;

/// Whether it was done before patience ended.
pub(super) fn wait_until<E>(
    patience: Duration,
    mut is_done: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let began = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        let waited = began.elapsed();
        if waited >= patience {
            return Ok(false);
        }
        match waited < AT_ONCE {
            true => std::thread::yield_now(),
            false => std::thread::sleep((waited / PART).min(LONGEST_PAUSE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_what_fails_and_what_never_ends_are_told_apart() {
        let mut asked = 0;
        let mut after = |times, patience, end: Result<bool, ()>| {
            asked = 0;
            wait_until(patience, || {
                asked += 1;
                if asked < times { Ok(false) } else { end }
            })
        };
        assert_eq!(after(1, Duration::ZERO, Ok(true)), Ok(true));
        assert_eq!(after(50, PATIENCE, Ok(true)), Ok(true));
        assert_eq!(after(50, PATIENCE, Err(())), Err(()));
        assert_eq!(
            after(u32::MAX, Duration::from_millis(2), Ok(true)),
            Ok(false)
        );
    }
}
