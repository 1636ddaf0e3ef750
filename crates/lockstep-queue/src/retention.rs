//! Which jobs that have ended are remembered.

use std::time::Duration;

/// Which jobs that have ended are remembered: the newest, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How many.
    pub count: usize,
    /// For how long after their end.
    pub age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            count: 1000,
            age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl Retention {
    /// Those of `ended`, each with its age and its number, that are forgotten now.
    pub(crate) fn forgotten(self, mut ended: Vec<(Duration, u64, String)>) -> Vec<String> {
        ended.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let numbered = ended.into_iter().enumerate();
        let gone = numbered.filter(|(n, (age, ..))| *n >= self.count || *age > self.age);
        gone.map(|(_, (.., id))| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_for_a_time() {
        let keep = Retention {
            count: 2,
            age: Duration::from_secs(10),
        };
        let ended = |ages: &[(u64, u64)]| {
            let of = |(age, number): &(u64, u64)| {
                (Duration::from_secs(*age), *number, number.to_string())
            };
            ages.iter().map(of).collect()
        };
        assert_eq!(keep.forgotten(ended(&[(4, 1), (2, 3), (3, 2)])), ["1"]);
        assert_eq!(keep.forgotten(ended(&[(5, 1), (5, 3), (5, 2)])), ["1"]);
        assert_eq!(keep.forgotten(ended(&[(0, 2), (11, 1)])), ["1"]);
        assert!(keep.forgotten(ended(&[])).is_empty());
    }
}
