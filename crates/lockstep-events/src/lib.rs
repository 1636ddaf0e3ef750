//! What happens in a run, as events, and what its processes say to each other.
//!
//! [`event`] is what the world learns: every view is a rendering of these events. [`control`] is what a
//! coordinator and its workers say over their link. Neither knows what is learned: what a learner
//! measures are named values, [`Metrics`], and what it needs to begin is a value that only it reads. What each number
//! is called, wherever it is shown, is said once: [`points_of`].

pub mod control;
pub mod event;
mod measured;
mod metrics;
mod recorded;
mod thin;
mod trace;

pub use measured::{MetricPoint, current_name, metric_name, points_of};
pub use metrics::Metrics;
pub use recorded::{Recorded, VERSION};
pub use thin::Thin;
pub use trace::{Comparison, Difference, Trace, TraceLine, TraceMarks};
