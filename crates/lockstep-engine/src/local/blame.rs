//! Finds out which worker failed first, and why.
//!
//! When one worker of a gang fails, the others fail with it: their peer is gone. Signs of that reach
//! the coordinator through three channels in any order (the control link, the process's exit, its
//! output), so the first sign is often only a consequence. A sign is therefore either a *cause* or a
//! *symptom*; causes win over symptoms, and among equals the earlier one wins. The coordinator waits
//! for a short moment after the first sign, so that a cause that is on its way is still heard.

use signal_hook::consts::SIGABRT;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A sign that a worker is in trouble.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sign {
    /// The worker said that it cannot go on, for a reason of its own.
    Reported(String),
    /// The process ended before its work was done.
    Exited(ExitStatus),
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
}

/// The signs seen so far.
#[derive(Debug, Default)]
pub(super) struct Blame {
    signs: Vec<(usize, Sign)>,
}

impl Blame {
    /// Takes note of a sign from a worker. Signs count in the order in which they are noted.
    pub(super) fn note(&mut self, rank: usize, sign: Sign) {
        self.signs.push((rank, sign));
    }

    /// Whether nothing went wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.signs.is_empty()
    }

    /// The rank of the worker that is known to have failed for a reason of its own.
    pub(super) fn cause(&self) -> Option<usize> {
        self.first(|_, sign| self.is_cause(sign))
            .or_else(|| self.first(|rank, sign| self.is_own_exit(rank, sign)))
    }

    /// The rank of the worker to blame: the first cause or, while none is known, the one that others
    /// wait for and that gives no sign itself, or else the first symptom.
    pub(super) fn culprit(&self) -> Option<usize> {
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
    pub(super) fn is_awaited(&self, rank: usize) -> bool {
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
    pub(super) fn reason(&self, rank: usize) -> String {
        let rank_of = |sign: &Sign| match sign {
            Sign::Reported(_) | Sign::Silent { .. } => 0,
            Sign::Exited(_) if !self.lost_a_peer(rank) => 1,
            Sign::PeerLost { .. } => 2,
            Sign::LinkLost(_) => 3,
            Sign::Exited(_) => 4,
        };
        let telling = self
            .signs
            .iter()
            .filter(|(of, _)| *of == rank)
            .map(|(_, sign)| sign)
            .min_by_key(|sign| rank_of(sign));
        match telling {
            Some(Sign::Reported(error) | Sign::PeerLost { error, .. }) => error.clone(),
            Some(Sign::Exited(status)) => describe_exit(*status),
            Some(Sign::Silent { seconds }) => {
                let silent = || format!("it gave no sign of life for {seconds:.0} s");
                self.complaint(rank).unwrap_or_else(silent)
            }
            Some(Sign::LinkLost(error)) => format!("its control link was lost: {error}"),
            None => self
                .complaint(rank)
                .unwrap_or_else(|| "no sign of a failure".to_string()),
        }
    }

    /// Whether the last line that `rank` wrote may say why it failed: it ended by itself, and did
    /// not report.
    pub(super) fn has_last_words(&self, rank: usize) -> bool {
        let own = || self.signs.iter().filter(|(of, _)| *of == rank);
        let reported = |sign: &Sign| matches!(sign, Sign::Reported(_) | Sign::PeerLost { .. });
        let ended_by_itself = |sign: &Sign| match sign {
            Sign::Exited(status) => matches!(status.signal(), None | Some(SIGABRT)),
            _ => false,
        };
        !own().any(|(_, sign)| reported(sign)) && own().any(|(_, sign)| ended_by_itself(sign))
    }

    fn is_cause(&self, sign: &Sign) -> bool {
        match sign {
            Sign::Reported(_) | Sign::Silent { .. } => true,
            // A worker does not kill itself because a peer is gone; something else did.
            Sign::Exited(status) => status.signal().is_some(),
            Sign::PeerLost { .. } | Sign::LinkLost(_) => false,
        }
    }

    /// An exit that is not merely the end of a worker whose peer was lost.
    fn is_own_exit(&self, rank: usize, sign: &Sign) -> bool {
        matches!(sign, Sign::Exited(_)) && !self.lost_a_peer(rank)
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

/// How a process ended, in words: its exit code, or the number and the name of the signal.
pub(super) fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        (None, Some(0)) => "ended before its work was done".to_string(),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signalled(signal: i32) -> Sign {
        Sign::Exited(ExitStatus::from_raw(signal))
    }

    fn exited(code: i32) -> Sign {
        Sign::Exited(ExitStatus::from_raw(code << 8))
    }

    fn lost(error: &str, waiting_for: Option<usize>) -> Sign {
        let error = error.into();
        Sign::PeerLost { error, waiting_for }
    }

    fn blame(signs: &[(usize, Sign)]) -> Blame {
        let mut blame = Blame::default();
        for (rank, sign) in signs {
            blame.note(*rank, sign.clone());
        }
        blame
    }

    #[test]
    fn a_killed_worker_is_blamed_although_its_peer_complained_first() {
        let blame = blame(&[
            (0, lost("peer 1 is gone", Some(1))),
            (0, exited(1)),
            (1, Sign::LinkLost("closed".into())),
            (1, signalled(9)),
        ]);
        assert_eq!(blame.culprit(), Some(1));
        assert_eq!(blame.reason(1), "killed by signal 9 (SIGKILL)");
        assert!(!blame.has_last_words(1));
    }

    #[test]
    fn the_earlier_of_two_causes_is_blamed() {
        let blame = blame(&[
            (2, Sign::Reported("no space left".into())),
            (0, signalled(9)),
        ]);
        assert_eq!(blame.culprit(), Some(2));
        assert_eq!(blame.reason(2), "no space left");
    }

    #[test]
    fn a_workers_own_words_say_more_than_its_exit_code() {
        let blame = blame(&[(1, exited(1)), (1, Sign::Reported("loss is NaN".into()))]);
        assert_eq!(blame.culprit(), Some(1));
        assert_eq!(blame.reason(1), "loss is NaN");
        assert!(!blame.has_last_words(1));
    }

    #[test]
    fn a_lost_peer_is_only_blamed_on_when_nothing_else_is_known() {
        let mut blame = blame(&[(0, lost("peer is gone", None))]);
        assert_eq!(blame.cause(), None);
        assert_eq!(blame.culprit(), Some(0));
        blame.note(1, Sign::LinkLost("closed".into()));
        assert_eq!(blame.culprit(), Some(1));
        blame.note(1, exited(101));
        assert_eq!(blame.cause(), Some(1));
        assert_eq!(blame.reason(1), "exited with code 101");
        assert!(blame.has_last_words(1));
    }

    #[test]
    fn a_silent_worker_is_blamed_by_those_that_wait_for_it_and_for_each_other() {
        let blame = blame(&[
            (0, lost("rank 2 did not publish", Some(2))),
            (0, Sign::LinkLost("closed".into())),
            (0, exited(1)),
            (2, lost("rank 1 did not publish", Some(1))),
        ]);
        assert_eq!((blame.cause(), blame.culprit()), (None, Some(1)));
        assert_eq!(
            blame.reason(1),
            "it is silent; worker 2 says: rank 1 did not publish"
        );
    }

    #[test]
    fn an_end_without_a_result_is_a_cause_of_its_own() {
        let blame = blame(&[(0, exited(0))]);
        assert_eq!(blame.cause(), Some(0));
        assert_eq!(blame.reason(0), "ended before its work was done");
    }

    #[test]
    fn an_unknown_signal_is_given_by_its_number() {
        assert_eq!(
            describe_exit(ExitStatus::from_raw(42)),
            "killed by signal 42"
        );
    }
}
