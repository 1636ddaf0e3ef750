//! Workers of several hosts, as a tree of two levels: who speaks for a host, and what it sends.
//!
//! Ranks are numbered host by host. For each chunk, each host has one rank that *speaks* for it: on the owner's host
//! the owner, on every other one its *deputy*, which adds up what its host has posted of the chunk, sends the sums to
//! the owner, and brings the new values. Chunks are dealt to *classes*, as many as the largest host has workers, and the
//! workers of each host divide the classes among them. So the work is even on every host, and a rank is linked with few
//! ranks of other hosts.
//!
//! A tree's plan has two views, which the exchanges of its levels follow: [`Plan::within`] a host, and
//! [`Plan::between`] hosts.

use super::{Partial, Plan, balance};
use crate::{GangError, tree};
use std::ops::Range;

/// Where the workers of a plan are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostMap {
    /// The ranks of each host.
    hosts: Vec<Range<usize>>,
    /// The class of each chunk, and how many there are.
    class_of: Vec<usize>,
    classes: usize,
    /// The sums that each host forms.
    sums: Vec<Vec<Range<usize>>>,
    /// Whether this is the view between hosts.
    between: bool,
}

impl HostMap {
    fn host_of(&self, rank: usize) -> usize {
        self.hosts.partition_point(|ranks| ranks.end <= rank)
    }

    /// The rank that speaks for a host.
    fn speaker(&self, host: usize, chunk: usize) -> usize {
        let ranks = &self.hosts[host];
        ranks.start + self.class_of[chunk] * ranks.len() / self.classes
    }

    /// Whether numbers of `chunk` cross the border of `rank`'s host through `rank`, and another host owns it.
    fn carries(&self, rank: usize, chunk: usize, owner: usize) -> bool {
        let host = self.host_of(rank);
        host != self.host_of(owner) && self.speaker(host, chunk) == rank
    }
}

impl Plan {
    /// The same exchange among workers of several hosts, so many on each, in the order of their ranks.
    ///
    /// # Errors
    /// [`GangError::BadPlan`] unless these are all workers, at least one on each host, and for a plan with shares,
    /// products or common chunks.
    pub fn on_hosts(&self, workers_of: &[usize]) -> Result<Self, GangError> {
        let bad = |reason| Err(GangError::BadPlan { reason });
        if workers_of.contains(&0) || workers_of.iter().sum::<usize>() != self.workers {
            return bad(format!(
                "hosts of {workers_of:?} workers are not {} workers",
                self.workers
            ));
        }
        if !self.fits_hosts() {
            return bad("shares and common chunks do not go through a tree of hosts".to_owned());
        }
        let mut end = 0;
        let hosts: Vec<Range<usize>> = (workers_of.iter())
            .map(|&workers| {
                end += workers;
                end - workers..end
            })
            .collect();
        let lanes = |ranks: &Range<usize>| {
            self.lanes_of(ranks.start).start..self.lanes_of(ranks.end - 1).end
        };
        let sums = (hosts.iter())
            .map(|ranks| tree::maximal_subtrees(lanes(ranks), self.lanes))
            .collect();
        let classes = workers_of.iter().copied().max().unwrap_or(1);
        // One place for each host and class; hosts take turns first.
        let places = balance(&self.chunks, hosts.len() * classes);
        let map = HostMap {
            class_of: places.iter().map(|place| place / hosts.len()).collect(),
            classes,
            sums,
            between: false,
            hosts,
        };
        let owner = |(chunk, place): (usize, &usize)| map.speaker(place % map.hosts.len(), chunk);
        Ok(Self {
            owners: places.iter().enumerate().map(owner).collect(),
            hosts: Some(map),
            ..self.clone()
        })
    }

    /// The ranks of each host, where the plan is for a tree of hosts.
    pub fn hosts(&self) -> Option<&[Range<usize>]> {
        self.hosts.as_ref().map(|map| &map.hosts[..])
    }

    /// The sums of lanes that a host sends of each chunk that another host owns. More than one if its lanes are not
    /// a whole node of the tree.
    ///
    /// # Panics
    /// If the plan has no such host.
    pub fn sums_of_host(&self, host: usize) -> &[Range<usize>] {
        &self.map().sums[host]
    }

    fn map(&self) -> &HostMap {
        self.hosts.as_ref().expect("a plan for a tree of hosts")
    }

    /// Whether the plan can be [for a tree of hosts](Plan::on_hosts).
    pub fn fits_hosts(&self) -> bool {
        self.pieces() == self.chunks() && !self.common.contains(&true)
    }

    /// The ranks of the host of `rank`.
    ///
    /// # Panics
    /// If the plan is not for a tree of hosts, or has no such rank.
    pub fn ranks_beside(&self, rank: usize) -> Range<usize> {
        self.map().hosts[self.host_of(rank)].clone()
    }

    /// The host of a rank.
    pub(crate) fn host_of(&self, rank: usize) -> usize {
        self.map().host_of(rank)
    }

    /// The rank that speaks for `host` where `chunk` is concerned.
    pub(crate) fn speaker(&self, host: usize, chunk: usize) -> usize {
        self.map().speaker(host, chunk)
    }

    /// The sums that `rank` adds up of a chunk that it owns, in lane order: those of each rank of its own host, and those
    /// of each other host, whose first rank they are named after.
    pub fn partials_for(&self, rank: usize) -> Vec<Partial> {
        let of = |rank: usize, sums: &[Range<usize>]| -> Vec<Partial> {
            let sums = sums.iter().cloned().enumerate();
            sums.map(|(index, lanes)| Partial { rank, index, lanes })
                .collect()
        };
        let of_ranks =
            |ranks: Range<usize>| ranks.flat_map(|rank| of(rank, self.partials_of(rank)));
        let Some(map) = &self.hosts else {
            return of_ranks(0..self.workers).collect();
        };
        let own = map.host_of(rank);
        let mut all = Vec::new();
        for (host, ranks) in map.hosts.iter().enumerate() {
            match host == own {
                true => all.extend(of_ranks(ranks.clone())),
                false => all.extend(of(ranks.start, &map.sums[host])),
            }
        }
        all
    }

    /// The sums of ranks that one of a host's sums is made of.
    pub(crate) fn partials_of_sum(&self, host: usize, sum: &Range<usize>) -> Vec<Partial> {
        let all = self.partials_for(self.map().hosts[host].start).into_iter();
        let is_part = |lanes: &Range<usize>| sum.start <= lanes.start && lanes.end <= sum.end;
        all.filter(|partial| is_part(&partial.lanes)).collect()
    }

    /// The exchange within a host: the ranks count from its first, and who speaks for the host owns.
    pub(crate) fn within(&self, host: usize) -> Self {
        let map = self.map();
        let ranks = map.hosts[host].clone();
        let owner = |chunk| map.speaker(host, chunk) - ranks.start;
        Self {
            owners: (0..self.chunks()).map(owner).collect(),
            partials_of: self.partials_of[ranks.clone()].to_vec(),
            workers: ranks.len(),
            hosts: None,
            ..self.clone()
        }
    }

    /// The exchange between hosts: whoever speaks for one sends and receives.
    pub(crate) fn between(&self) -> Self {
        let map = self.map();
        let sums = |rank| map.sums[map.host_of(rank)].clone();
        Self {
            partials_of: (0..self.workers).map(sums).collect(),
            hosts: Some(HostMap {
                between: true,
                ..map.clone()
            }),
            ..self.clone()
        }
    }

    /// The view between hosts, if this is it.
    fn as_between(&self) -> Option<&HostMap> {
        self.hosts.as_ref().filter(|map| map.between)
    }

    /// Whether `rank` sends sums of a chunk of another rank to its owner.
    pub(crate) fn posts(&self, rank: usize, chunk: usize) -> bool {
        let owner = self.owners[chunk];
        match self.as_between() {
            None => owner != rank,
            Some(map) => map.carries(rank, chunk, owner),
        }
    }

    /// Whether the new values of `chunk` come to `rank` over a link between hosts.
    pub(super) fn crosses_to(&self, rank: usize, chunk: usize) -> bool {
        let owner = self.owners[chunk];
        self.as_between()
            .is_none_or(|map| map.carries(rank, chunk, owner))
    }

    /// How many ranks can post a chunk: the numbers for [`Plan::poster`].
    pub(crate) fn posting(&self) -> usize {
        self.as_between()
            .map_or(self.workers, |map| map.hosts.len())
    }

    /// One of the ranks that send sums of `chunk` to its owner, by a number below [`Plan::posting`], if there is one of
    /// that number.
    pub(crate) fn poster(&self, chunk: usize, number: usize) -> Option<usize> {
        let owner = self.owners[chunk];
        let rank = match self.as_between() {
            None => number,
            Some(map) => map.speaker(number, chunk),
        };
        // The owner speaks for its own host.
        (rank != owner).then_some(rank)
    }

    /// The ranks that vote and gather: all, or between hosts the first of each.
    pub(crate) fn voters(&self) -> Vec<usize> {
        match self.as_between() {
            None => (0..self.workers).collect(),
            Some(map) => map.hosts.iter().map(|ranks| ranks.start).collect(),
        }
    }

    /// Whether two ranks send each other anything.
    pub(crate) fn are_linked(&self, one: usize, other: usize) -> bool {
        let Some(map) = self.as_between() else {
            return one != other;
        };
        let votes = |rank| map.hosts[map.host_of(rank)].start == rank;
        let owns = |owner: usize, rank: usize| {
            let mut owned = (0..self.chunks()).filter(|&chunk| self.owners[chunk] == owner);
            owned.any(|chunk| map.carries(rank, chunk, owner))
        };
        let (here, there) = (map.host_of(one), map.host_of(other));
        here != there && (votes(one) && votes(other) || owns(one, other) || owns(other, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(chunks: usize, lanes: usize, hosts: &[usize]) -> Plan {
        let chunks = (0..chunks).map(|c| 4 * c..4 * (c + 1)).collect();
        let plan = Plan::new(chunks, lanes, hosts.iter().sum()).unwrap();
        plan.on_hosts(hosts).unwrap()
    }

    #[test]
    fn what_is_no_division_of_the_workers_is_refused() {
        let plan = Plan::new(vec![0..4, 4..8], 4, 4).unwrap();
        for hosts in [&[2, 1][..], &[4, 0], &[]] {
            assert!(plan.on_hosts(hosts).is_err(), "{hosts:?}");
        }
        assert!(plan.clone().with_shares(&[3]).on_hosts(&[2, 2]).is_err());
        assert!(plan.on_hosts(&[4]).is_ok());
    }

    proptest! {
        #[test]
        fn every_number_crosses_a_border_once_and_all_sums_are_there(
            hosts in prop::collection::vec(1usize..5, 1..5), extra in 0usize..6, chunks in 1usize..30,
        ) {
            let workers: usize = hosts.iter().sum();
            let tree = plan(chunks, workers + extra, &hosts);
            let between = tree.between();
            for chunk in 0..chunks {
                let owner = tree.owner(chunk);
                let posting: Vec<usize> =
                    (0..workers).filter(|&rank| between.posts(rank, chunk)).collect();
                prop_assert_eq!(posting.len(), hosts.len() - 1);
                for &rank in &posting {
                    prop_assert!(between.are_linked(rank, owner) && between.are_linked(owner, rank));
                    prop_assert!(between.reads(rank, chunk));
                    let within = tree.within(tree.host_of(rank));
                    let first = tree.hosts().unwrap()[tree.host_of(rank)].start;
                    prop_assert_eq!(within.owner(chunk) + first, rank);
                }
            }
            for rank in 0..workers {
                let covered = tree.partials_for(rank).into_iter().flat_map(|p| p.lanes);
                prop_assert!(covered.eq(0..workers + extra));
            }
            for host in 0..hosts.len() {
                for sum in tree.sums_of_host(host) {
                    let parts = tree.partials_of_sum(host, sum).into_iter();
                    prop_assert!(parts.flat_map(|p| p.lanes).eq(sum.clone()));
                }
            }
        }

        #[test]
        fn every_host_and_every_worker_of_a_host_owns_about_as_much_as_the_others(
            hosts in 1usize..5, workers in 1usize..5,
        ) {
            let chunks = 24 * hosts * workers;
            let tree = plan(chunks, hosts * workers, &vec![workers; hosts]);
            for rank in 0..hosts * workers {
                let owned = (0..chunks).filter(|&chunk| tree.owner(chunk) == rank).count();
                prop_assert_eq!(owned, 24);
            }
        }
    }
}
