//! How many bytes a plan lets workers and hosts send in a step.

use super::Plan;

impl Plan {
    /// Bytes of numbers that each rank sends in a step where no two share memory.
    pub fn bytes_sent(&self) -> Vec<u64> {
        let sent = |rank| (0..self.pieces()).map(move |piece| self.bytes_of_piece(rank, piece));
        (0..self.workers).map(|rank| sent(rank).sum()).collect()
    }

    /// Bytes that `rank` sends of a piece.
    fn bytes_of_piece(&self, rank: usize, piece: usize) -> u64 {
        let is_chunk = piece < self.chunks();
        let vectors = match self.owner(piece) == rank {
            // Whoever makes all that others need of a chunk keeps it.
            true if is_chunk && self.producing().contains(&piece) => 0,
            true => (self.others(rank))
                .filter(|&other| self.reads(other, piece))
                .count(),
            // What follows from shares is not posted.
            false if is_chunk && !self.is_common(piece) => self.partials_of(rank).len(),
            false => 0,
        };
        (4 * self.chunk(piece).len() * vectors) as u64
    }

    /// Bytes of numbers that each host sends to others in a step.
    ///
    /// # Panics
    /// If the plan is not for a tree of hosts.
    pub fn bytes_between_hosts(&self) -> Vec<u64> {
        let hosts = self.hosts().expect("a plan for a tree of hosts").len();
        let of_host = |host| {
            let of_chunk = |chunk: usize| {
                let vectors = match self.host_of(self.owner(chunk)) == host {
                    true => hosts - 1,
                    false => self.sums_of_host(host).len(),
                };
                (4 * self.chunk(chunk).len() * vectors) as u64
            };
            (0..self.chunks()).map(of_chunk).sum()
        };
        (0..hosts).map(of_host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    fn plan(lanes: usize, workers: usize) -> Plan {
        let chunks = (0..8).map(|c| 4 * c..4 * (c + 1)).collect();
        Plan::new(chunks, lanes, workers).unwrap()
    }

    #[test]
    fn a_rank_sends_its_sums_to_owners_and_its_own_chunks_to_all() {
        // Two chunks of 16 bytes of its own to 3 ranks, and 6 of others to their owners.
        assert_eq!(plan(4, 4).bytes_sent(), [(2 * 3 + 6) * 16; 4]);
        assert_eq!(plan(4, 1).bytes_sent(), [0]);
        let shared = plan(2, 2).with_shares(&[5]).with_common(0..8, 1);
        // Half of the chunks, a share, and no sums.
        assert_eq!(shared.bytes_sent(), [4 * 16 + 20; 2]);
        let columns = shared.with_products(0..2, &[3, 3]);
        assert_eq!(columns.bytes_sent(), [3 * 16 + 20 + 12; 2]);
    }

    #[test]
    fn a_host_whose_lanes_are_a_subtree_sends_what_one_worker_a_host_would_send() {
        let tree = plan(8, 4).on_hosts(&[2, 2]).unwrap();
        assert_eq!(tree.sums_of_host(0), slice::from_ref(&(0..4)));
        assert_eq!(tree.bytes_between_hosts(), plan(8, 2).bytes_sent());
        assert_eq!(tree.bytes_between_hosts(), [8 * 4 * 4; 2]);
        // Three lanes are not: (0 + 1) and 2.
        let torn = plan(6, 6).on_hosts(&[3, 3]).unwrap();
        assert_eq!(torn.sums_of_host(0), [0..2, 2..3]);
        assert_eq!(torn.bytes_between_hosts(), [(4 + 2 * 4) * 16; 2]);
    }
}
