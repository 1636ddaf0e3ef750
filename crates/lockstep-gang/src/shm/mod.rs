//! The exchange among workers of one host, through shared memory.
//!
//! What a step of a small model costs is cache lines that move between cores, so each number moves
//! as rarely as can be: a partial sum is written where its owner reads it, once; a new value is
//! written to the common values once and read from there once by every peer. Ranks tell each other of it by
//! stamps, one for each chunk, so that everything overlaps.
//!
//! Nobody can tell from shared memory alone that a process has died. The coordinator can, and says
//! so through [`ShmControl`](crate::ShmControl); until it does, there is the deadline.

mod control;
mod exchange;
mod kept;
mod layout;
mod region;
mod segment;
mod sharing;
mod wait;

pub use control::ShmControl;
pub use kept::{
    KeptNote, KeptShape, KeptState, KeptStep, KeptVersion, KeptWriter, NoteExtra, RankStamp,
};
pub(crate) use kept::{NoteWords, ShareWords};
pub use segment::Segment;
pub(crate) use wait::Backoff;

use crate::{AbortSwitch, Deadline, GangError, Membership, Plan, SharingCollective};
use control::{CALLED_OFF, LOST};
use layout::{MAGIC, SegmentLayout, stamp, unstamp};
use region::Region;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;
use wait::wait_until;

/// One rank's end of the exchange through shared memory.
#[derive(Debug)]
pub struct ShmCollective {
    region: Region,
    layout: SegmentLayout,
    plan: Plan,
    rank: usize,
    generation: u16,
    deadline: Deadline,
    abort: AbortSwitch,
    /// Whether waiting may spin: only while every worker can have a core to itself.
    spin: bool,
    /// How often each chunk was posted: by this rank, or for own chunks by its peers.
    posts: Vec<u64>,
    /// Which own chunks have arrived and wait to be published.
    arrived: Vec<bool>,
    /// Which of others' chunks were posted and wait to be fetched: their outboxes are being read.
    posted: Vec<bool>,
    /// How often each chunk was published by this rank, or fetched by it. Shares and products count by
    /// steps.
    rounds: Vec<u64>,
    /// Which chunks this rank holds.
    held: Vec<bool>,
    /// What [`Self::together`] was when each own chunk was last published.
    published_after: Vec<u64>,
    /// How many shares of each rank were fetched.
    heard: Vec<u64>,
    /// Votes cast, and steps ended.
    casts: u64,
    steps: u64,
    /// Rounds of gathering.
    gathers: u64,
    beats: u64,
}

impl ShmCollective {
    /// The size of the segment that a gang with this plan needs.
    pub fn bytes_needed(plan: &Plan) -> usize {
        SegmentLayout::new(plan).bytes()
    }

    /// Joins the gang, once in a generation, in a segment that [`ShmControl::new`](crate::ShmControl::new) has prepared.
    ///
    /// # Errors
    /// [`GangError::Mismatch`] when the segment is not prepared for this plan,
    /// [`GangError::Replaced`] when the gang is past that generation.
    ///
    /// # Panics
    /// If the plan has no such rank.
    pub fn join(segment: &Segment, plan: Plan, membership: &Membership) -> Result<Self, GangError> {
        let rank = membership.rank;
        assert!(
            rank < plan.workers(),
            "a gang of {} has no rank {rank}",
            plan.workers()
        );
        let layout = SegmentLayout::new(&plan);
        let region = layout.map(segment)?;
        let expect = |what, offset, expected: u64| match region.word(offset).load(Acquire) {
            found if found == expected => Ok(()),
            found => Err(GangError::Mismatch {
                what,
                found: format!("{expected:016x}"),
                expected: format!("{found:016x}"),
            }),
        };
        expect("the layout of shared memory", SegmentLayout::MAGIC, MAGIC)?;
        expect(
            "the plan of the exchange",
            SegmentLayout::FINGERPRINT,
            plan.fingerprint(),
        )?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let joined = Self {
            posts: vec![0; plan.chunks()],
            arrived: vec![false; plan.chunks()],
            posted: vec![false; plan.chunks()],
            rounds: vec![0; plan.chunks()],
            held: owned(&plan, rank).collect(),
            published_after: vec![0; plan.pieces()],
            heard: vec![0; plan.workers()],
            spin: plan.workers() <= cores,
            region,
            layout,
            plan,
            rank,
            generation: membership.generation,
            deadline: membership.deadline,
            abort: membership.abort.clone(),
            casts: 0,
            steps: 0,
            gathers: 0,
            beats: 0,
        };
        joined.check_generation()?;
        Ok(joined)
    }

    /// Fails when this rank may no longer write.
    fn check_generation(&self) -> Result<(), GangError> {
        match self.region.word(SegmentLayout::GENERATION).load(Relaxed) as u16 {
            current if current == self.generation => Ok(()),
            current => Err(GangError::Replaced {
                mine: self.generation,
                current,
            }),
        }
    }

    /// Tells whoever looks that this process lives.
    pub(crate) fn beat(&mut self) {
        self.beats += 1;
        self.region
            .word(self.layout.heartbeat(self.rank))
            .store(self.beats, Relaxed);
    }

    /// Whether the stamp at `offset` has come to round `sequence`.
    fn is_at(&self, offset: usize, sequence: u64) -> bool {
        // A later generation's stamp is larger as well; the generation is checked before any write.
        self.region.word(offset).load(Acquire) >= stamp(self.generation, sequence)
    }

    fn set(&self, offset: usize, sequence: u64) {
        // The largest wins, so that a latecomer of an earlier generation undoes nothing.
        self.region
            .word(offset)
            .fetch_max(stamp(self.generation, sequence), Release);
    }

    /// Why waiting for anything makes no sense any more, if so.
    pub(crate) fn check_abort(&self) -> Result<(), GangError> {
        let (generation, word) = unstamp(self.region.word(SegmentLayout::ABORT).load(Acquire));
        if generation == self.generation && word == CALLED_OFF {
            return Err(GangError::Aborted);
        }
        if generation == self.generation && word >= LOST {
            let rank = (word - LOST) as usize;
            return Err(GangError::PeerLost {
                rank,
                reason: "its process ended".to_owned(),
            });
        }
        if self.abort.is_aborted() {
            return Err(GangError::Aborted);
        }
        self.check_generation()
    }

    /// Whether a rank left on its own account.
    pub(crate) fn has_left(&self, rank: usize) -> bool {
        self.region.word(self.layout.left(rank)).load(Acquire) >= stamp(self.generation, 1)
    }

    /// Waits until `peer`'s stamp at `offset` comes to `sequence`.
    fn wait_for(
        &mut self,
        peer: usize,
        offset: usize,
        sequence: u64,
        what: impl Fn() -> String,
    ) -> Result<(), GangError> {
        if self.is_at(offset, sequence) {
            return Ok(());
        }
        let this = &*self;
        let mut beats = self.beats;
        let begin = Instant::now();
        let waited = wait_until(
            this.spin,
            || this.is_at(offset, sequence),
            |waited| {
                beats += 1;
                this.region
                    .word(this.layout.heartbeat(this.rank))
                    .store(beats, Relaxed);
                this.check_abort()?;
                // It may have done its part just before it left.
                if this.has_left(peer) && !this.is_at(offset, sequence) {
                    let reason = format!("it left and did not {}", what());
                    return Err(GangError::PeerLost { rank: peer, reason });
                }
                if this.abort.in_vain(waited) > this.deadline.0 {
                    let seconds = this.deadline.0.as_secs_f64();
                    return Err(GangError::PeerTimeout {
                        rank: peer,
                        what: what(),
                        seconds,
                    });
                }
                Ok(())
            },
        );
        self.beats = beats;
        lockstep_base::progress::waited(begin.elapsed());
        waited
    }

    /// Whether nobody can be reading the last values of a piece any more.
    pub(crate) fn may_publish(&self, piece: usize) -> bool {
        piece >= self.plan.chunks()
            || self.arrived.get(piece) == Some(&true)
            || self.together() > self.published_after[piece]
    }

    /// A piece that this rank is about to publish.
    pub(crate) fn values_mut(&mut self, piece: usize) -> Result<&mut [f32], GangError> {
        assert!(
            self.holds(piece),
            "rank {} does not hold chunk {piece}",
            self.rank
        );
        self.check_generation()?;
        assert!(
            self.may_publish(piece),
            "chunk {piece} may still be read: it has not arrived, and the peers have not been heard"
        );
        let (offset, len) = (self.layout.values(piece), self.plan.chunk(piece).len());
        // SAFETY: only its holder writes the values of a piece. Peers have fetched the round before,
        // since they do so before they post the chunk again, share anything of the next step or come
        // to a barrier. Nobody reads shares and products of the step before, as the protocol says.
        Ok(unsafe { self.region.floats_mut(offset, len) })
    }

    /// A piece that was published in this round, by this rank or for it.
    pub(crate) fn values(&self, piece: usize) -> &[f32] {
        let (offset, len) = (self.layout.values(piece), self.plan.chunk(piece).len());
        // SAFETY: its holder has published this round, and the next is published only after this rank
        // has posted the chunk again, shared something, ended the step or come to a barrier, all of
        // which need `&mut self`.
        unsafe { self.region.floats(offset, len) }
    }

    /// Lets peers fetch a piece whose values this rank has written.
    pub(crate) fn set_published(&mut self, chunk: usize) -> Result<(), GangError> {
        self.check_generation()?;
        if self.arrived.get_mut(chunk).is_some_and(std::mem::take) {
            self.posts[chunk] += 1;
        }
        self.published_after[chunk] = self.together();
        let round = self.next_round(chunk);
        self.set(self.layout.published(chunk), round);
        if let Some(rounds) = self.rounds.get_mut(chunk) {
            *rounds = round;
        }
        self.beat();
        Ok(())
    }

    /// Waits until a piece was published, and notes that this rank reads it.
    fn wait_published(&mut self, chunk: usize) -> Result<(), GangError> {
        self.require_others(chunk);
        let next = self.next_round(chunk);
        let offset = self.layout.published(chunk);
        if !self.is_at(offset, next) {
            let what = || format!("publish chunk {chunk}");
            self.wait_for(self.holder(chunk), offset, next, what)?;
        }
        match self.posted.get_mut(chunk) {
            Some(posted) => {
                *posted = false;
                self.rounds[chunk] = next;
                self.held[chunk] = false;
            }
            None => self.heard[self.plan.owner(chunk)] += 1,
        }
        Ok(())
    }

    /// Panics if no other rank can have published a piece for this one.
    fn require_others(&self, piece: usize) {
        let common = piece < self.plan.chunks() && self.plan.is_common(piece);
        assert!(
            common || !self.holds(piece),
            "chunk {piece} is held by rank {} itself",
            self.rank
        );
    }

    /// The round of a piece that comes next.
    fn next_round(&self, piece: usize) -> u64 {
        self.rounds.get(piece).unwrap_or(&self.steps) + 1
    }

    /// The rank that publishes a piece, as far as this one can tell: the name for an error, no more.
    fn holder(&self, piece: usize) -> usize {
        let chunk = self.plan.produced_by(piece).unwrap_or(piece);
        if chunk < self.plan.chunks() && self.plan.is_common(chunk) {
            let taken = self.layout.taken(chunk);
            let (generation, _) = unstamp(self.region.word(taken).load(Acquire));
            let rank = self.region.word(taken + 8).load(Relaxed);
            // Nobody may have taken it yet, and a latecomer of an earlier plan may write anything there.
            if generation == self.generation && rank < self.plan.workers() as u64 {
                return rank as usize;
            }
        }
        self.plan.owner(piece)
    }

    /// Grows only when every peer has come past all that it had to fetch before.
    fn together(&self) -> u64 {
        let heard = self
            .plan
            .others(self.rank)
            .map(|peer| self.heard[peer])
            .min();
        self.gathers + heard.unwrap_or(0)
    }
}

/// For each chunk whether `rank` owns it.
fn owned(plan: &Plan, rank: usize) -> impl Iterator<Item = bool> {
    (0..plan.chunks()).map(move |chunk| plan.owner(chunk) == rank)
}

impl Drop for ShmCollective {
    fn drop(&mut self) {
        self.set(self.layout.left(self.rank), 1);
    }
}
