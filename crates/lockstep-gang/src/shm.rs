//! The exchange among workers of one host, through shared memory.
//!
//! What a step of a small model costs is cache lines that move between cores, so each number moves
//! as rarely as can be: a partial sum is written where its owner reads it, once; a new value is
//! written to the board once and read from there once by every peer. Ranks tell each other of it by
//! stamps, one for each chunk, so that everything overlaps.
//!
//! Nobody can tell from shared memory alone that a process has died. The coordinator can, and says
//! so through [`ShmControl`](crate::ShmControl); until it does, there is the deadline.

use crate::collective::Home;
use crate::control::{CALLED_OFF, LOST};
use crate::layout::{GATHER, Layout, MAGIC, home_vectors, stamp, unstamp};
use crate::region::Region;
use crate::wait::wait_until;
use crate::{Abort, Collective, Deadline, GangError, Plan, Segment};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// One rank's end of the exchange through shared memory.
#[derive(Debug)]
pub struct ShmCollective {
    region: Region,
    layout: Layout,
    plan: Plan,
    rank: usize,
    generation: u16,
    deadline: Deadline,
    abort: Abort,
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
        Layout::new(plan).bytes()
    }

    /// Joins the gang as `rank`, once in a generation, in a segment that [`ShmControl::new`](crate::ShmControl::new) has prepared.
    ///
    /// # Errors
    /// [`GangError::Mismatch`] when the segment is not prepared for this plan,
    /// [`GangError::Replaced`] when the gang is past `generation`.
    ///
    /// # Panics
    /// If the plan has no such rank.
    pub fn join(
        segment: &Segment,
        plan: Plan,
        rank: usize,
        generation: u16,
        deadline: Deadline,
    ) -> Result<Self, GangError> {
        assert!(
            rank < plan.workers(),
            "a gang of {} has no rank {rank}",
            plan.workers()
        );
        let layout = Layout::new(&plan);
        let region = layout.map(segment)?;
        let expect = |what, offset, expected: u64| match region.word(offset).load(Acquire) {
            found if found == expected => Ok(()),
            found => Err(GangError::Mismatch {
                what,
                found: format!("{expected:016x}"),
                expected: format!("{found:016x}"),
            }),
        };
        expect("the layout of shared memory", Layout::MAGIC, MAGIC)?;
        expect(
            "the plan of the exchange",
            Layout::FINGERPRINT,
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
            generation,
            deadline,
            abort: Abort::default(),
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
        match self.region.word(Layout::GENERATION).load(Relaxed) as u16 {
            current if current == self.generation => Ok(()),
            current => Err(GangError::Replaced {
                mine: self.generation,
                current,
            }),
        }
    }

    /// Tells whoever looks that this process lives.
    fn beat(&mut self) {
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
    fn check_abort(&self) -> Result<(), GangError> {
        let (generation, word) = unstamp(self.region.word(Layout::ABORT).load(Acquire));
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
        let waited = wait_until(
            this.spin,
            || this.is_at(offset, sequence),
            |waited| {
                beats += 1;
                this.region
                    .word(this.layout.heartbeat(this.rank))
                    .store(beats, Relaxed);
                this.check_abort()?;
                let left = this.region.word(this.layout.left(peer)).load(Acquire);
                // It may have done its part just before it left.
                if left >= stamp(this.generation, 1) && !this.is_at(offset, sequence) {
                    let reason = format!("it left and did not {}", what());
                    return Err(GangError::PeerLost { rank: peer, reason });
                }
                if waited > this.deadline.0 {
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
        waited
    }

    /// A piece that this rank is about to publish.
    fn board_mut(&mut self, piece: usize) -> Result<&mut [f32], GangError> {
        assert!(
            self.holds(piece),
            "rank {} does not hold chunk {piece}",
            self.rank
        );
        self.check_generation()?;
        assert!(
            piece >= self.plan.chunks()
                || self.arrived.get(piece) == Some(&true)
                || self.together() > self.published_after[piece],
            "chunk {piece} may still be read: it has not arrived, and the peers have not been heard"
        );
        let (offset, len) = (self.layout.board(piece), self.plan.chunk(piece).len());
        // SAFETY: only its holder writes a piece of the board. Peers have fetched the round before,
        // since they do so before they post the chunk again, share anything of the next step or come
        // to a barrier. Nobody reads shares and products of the step before, as the protocol says.
        Ok(unsafe { self.region.floats_mut(offset, len) })
    }

    /// A piece that was published in this round, by this rank or for it.
    fn board(&self, piece: usize) -> &[f32] {
        let (offset, len) = (self.layout.board(piece), self.plan.chunk(piece).len());
        // SAFETY: its holder has published this round, and the next is published only after this rank
        // has posted the chunk again, shared something, ended the step or come to a barrier, all of
        // which need `&mut self`.
        unsafe { self.region.floats(offset, len) }
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

impl Collective for ShmCollective {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn abort_handle(&self) -> Abort {
        self.abort.clone()
    }

    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32] {
        self.plan.require_owner(chunk, self.rank, false);
        assert!(
            !self.posted[chunk],
            "chunk {chunk} was posted and not yet fetched"
        );
        assert!(
            partial < self.plan.partials_of(self.rank).len(),
            "no partial sum {partial}"
        );
        let len = self.plan.chunk(chunk).len();
        let offset = self.layout.outbox(self.rank, chunk) + partial * len * 4;
        // SAFETY: only this rank writes its outboxes. The owner reads this one between this rank's
        // `post` and its own `publish`, and it is not posted or was fetched since. The slice
        // borrows self, so that `post` cannot come before its end.
        unsafe { self.region.floats_mut(offset, len) }
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.check_generation()?;
        assert!(
            !self.posted[chunk],
            "chunk {chunk} was posted and not yet fetched"
        );
        self.posted[chunk] = true;
        self.posts[chunk] += 1;
        self.set(self.layout.posted(self.rank, chunk), self.posts[chunk]);
        self.beat();
        Ok(())
    }

    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        let next = self.posts[chunk] + 1;
        let arrived = self.arrived[chunk]
            || self
                .plan
                .others(self.rank)
                .all(|peer| self.is_at(self.layout.posted(peer, chunk), next));
        self.arrived[chunk] = arrived;
        if !arrived {
            self.check_abort()?;
        }
        Ok(arrived)
    }

    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        if !self.arrived[chunk] {
            let next = self.posts[chunk] + 1;
            for peer in self.plan.others(self.rank) {
                let offset = self.layout.posted(peer, chunk);
                self.wait_for(peer, offset, next, || format!("post chunk {chunk}"))?;
            }
            self.arrived[chunk] = true;
        }
        Ok(())
    }

    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32] {
        self.plan.require_owner(chunk, self.rank, true);
        assert!(self.arrived[chunk], "chunk {chunk} has not arrived");
        assert!(from != self.rank, "a rank does not send to itself");
        assert!(
            partial < self.plan.partials_of(from).len(),
            "no partial sum {partial}"
        );
        let len = self.plan.chunk(chunk).len();
        let offset = self.layout.outbox(from, chunk) + partial * len * 4;
        // SAFETY: the chunk has arrived, so `from` has posted it and does not write there until it
        // has fetched what this rank publishes; publishing needs `&mut self`, after the slice's end.
        unsafe { self.region.floats(offset, len) }
    }

    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError> {
        self.board_mut(chunk)?.copy_from_slice(values);
        self.announce(chunk)
    }

    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        self.board_mut(share)
    }

    fn announce(&mut self, chunk: usize) -> Result<(), GangError> {
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

    fn published(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.require_others(chunk);
        let published = self.is_at(self.layout.published(chunk), self.next_round(chunk));
        if !published {
            self.check_abort()?;
        }
        Ok(published)
    }

    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError> {
        self.accept(chunk)?;
        into.copy_from_slice(self.board(chunk));
        Ok(())
    }

    fn accept(&mut self, chunk: usize) -> Result<(), GangError> {
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

    fn view(&self, share: usize) -> &[f32] {
        let stamp = self.layout.published(share);
        assert!(
            self.plan.shares().contains(&share) && self.is_at(stamp, self.next_round(share)),
            "piece {share} is no share that was announced in this step"
        );
        self.board(share)
    }

    fn holds(&self, piece: usize) -> bool {
        let chunk = self.plan.produced_by(piece).unwrap_or(piece);
        match self.held.get(chunk) {
            Some(held) => *held,
            None => self.plan.owner(piece) == self.rank,
        }
    }

    fn take(&mut self, chunk: usize) -> Result<bool, GangError> {
        assert!(self.plan.is_common(chunk), "chunk {chunk} is not in common");
        self.check_generation()?;
        let offset = self.layout.taken(chunk);
        let now = stamp(self.generation, self.steps + 1);
        // The first to come in this step finds an earlier one's stamp.
        let first = self.region.word(offset).fetch_max(now, AcqRel) < now;
        if first {
            self.region
                .word(offset + 8)
                .store(self.rank as u64, Relaxed);
        }
        self.held[chunk] = first;
        Ok(first)
    }

    fn home(&mut self, chunk: usize) -> Option<Home<'_>> {
        assert!(
            self.holds(chunk),
            "rank {} does not hold chunk {chunk}",
            self.rank
        );
        if !self.plan.is_common(chunk) {
            return None;
        }
        let len = self.plan.chunk(chunk).len();
        let (offset, vectors) = (self.layout.home(chunk), home_vectors(&self.plan, chunk));
        // SAFETY: only its holder touches a home. There is one: ranks begin with what they own, take what
        // is free by an atomic operation, and come to a barrier before everything is its owner's again.
        // Whoever held it before used it before it shared something that this rank has fetched. The
        // slice borrows self, so that nothing of this can happen before its end.
        let home = unsafe { self.region.floats_mut(offset, vectors * len) };
        let (values, planes) = home.split_at_mut((vectors - self.plan.planes()) * len);
        let (first, second) = planes.split_at_mut(len.min(planes.len()));
        Some(Home {
            values: (!values.is_empty()).then_some(values),
            planes: [first, second],
        })
    }

    fn recall(&mut self) -> Result<(), GangError> {
        self.barrier()?;
        self.held.clear();
        self.held.extend(owned(&self.plan, self.rank));
        Ok(())
    }

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        assert_eq!(self.casts, self.steps, "a rank votes once a step");
        self.check_generation()?;
        let offset = self.layout.vote(self.rank, self.casts);
        self.casts += 1;
        self.region.word(offset + 8).store(vote, Relaxed);
        self.set(offset, self.casts);
        Ok(())
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        assert_eq!(
            self.casts,
            self.steps + 1,
            "a rank votes before it ends a step"
        );
        let mut largest = 0;
        for rank in 0..self.plan.workers() {
            let offset = self.layout.vote(rank, self.steps);
            self.wait_for(rank, offset, self.casts, || "end the step".to_owned())?;
            largest = largest.max(self.region.word(offset + 8).load(Relaxed));
        }
        self.steps += 1;
        self.beat();
        Ok(largest)
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError> {
        let (workers, len) = (self.plan.workers(), mine.len());
        assert_eq!(
            all.len(),
            workers * len,
            "room for every rank's {len} numbers"
        );
        // At least one round, so that gathering nothing is a barrier.
        for begin in (0..len.max(1)).step_by(GATHER) {
            self.check_generation()?;
            let piece = begin..len.min(begin + GATHER);
            let round = self.gathers;
            self.gathers += 1;
            for (index, number) in mine[piece.clone()].iter().enumerate() {
                let offset = self.layout.gathered(self.rank, round, index);
                self.region.word(offset).store(number.to_bits(), Relaxed);
            }
            self.set(self.layout.gather(self.rank, round), self.gathers);
            for rank in 0..workers {
                let offset = self.layout.gather(rank, round);
                self.wait_for(rank, offset, self.gathers, || {
                    "take part in a gathering".to_owned()
                })?;
                let all = &mut all[rank * len..][piece.clone()];
                for (index, number) in all.iter_mut().enumerate() {
                    let offset = self.layout.gathered(rank, round, index);
                    *number = f64::from_bits(self.region.word(offset).load(Relaxed));
                }
            }
        }
        self.beat();
        Ok(())
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
