//! The cores that this process may use.
//!
//! A process may have fewer than its machine: by the cores that it is bound to, by the quota of its control groups, in
//! both versions, and since whoever started it runs others beside it and says how many are this one's
//! ([`VARIABLE`]).

use std::thread::available_parallelism;

/// Name of the environment variable that says how many cores are a process's own, of those that it might use.
pub const VARIABLE: &str = "LOCKSTEP_CORES";

/// How many cores this process may use, at least one.
pub fn usable() -> usize {
    let system = available_parallelism().map_or(1, usize::from);
    own_of(system, std::env::var(VARIABLE).ok().as_deref())
}

/// The cores that each of so many processes may use, which share those of this one.
pub fn share(processes: usize) -> usize {
    (usable() / processes.max(1)).max(1)
}

/// What is said takes cores away, and never adds any.
fn own_of(system: usize, said: Option<&str>) -> usize {
    let said = said.and_then(|said| said.trim().parse().ok());
    said.map_or(system, |said: usize| said.clamp(1, system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_takes_cores_away_but_not_the_last() {
        let cases = [
            (None, 8),
            (Some("3"), 3),
            (Some(" 8\n"), 8),
            (Some("9"), 8),
            (Some("0"), 1),
            (Some("many"), 8),
        ];
        for (said, expected) in cases {
            assert_eq!(own_of(8, said), expected, "{said:?}");
        }
        assert_eq!(share(usize::MAX), 1);
        assert_eq!(share(1), usable());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn cores_that_a_process_is_not_bound_to_do_not_count() {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        // Of a thread of its own: the other tests keep theirs.
        let bound = std::thread::spawn(|| {
            let all = sched_getaffinity(None).unwrap();
            let first = (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core)).unwrap();
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            usable()
        });
        assert_eq!(bound.join().unwrap(), 1);
    }
}
