//! A worker that another program starts in the coordinator's stead dies with that program.
//!
//! A [`LocalLauncher`](lockstep_launch::LocalLauncher) arranges this for its children before they begin. Where a worker is
//! started by something that cannot, such as an actor of Ray, a variable names the parent and the worker sees to it.

use std::io;

/// The variable that holds the parent's process id.
const PARENT: &str = "LOCKSTEP_PARENT";

/// Has the kernel end this process as soon as the thread that started it ends, if the environment asks for that.
/// Elsewhere than on Linux, the end of standard input does.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent() -> io::Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    let Ok(parent) = std::env::var(PARENT) else {
        return Ok(());
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before the arrangement was made.
    match getppid().map(Pid::as_raw_nonzero) {
        Some(pid) if pid.to_string() == parent => Ok(()),
        _ => Err(io::Error::other(format!("the parent {parent} is gone"))),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}
