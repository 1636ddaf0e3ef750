//! Supervision of a gang: who is in it, generations, root causes, recovery.
//!
//! | part | what it is for |
//! |---|---|
//! | `supervisor` | the loop that hears, records, replaces and ends |
//! | `state` | who is where, and what follows from what is heard |
//! | `generation` | what workers are started with, and told when a generation begins |
//! | `notice` | all that happens to workers, in one channel |
//! | `member` | what is known of one worker |
//! | `root_cause` | which worker failed first, and why |
//! | `losses` | what failures cost |
//! | `fold` | identical lines of several workers become one |

pub(crate) mod fold;
pub(crate) mod generation;
pub(crate) mod losses;
pub(crate) mod member;
pub(crate) mod notice;
pub(crate) mod root_cause;
pub(crate) mod state;
#[cfg(test)]
mod state_model;
pub(crate) mod supervisor;
