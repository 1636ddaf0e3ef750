//! How predictions are served: what is waited for, and how much of anything there may be.

use std::time::Duration;

/// How predictions are served.
#[derive(Debug, Clone)]
pub struct ServingSettings {
    /// How many rows are computed at once, as far as more than one request is waiting.
    pub max_batch: usize,
    /// How long a batch waits for requests that have arrived but are not read yet.
    pub batch_wait: Duration,
    /// How many requests may wait for one model.
    pub queue: usize,
    /// How long a request may take.
    pub timeout: Duration,
    /// The longest body of a request, in bytes.
    pub max_body: u64,
    /// The most rows of a request.
    pub max_rows: usize,
    /// The most pixels of a picture.
    pub max_pixels: u64,
    /// Threads that compute a batch.
    pub threads: usize,
    /// After how long a model that nobody asks is given back; never, if nothing is said.
    pub idle: Option<Duration>,
    /// How many models may be held at a time.
    pub max_models: usize,
}

impl Default for ServingSettings {
    fn default() -> Self {
        Self {
            max_batch: 256,
            batch_wait: Duration::from_millis(2),
            queue: 512,
            timeout: Duration::from_secs(30),
            max_body: 16 << 20,
            max_rows: 10_000,
            max_pixels: 50_000_000,
            threads: 1,
            idle: None,
            max_models: 8,
        }
    }
}
