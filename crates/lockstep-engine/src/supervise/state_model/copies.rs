//! The copies of the state in the model: which process holds which shares, and what is left when some die.

use lockstep_gang::{HeldShare, RankStamp, newest_held};

/// A share of a copy, and the step that it is really of: 0 while it is half written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Share {
    pub(super) stamp: RankStamp,
    pub(super) step: u64,
}

/// The two copies of the state in one memory, as the ranks' shares of them.
pub(super) type Memory = [Vec<Share>; 2];

/// The copies of the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Copies {
    /// One that all share, or one of each seat's process.
    pub(super) memories: Vec<Memory>,
    /// The copy that the generation writes first, and the step that it began with.
    pub(super) first: usize,
    pub(super) begun: u64,
    /// The copy that the present generation goes on from.
    pub(super) from: Option<(usize, RankStamp)>,
    /// The last step that all ranks have copied, so that it counts as done.
    pub(super) counted: u64,
    /// Where each share of that is, as seats; and whose processes have died since.
    pub(super) homes: Vec<Vec<usize>>,
    pub(super) wiped: Vec<usize>,
    /// A generation began with an earlier step, though all shares were left, or with shares of different ones.
    pub(super) lost: bool,
}

impl Copies {
    pub(super) fn of(workers: usize, are_shared: bool) -> Self {
        let memory = || [(); 2].map(|()| vec![Share::default(); workers]);
        let count = if are_shared { 1 } else { workers };
        Self {
            memories: (0..count).map(|_| memory()).collect(),
            first: 0,
            begun: 0,
            from: None,
            counted: 0,
            homes: Vec::new(),
            wiped: Vec::new(),
            lost: false,
        }
    }

    pub(super) fn are_shared(&self) -> bool {
        self.memories.len() == 1
    }

    /// The memory of a seat's process.
    pub(super) fn memory(&mut self, seat: usize) -> &mut Memory {
        let number = if self.are_shared() { 0 } else { seat };
        &mut self.memories[number]
    }

    /// Where a rank writes its next copy.
    pub(super) fn next(&self, copies: u64) -> usize {
        (self.first + copies as usize) % 2
    }

    /// The process of a seat is gone, and its own memory with it.
    pub(super) fn wipe(&mut self, seat: usize) {
        if !self.are_shared() {
            let memory = self.memory(seat);
            *memory = [(); 2].map(|()| vec![Share::default(); memory[0].len()]);
            self.wiped.push(seat);
            self.wiped.sort_unstable();
            self.wiped.dedup();
        }
    }

    /// The shares that these seats hold.
    pub(super) fn held(&self, seats: &[usize]) -> Vec<Vec<HeldShare>> {
        let of = |memory: &Memory| {
            let versions = memory.iter().enumerate();
            let shares = versions.flat_map(|(version, shares)| {
                let shares = shares.iter().enumerate();
                shares.map(move |(rank, share)| HeldShare {
                    version,
                    rank,
                    stamp: share.stamp,
                })
            });
            shares.filter(|share| share.stamp.stamp > 0).collect()
        };
        match self.are_shared() {
            true => vec![of(&self.memories[0])],
            false => seats.iter().map(|&seat| of(&self.memories[seat])).collect(),
        }
    }

    /// A generation of these seats begins, with the newest copy of which they hold all shares.
    pub(super) fn begin(&mut self, seats: &[usize]) {
        let held = self.held(seats);
        let newest = newest_held(&held.iter().map(Vec::as_slice).collect::<Vec<_>>());
        self.begun = newest.as_ref().map_or(0, |newest| newest.stamp.step);
        self.first = newest.as_ref().map_or(0, |newest| 1 - newest.number);
        // It is later if one died right after the last share was written: then nobody was left to count it.
        let is_gone = |home: &Vec<usize>| home.iter().all(|seat| self.wiped.contains(seat));
        let is_left = !self.homes.iter().any(is_gone);
        self.lost |= self.begun < self.counted && is_left;
        self.counted = self.begun;
        self.homes.clear();
        self.wiped.clear();
        if let Some(newest) = &newest {
            for (rank, &holder) in newest.holders.iter().enumerate() {
                let number = if self.are_shared() { 0 } else { seats[holder] };
                let share = self.memories[number][newest.number][rank];
                self.lost |= share.step != self.begun;
                let wanted = HeldShare {
                    version: newest.number,
                    rank,
                    stamp: newest.stamp,
                };
                let homes = seats.iter().zip(&held);
                let homes = homes.filter(|(_, held)| held.contains(&wanted));
                self.homes.push(homes.map(|(&seat, _)| seat).collect());
            }
        }
        self.from = newest.map(|newest| (newest.number, newest.stamp));
    }

    /// A process forgets all but what its generation goes on from.
    pub(super) fn keep_only_from(&mut self, seat: usize) {
        if self.are_shared() {
            return;
        }
        let from = self.from;
        for (version, shares) in self.memory(seat).iter_mut().enumerate() {
            for share in shares {
                if from != Some((version, share.stamp)) {
                    *share = Share::default();
                }
            }
        }
    }

    /// All members bring to their memory what others hold.
    pub(super) fn restore(&mut self, members: &[usize]) {
        let Some((number, stamp)) = self.from else {
            return;
        };
        for rank in 0..stamp.ranks as usize {
            let shares = members
                .iter()
                .map(|&seat| self.memories[seat][number][rank]);
            let share = shares.max_by_key(|share| share.stamp.stamp);
            for &seat in members {
                self.memories[seat][number][rank] = share.unwrap_or_default();
            }
        }
        self.homes = vec![members.to_vec()];
        self.wiped.clear();
    }

    /// A rank begins to write a copy, here or at its keeper's.
    pub(super) fn take_back(&mut self, seat: usize, (copy, rank): (usize, usize), generation: u16) {
        for (number, share) in self.memory(seat)[copy].iter_mut().enumerate() {
            let is_earlier = (share.stamp.stamp >> 48) as u16 != generation;
            if number == rank || is_earlier {
                share.stamp = RankStamp::default();
            }
            if number == rank {
                share.step = 0;
            }
        }
    }
}
