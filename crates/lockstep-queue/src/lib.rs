//! Jobs that wait, run and are remembered on one machine.
//!
//! A job is a folder: what was asked (`job.json`), how far it has come (`begun.N.json`, `process.N.json`,
//! `ended.N.json` of its N-th attempt) and its log. Beside it lies the folder that its command runs in ([`JobUser`] says
//! why it lies apart). The files are the truth; what a
//! [`Queue`] has in memory was read from them. So whoever serves the queue may be killed at any time.
//!
//! Each running job has a process of its own that looks after it ([`keep`]). It holds a lock for as long as it lives,
//! and writes down that a job has begun before its command starts. What this promises:
//!
//! - **Nothing is lost.** A job is on the disk before its id is told.
//! - **Nothing is run twice.** An attempt begins once, whoever tries to begin it.
//! - **Running jobs do not need the server.** One that is started again finds what runs by its lock, not by its number.
//! - **Nothing leaves its folder.** Packages are unpacked by `lockstep_base::zip`, which trusts no name and no size.
//!
//! The functions block; call them from plain threads. It needs Linux: changes are heard through inotify.

mod ages;
mod cgroup;
mod environments;
mod error;
mod folder;
mod id;
mod job_record;
mod job_user;
mod keeper;
mod leftovers;
mod log;
mod machine;
mod memory;
mod notice;
mod packages;
mod plan;
mod queue;
mod retention;
mod scheduler;
mod setup;
mod state;
mod view;

pub use error::QueueError;
pub use id::is_valid_id;
pub use job_record::{JobRecord, Submission};
pub use job_user::JobUser;
pub use keeper::{JobProcess, TRY_AGAIN, keep};
pub use lockstep_base::JobStatus;
pub use log::Log;
pub use machine::{Machine, Needs};
pub use notice::{Change, LOST, Notice};
pub use packages::{Packages, Upload};
pub use queue::{Queue, QueueSettings};
pub use retention::Retention;
pub use view::JobView;
