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
//! # Shares
//! A plan may have *shares*: pieces that a rank [`announce`](Collective::announce)s for each of its lanes in
//! every step and that all others [`accept`](Collective::accept), such as the factors that a gradient can
//! be computed from. Where memory is shared they are written and read in place. A chunk whose new values
//! follow from shares is not posted: its owner publishes it once it has accepted every other lane's share
//! of some kind in this step, also of lanes that have no rows. All ranks accept all shares of a step
//! before they cast their vote.
//!
//! One buffer is enough here too. A rank [`view`](Collective::view)s shares until it has published the chunks
//! that follow from them or, of chunks that stay with it, until it makes their products of the next step;
//! and before its peers announce shares of the next step they have fetched all of these.
//!
//! # Products
//! A plan may also have *products*: pieces that the owner of a chunk publishes for each lane, such as the
//! columns of a layer's output that follow from the chunk, and that only the lane's rank fetches. A chunk
//! whose owner makes all that others need of it is neither posted nor published: the others' copies stay
//! behind until [`Collective::exchange_owned`]. Products are fetched before the vote too, also those for
//! lanes that have no rows.
//!
//! # Common chunks
//! Where memory is shared, a rank that is done may take over work that others have not begun. A plan can
//! say which chunks are [common](Plan::is_common): their new values follow from shares, which all ranks
//! have. In every step each rank [`take`](Collective::take)s such chunks one after the other once it has
//! accepted all shares of the step, its own first, until each is taken; whoever took one updates it in its
//! [`home`](Collective::home), [`holds`](Collective::holds) it from then on, and publishes it or makes its
//! products in the owner's place. [`recall`](Collective::recall) gives all of them back to their owners.
//! Where no memory is shared, owners hold their chunks for ever and nothing has a home.
//!
//! One holder follows the other without a race: a rank takes a chunk in step t+1 after it has accepted a
//! share of that step from the one who held it in step t, and that one has shared it after its last use.
//!
//! # Other vectors of the same length
//! Publishing without posting, as for the optimizer's state, lacks the first argument above.
//! [`Collective::exchange_owned`] is the legal way: it fences the round with a barrier on each side.

use crate::{GangError, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a rank waits for a peer before it calls it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Duration);

impl Default for Deadline {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// Calls off whatever a collective of this process waits for; given to the thread that hears the
/// coordinator. Every clone is the same switch.
#[derive(Debug, Clone, Default)]
pub struct Abort(Arc<AtomicBool>);

impl Abort {
    /// Makes every wait of the collective fail with [`GangError::Aborted`], now and from now on.
    pub fn abort(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was called off.
    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Numbers of a common chunk that only its holder touches.
#[derive(Debug)]
pub struct Home<'a> {
    /// Its values, unless every rank has them.
    pub values: Option<&'a mut [f32]>,
    /// The vectors beside them; those that the plan does not have are empty.
    pub planes: [&'a mut [f32]; 2],
}

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

    /// The switch that calls off this rank's waits.
    fn abort_handle(&self) -> Abort;

    /// Where this rank writes its partial sum `partial` (an index into
    /// [`Plan::partials_of`]) of a chunk that it does not own.
    ///
    /// A partial sum whose lanes are all empty in a short batch may be left as it is: all ranks
    /// know that it is absent.
    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32];

    /// Hands all partial sums of `chunk` to its owner.
    fn post(&mut self, chunk: usize) -> Result<(), GangError>;

    /// Whether all peers have posted the own chunk `chunk`. Never blocks.
    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError>;

    /// Waits until all peers have posted the own chunk `chunk`.
    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError>;

    /// Partial sum `partial` of the own chunk `chunk` from rank `from`, once it has arrived and until
    /// the chunk is published.
    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32];

    /// Hands the new values of the own chunk `chunk` to all peers that [read](Plan::reads) it.
    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError>;

    /// Whether another rank's chunk `chunk` can be fetched without waiting. Never blocks.
    fn published(&mut self, chunk: usize) -> Result<bool, GangError>;

    /// Copies the new values of another rank's chunk `chunk`, waiting for them if need be.
    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError>;

    /// Where this rank writes a share of its own lanes.
    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError>;

    /// Hands a share that was written to its [`draft`](Self::draft) to all peers.
    fn announce(&mut self, share: usize) -> Result<(), GangError>;

    /// Takes another rank's share, waiting for it if need be.
    fn accept(&mut self, share: usize) -> Result<(), GangError>;

    /// A share of this step that this rank has announced or accepted.
    fn view(&self, share: usize) -> &[f32];

    /// Whether this rank updates, publishes or makes the piece `piece`, and does not fetch it.
    fn holds(&self, piece: usize) -> bool {
        self.plan().owner(piece) == self.rank()
    }

    /// Takes a common chunk for this step, if no other rank did. Never blocks. Every rank tries every
    /// common chunk once a step, unless it fetches it.
    fn take(&mut self, chunk: usize) -> Result<bool, GangError> {
        Ok(self.holds(chunk))
    }

    /// Where the numbers of a common chunk live that this rank holds, if ranks share memory.
    fn home(&mut self, chunk: usize) -> Option<Home<'_>> {
        let _ = chunk;
        None
    }

    /// Gives every common chunk back to its owner. Called by all ranks, between steps.
    fn recall(&mut self) -> Result<(), GangError> {
        self.barrier()
    }

    /// Makes this rank's vote on the step visible to its peers, without waiting. Once a step, before
    /// [`end_step`](Self::end_step), and best before the last fetches: by then it costs no wait.
    fn cast(&mut self, vote: u64) -> Result<(), GangError>;

    /// Ends the step: waits for all ranks' votes and returns the largest.
    fn end_step(&mut self) -> Result<u64, GangError>;

    /// Collects equally many numbers from every rank into `all`, in rank order. Meant for few
    /// numbers: evaluation sums, norms of gradients. It is a barrier too, also when empty.
    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError>;

    /// Waits until every rank has come here.
    fn barrier(&mut self) -> Result<(), GangError> {
        self.all_gather(&[], &mut [])
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
