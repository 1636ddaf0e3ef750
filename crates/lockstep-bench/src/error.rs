//! What can be wrong with a plan.

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A number that must be at least one is not.
    #[error("{flag}: found 0, and it must be at least 1")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// A list is empty.
    #[error(
        "{flag}: nothing is in the list; write numbers with commas between them, such as 1,2,4"
    )]
    Empty {
        /// The flag.
        flag: &'static str,
    },
    /// There is nothing to compare with.
    #[error(
        "--workers {workers}: there is nothing to compare with; name at least two numbers of workers, such as \
         1,{workers}, or several of --batch"
    )]
    OneSetting {
        /// The only number of workers.
        workers: usize,
    },
    /// A network is not understood.
    #[error(
        "--network: found {found:?}; write a rate, and a delay if it is known, such as 10gbit or 400mbit/2ms"
    )]
    Network {
        /// What was found.
        found: String,
    },
    /// A system to compare with is not known.
    #[error("--against: found {found:?}; known are torch-threads, torch-ddp and ray-train")]
    Peer {
        /// What was found.
        found: String,
    },
    /// A batch per worker was asked for, and the job has no batch.
    #[error("--weak: the job has no train.batch that could be kept per worker")]
    NoBatch,
}
