//! Trees as a learner: one generation after the other.

use crate::part::{Tables, TreesPart};
use crate::session::Session;
use crate::watch::watch;
use crate::xgboost::{Communicator, Tracker, Xgboost};
use crate::{TreesError, load_or_bring_xgboost, plan};
use lockstep_base::fs::CacheDir;
use lockstep_events::control::Assignment;
use lockstep_learner::{Gang, GenerationEnd, Learner, LearnerFailure, Reporter, ShareError, Wish};
use serde_json::{Value, json};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How long the ranks may take to tell each other where they meet.
const MEET: Duration = Duration::from_secs(60);
/// How long after a failure it is waited for the news that a peer was lost, which would be its cause.
const CAUSE: Duration = Duration::from_secs(2);
/// How often it is looked for such news.
const LOOK: Duration = Duration::from_millis(10);

/// Opens the learner that an assignment of trees is for: its library and its tables.
///
/// # Errors
/// When they cannot be used.
pub(crate) fn open(assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
    let open = || {
        let part = part(assignment)?;
        Ok(Growing {
            xgboost: load_or_bring_xgboost(part.settings.device, &mut |message| {
                eprintln!("{message}")
            })?,
            tables: Tables::of_part(&part, &CacheDir::locate()?)?,
        })
    };
    match open() {
        Ok(learner) => Ok(Box::new(learner)),
        Err(error) => Err(failure(error, 0)),
    }
}

/// Grows trees. Its tables are kept from one generation to the next.
struct Growing {
    xgboost: Xgboost,
    tables: Tables,
}

impl Learner for Growing {
    fn train(
        &mut self,
        gang: &Gang<'_>,
        reporter: &mut Reporter,
    ) -> Result<GenerationEnd, LearnerFailure> {
        let mut rounds = 0;
        let trained = self.generation(gang, reporter, &mut rounds);
        trained.map_err(|error| {
            let cause = lost_peer(gang, &error);
            failure(cause.unwrap_or(error), rounds)
        })
    }
}

impl Growing {
    fn generation(
        &self,
        gang: &Gang<'_>,
        reporter: &mut Reporter,
        rounds: &mut u64,
    ) -> Result<GenerationEnd, TreesError> {
        let part = part(gang.assignment())?;
        let settings = plan(&part.settings, &self.tables)?;
        let (tracker, together) = self.join(gang)?;
        let trained = thread::scope(|scope| {
            let (over, heard) = channel();
            if let Some(hang_up) = together.as_ref().map(Communicator::hang_up) {
                scope.spawn(move || watch(gang, &hang_up, &heard));
            }
            let session = Session::begin(
                &self.xgboost,
                &part,
                &settings,
                &self.tables,
                gang,
                &together,
            );
            let trained = session.and_then(|mut session| session.train(reporter, rounds));
            drop(over);
            trained
        });
        match (&trained, together) {
            (Ok(_), Some(together)) => together.leave()?,
            // The tracker of a gang that fell apart waits for those who will not come: nobody waits for that.
            (Err(_), together) => {
                thread::spawn(move || drop(tracker));
                drop(together);
            }
            (Ok(_), None) => {}
        }
        trained
    }

    /// Meets the other ranks. One rank needs nobody.
    fn join(&self, gang: &Gang<'_>) -> Result<(Option<Tracker>, Option<Communicator>), TreesError> {
        let Assignment { rank, workers, .. } = *gang.assignment();
        if workers == 1 {
            return Ok((None, None));
        }
        let patience = Duration::from_secs_f64(gang.assignment().deadline_s).max(MEET);
        let tracker = match rank {
            0 => Some(Tracker::start(
                &self.xgboost,
                gang.address(),
                workers,
                patience,
            )?),
            _ => None,
        };
        let own = tracker.as_ref();
        let own = own.map_or(Value::Null, |own| json!([own.address(), own.port()]));
        let all = gang.share("tracker", own, None, MEET)?;
        let meet: (String, u16) =
            serde_json::from_value(all[0].clone()).map_err(TreesError::Assignment)?;
        let meet = (meet.0.as_str(), meet.1);
        let together = Communicator::join(&self.xgboost, meet, rank, patience)?;
        Ok((tracker, Some(together)))
    }
}

fn part(assignment: &Assignment) -> Result<TreesPart, TreesError> {
    serde_json::from_value(assignment.learner.clone()).map_err(TreesError::Assignment)
}

/// A call of XGBoost's that failed among several ranks may only say that a peer is gone. The coordinator knows.
fn lost_peer(gang: &Gang<'_>, error: &TreesError) -> Option<TreesError> {
    if !matches!(error, TreesError::Xgboost(_)) || gang.assignment().workers == 1 {
        return None;
    }
    let until = Instant::now() + CAUSE;
    while Instant::now() < until {
        if gang.is_called_off() || gang.wish() == Wish::Stop {
            return Some(ShareError::CalledOff.into());
        }
        thread::sleep(LOOK);
    }
    None
}

/// What an error after so many rounds means to the gang.
fn failure(error: TreesError, step: u64) -> LearnerFailure {
    let shared = match error {
        TreesError::Share(ShareError::CalledOff) => true,
        TreesError::Gang(ref error) => error.is_peer_lost(),
        _ => false,
    };
    LearnerFailure {
        peer_lost: shared,
        again: false,
        ends_process: false,
        waiting_for: None,
        step,
        error: error.into(),
    }
}
