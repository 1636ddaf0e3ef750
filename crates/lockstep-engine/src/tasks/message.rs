//! What the coordinator and a task worker say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// To a worker, through its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum ToTaskWorker {
    /// The first line: what all tasks are, and what they have in common.
    Setup {
        /// The worker's number, for its last words.
        worker: usize,
        /// What the tasks are.
        kind: String,
        /// What they have in common.
        setup: Value,
    },
    /// One task to do.
    Task {
        /// Its number.
        task: usize,
        /// What is to be done.
        value: Value,
    },
}

/// From a worker, through its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum FromTaskWorker {
    /// It has all that it needs, and waits for a task.
    Ready,
    /// It is alive, whatever it does.
    Alive {
        /// How far its work is, in a count that only grows while it works.
        progress: u64,
    },
    /// It took up a task.
    Started {
        /// The task's number.
        task: usize,
    },
    /// It got on with a task.
    Progress {
        /// The task's number.
        task: usize,
        /// How far, in the words of the task's kind.
        value: Value,
    },
    /// It did a task, and waits for another.
    Done {
        /// The task's number.
        task: usize,
        /// What came of it.
        payload: Value,
    },
    /// It cannot do a task, or has not what it needs for any.
    Failed {
        /// The task's number; none before the first.
        task: Option<usize>,
        /// Why.
        error: String,
        /// Whether that may be gone later.
        #[serde(default)]
        passing: bool,
    },
}

/// A message as a line, without its end.
pub(super) fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("a message is plain data with text for keys")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_is_one_line_that_reads_back_as_itself() {
        let done = FromTaskWorker::Done {
            task: 7,
            payload: json!({ "text": "two\nlines", "bits": 3_212_836_864_u32 }),
        };
        let text = line(&done);
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(serde_json::from_str::<FromTaskWorker>(&text).unwrap(), done);
        let unready = r#"{"say":"failed","task":null,"error":"no"}"#;
        let failed: FromTaskWorker = serde_json::from_str(unready).unwrap();
        assert!(matches!(failed, FromTaskWorker::Failed { task: None, .. }));
    }
}
