//! What every other crate stands on, and nothing that belongs to one of them.
//!
//! | module | what it is for |
//! |---|---|
//! | [`fs`] | files that are written whole or not at all, locks, the cache folder, hashes and hex |
//! | [`progress`] | a count of the work that a process has done, and of the time that it waited |
//! | [`random`] | counter-based random numbers |
//! | [`failpoint`] | named points at which a test can make a process fail; nothing in a release build |
//! | [`amount`] | amounts of memory and of time as people write them |
//! | [`calendar`] | dates of the Gregorian calendar, in UTC |
//! | [`cgroup`] | what the control groups of this process allow it |
//! | [`cores`] | the cores that this process may use |
//! | [`markup`] | text in HTML and XML |
//! | [`zip`] | ZIP archives that are not trusted |
//! | [`JobStatus`] | how a job is, in Ray's words |
//! | [`known`] | the data sets that are known by name |
//! | [`known_encoders`] | the encoders that are known by name |
//! | [`math`] | elementary functions with the same bits on every machine |
//! | [`offline`] | whether nothing may be downloaded that nobody named |
//! | [`nearest`] | the right word for a misspelt one |
//! | [`simd`] | the instruction set that this process computes with |
//! | [`c_functions!`] | functions of a C library that is loaded at run time |

pub mod amount;
mod c_functions;
pub mod calendar;
pub mod cgroup;
pub mod cores;
pub mod failpoint;
pub mod fs;
mod job_status;
pub mod known;
pub mod known_encoders;
pub mod markup;
pub mod math;
pub mod nearest;
pub mod offline;
pub mod progress;
pub mod random;
pub mod simd;
pub mod zip;

pub use job_status::JobStatus;
