//! Counter-based random numbers: a value is a function of a key and a position, with no state between
//! calls.
//!
//! Training needs the same random numbers whatever the number of workers and however often a run was
//! interrupted. A generator with hidden state cannot give that; a keyed permutation of a counter can.
//! This is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the
//! generator that PyTorch, JAX and cuRAND offer for the same reason.

mod philox;
mod stream;

pub use philox::Philox;
pub use stream::Stream;
