//! Ctrl-C and its likes: the first asks to stop in good order, the second at once.

use anyhow::Context;
use lockstep_engine::{Stop, StopFlag};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::thread;
use std::time::Duration;

/// The exit code of a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// How long ending at once may take before this process just goes. Its workers go with it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Raises `stop` on SIGINT, SIGTERM and SIGHUP, from now on.
pub(crate) fn obey(stop: StopFlag) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    let heed = move || {
        for _ in signals.forever() {
            if stop.escalate() == Stop::Now {
                thread::sleep(PATIENCE);
                std::process::exit(INTERRUPTED.into());
            }
        }
    };
    let thread = thread::Builder::new().name("signals".into());
    thread.spawn(heed).context("cannot handle signals")?;
    Ok(())
}
