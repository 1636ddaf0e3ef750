//! Values that the workers of a generation share with each other through the coordinator: small things that they
//! must know of each other, and points at which they meet.

use lockstep_gang::GangError;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a value could not be shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// Not all ranks came to share theirs.
    #[error("{} did not come to {name:?} within {seconds} s", ranks(.missing))]
    Missing {
        /// What was shared.
        name: String,
        /// Who did not.
        missing: Vec<usize>,
        /// For how long they were waited for.
        seconds: f64,
    },
    /// The generation was called off.
    #[error("another worker was lost")]
    CalledOff,
    /// The coordinator is gone.
    #[error(transparent)]
    Gang(#[from] GangError),
}

fn ranks(missing: &[usize]) -> String {
    let words: Vec<String> = missing.iter().map(usize::to_string).collect();
    match missing.len() {
        1 => format!("rank {}", words[0]),
        _ => format!("ranks {}", words.join(", ")),
    }
}

/// What was heard of the present generation, by name and rank.
#[derive(Default)]
pub(crate) struct SharedValues {
    heard: Mutex<GenerationValues>,
    changed: Condvar,
}

/// How many names are remembered. What nobody waits for is forgotten when it is that old.
const REMEMBERED: usize = 1024;

#[derive(Default)]
struct GenerationValues {
    generation: u16,
    values: HashMap<String, HashMap<usize, Value>>,
    /// The names, from the oldest on.
    names: VecDeque<String>,
}

impl SharedValues {
    /// Takes in what a rank shares. What is of an older generation is forgotten.
    pub(crate) fn put(&self, generation: u16, name: String, rank: usize, value: Value) {
        let mut heard = self.lock();
        if generation > heard.generation {
            *heard = GenerationValues {
                generation,
                ..GenerationValues::default()
            };
        }
        if generation == heard.generation {
            if !heard.values.contains_key(&name) {
                heard.names.push_back(name.clone());
            }
            heard.values.entry(name).or_default().insert(rank, value);
            if heard.names.len() > REMEMBERED
                && let Some(oldest) = heard.names.pop_front()
            {
                heard.values.remove(&oldest);
            }
        }
        self.changed.notify_all();
    }

    /// Takes the values of these ranks once they are there, waiting for so long at most.
    pub(crate) fn take(
        &self,
        generation: u16,
        name: &str,
        ranks: &[usize],
        limit: Duration,
    ) -> Option<Vec<Value>> {
        let is_whole = |heard: &GenerationValues| {
            let values = heard.values.get(name);
            let whole =
                |all: &HashMap<usize, Value>| ranks.iter().all(|rank| all.contains_key(rank));
            heard.generation == generation && values.is_some_and(whole)
        };
        let mut heard = self.lock();
        if !is_whole(&heard) {
            let waited = self.changed.wait_timeout(heard, limit);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !is_whole(&heard) {
            return None;
        }
        let mut values = heard.values.remove(name)?;
        heard.names.retain(|kept| kept != name);
        ranks.iter().map(|rank| values.remove(rank)).collect()
    }

    /// Those of these ranks whose values are not there.
    pub(crate) fn missing(&self, generation: u16, name: &str, ranks: &[usize]) -> Vec<usize> {
        let heard = self.lock();
        let of_generation = heard.generation == generation;
        let values = heard.values.get(name).filter(|_| of_generation);
        let is_there = |rank: &usize| values.is_some_and(|values| values.contains_key(rank));
        ranks
            .iter()
            .copied()
            .filter(|rank| !is_there(rank))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, GenerationValues> {
        // Nobody panics while holding it in the middle of a change.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_taken_when_all_are_there_and_those_of_older_generations_never() {
        let shared = SharedValues::default();
        let take = |generation| shared.take(generation, "a", &[0, 1], Duration::ZERO);
        shared.put(1, "a".to_owned(), 1, json!("old"));
        shared.put(2, "a".to_owned(), 0, json!("zero"));
        assert_eq!(take(2), None);
        assert_eq!(shared.missing(2, "a", &[0, 1]), [1]);
        shared.put(1, "a".to_owned(), 1, json!("late"));
        assert_eq!(take(2), None);
        shared.put(2, "a".to_owned(), 1, json!("one"));
        assert_eq!(take(2), Some(vec![json!("zero"), json!("one")]));
        assert_eq!(take(2), None, "they are taken once");
    }
}
