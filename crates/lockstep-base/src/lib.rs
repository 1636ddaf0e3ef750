//! What every other crate stands on, and nothing that belongs to one of them.
//!
//! | module | what it is for |
//! |---|---|
//! | [`fs`] | files that are written whole or not at all, locks, the cache folder, hashes and hex |
//! | [`progress`] | a count of the work that a process has done, and of the time that it waited |
//! | [`random`] | counter-based random numbers |
//! | [`failpoint`] | named points at which a test can make a process fail; nothing in a release build |
//! | [`known`] | the data sets that are known by name |
//! | [`math`] | elementary functions with the same bits on every machine |
//! | [`simd`] | the instruction set that this process computes with |

pub mod failpoint;
pub mod fs;
pub mod known;
pub mod math;
pub mod progress;
pub mod random;
pub mod simd;
