//! How a worker ended, in the words of no particular system.

use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGABRT;
use std::fmt;

/// How a worker ended. Its text is what people read: `killed by signal 9 (SIGKILL)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerEnd {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It used more memory than it was allowed to.
    OutOfMemory,
    /// It is out of reach, and does not run any more: its machine is gone, or its lease ran out.
    Lost(String),
    /// Nobody can say how.
    Unknown,
}

impl WorkerEnd {
    /// Whether it says that all went well.
    pub fn is_success(&self) -> bool {
        *self == Self::Code(0)
    }

    /// Whether something else ended it: a worker does not do that to itself because a peer is gone.
    pub fn is_violent(&self) -> bool {
        matches!(self, Self::Signal(_) | Self::OutOfMemory | Self::Lost(_))
    }

    /// Whether the last line that it wrote may say why it ended: it ended by itself, or gave up.
    pub fn has_last_words(&self) -> bool {
        matches!(self, Self::Code(_) | Self::Signal(SIGABRT))
    }
}

impl fmt::Display for WorkerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            Self::Code(0) => f.write_str("ended before its work was done"),
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::OutOfMemory => f.write_str("killed because it ran out of memory: fewer workers on its node, a smaller train.batch or more memory for it would help"),
            Self::Lost(how) => write!(f, "lost: {how}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_words() {
        let said = [
            (WorkerEnd::Signal(9), "killed by signal 9 (SIGKILL)"),
            (WorkerEnd::Signal(42), "killed by signal 42"),
            (WorkerEnd::Code(0), "ended before its work was done"),
            (WorkerEnd::Code(101), "exited with code 101"),
            (WorkerEnd::Unknown, "ended"),
        ];
        for (end, words) in said {
            assert_eq!(end.to_string(), words);
        }
    }
}
