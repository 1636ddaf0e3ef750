//! Which jobs begin now: first come, first served, by priority, under the machine's limits.
//!
//! Jobs stand in one line. One that does not fit now holds up those behind it, or a large job would wait for ever while
//! small ones pass. One that waits for something else than room (for its user's other jobs) lets others pass. A job that
//! needs nothing of the machine never waits for room.

use crate::{Machine, Needs};
use std::collections::BTreeMap;

/// Amounts are added and taken away again; what is left of that counts as nothing.
const SLACK: f64 = 1e-6;

/// A job that has room.
pub(crate) struct Placed<'a> {
    pub(crate) user: &'a str,
    pub(crate) needs: &'a Needs,
    pub(crate) gpus: &'a [u32],
}

/// A job that could begin.
pub(crate) struct Waiting<'a> {
    pub(crate) id: &'a str,
    pub(crate) user: &'a str,
    pub(crate) needs: &'a Needs,
    pub(crate) priority: i64,
    pub(crate) number: u64,
}

/// What is free of a machine.
struct Room<'m> {
    cpus: f64,
    memory: u64,
    /// What is free of each GPU.
    gpus: Vec<f64>,
    resources: BTreeMap<&'m str, f64>,
}

impl<'m> Room<'m> {
    fn of(machine: &'m Machine) -> Room<'m> {
        let resources = machine.resources.iter();
        Room {
            cpus: machine.cpus,
            memory: machine.memory,
            gpus: vec![1.0; machine.gpus as usize],
            resources: resources.map(|(name, n)| (name.as_str(), *n)).collect(),
        }
    }

    fn take(&mut self, needs: &Needs, gpus: &[u32]) {
        self.cpus -= needs.cpus();
        self.memory = self.memory.saturating_sub(needs.memory);
        for gpu in gpus {
            if let Some(free) = self.gpus.get_mut(*gpu as usize) {
                *free -= needs.gpus.min(1.0);
            }
        }
        for (name, amount) in &needs.resources {
            if let Some(free) = self.resources.get_mut(name.as_str()) {
                *free -= amount;
            }
        }
    }

    /// The GPUs that a job would have; none if there is no room for it.
    fn fits(&self, needs: &Needs) -> Option<Vec<u32>> {
        let enough = |free: f64, asked: f64| asked <= SLACK || free + SLACK >= asked;
        let resources = needs.resources.iter().all(|(name, asked)| {
            let free = self.resources.get(name.as_str()).copied();
            enough(free.unwrap_or_default(), *asked)
        });
        if !enough(self.cpus, needs.cpus()) || needs.memory > self.memory || !resources {
            return None;
        }
        if needs.gpus <= 0.0 {
            return Some(Vec::new());
        }
        let (share, count) = match needs.gpus < 1.0 {
            true => (needs.gpus, 1),
            false => (1.0, needs.gpus as usize),
        };
        let mut free: Vec<(f64, u32)> = (0..).zip(&self.gpus).map(|(n, f)| (*f, n)).collect();
        free.retain(|(free, _)| enough(*free, share));
        // A part of a GPU comes from the one that has the least left, so that whole ones stay whole.
        free.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if free.len() < count {
            return None;
        }
        let mut chosen: Vec<u32> = free[..count].iter().map(|(_, gpu)| *gpu).collect();
        chosen.sort_unstable();
        Some(chosen)
    }
}

/// The order in which jobs stand in the line.
pub(crate) fn in_line(waiting: &mut [Waiting<'_>]) {
    waiting.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.number));
}

/// The jobs that begin now and the GPUs that each has. `waiting` stands in line.
pub(crate) fn plan(
    machine: &Machine,
    placed: &[Placed<'_>],
    waiting: &[Waiting<'_>],
    per_user: Option<usize>,
) -> Vec<(String, Vec<u32>)> {
    let mut room = Room::of(machine);
    let mut running: BTreeMap<&str, usize> = BTreeMap::new();
    for job in placed {
        room.take(job.needs, job.gpus);
        *running.entry(job.user).or_default() += 1;
    }
    let mut begin = Vec::new();
    let mut held_up = false;
    for job in waiting {
        let of_user = running.entry(job.user).or_default();
        if per_user.is_some_and(|most| *of_user >= most) {
            continue;
        }
        let nothing = job.needs.cpus() <= 0.0
            && job.needs.gpus <= 0.0
            && job.needs.memory == 0
            && job.needs.resources.is_empty();
        if held_up && !nothing {
            continue;
        }
        match room.fits(job.needs) {
            Some(gpus) => {
                room.take(job.needs, &gpus);
                *of_user += 1;
                begin.push((job.id.to_owned(), gpus));
            }
            None => held_up = true,
        }
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machine(cpus: f64, gpus: u32) -> Machine {
        Machine {
            cpus,
            memory: 1000,
            gpus,
            resources: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    fn needs(cpus: f64, gpus: f64) -> Needs {
        Needs {
            cpus: Some(cpus),
            gpus,
            ..Needs::default()
        }
    }

    fn ids(begin: &[(String, Vec<u32>)]) -> Vec<&str> {
        begin.iter().map(|(id, _)| id.as_str()).collect()
    }

    fn waiting<'a>(id: &'a str, needs: &'a Needs, priority: i64, number: u64) -> Waiting<'a> {
        Waiting {
            id,
            user: "u",
            needs,
            priority,
            number,
        }
    }

    #[test]
    fn jobs_begin_by_priority_and_then_as_they_came() {
        let one = needs(1.0, 0.0);
        let mut line = [
            waiting("late", &one, 0, 3),
            waiting("first", &one, 0, 1),
            waiting("urgent", &one, 5, 4),
            waiting("second", &one, 0, 2),
        ];
        in_line(&mut line);
        let begin = plan(&machine(3.0, 0), &[], &line, None);
        assert_eq!(ids(&begin), ["urgent", "first", "second"]);
    }

    #[test]
    fn a_large_job_holds_up_small_ones_but_not_those_that_need_nothing() {
        let (large, small, nothing) = (needs(2.0, 0.0), needs(1.0, 0.0), needs(0.0, 0.0));
        let placed = [Placed {
            user: "u",
            needs: &small,
            gpus: &[],
        }];
        let line = [
            waiting("large", &large, 0, 1),
            waiting("small", &small, 0, 2),
            waiting("nothing", &nothing, 0, 3),
        ];
        let begin = plan(&machine(2.0, 0), &placed, &line, None);
        assert_eq!(ids(&begin), ["nothing"]);
    }

    #[test]
    fn a_user_at_the_limit_lets_others_pass() {
        let one = needs(1.0, 0.0);
        let placed = [Placed {
            user: "u",
            needs: &one,
            gpus: &[],
        }];
        let mut other = waiting("other", &one, 0, 2);
        other.user = "v";
        let line = [waiting("mine", &one, 0, 1), other];
        let begin = plan(&machine(4.0, 0), &placed, &line, Some(1));
        assert_eq!(ids(&begin), ["other"]);
    }

    #[test]
    fn parts_of_gpus_share_one_and_whole_ones_are_alone() {
        let (half, two) = (needs(0.0, 0.5), needs(0.0, 2.0));
        let line = [
            waiting("a", &half, 0, 1),
            waiting("b", &half, 0, 2),
            waiting("c", &two, 0, 3),
            waiting("d", &half, 0, 4),
        ];
        let begin = plan(&machine(1.0, 3), &[], &line, None);
        let wanted = [("a", vec![0]), ("b", vec![0]), ("c", vec![1, 2])];
        let wanted = wanted.map(|(id, gpus)| (id.to_owned(), gpus));
        assert_eq!(begin, wanted);
    }

    proptest! {
        #[test]
        fn what_begins_never_needs_more_than_there_is(
            asked in prop::collection::vec((0.0..3.0f64, 0..5u8, 0..600u64, -2..3i64), 0..40),
            cpus in 1.0..8.0f64,
        ) {
            let machine = machine(cpus, 2);
            let gpus = [0.0, 0.25, 0.5, 1.0, 2.0];
            let all: Vec<Needs> = asked
                .iter()
                .map(|(cpus, gpu, memory, _)| Needs {
                    memory: *memory,
                    ..needs(*cpus, gpus[usize::from(*gpu)])
                })
                .collect();
            let names: Vec<String> = (0..all.len()).map(|n| n.to_string()).collect();
            let mut line: Vec<Waiting<'_>> = (0..all.len())
                .map(|n| waiting(&names[n], &all[n], asked[n].3, n as u64))
                .collect();
            in_line(&mut line);
            let begin = plan(&machine, &[], &line, None);
            let of = |id: &str| &all[id.parse::<usize>().unwrap()];
            let used: f64 = begin.iter().map(|(id, _)| of(id).cpus()).sum();
            prop_assert!(used <= cpus + 1e-3);
            prop_assert!(begin.iter().map(|(id, _)| of(id).memory).sum::<u64>() <= 1000);
            for gpu in 0..2 {
                let of_gpu = begin.iter().filter(|(_, has)| has.contains(&gpu));
                let share: f64 = of_gpu.map(|(id, _)| of(id).gpus.min(1.0)).sum();
                prop_assert!(share <= 1.0 + 1e-3);
            }
        }

        #[test]
        fn nobody_overtakes_and_no_user_has_more_than_allowed(
            asked in prop::collection::vec((0..4u8, 0..3usize, -2..3i64), 0..40),
            before in 0..3usize,
            per_user in 1..4usize,
        ) {
            let users = ["ann", "bob", "cy"];
            let one = needs(1.0, 0.0);
            let all: Vec<Needs> = asked.iter().map(|(cpus, ..)| needs((*cpus).into(), 0.0)).collect();
            let names: Vec<String> = (0..all.len()).map(|n| n.to_string()).collect();
            let mut line: Vec<Waiting<'_>> = (0..all.len())
                .map(|n| Waiting {
                    user: users[asked[n].1],
                    ..waiting(&names[n], &all[n], asked[n].2, n as u64)
                })
                .collect();
            in_line(&mut line);
            let placed: Vec<Placed<'_>> = (0..before)
                .map(|_| Placed { user: "ann", needs: &one, gpus: &[] })
                .collect();
            let begin = plan(&machine(6.0, 0), &placed, &line, Some(per_user));
            let begins = |job: &Waiting<'_>| begin.iter().any(|(id, _)| id == job.id);
            for user in users {
                let had = if user == "ann" { before } else { 0 };
                let new = line.iter().filter(|job| job.user == user && begins(job)).count();
                prop_assert!(new == 0 || had + new <= per_user);
            }
            // Whoever waits before one that begins has a user at the limit, or the one that begins needs nothing.
            let mut running: BTreeMap<&str, usize> = BTreeMap::from([("ann", before)]);
            let mut held_up = false;
            for job in &line {
                let of_user = running.entry(job.user).or_default();
                match begins(job) {
                    true => {
                        prop_assert!(!held_up || job.needs.cpus() == 0.0);
                        *of_user += 1;
                    }
                    false => held_up |= *of_user < per_user,
                }
            }
        }
    }
}
