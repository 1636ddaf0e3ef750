//! How much a key matters: the share of what distinguishes trials that its value explains.
//!
//! Trials are put into as many groups as a key has values, or into four by size. If the key explained everything, all of a
//! group would be worth the same; if nothing, all groups would. The share is the variance between groups by that of all.
//! With few trials it says little; keys that matter only together are not seen.

use crate::Tuning;
use crate::space::Range;
use std::collections::BTreeMap;

/// Groups of a range of numbers.
const GROUPS: f64 = 4.0;
/// With fewer trials nothing is said.
const LEAST: usize = 8;

impl Tuning {
    /// Every key with its share, from 0 to 1, the most important first; nothing of too few trials.
    pub fn importance(&self) -> Vec<(String, f64)> {
        let observed: Vec<(Vec<f64>, f64)> = self
            .observed(self.trials.len())
            .into_iter()
            .filter(|(_, worth)| *worth > f64::MIN)
            .collect();
        if observed.len() < LEAST {
            return Vec::new();
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let all: Vec<f64> = observed.iter().map(|trial| trial.1).collect();
        let middle = mean(&all);
        let whole: f64 = all.iter().map(|worth| (worth - middle).powi(2)).sum();
        let dimensions = self.rules.space.dimensions.iter().enumerate();
        let mut shares: Vec<(String, f64)> = dimensions
            .map(|(at, dimension)| {
                let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
                for (point, worth) in &observed {
                    let group = match dimension.range {
                        Range::Choice { .. } => dimension.range.text(point[at]),
                        _ => ((point[at] * GROUPS) as usize)
                            .min(GROUPS as usize - 1)
                            .to_string(),
                    };
                    groups.entry(group).or_default().push(*worth);
                }
                let between: f64 = groups
                    .values()
                    .map(|group| group.len() as f64 * (mean(group) - middle).powi(2))
                    .sum();
                let share = if whole > 0.0 { between / whole } else { 0.0 };
                (dimension.key.clone(), share)
            })
            .collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

#[cfg(test)]
mod tests {
    use crate::Method;
    use crate::tuning::tests::{search, tuning};

    #[test]
    fn the_key_that_decides_comes_first() {
        let done = search(tuning(Method::Random, 40, 27), 1);
        let importance = done.importance();
        assert_eq!(importance[0].0, "lr");
        assert!(
            importance[0].1 > 0.6 && importance[1].1 < 0.3,
            "{importance:?}"
        );
        assert!(
            search(tuning(Method::Random, 3, 27), 1)
                .importance()
                .is_empty()
        );
    }
}
