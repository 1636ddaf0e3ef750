//! What could make the figures wrong.

use crate::comparison::{SettingRow, Warning};
use crate::{Bench, How, Spread, Turn};

/// Others may take so much of one core before it is worth a word.
const OTHERS: f64 = 0.1;
/// Training that takes less than so many seconds says more about the start and the system than about training.
const SHORT_S: f64 = 1.0;

/// All of them, the gravest first.
pub(crate) fn find(bench: &Bench, turns: &[Turn], rows: &[SettingRow]) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(weights(rows));
    found.extend(spreads(rows));
    found.extend(machine(bench));
    found.extend(others(bench, turns));
    let restarts: u32 = turns.iter().map(|turn| turn.measured.restarts).sum();
    if restarts > 0 {
        found.push(format!(
            "workers were lost and replaced {restarts} times while this was measured: measure again"
        ));
    }
    let shortest = Spread::of(rows.iter().map(|row| row.training_time_seconds));
    if let Some(shortest) = shortest.filter(|spread| spread.min < SHORT_S) {
        found.push(format!(
            "the shortest training took {:.2} s: train for more epochs to learn about training",
            shortest.min
        ));
    }
    if bench.plan.rounds == 1 {
        found.push(
            "every setting was measured once, which says nothing about the spread: use --repeat 3 or more".to_owned(),
        );
    }
    if cfg!(debug_assertions) {
        found.push(
            "this program was built without all optimisation: use a release build".to_owned(),
        );
    }
    found
        .into_iter()
        .map(|warning| Warning { warning })
        .collect()
}

/// The same job with the same batch comes to the same bits.
fn weights(rows: &[SettingRow]) -> Vec<String> {
    let gangs: Vec<&SettingRow> = rows.iter().filter(|row| row.how == How::Together).collect();
    let differs = |row: &&&SettingRow| {
        let first = gangs.iter().find(|first| first.batch == row.batch);
        first.is_some_and(|first| first.weights_sha256 != row.weights_sha256)
    };
    let words = |row: &&SettingRow| {
        format!(
            "{} learned other weights than fewer workers with the same batch: the two are not the same training",
            row.setting
        )
    };
    gangs.iter().filter(differs).map(words).collect()
}

fn spreads(rows: &[SettingRow]) -> Vec<String> {
    let mut found = Vec::new();
    for row in rows
        .iter()
        .filter(|row| row.how == How::Together && row.turns > 1)
    {
        let base = rows.iter().find(|base| base.group == row.group);
        let Some(base) = base.filter(|base| base.setting != row.setting) else {
            continue;
        };
        if row.training.overlaps(&base.training) {
            found.push(format!(
                "the spread is larger than the difference: {} took {:.2} to {:.2} s, {} took {:.2} to {:.2} s",
                base.setting, base.least_seconds, base.most_seconds, row.setting, row.least_seconds, row.most_seconds
            ));
        }
    }
    found
}

fn machine(bench: &Bench) -> Vec<String> {
    let facts = &bench.machine;
    let most = bench
        .plan
        .settings
        .iter()
        .map(|setting| setting.workers)
        .max();
    let wanted = most.unwrap_or(1) * bench.threads;
    let mut found = Vec::new();
    let (cores, usable) = (facts.machine.cores, facts.usable_cores());
    if usable < cores as f64 {
        found.push(format!(
            "the control group allows {usable:.2} of {cores} cores: raise its cpu.max, or the CPU limit of the container"
        ));
    }
    if wanted as f64 > usable {
        found.push(format!(
            "{wanted} threads of workers share {usable:.2} cores: more workers cannot be faster here"
        ));
    } else if facts.threads_per_core > 1 && wanted > cores / facts.threads_per_core {
        found.push(format!(
            "{wanted} threads of workers share {} cores that have {} hyper-threads each: two on one core are slower than \
             two on two",
            cores / facts.threads_per_core,
            facts.threads_per_core
        ));
    }
    found
}

/// What others did meanwhile.
fn others(bench: &Bench, turns: &[Turn]) -> Vec<String> {
    let mut found = Vec::new();
    // Processes of another system may be anybody's children, so they cannot be told from those of others.
    let own = |turn: &&Turn| !matches!(bench.plan.settings[turn.setting].how, How::Peer(_));
    let by_others = Spread::of(turns.iter().filter(own).map(|turn| turn.taken.by_others));
    if let Some(spread) = by_others.filter(|spread| spread.max > OTHERS) {
        found.push(format!(
            "other processes took {:.2} cores while this was measured (up to {:.2} in a turn): stop them, or measure when \
             they are done",
            spread.median, spread.max
        ));
    }
    let stolen = Spread::of(turns.iter().map(|turn| turn.taken.stolen));
    if let Some(spread) = stolen.filter(|spread| spread.max > OTHERS) {
        found.push(format!(
            "other machines on the same host took {:.2} cores while this was measured (up to {:.2} in a turn)",
            spread.median, spread.max
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::bench::tests::{bench, steady};
    use crate::{Bench, Comparison, Measured, Setting};

    fn measured(bench: &Bench, one: &dyn Fn(&Setting, usize) -> Measured) -> Comparison {
        let mut calls = 0;
        let mut one = |_, setting: &Setting| {
            calls += 1;
            Ok::<_, String>(Some(one(setting, calls)))
        };
        bench.measure(&mut one, &mut |_| Ok(())).unwrap().0
    }

    fn has(comparison: &Comparison, words: &str) -> bool {
        let mut all = comparison.warnings.iter();
        all.any(|warning| warning.warning.contains(words))
    }

    #[test]
    fn a_difference_that_is_smaller_than_the_spread_is_said() {
        let steady_one = measured(&bench(&[1, 2], 3), &|setting, _| steady(setting));
        assert!(
            !has(&steady_one, "spread is larger"),
            "{:?}",
            steady_one.warnings
        );
        let restless = |setting: &Setting, call: usize| Measured {
            training_s: 5.0 + (call % 4) as f64,
            ..steady(setting)
        };
        assert!(has(
            &measured(&bench(&[1, 2], 3), &restless),
            "spread is larger"
        ));
    }

    #[test]
    fn a_machine_with_too_few_cores_is_said() {
        let mut few = bench(&[1, 4], 1);
        few.machine.machine.cores = 2;
        let found = measured(&few, &|setting, _| steady(setting));
        assert!(
            has(&found, "4 threads of workers share 2.00 cores"),
            "{:?}",
            found.warnings
        );
        few.machine.machine.cores = 4;
        few.machine.threads_per_core = 2;
        assert!(has(&measured(&few, &|s, _| steady(s)), "hyper-threads"));
        few.machine.cgroup_cores = Some(1.5);
        assert!(has(&measured(&few, &|s, _| steady(s)), "allows 1.50 of 4"));
    }

    #[test]
    fn other_weights_are_said() {
        let other = |setting: &Setting, _| Measured {
            weights_sha256: Some(setting.workers.to_string()),
            ..steady(setting)
        };
        let found = measured(&bench(&[1, 2], 1), &other);
        assert!(
            has(&found, "2 workers, batch 32 learned other weights"),
            "{:?}",
            found.warnings
        );
    }
}
