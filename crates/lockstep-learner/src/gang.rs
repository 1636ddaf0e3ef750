//! One generation of a gang, as a learner sees it.

use crate::instructions::Instructions;
use crate::{ShareError, Wish, worker};
use lockstep_events::control::{Assignment, Transport};
use lockstep_gang::{GangError, Membership, Plan, Segment, SharingCollective, TreeCollective};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::{IpAddr, TcpListener};
use std::time::{Duration, Instant};

/// A worker's place in one generation.
pub struct Gang<'a> {
    pub(crate) assignment: &'a Assignment,
    pub(crate) membership: Membership,
    pub(crate) instructions: &'a Instructions,
    pub(crate) listener: Option<&'a TcpListener>,
    /// Under which peers reach this worker's machine.
    pub(crate) address: IpAddr,
    /// Sends a value to all workers of a generation.
    pub(crate) share: &'a (dyn Fn(u16, &str, Value) -> Result<(), GangError> + Sync),
    /// Tells people of something that does not stop the work.
    pub(crate) warn: &'a (dyn Fn(String) + Sync),
}

/// Why a worker cannot enter the exchange of its gang.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The gang fell apart.
    #[error(transparent)]
    Gang(#[from] GangError),
    /// Peers were to be reached in a way that this worker cannot.
    #[error("gang.transport: this worker was told to use TCP but was given no listener")]
    NoListener,
    /// The gang has no exchange of ours.
    #[error("the learner of this gang exchanges in its own way")]
    NoExchange,
}

/// Where the memory of a host is.
#[derive(Serialize, Deserialize)]
struct SharedMemory {
    pid: u32,
    fd: i32,
}

/// Under which name workers of a host learn of it from the first of them.
fn memory_name(first: usize) -> String {
    format!("memory of the host of rank {first}")
}

/// How often somebody who waits looks whether the generation was called off.
const LOOK: Duration = Duration::from_millis(20);

impl Gang<'_> {
    /// What this worker is to do.
    pub fn assignment(&self) -> &Assignment {
        self.assignment
    }

    /// What the coordinator asks for now, to be looked at after every step. Ranks hear it at different steps,
    /// so they must agree on one among themselves.
    pub fn wish(&self) -> Wish {
        self.instructions.wish(self.assignment.generation)
    }

    /// Whether the generation was called off, because a worker was lost.
    pub fn is_called_off(&self) -> bool {
        self.membership.abort.is_aborted()
    }

    /// Tells people of something that does not stop the work.
    pub fn warn(&self, words: String) {
        (self.warn)(words);
    }

    /// The address under which peers reach this worker's machine.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Shares a value with all workers of the generation, through the coordinator, and waits for theirs: small
    /// things that they must know of each other. Every rank must come with the same name, and use it once; if
    /// only some ranks are named, only those. Returns the values by rank.
    ///
    /// # Errors
    /// When not all came in time, which names the missing ones, when the generation was called off, or when the
    /// coordinator is gone.
    pub fn share(
        &self,
        name: &str,
        value: Value,
        among: Option<&[usize]>,
        limit: Duration,
    ) -> Result<Vec<Value>, ShareError> {
        self.share_while(name, value, among, limit, &|| true)
    }

    /// The same, for as long as somebody wants to know.
    ///
    /// # Errors
    /// As [`share`](Self::share); when it is no longer wanted, as if the generation were called off.
    pub fn share_while(
        &self,
        name: &str,
        value: Value,
        among: Option<&[usize]>,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<Value>, ShareError> {
        let all: Vec<usize> = (0..self.assignment.workers).collect();
        let ranks = among.unwrap_or(&all);
        self.tell_all(name, value)?;
        let until = Instant::now() + limit;
        let enough = || Instant::now() > until || !is_wanted();
        let shared = self.wait_for(name, ranks, &enough)?;
        if shared.is_none() && !is_wanted() {
            return Err(ShareError::CalledOff);
        }
        shared.ok_or_else(|| ShareError::Missing {
            name: name.to_owned(),
            missing: (self.instructions.shared).missing(self.assignment.generation, name, ranks),
            seconds: limit.as_secs_f64(),
        })
    }

    /// Shares a value with all workers of the generation and waits for theirs, for as long as the coordinator wishes
    /// for nothing else. None when it does.
    ///
    /// # Errors
    /// When the generation was called off, or the coordinator is gone.
    pub fn share_at_the_end(
        &self,
        name: &str,
        value: Value,
    ) -> Result<Option<Vec<Value>>, ShareError> {
        let all: Vec<usize> = (0..self.assignment.workers).collect();
        self.tell_all(name, value)?;
        self.wait_for(name, &all, &|| self.wish() != Wish::GoOn)
    }

    /// Waits for the values of these ranks until they are there, or it is enough.
    fn wait_for(
        &self,
        name: &str,
        ranks: &[usize],
        is_enough: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Value>>, ShareError> {
        let generation = self.assignment.generation;
        loop {
            let shared = &self.instructions.shared;
            if let Some(values) = shared.take(generation, name, ranks, LOOK) {
                return Ok(Some(values));
            }
            if self.is_called_off() {
                return Err(ShareError::CalledOff);
            }
            if is_enough() {
                return Ok(None);
            }
        }
    }

    /// Shares a value with all workers of the generation without waiting for theirs.
    ///
    /// # Errors
    /// When the coordinator is gone.
    pub fn tell_all(&self, name: &str, value: Value) -> Result<(), GangError> {
        (self.share)(self.assignment.generation, name, value)
    }

    /// Enters the exchange that the assignment names. A learner that exchanges in its own way need not.
    ///
    /// # Errors
    /// When a peer does not come, or the exchange cannot be set up.
    pub fn join(&self, plan: Plan) -> Result<Box<dyn SharingCollective>, JoinError> {
        let membership = &self.membership;
        match &self.assignment.transport {
            Transport::Hosts { hosts, .. } => {
                let plan = match plan.hosts() {
                    Some(_) => plan,
                    None => plan.on_hosts(hosts)?,
                };
                let segment = self.memory_of_the_host(&plan)?;
                worker::join_hosts(
                    self.assignment,
                    plan,
                    segment,
                    membership,
                    self.listener,
                    self.warn,
                )
            }
            _ => worker::join(self.assignment, plan, membership, self.listener, self.warn),
        }
    }

    /// The memory that the workers of this host share in this generation. The first of them makes it and says where the
    /// others find it.
    fn memory_of_the_host(&self, plan: &Plan) -> Result<Segment, JoinError> {
        let rank = self.membership.rank;
        let ranks = plan.ranks_beside(rank);
        let first = ranks.start;
        if rank == first {
            let segment = TreeCollective::prepare(plan, &self.membership)?;
            if ranks.len() > 1 {
                let place = SharedMemory {
                    pid: std::process::id(),
                    fd: segment.number(),
                };
                let place = serde_json::to_value(place).expect("numbers are plain data");
                self.tell_all(&memory_name(first), place)?;
            }
            return Ok(segment);
        }
        let limit = self.membership.deadline.0;
        let begin = Instant::now();
        let is_late = || self.membership.abort.in_vain(begin.elapsed()) > limit;
        let places = self.wait_for(&memory_name(first), &[first], &is_late);
        let places = places.map_err(|_| GangError::Aborted)?;
        let place = places.and_then(|places| places.into_iter().next());
        let place = place.ok_or_else(|| GangError::PeerTimeout {
            rank: first,
            what: "share memory".to_owned(),
            seconds: limit.as_secs_f64(),
        })?;
        let SharedMemory { pid, fd } = serde_json::from_value(place).map_err(GangError::from)?;
        let segment = Segment::of_process(pid, fd);
        Ok(segment.map_err(|error| GangError::PeerLost {
            rank: first,
            reason: format!("its memory is out of reach: {error}"),
        })?)
    }
}
