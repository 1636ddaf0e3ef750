//! A thread that looks after one that is inside XGBoost.
//!
//! A call of XGBoost's may take long, or wait for a peer that is gone. Meanwhile this thread says that work gets on for
//! as long as the process uses the processor, and ends the waiting when the generation is called off.

use crate::xgboost::HangUp;
use lockstep_learner::Gang;
use rustix::time::{ClockId, clock_gettime};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);
/// How often it looks whether the processor is used.
const LOOK_AT_PROCESSOR: Duration = Duration::from_millis(500);

/// Looks after the gang until the other side of `over` is gone.
pub(crate) fn watch(gang: &Gang<'_>, hang_up: &HangUp, over: &Receiver<()>) {
    let (mut used, mut looked) = (processor_time(), Instant::now());
    loop {
        match over.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
        if gang.is_called_off() {
            hang_up.now();
        }
        if looked.elapsed() > LOOK_AT_PROCESSOR {
            looked = Instant::now();
            let now = processor_time();
            // What this thread itself uses is far less.
            if now.saturating_sub(used) > LOOK_AT_PROCESSOR / 10 {
                lockstep_base::progress::advance();
            }
            used = now;
        }
    }
}

/// The processor time that this process has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
