//! Who keeps whose share.

/// The keeper of each rank: one on another host if there is one, and not the same for all ranks of a host if it can be
/// helped. `hosts` says of each rank which others share memory with it: those that say the same. Who says nothing is on a
/// host of its own. None for a gang of one.
pub fn keepers(hosts: &[Option<&str>]) -> Vec<usize> {
    let ranks = hosts.len();
    if ranks < 2 {
        return Vec::new();
    }
    let are_together = |one: usize, other: usize| {
        one == other || (hosts[one].is_some() && hosts[one] == hosts[other])
    };
    let keeper = |rank: usize| {
        let here = (0..ranks).filter(|&other| are_together(rank, other));
        let here: Vec<usize> = here.collect();
        let place = here.iter().position(|&other| other == rank).unwrap_or(0);
        // In the order that begins with the host, so that all of its ranks see the same, and hosts keep for the next one.
        let around = (here[0]..here[0] + ranks).map(|other| other % ranks);
        let far: Vec<usize> = around.filter(|other| !here.contains(other)).collect();
        match far.is_empty() {
            true => (rank + 1) % ranks,
            false => far[place % far.len()],
        }
    };
    (0..ranks).map(keeper).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keepers of ranks on hosts with so many each.
    fn on_hosts(workers_of: &[usize]) -> Vec<usize> {
        let names: Vec<String> = (0..workers_of.len()).map(|host| host.to_string()).collect();
        let hosts = workers_of.iter().zip(&names);
        let hosts: Vec<Option<&str>> = hosts
            .flat_map(|(&workers, name)| std::iter::repeat_n(Some(name.as_str()), workers))
            .collect();
        keepers(&hosts)
    }

    #[test]
    fn a_share_is_kept_on_another_host_and_ranks_of_a_host_have_different_keepers() {
        assert_eq!(on_hosts(&[1, 1]), [1, 0]);
        assert_eq!(on_hosts(&[1, 1, 1]), [1, 2, 0]);
        assert_eq!(on_hosts(&[2, 2]), [2, 3, 0, 1]);
        assert_eq!(on_hosts(&[2, 2, 2]), [2, 3, 4, 5, 0, 1]);
        assert_eq!(on_hosts(&[3, 1]), [3, 3, 3, 0]);
        assert_eq!(on_hosts(&[1, 3]), [1, 0, 0, 0]);
    }

    #[test]
    fn without_another_host_another_process_keeps_it_and_alone_there_is_nobody() {
        assert_eq!(on_hosts(&[3]), [1, 2, 0]);
        assert_eq!(keepers(&[None, None, None]), [1, 2, 0]);
        assert_eq!(on_hosts(&[1]), [0; 0]);
    }

    #[test]
    fn no_rank_keeps_its_own_share_and_far_ones_are_always_taken_first() {
        for hosts in [vec![4, 1, 2], vec![1, 4], vec![2, 3, 1, 1], vec![5]] {
            let of = |rank: usize| {
                let mut end = 0;
                hosts.iter().position(|workers| {
                    end += workers;
                    rank < end
                })
            };
            for (rank, keeper) in on_hosts(&hosts).into_iter().enumerate() {
                assert_ne!(rank, keeper);
                assert!(
                    hosts.len() == 1 || of(rank) != of(keeper),
                    "{hosts:?}: {rank}"
                );
            }
        }
    }
}
