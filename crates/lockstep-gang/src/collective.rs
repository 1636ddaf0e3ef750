//! The exchange among the workers of a gang, chunk by chunk.
//!
//! # The protocol of a step
//! 1. Every rank goes through the chunks **in descending order**. For a chunk that another rank
//!    owns it writes its partial sums to [`outbox`](Collective::outbox) and
//!    [`post`](Collective::post)s them, exactly once.
//! 2. The owner of a chunk sees it [`arrived`](Collective::arrived), adds the partial sums with
//!    [`TreeSum`](crate::TreeSum), updates its numbers and [`publish`](Collective::publish)es them.
//! 3. Every rank [`fetch`](Collective::fetch)es every chunk that others own.
//! 4. Every rank [`cast`](Collective::cast)s a vote, as early as it can, and ends the step with
//!    [`end_step`](Collective::end_step).
//!
//! Ranks may interleave these as they like as long as each does them in this order *for each chunk*,
//! and all posts of a rank come before it waits for anything that needs them.
//!
//! # Why one buffer of each kind is enough
//! - *A published chunk* is overwritten only when its owner publishes it again. In step t+1 the
//!   owner does so after all peers posted that chunk of step t+1, and a peer posts in step t+1 only
//!   after it fetched everything of step t. So nobody is still reading.
//! - *An outbox* is written in step t+1 only after the rank fetched that chunk of step t, which the
//!   owner published after it had read the outbox.
//! - *Votes and gathered sums* have two buffers each, used in turn: a rank can be one round ahead of
//!   a slow peer, never two, since each round needs everyone's part of the round before.
//!
//! # Other vectors of the same length
//! Publishing without posting, as for the optimizer's state, lacks the first argument above.
//! [`CollectiveExt::exchange_owned`] is the legal way: it fences the round with a barrier on each side.

use crate::{GangError, Plan};

/// Numbers that one rank can hand to [`all_gather`](Collective::all_gather) at a time.
pub(crate) const GATHER: usize = 2048;

/// One rank's end of the exchange. See the [module](self) for the protocol that callers follow.
///
/// # Guarantees
/// No number is changed on the way. Every wait ends: with what was waited for, with
/// [`GangError::PeerLost`] when the peer is known to be gone, with [`GangError::Aborted`], or with
/// [`GangError::PeerTimeout`] after the deadline. No method allocates once the first step is over.
///
/// # Caveats
/// After an error the exchange cannot go on: drop it, and join a new generation.
///
/// # Panics
/// Methods panic when the caller breaks the protocol: a chunk, rank or partial sum out of range, an
/// own chunk where another's is meant or the reverse, a slice of the wrong length.
pub trait Collective: Send {
    /// The plan that this gang follows.
    fn plan(&self) -> &Plan;

    /// This rank.
    fn rank(&self) -> usize;

    /// Where this rank writes its partial sum `partial` (an index into
    /// [`Plan::partials_of`]) of a chunk that it does not own, as a whole.
    ///
    /// A partial sum whose lanes are all empty in a short batch is not asked for, and nobody uses what is posted in
    /// its place: all ranks know that it is absent.
    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32];

    /// Hands all partial sums of `chunk` to its owner.
    fn post(&mut self, chunk: usize) -> Result<(), GangError>;

    /// Whether all peers have posted the own chunk `chunk`. Never blocks.
    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError>;

    /// Waits until all peers have posted the own chunk `chunk`.
    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError>;

    /// Partial sum `partial` of the own chunk `chunk` from rank `from`, as [`Plan::partials_for`] names them, once it
    /// has arrived and until the chunk is published.
    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32];

    /// Hands the new values of the own chunk `chunk` to all peers that [read](Plan::reads) it.
    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError>;

    /// Whether another rank's chunk `chunk` can be fetched without waiting. Never blocks.
    fn published(&mut self, chunk: usize) -> Result<bool, GangError>;

    /// Copies the new values of another rank's chunk `chunk`, waiting for them if need be.
    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError>;

    /// Makes this rank's vote on the step visible to its peers, without waiting. Once a step, before
    /// [`end_step`](Self::end_step), and best before the last fetches: by then it costs no wait.
    fn cast(&mut self, vote: u64) -> Result<(), GangError>;

    /// Ends the step: waits for all ranks' votes and returns the largest.
    fn end_step(&mut self) -> Result<u64, GangError>;

    /// Collects equally many numbers from every rank into `all`, in rank order. Meant for few
    /// numbers: evaluation sums, norms of gradients. It is a barrier too, also when empty.
    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError>;
}

/// What every [`Collective`] can do besides, made of its methods.
pub trait CollectiveExt: Collective {
    /// Waits until every rank has come here.
    fn barrier(&mut self) -> Result<(), GangError> {
        self.all_gather(&[], &mut [])
    }

    /// Collects bytes from every rank, of any length each, in rank order. Meant for what is rare: it goes through
    /// [`all_gather`](Collective::all_gather), some kilobytes at a time.
    fn gather_bytes(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, GangError> {
        let workers = self.plan().workers();
        let mut lengths = vec![0.0; workers];
        self.all_gather(&[mine.len() as f64], &mut lengths)?;
        let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut all = vec![Vec::new(); workers];
        let (mut words, mut gathered) = ([0.0; GATHER], vec![0.0; workers * GATHER]);
        for begin in (0..longest).step_by(8 * GATHER) {
            let count = (longest - begin).div_ceil(8).min(GATHER);
            for (number, word) in words.iter_mut().take(count).enumerate() {
                let rest = mine.get(begin + 8 * number..).unwrap_or(&[]);
                let mut bytes = [0; 8];
                let there = rest.len().min(8);
                bytes[..there].copy_from_slice(&rest[..there]);
                // Nobody computes with it, so that its bits stay what they are.
                *word = f64::from_bits(u64::from_le_bytes(bytes));
            }
            let gathered = &mut gathered[..workers * count];
            self.all_gather(&words[..count], gathered)?;
            // It may take longer than anybody waits for one who gets no further.
            lockstep_base::progress::advance();
            for (rank, words) in gathered.chunks(count).enumerate() {
                let bytes = words.iter().flat_map(|word| word.to_bits().to_le_bytes());
                let missing = lengths[rank].saturating_sub(begin);
                all[rank].extend(bytes.take(missing));
            }
        }
        Ok(all)
    }

    /// Completes a vector of the plan's length of which each rank holds the chunks that it owns, such
    /// as the optimizer's state. Called by all ranks, between steps.
    fn exchange_owned(&mut self, vector: &mut [f32]) -> Result<(), GangError> {
        assert_eq!(
            vector.len(),
            self.plan().len(),
            "the vector must be as long as the plan's"
        );
        let rank = self.rank();
        // A slow peer may still be fetching the values of the last step.
        self.barrier()?;
        for chunk in (0..self.plan().chunks()).rev() {
            if self.plan().owner(chunk) == rank {
                let range = self.plan().chunk(chunk);
                self.publish(chunk, &vector[range])?;
            }
        }
        for chunk in (0..self.plan().chunks()).rev() {
            if self.plan().owner(chunk) != rank {
                let range = self.plan().chunk(chunk);
                self.fetch(chunk, &mut vector[range])?;
            }
        }
        self.barrier()
    }
}

impl<C: Collective + ?Sized> CollectiveExt for C {}
