//! The exchange in a tree of hosts: which level each call goes to.

use super::{NOTHING, TreeCollective};
use crate::collective::{Collective, GATHER};
use crate::{GangError, KeeperLinks, Plan, SharingCollective};

impl Collective for TreeCollective {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32] {
        self.plan.require_owner(chunk, self.rank, false);
        self.asked[chunk] |= 1 << partial;
        match self.carries(chunk) {
            true => {
                let len = self.plan.chunk(chunk).len();
                &mut self.own[chunk][partial * len..][..len]
            }
            false => self.local.outbox(chunk, partial),
        }
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        let asked = std::mem::take(&mut self.asked[chunk]);
        // The owner knows what is absent; who speaks for the host does not.
        if !self.is_here(chunk) {
            for partial in 0..self.plan.partials_of(self.rank).len() {
                if asked & 1 << partial == 0 {
                    self.outbox(chunk, partial).fill(NOTHING);
                }
            }
            self.asked[chunk] = 0;
        }
        match self.carries(chunk) {
            true => self.collecting.push_back(chunk),
            false => {
                let posted = self.local.post(chunk);
                posted.map_err(|error| self.known(error))?;
            }
        }
        self.advance()
    }

    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.advance()?;
        let arrived = self.missing_post(chunk).is_none();
        if !arrived {
            self.check()?;
        }
        Ok(arrived)
    }

    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError> {
        let what = || format!("post chunk {chunk}");
        self.wait_for(what, |this| this.missing_post(chunk))
    }

    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32] {
        match self.here.contains(&from) {
            true => self.local.inbox(chunk, from - self.here.start, partial),
            false => {
                let speaker = self.plan.speaker(self.plan.host_of(from), chunk);
                self.links.inbox(chunk, speaker, partial)
            }
        }
    }

    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError> {
        let published = self.local.publish(chunk, values);
        published.map_err(|error| self.known(error))?;
        self.links.publish(chunk, values)?;
        self.advance()
    }

    fn published(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.advance()?;
        let published = self.missing_values(chunk).is_none();
        if !published {
            self.check()?;
        }
        Ok(published)
    }

    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        let what = || format!("publish chunk {chunk}");
        self.wait_for(what, |this| this.missing_values(chunk))?;
        if self.carries(chunk) {
            self.brought[chunk] = false;
            into.copy_from_slice(self.local.values(chunk));
            return Ok(());
        }
        let fetched = self.local.fetch(chunk, into);
        fetched.map_err(|error| self.known(error))
    }

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        self.local.cast(vote)?;
        self.has_voted = true;
        self.advance()
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        assert!(self.has_voted, "a rank votes before it ends a step");
        let what = || "end the step".to_owned();
        let first = self.here.start;
        let is_first = self.rank == first;
        self.wait_for(what, |this| Some(first + this.local.missing_vote()?))?;
        if is_first {
            self.wait_for(what, |this| this.links.missing_vote())?;
        }
        self.local.end_step()?;
        (self.has_voted, self.host_has_voted) = (false, false);
        // Down again: what all hosts agree on, from the first rank.
        let vote = match is_first {
            true => self.links.take_votes(),
            false => 0,
        };
        self.local.cast(vote)?;
        self.wait_for(what, |this| Some(first + this.local.missing_vote()?))?;
        self.local.end_step()
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError> {
        let (workers, len) = (self.plan.workers(), mine.len());
        assert_eq!(
            all.len(),
            workers * len,
            "room for every rank's {len} numbers"
        );
        let hosts = self.plan.hosts().unwrap_or_default();
        let most = hosts.iter().map(ExactSizeIterator::len).max().unwrap_or(1);
        let count = hosts.len();
        // So many of each rank at a time that those of a host are no more than one rank may offer.
        let each = (GATHER / most).max(1);
        for begin in (0..len.max(1)).step_by(each) {
            let piece = begin..len.min(begin + each);
            self.gather_here(&mine[piece.clone()])?;
            self.gather_hosts(most * piece.len())?;
            self.spread(count * most * piece.len())?;
            for (host, ranks) in self.plan.hosts().unwrap_or_default().iter().enumerate() {
                for (number, rank) in ranks.clone().enumerate() {
                    let from = (host * most + number) * piece.len();
                    all[rank * len..][piece.clone()]
                        .copy_from_slice(&self.gathered[from..][..piece.len()]);
                }
            }
        }
        Ok(())
    }
}

impl TreeCollective {
    /// The first rank whose sums of an own chunk are missing.
    fn missing_post(&mut self, chunk: usize) -> Option<usize> {
        match self.local.missing_post(chunk) {
            Some(rank) => Some(self.here.start + rank),
            None => self.links.missing_post(chunk),
        }
    }

    /// The rank whose new values of a chunk are missing.
    fn missing_values(&self, chunk: usize) -> Option<usize> {
        let owner = self.plan.owner(chunk);
        let (is_there, from) = match self.carries(chunk) {
            true => (self.brought[chunk], owner),
            false => (
                self.local.is_published(chunk),
                self.plan.speaker(self.host, chunk),
            ),
        };
        (!is_there).then_some(from)
    }

    /// Gathers numbers from the ranks of this host.
    fn gather_here(&mut self, mine: &[f64]) -> Result<(), GangError> {
        self.local.offer(mine)?;
        let what = || "take part in a gathering".to_owned();
        let first = self.here.start;
        self.wait_for(what, |this| Some(first + this.local.missing_offer()?))?;
        self.gathered_here.clear();
        for rank in 0..self.here.len() {
            let begin = self.gathered_here.len();
            self.gathered_here.resize(begin + mine.len(), 0.0);
            self.local
                .read_offer(rank, &mut self.gathered_here[begin..]);
        }
        Ok(())
    }

    /// Gathers what each host has gathered, so many numbers of each, on the first ranks.
    fn gather_hosts(&mut self, len: usize) -> Result<(), GangError> {
        let voters = self.plan.hosts().map_or(1, <[_]>::len);
        self.gathered.clear();
        self.gathered.resize(voters * len, 0.0);
        self.gathered_here.resize(len, 0.0);
        if self.rank != self.here.start {
            return Ok(());
        }
        self.links.offer(&self.gathered_here)?;
        let what = || "take part in a gathering".to_owned();
        self.wait_for(what, |this| this.links.missing_offer())?;
        for host in 0..voters {
            let into = &mut self.gathered[host * len..][..len];
            match host == self.host {
                true => into.copy_from_slice(&self.gathered_here),
                false => {
                    let first = self.plan.hosts().map_or(0, |hosts| hosts[host].start);
                    self.links.take_offer(first, into)?;
                }
            }
        }
        Ok(())
    }

    /// Brings so many numbers, which the first rank has gathered, to the others of this host. All of them come to a
    /// barrier of their host, also without numbers.
    fn spread(&mut self, len: usize) -> Result<(), GangError> {
        let is_first = self.rank == self.here.start;
        let first = self.here.start;
        for begin in (0..len.max(1)).step_by(GATHER) {
            let piece = begin..len.min(begin + GATHER);
            let mine = match is_first {
                true => piece.clone(),
                false => 0..0,
            };
            self.local.offer(&self.gathered[mine])?;
            let what = || "take part in a gathering".to_owned();
            self.wait_for(what, |this| Some(first + this.local.missing_offer()?))?;
            if !is_first {
                self.local.read_offer(0, &mut self.gathered[piece]);
            }
        }
        Ok(())
    }
}

/// Plans with shares do not go through a tree yet, so that there is nothing to share.
impl SharingCollective for TreeCollective {
    fn take_keeper_links(&mut self) -> Option<KeeperLinks> {
        self.links.take_keeper_links()
    }

    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        panic!("a plan for hosts has no share {share}")
    }

    fn announce(&mut self, share: usize) -> Result<(), GangError> {
        panic!("a plan for hosts has no share {share}")
    }

    fn accept(&mut self, share: usize) -> Result<(), GangError> {
        panic!("a plan for hosts has no share {share}")
    }

    fn view(&self, share: usize) -> &[f32] {
        panic!("a plan for hosts has no share {share}")
    }
}
