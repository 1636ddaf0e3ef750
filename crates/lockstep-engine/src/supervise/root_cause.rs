//! Finds out which worker failed first, and why.
//!
//! When one worker of a gang fails, the others fail with it: their peer is gone. Signs of that reach
//! the coordinator through three channels in any order (the control link, the process's exit, its
//! output), so the first sign is often only a consequence. A sign is therefore either a *cause* or a
//! *symptom*; causes win over symptoms, and among equals the earlier one wins. The coordinator waits
//! for a short moment after the first sign, so that a cause that is on its way is still heard.

use lockstep_launch::WorkerEnd;

/// A sign that a worker is in trouble.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sign {
    /// The worker said that it cannot go on, for a reason of its own.
    Reported(String),
    /// It ended before its work was done.
    Ended(WorkerEnd),
    /// The worker said that it cannot go on because another one is gone, or silent.
    PeerLost {
        /// What it said.
        error: String,
        /// The rank that it waited for in vain.
        waiting_for: Option<usize>,
    },
    /// The control link closed or carried something that is not a message.
    LinkLost(String),
    /// It gave no sign of life.
    Silent {
        /// For how long.
        seconds: f64,
    },
    /// It lives, but its work got no further.
    Stuck {
        /// For how long.
        seconds: f64,
    },
}

/// The signs seen so far.
#[derive(Debug, Default)]
pub(crate) struct RootCause {
    signs: Vec<(usize, Sign)>,
}

impl RootCause {
    /// Takes note of a sign from a worker. Signs count in the order in which they are noted.
    pub(crate) fn note(&mut self, rank: usize, sign: Sign) {
        self.signs.push((rank, sign));
    }

    /// Whether nothing went wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.signs.is_empty()
    }

    /// The rank of the worker that is known to have failed for a reason of its own.
    pub(crate) fn cause(&self) -> Option<usize> {
        self.first(|_, sign| self.is_cause(sign))
            .or_else(|| self.first(|rank, sign| self.is_own_exit(rank, sign)))
    }

    /// The rank of the worker that failed first: the first cause or, while none is known, the one that others
    /// wait for and that gives no sign itself, or else the first symptom.
    pub(crate) fn culprit(&self) -> Option<usize> {
        self.cause()
            .or_else(|| {
                // The link of one that gave up for lack of a peer closes too.
                let is_own = |rank| !self.lost_a_peer(rank);
                self.first(|rank, sign| matches!(sign, Sign::LinkLost(_)) && is_own(rank))
            })
            .or_else(|| self.silent())
            .or_else(|| self.first(|_, _| true))
    }

    /// The first worker that another one waited for in vain, and that gave no sign: a stopped or a
    /// stuck process cannot.
    fn silent(&self) -> Option<usize> {
        self.signs
            .iter()
            .filter_map(|(_, sign)| match sign {
                Sign::PeerLost { waiting_for, .. } => *waiting_for,
                _ => None,
            })
            .find(|rank| self.signs.iter().all(|(of, _)| of != rank))
    }

    /// Whether another one waited for `rank` in vain.
    pub(crate) fn is_awaited(&self, rank: usize) -> bool {
        self.complaint(rank).is_some()
    }

    /// What the first that waited for `rank` said about it.
    fn complaint(&self, rank: usize) -> Option<String> {
        self.signs.iter().find_map(|(by, sign)| match sign {
            Sign::PeerLost { error, waiting_for } if *waiting_for == Some(rank) => {
                Some(format!("it is silent; worker {by} says: {error}"))
            }
            _ => None,
        })
    }

    /// Why `rank` failed, in words: its own report if there is one, else what its end looked like.
    pub(crate) fn reason(&self, rank: usize) -> String {
        let rank_of = |sign: &Sign| match sign {
            Sign::Reported(_) | Sign::Silent { .. } | Sign::Stuck { .. } => 0,
            Sign::Ended(_) if !self.lost_a_peer(rank) => 1,
            Sign::PeerLost { .. } => 2,
            Sign::LinkLost(_) => 3,
            Sign::Ended(_) => 4,
        };
        let telling = self
            .signs
            .iter()
            .filter(|(of, _)| *of == rank)
            .map(|(_, sign)| sign)
            .min_by_key(|sign| rank_of(sign));
        match telling {
            Some(Sign::Reported(error) | Sign::PeerLost { error, .. }) => error.clone(),
            Some(Sign::Ended(end)) => end.to_string(),
            Some(Sign::Silent { seconds }) => {
                let silent = || format!("it gave no sign of life for {seconds:.0} s");
                self.complaint(rank).unwrap_or_else(silent)
            }
            Some(Sign::Stuck { seconds }) => {
                let stuck = || format!("it made no progress for {seconds:.0} s");
                self.complaint(rank).unwrap_or_else(stuck)
            }
            Some(Sign::LinkLost(error)) => format!("its control link was lost: {error}"),
            None => self
                .complaint(rank)
                .unwrap_or_else(|| "no sign of a failure".to_string()),
        }
    }

    /// Whether the last line that `rank` wrote may say why it failed: it ended by itself, and did
    /// not report.
    pub(crate) fn has_last_words(&self, rank: usize) -> bool {
        let own = || self.signs.iter().filter(|(of, _)| *of == rank);
        let reported = |sign: &Sign| matches!(sign, Sign::Reported(_) | Sign::PeerLost { .. });
        let ended_by_itself = |sign: &Sign| match sign {
            Sign::Ended(end) => end.has_last_words(),
            _ => false,
        };
        !own().any(|(_, sign)| reported(sign)) && own().any(|(_, sign)| ended_by_itself(sign))
    }

    fn is_cause(&self, sign: &Sign) -> bool {
        match sign {
            Sign::Reported(_) | Sign::Silent { .. } | Sign::Stuck { .. } => true,
            // A worker does not kill itself because a peer is gone; something else did.
            Sign::Ended(end) => end.is_violent(),
            Sign::PeerLost { .. } | Sign::LinkLost(_) => false,
        }
    }

    /// An exit that is not merely the end of a worker whose peer was lost.
    fn is_own_exit(&self, rank: usize, sign: &Sign) -> bool {
        matches!(sign, Sign::Ended(_)) && !self.lost_a_peer(rank)
    }

    fn lost_a_peer(&self, rank: usize) -> bool {
        self.signs
            .iter()
            .any(|(of, sign)| *of == rank && matches!(sign, Sign::PeerLost { .. }))
    }

    fn first(&self, is: impl Fn(usize, &Sign) -> bool) -> Option<usize> {
        self.signs
            .iter()
            .find(|(rank, sign)| is(*rank, sign))
            .map(|(rank, _)| *rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signalled(signal: i32) -> Sign {
        Sign::Ended(WorkerEnd::Signal(signal))
    }

    fn exited(code: i32) -> Sign {
        Sign::Ended(WorkerEnd::Code(code))
    }

    fn lost(error: &str, waiting_for: Option<usize>) -> Sign {
        let error = error.into();
        Sign::PeerLost { error, waiting_for }
    }

    fn signs(signs: &[(usize, Sign)]) -> RootCause {
        let mut cause = RootCause::default();
        for (rank, sign) in signs {
            cause.note(*rank, sign.clone());
        }
        cause
    }

    #[test]
    fn a_killed_worker_is_named_although_its_peer_complained_first() {
        let cause = signs(&[
            (0, lost("peer 1 is gone", Some(1))),
            (0, exited(1)),
            (1, Sign::LinkLost("closed".into())),
            (1, signalled(9)),
        ]);
        assert_eq!(cause.culprit(), Some(1));
        assert_eq!(cause.reason(1), "killed by signal 9 (SIGKILL)");
        assert!(!cause.has_last_words(1));
    }

    #[test]
    fn the_earlier_of_two_causes_is_named() {
        let cause = signs(&[
            (2, Sign::Reported("no space left".into())),
            (0, signalled(9)),
        ]);
        assert_eq!(cause.culprit(), Some(2));
        assert_eq!(cause.reason(2), "no space left");
    }

    #[test]
    fn a_workers_own_words_say_more_than_its_exit_code() {
        let cause = signs(&[(1, exited(1)), (1, Sign::Reported("loss is NaN".into()))]);
        assert_eq!(cause.culprit(), Some(1));
        assert_eq!(cause.reason(1), "loss is NaN");
        assert!(!cause.has_last_words(1));
    }

    #[test]
    fn a_lost_peer_is_only_named_when_nothing_else_is_known() {
        let mut cause = signs(&[(0, lost("peer is gone", None))]);
        assert_eq!(cause.cause(), None);
        assert_eq!(cause.culprit(), Some(0));
        cause.note(1, Sign::LinkLost("closed".into()));
        assert_eq!(cause.culprit(), Some(1));
        cause.note(1, exited(101));
        assert_eq!(cause.cause(), Some(1));
        assert_eq!(cause.reason(1), "exited with code 101");
        assert!(cause.has_last_words(1));
    }

    #[test]
    fn a_silent_worker_is_named_by_those_that_wait_for_it_and_for_each_other() {
        let cause = signs(&[
            (0, lost("rank 2 did not publish", Some(2))),
            (0, Sign::LinkLost("closed".into())),
            (0, exited(1)),
            (2, lost("rank 1 did not publish", Some(1))),
        ]);
        assert_eq!((cause.cause(), cause.culprit()), (None, Some(1)));
        assert_eq!(
            cause.reason(1),
            "it is silent; worker 2 says: rank 1 did not publish"
        );
    }

    #[test]
    fn an_end_without_a_result_is_a_cause_of_its_own() {
        let cause = signs(&[(0, exited(0))]);
        assert_eq!(cause.cause(), Some(0));
        assert_eq!(cause.reason(0), "ended before its work was done");
    }
}
