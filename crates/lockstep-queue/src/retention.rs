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
    /// Those of `ended`, each with when it ended in milliseconds since 1970, that are forgotten now.
    pub(crate) fn forgotten(self, mut ended: Vec<(u64, String)>, now_ms: u64) -> Vec<String> {
        ended.sort_by(|a, b| b.cmp(a));
        let age_ms = u64::try_from(self.age.as_millis()).unwrap_or(u64::MAX);
        let old = |at: u64| now_ms.saturating_sub(at) > age_ms;
        let numbered = ended.into_iter().enumerate();
        let gone = numbered.filter(|(n, (at, _))| *n >= self.count || old(*at));
        gone.map(|(_, (_, id))| id).collect()
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
        let ended = |at: &[u64]| at.iter().map(|at| (*at, at.to_string())).collect();
        assert_eq!(keep.forgotten(ended(&[1, 3, 2]), 5), ["1"]);
        assert_eq!(keep.forgotten(ended(&[20_000, 1]), 20_000), ["1"]);
        assert!(keep.forgotten(ended(&[]), 5).is_empty());
    }
}
