//! The exchange among workers of several hosts that have several workers each: a tree of two levels.
//!
//! It is made of the two other exchanges: [`ShmCollective`] within a host, [`TcpCollective`] between hosts. For each
//! chunk, one rank *speaks* for each host ([`Plan::on_hosts`]); on the owner's host that is the owner. The numbers of a
//! chunk go
//!
//! 1. from each rank, by shared memory, to the one that speaks for its host, which adds them to the host's sums;
//! 2. from there, by a link, to the owner, which gets its own host's sums by shared memory;
//! 3. and the new values go back the same way.
//!
//! A rank does its part of the first and the last, for the ranks of its host, whenever it calls the collective. So it never
//! keeps them waiting while it waits itself.
//!
//! # Sums that are absent
//! A rank that speaks for its host needs not know whose lanes have rows: for a partial sum that was not asked for,
//! the rank that has it posts -0.0 everywhere. That is the one number which changes no bit of any sum.
//!
//! # Why one buffer of each kind is enough
//! By the argument of the [protocol](crate::collective), for each level. The sums of a host are written in step t+1 after
//! all of its ranks have posted the chunk of step t+1, so after they fetched that of step t, which was published here
//! after the owner had read the sums. New values are published within a host after its ranks have posted the
//! chunk again, or, without posts, have come to a barrier.

mod exchange;

use crate::shm::Backoff;
use crate::tcp::{Mesh, TcpCollective};
use crate::{Collective, GangError, Membership, Plan, Segment, ShmCollective, TreeSum};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// What adds nothing to any number.
const NOTHING: f32 = -0.0;

/// One rank's end of the exchange in a tree of hosts.
#[derive(Debug)]
pub struct TreeCollective {
    plan: Plan,
    rank: usize,
    host: usize,
    /// The ranks of this host.
    here: Range<usize>,
    /// The exchange within the host, among ranks that count from its first one, and its memory: others may open it late.
    local: ShmCollective,
    _segment: Segment,
    /// The exchange between hosts.
    links: TcpCollective,
    membership: Membership,
    spin: bool,
    /// This rank's partial sums of each chunk that it speaks for and another host owns.
    own: Vec<Vec<f32>>,
    /// Which partial sums of each chunk were asked for since it was last posted, a bit each.
    asked: Vec<u64>,
    /// Adds up each of the host's sums.
    sums: Vec<TreeSum>,
    /// Chunks that this rank speaks for and has posted, while others of its host have not.
    collecting: VecDeque<usize>,
    /// Chunks whose new values this rank has brought to its host, and not fetched itself.
    brought: Vec<bool>,
    /// Whether this rank has voted on the step, and whether its host has.
    has_voted: bool,
    host_has_voted: bool,
    /// Numbers gathered from all ranks of this host, and from all hosts.
    gathered_here: Vec<f64>,
    gathered: Vec<f64>,
}

/// What ranks of a tree need to meet.
pub struct HostMesh<'a> {
    /// The memory of the ranks of this host, prepared by [`TreeCollective::prepare`]. It stays open under its number for
    /// as long as the exchange lasts: others of the host may open it late.
    pub segment: Segment,
    /// How ranks of other hosts are reached.
    pub mesh: Mesh<'a>,
}

impl TreeCollective {
    /// Makes and prepares the memory for the ranks of a host that follow `plan`.
    ///
    /// # Errors
    /// When there is no memory.
    ///
    /// # Panics
    /// If the plan is not for hosts, or has no such rank.
    pub fn prepare(plan: &Plan, membership: &Membership) -> Result<Segment, GangError> {
        let within = plan.within(plan.host_of(membership.rank));
        let segment = Segment::create(ShmCollective::bytes_needed(&within))?;
        crate::ShmControl::new(&segment, &within, membership.generation)?;
        Ok(segment)
    }

    /// Joins the gang: its own host by shared memory, and other hosts by links.
    ///
    /// # Errors
    /// As [`ShmCollective::join`] and [`TcpCollective::join`].
    ///
    /// # Panics
    /// If the plan is not for hosts, or has no such rank.
    pub fn join(
        meeting: HostMesh<'_>,
        plan: Plan,
        membership: &Membership,
    ) -> Result<Self, GangError> {
        let rank = membership.rank;
        let host = plan.host_of(rank);
        let here = plan.hosts().expect("a plan for hosts")[host].clone();
        let within = Membership {
            rank: rank - here.start,
            ..membership.clone()
        };
        let local = ShmCollective::join(&meeting.segment, plan.within(host), &within)?;
        let mut links = TcpCollective::join(&meeting.mesh, plan.between(), membership)?;
        links.follow();
        let own = |chunk| match links.plan().posts(rank, chunk) {
            true => vec![0.0; plan.chunk(chunk).len() * plan.partials_of(rank).len()],
            false => Vec::new(),
        };
        let sums = plan.sums_of_host(host).iter();
        let sum =
            |sum: &Range<usize>| TreeSum::of_node(sum.clone(), plan.partials_of_sum(host, sum));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            own: (0..plan.chunks()).map(own).collect(),
            asked: vec![0; plan.chunks()],
            sums: sums.map(sum).collect(),
            collecting: VecDeque::with_capacity(plan.chunks()),
            brought: vec![false; plan.chunks()],
            has_voted: false,
            host_has_voted: false,
            gathered_here: Vec::new(),
            gathered: Vec::new(),
            _segment: meeting.segment,
            spin: here.len() <= cores,
            membership: membership.clone(),
            plan,
            rank,
            host,
            here,
            local,
            links,
        })
    }

    /// Whether the numbers of a chunk come from another host, and through this rank.
    fn carries(&self, chunk: usize) -> bool {
        !self.own[chunk].is_empty()
    }

    /// Whether the owner of a chunk is on this host.
    fn is_here(&self, chunk: usize) -> bool {
        self.here.contains(&self.plan.owner(chunk))
    }

    /// An error of the exchange within the host, with the rank that everybody knows.
    fn known(&self, error: GangError) -> GangError {
        let first = self.here.start;
        match error {
            GangError::PeerLost { rank, reason } => GangError::PeerLost {
                rank: first + rank,
                reason,
            },
            GangError::PeerTimeout {
                rank,
                what,
                seconds,
            } => GangError::PeerTimeout {
                rank: first + rank,
                what,
                seconds,
            },
            other => other,
        }
    }

    /// Does what this rank can do now for the ranks of its host, without waiting.
    fn advance(&mut self) -> Result<(), GangError> {
        while let Some(&chunk) = self.collecting.front()
            && self.local.missing_post(chunk).is_none()
        {
            self.collecting.pop_front();
            self.send_sums(chunk)?;
        }
        while let Some(chunk) = self.links.next_fresh() {
            if !self.local.may_publish(chunk) {
                let rank = self.plan.owner(chunk);
                let what = format!("it published chunk {chunk} before it was posted");
                return Err(GangError::Protocol { rank, what });
            }
            let values = self.local.values_mut(chunk)?;
            self.links.fetch(chunk, values)?;
            self.local.set_published(chunk)?;
            self.brought[chunk] = true;
        }
        if self.has_voted
            && !self.host_has_voted
            && self.rank == self.here.start
            && self.local.missing_vote().is_none()
        {
            self.host_has_voted = true;
            self.links.cast(self.local.largest_vote())?;
        }
        Ok(())
    }

    /// Adds up a chunk of this host's ranks, all of whom have posted it, and sends the sums to the owner.
    fn send_sums(&mut self, chunk: usize) -> Result<(), GangError> {
        let (rank, first) = (self.rank, self.here.start);
        let len = self.plan.chunk(chunk).len();
        for (number, tree) in self.sums.iter_mut().enumerate() {
            let (own, local) = (&self.own[chunk], &self.local);
            let out = self.links.outbox(chunk, number);
            let part = |partial: &crate::Partial| {
                Some(match partial.rank == rank {
                    true => &own[partial.index * len..][..len],
                    false => local.inbox(chunk, partial.rank - first, partial.index),
                })
            };
            tree.sum(part, out);
        }
        self.links.post(chunk)
    }

    /// Why waiting for anything makes no sense any more, if so.
    fn check(&self) -> Result<(), GangError> {
        self.local
            .check_abort()
            .map_err(|error| self.known(error))?;
        self.links.check()
    }

    /// Waits until nobody is missing, and does this rank's part for others meanwhile. `missing` says who is, as all
    /// know it, and what it is to do.
    fn wait_for(
        &mut self,
        what: impl Fn() -> String,
        mut missing: impl FnMut(&mut Self) -> Option<usize>,
    ) -> Result<(), GangError> {
        self.advance()?;
        if missing(self).is_none() {
            return Ok(());
        }
        let begin = Instant::now();
        let backoff = Backoff::new(self.spin);
        // Who had left at the last look.
        let mut left = None;
        let waited = loop {
            self.advance()?;
            let Some(rank) = missing(self) else {
                break Ok(());
            };
            // It may have done its part just before it left: one more look has shown that it did not.
            if left == Some(rank) {
                let reason = format!("it left and did not {}", what());
                break Err(GangError::PeerLost { rank, reason });
            }
            if !backoff.is_due() {
                continue;
            }
            self.local.beat();
            if let Err(error) = self.check() {
                break Err(error);
            }
            let has_left = match self.here.contains(&rank) {
                true => self.local.has_left(rank - self.here.start),
                false => self.links.has_left(rank),
            };
            left = has_left.then_some(rank);
            if self.membership.abort.in_vain(begin.elapsed()) > self.membership.deadline.0 {
                let seconds = self.membership.deadline.0.as_secs_f64();
                let what = what();
                break Err(GangError::PeerTimeout {
                    rank,
                    what,
                    seconds,
                });
            }
            backoff.pause();
        };
        lockstep_base::progress::waited(begin.elapsed());
        waited
    }
}
