//! A user's own script as a learner.
//!
//! A worker of the gang starts the script as a child process, with what PyTorch, TensorFlow, JAX and XGBoost expect
//! in its environment, and waits for it. Scripts exchange gradients in their own way. What they want
//! from Lockstep they ask for in Python: `import lockstep` works without anything installed, because the binary
//! carries that package and puts it on the script's path. It speaks with the worker through a socket of this
//! machine: reports, checkpoints, meeting points, and batches of data that lie in shared memory.
//!
//! When one script of a gang fails, all are ended and begin again from the newest checkpoint that they reported. What
//! was handed out of a data set by then is part of that checkpoint, so no sample is seen twice or missed.

mod checkpoints;
mod coordinator;
mod environment;
mod error;
mod learner;
mod leftovers;
mod order;
mod package;
mod part;
mod process;
mod service;
mod sets;

pub use coordinator::{ScriptCoordinator, ScriptLearner};
pub use error::ScriptError;
pub use process::become_script;
