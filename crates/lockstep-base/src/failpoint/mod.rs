//! Named points at which a test can make a process fail.
//!
//! Code names the edges of what must survive a crash: `reach("checkpoint.after_manifest")`. A test
//! then starts the real program with
//!
//! ```text
//! LOCKSTEP_FAILPOINTS="checkpoint.after_manifest=kill@3,checkpoint.before_part=error:28"
//! ```
//!
//! and the program dies exactly there. An entry is `NAME[@rankR][@genG]=ACTION[@N]`:
//!
//! | action | what happens |
//! |---|---|
//! | `kill` | SIGKILL to this process |
//! | `stop` | SIGSTOP to this process: it lives and does nothing |
//! | `cut` | SIGKILL to the parent and then to this process, as a power cut ends a whole run |
//! | `error`, `error:ERRNO` | [`check`] returns this error of the system; EIO unless it is said |
//! | `sleep:MS` | the thread sleeps for so many milliseconds, or until the file is there that [`AWAKE`] names |
//!
//! `@N` means the N-th time only that the point is reached in this process, counted from 1; without
//! it, every time. `@rankR` means in the worker of that rank only, and `@genG` in that generation of the
//! gang only; the worker must have called [`set_worker`].
//!
//! Points exist in builds with debug assertions alone. In a release build both functions are empty
//! and the variable is not looked at; in a debug build without the variable a point costs one load.

#[cfg(debug_assertions)]
mod points;

/// The variable that says which points do what.
pub const VARIABLE: &str = "LOCKSTEP_FAILPOINTS";

/// The variable that names a file. Once it is there, no point sleeps any longer: a test slows a run down until it has seen
/// what it waited for, and then lets it go.
pub const AWAKE: &str = "LOCKSTEP_FAILPOINTS_AWAKE";

#[cfg(debug_assertions)]
mod live {
    use crate::failpoint::points::Points;
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static POINTS: OnceLock<Option<Points>> = OnceLock::new();
    static RANK: AtomicUsize = AtomicUsize::new(usize::MAX);
    static GENERATION: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Says which rank of which generation this process is, for points that are meant for one of them.
    pub fn set_worker(rank: usize, generation: u16) {
        RANK.store(rank, Ordering::Relaxed);
        GENERATION.store(generation.into(), Ordering::Relaxed);
    }

    /// Marks a point: a process may be killed or delayed here. An `error` is for [`check`] alone.
    pub fn reach(name: &str) {
        let _ = check(name);
    }

    /// Marks a point that may also fail.
    ///
    /// # Errors
    /// The system's error that the variable asks for.
    ///
    /// # Panics
    /// When the variable cannot be read: a test with a misspelt point would otherwise test nothing.
    pub fn check(name: &str) -> io::Result<()> {
        let read = || {
            let text = std::env::var(crate::failpoint::VARIABLE).ok()?;
            Some(
                Points::parse(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", crate::failpoint::VARIABLE)),
            )
        };
        match POINTS.get_or_init(read) {
            None => Ok(()),
            Some(points) => {
                let rank = RANK.load(Ordering::Relaxed);
                let generation = GENERATION.load(Ordering::Relaxed);
                match points.hit(name, rank, generation) {
                    None => Ok(()),
                    Some(action) => action.perform(),
                }
            }
        }
    }
}

#[cfg(debug_assertions)]
pub use live::{check, reach, set_worker};

#[cfg(not(debug_assertions))]
mod absent {
    /// Says which worker this process is; nothing in this build.
    #[inline(always)]
    pub const fn set_worker(_rank: usize, _generation: u16) {}

    /// Marks a point; nothing in this build.
    #[inline(always)]
    pub const fn reach(_name: &str) {}

    /// Marks a point that may also fail; never in this build.
    ///
    /// # Errors
    /// None.
    #[inline(always)]
    pub const fn check(_name: &str) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(not(debug_assertions))]
pub use absent::{check, reach, set_worker};
