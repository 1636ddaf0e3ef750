//! Links that nobody can read, alter, repeat or join uninvited.
//!
//! Two ends that hold the same key of 32 bytes, and nobody else does, prove it to each other and agree
//! on fresh keys by a handshake ([`handshake`], [`noise`]). What they send from then on is sealed
//! ([`cipher`]): bytes that were changed, left out, repeated or put in another order do not open. Keys
//! are never sent over a link that is not sealed itself, and none is used for two purposes:
//!
//! - a [`SeatToken`](token::SeatToken) admits one worker to one control link, once;
//! - a key of the mesh belongs to one pair of ranks in one generation.

pub(crate) mod acceptor;
pub(crate) mod cipher;
pub(crate) mod handshake;
mod noise;
pub(crate) mod secret;
pub(crate) mod token;
