//! What admits a worker to its control link, once.

use crate::{GangError, Secret};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Admits one worker to one seat of the gang, once. Whoever has it can pose as that worker and as no
/// other, so it travels through a private channel. `Debug` shows nothing of its key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeatToken {
    /// The seat.
    pub seat: usize,
    /// Which of the seat's workers it is for: each one that is started has another.
    pub incarnation: u32,
    /// What proves it.
    pub(crate) key: Secret,
}

/// The tokens that were given out and not used. Every clone is the same table.
#[derive(Debug, Clone, Default)]
pub struct Admissions(Arc<Mutex<HashMap<usize, SeatToken>>>);

impl Admissions {
    /// A token for a worker that is about to be started on `seat`; the seat's token before it, if it
    /// was not used, admits nobody any more.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn admit(&self, seat: usize, incarnation: u32) -> Result<SeatToken, GangError> {
        let token = SeatToken {
            seat,
            incarnation,
            key: Secret::random()?,
        };
        self.table().insert(seat, token.clone());
        Ok(token)
    }

    /// The key that a worker who says that it is this one must know.
    pub(crate) fn key(&self, seat: usize, incarnation: u32) -> Option<Secret> {
        let table = self.table();
        let token = table.get(&seat)?;
        (token.incarnation == incarnation).then(|| token.key.clone())
    }

    /// Uses a token up; false if it was used before.
    pub(crate) fn spend(&self, seat: usize, incarnation: u32) -> bool {
        let mut table = self.table();
        let valid = table
            .get(&seat)
            .is_some_and(|token| token.incarnation == incarnation);
        if valid {
            table.remove(&seat);
        }
        valid
    }

    fn table(&self) -> MutexGuard<'_, HashMap<usize, SeatToken>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_can_be_spent_once_and_only_the_newest_of_a_seat() {
        let admissions = Admissions::default();
        admissions.admit(3, 1).unwrap();
        admissions.admit(3, 2).unwrap();
        assert!(admissions.key(3, 1).is_none() && !admissions.spend(3, 1));
        assert!(admissions.key(3, 2).is_some() && admissions.spend(3, 2));
        assert!(admissions.key(3, 2).is_none() && !admissions.spend(3, 2));
    }

    #[test]
    fn a_token_travels_as_text_and_debug_shows_nothing_of_its_key() {
        let token = Admissions::default().admit(1, 5).unwrap();
        let text = serde_json::to_string(&token).unwrap();
        let again: SeatToken = serde_json::from_str(&text).unwrap();
        assert_eq!((again.seat, again.incarnation), (1, 5));
        assert_eq!(again.key.bytes(), token.key.bytes());
        assert!(format!("{token:?}").contains("Secret(..)"));
    }
}
