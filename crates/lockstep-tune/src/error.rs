//! What can be wrong with a search.

/// Why nothing can be searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A `--search` is not understood.
    #[error(
        "--search {given}: {why}; write KEY=log(1e-4,1e-1), KEY=uniform(0,0.5), KEY=int(16,256), or a list of values such as \
         KEY=[16, 32, 64]"
    )]
    Search {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two searches vary one key.
    #[error("--search: the key {key} is there twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// There is nothing to search.
    #[error(
        "nothing is to be searched: name a key with --search, such as --search 'train.optimizer.lr=log(1e-4,1e-1)'"
    )]
    Nothing,
    /// A number that must be at least one is not.
    #[error("{flag}: found 0, and it must be at least 1")]
    Zero {
        /// The flag.
        flag: &'static str,
    },
    /// A tuning that was written is another.
    #[error(
        "{folder} holds a search with other settings: {what}; give the same command, or leave --resume out"
    )]
    Other {
        /// Where it lies.
        folder: String,
        /// What differs.
        what: String,
    },
}
