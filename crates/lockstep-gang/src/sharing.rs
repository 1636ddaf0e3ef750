//! What ranks do for each other beside the exchange of chunks: shares, products, and chunks in common.
//!
//! # Shares
//! A plan may have *shares*: pieces that a rank [`announce`](SharingCollective::announce)s for each of its lanes in
//! every step and that all others [`accept`](SharingCollective::accept), such as the factors that a gradient can
//! be computed from. Where memory is shared they are written and read in place. A chunk whose new values
//! follow from shares is not posted: its owner publishes it once it has accepted every other lane's share
//! of some kind in this step, also of lanes that have no rows. All ranks accept all shares of a step
//! before they cast their vote.
//!
//! One buffer is enough here too. A rank [`view`](SharingCollective::view)s shares until it has published the chunks
//! that follow from them or, of chunks that stay with it, until it makes their products of the next step;
//! and before its peers announce shares of the next step they have fetched all of these.
//!
//! # Products
//! A plan may also have *products*: pieces that the owner of a chunk publishes for each lane, such as the
//! columns of a layer's output that follow from the chunk, and that only the lane's rank fetches. A chunk
//! whose owner makes all that others need of it is neither posted nor published: the others' copies stay
//! behind until [`CollectiveExt::exchange_owned`]. Products are fetched before the vote too, also those for
//! lanes that have no rows.
//!
//! # Common chunks
//! Where memory is shared, a rank that is done may take over work that others have not begun. A plan can
//! say which chunks are [common](crate::Plan::is_common): their new values follow from shares, which all ranks
//! have. In every step each rank [`take`](SharingCollective::take)s such chunks one after the other once it has
//! accepted all shares of the step, its own first, until each is taken; whoever took one updates it in its
//! [`home`](SharingCollective::home), [`holds`](SharingCollective::holds) it from then on, and publishes it or makes its
//! products in the owner's place. [`recall`](SharingCollective::recall) gives all of them back to their owners.
//! Where no memory is shared, owners hold their chunks for ever and nothing has a home.
//!
//! One holder follows the other without a race: a rank takes a chunk in step t+1 after it has accepted a
//! share of that step from the one who held it in step t, and that one has shared it after its last use.

use crate::collective::{Collective, CollectiveExt};
use crate::{GangError, KeeperLinks};

/// Numbers of a common chunk that only its holder touches.
#[derive(Debug)]
pub struct Home<'a> {
    /// Its values, unless every rank has them.
    pub values: Option<&'a mut [f32]>,
    /// The vectors beside them; those that the plan does not have are empty.
    pub planes: [&'a mut [f32]; 2],
}

/// A [`Collective`] that also carries shares and products, and lets ranks work on common chunks. See the
/// [module](self) for the protocol that callers follow; what [`Collective`] says of guarantees, caveats
/// and panics holds here too.
pub trait SharingCollective: Collective {
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

    /// The links to this rank's keeper and wards, where a mesh has made some. They are given away once.
    fn take_keeper_links(&mut self) -> Option<KeeperLinks> {
        None
    }

    /// Gives every common chunk back to its owner. Called by all ranks, between steps.
    fn recall(&mut self) -> Result<(), GangError> {
        self.barrier()
    }
}
