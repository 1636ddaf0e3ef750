//! Checkpoints while training goes on.
//!
//! Rank 0 alone decides when, since only it knows whether the disk keeps up, and its vote at the end of
//! a step makes all ranks agree. Then the optimizer's vectors are gathered, rank 0 copies the state, and
//! a thread of its own hashes and writes the copy. There is one copy: while it is being written no other
//! is taken, and a checkpoint that falls due meanwhile is taken at the first step after. So the step
//! loop waits for the copy and never for the disk.
//!
//! A checkpoint that cannot be written is worth a warning and no more: training goes on, and the next
//! one is tried in its turn. The last one, which a run that ends leaves behind, is an error.

use crate::TrainError;
use crate::snapshot::{Draft, StateView, Subject};
use lockstep_learner::Wish;
use lockstep_resolve::{CheckpointRules, Interval};
use lockstep_runs::checkpoint::CheckpointWriter;
use lockstep_runs::{Generation, RunDir, RunsError};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What ranks want at the end of a step. The largest vote counts, for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Vote {
    GoOn = 0,
    Checkpoint = 1,
    Pause = 2,
    Stop = 3,
}

impl From<u64> for Vote {
    fn from(vote: u64) -> Self {
        match vote {
            0 => Self::GoOn,
            1 => Self::Checkpoint,
            2 => Self::Pause,
            _ => Self::Stop,
        }
    }
}

/// Where a step ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepEnd {
    /// Steps done with it.
    pub(crate) step: u64,
    /// The epoch that ends with it, counted from 1.
    pub(crate) epoch: Option<u32>,
    /// Whether training ends with it, which leaves a checkpoint anyway.
    pub(crate) last: bool,
}

/// A rank's part in the run's checkpoints. Only rank 0's does anything.
pub(crate) struct Checkpointer(Option<CheckpointDuty>);

/// Rank 0's part.
struct CheckpointDuty {
    due: Due,
    background: Background,
    /// Whether the last one that was tried could not be written.
    failing: bool,
}

impl Checkpointer {
    /// For a rank that only follows rank 0.
    pub(crate) fn follower() -> Self {
        Self(None)
    }

    /// For rank 0. Removes what a writer before left half done.
    pub(crate) fn writer(
        run: &RunDir,
        generation: Generation,
        rules: &CheckpointRules,
        subject: Subject,
    ) -> Result<Self, TrainError> {
        let writer = run.checkpoints().writer(rules.keep, generation)?;
        Ok(Self(Some(CheckpointDuty {
            due: Due::new(rules.every),
            background: Background::start(writer, subject)?,
            failing: false,
        })))
    }

    /// This rank's vote on what follows a step.
    pub(crate) fn vote(&mut self, wish: Wish, end: StepEnd) -> Vote {
        let wants = self.0.as_mut().is_some_and(|duty| duty.wants(end));
        match (wish, wants) {
            (Wish::Stop, _) => Vote::Stop,
            (Wish::Pause, _) => Vote::Pause,
            (Wish::GoOn, true) => Vote::Checkpoint,
            (Wish::GoOn, false) => Vote::GoOn,
        }
    }

    /// What a person should know about the last checkpoint.
    ///
    /// # Errors
    /// When the run has gone on without this gang, or its folder is gone: whatever it does from here on is for nothing.
    pub(crate) fn news(&mut self) -> Result<Option<String>, TrainError> {
        self.0.as_mut().map_or(Ok(None), CheckpointDuty::news)
    }

    /// Copies the state and leaves the rest to the thread. To be called after a vote for it.
    pub(crate) fn take(&mut self, view: &StateView<'_>) {
        if let Some(duty) = &mut self.0 {
            duty.due.taken();
            duty.background.hand_over(view);
        }
    }

    /// Writes the last checkpoint, and waits for it.
    pub(crate) fn finish(&mut self, view: &StateView<'_>) -> Result<(), TrainError> {
        let Some(duty) = &mut self.0 else {
            return Ok(());
        };
        // What became of the one before does not matter any more.
        let _ = duty.background.wait();
        duty.background.hand_over(view);
        Ok(duty.background.wait()?)
    }
}

impl CheckpointDuty {
    fn wants(&mut self, end: StepEnd) -> bool {
        self.due.note(end);
        self.due.wanted && !end.last && self.background.draft.is_some()
    }

    fn news(&mut self) -> Result<Option<String>, TrainError> {
        let Some(outcome) = self.background.look() else {
            return Ok(None);
        };
        let failed_before = std::mem::replace(&mut self.failing, outcome.is_err());
        match outcome {
            Err(error) if error.ends_the_run() => Err(error.into()),
            // Said once, not every few hundred steps.
            Err(error) if !failed_before => Ok(Some(format!(
                "no checkpoint was written: {error}; training goes on, and the next one is tried when it is due"
            ))),
            _ => Ok(None),
        }
    }
}

/// When the next checkpoint is due.
struct Due {
    every: Interval,
    /// Whether it is due and was not taken yet.
    wanted: bool,
    since: Instant,
}

impl Due {
    fn new(every: Interval) -> Self {
        Self {
            every,
            wanted: false,
            since: Instant::now(),
        }
    }

    fn note(&mut self, end: StepEnd) {
        self.wanted |= match self.every {
            Interval::Never => false,
            Interval::Steps(steps) => end.step.is_multiple_of(steps),
            Interval::Epochs(epochs) => {
                (end.epoch).is_some_and(|e| u64::from(e).is_multiple_of(epochs))
            }
            Interval::Seconds(seconds) => self.since.elapsed() >= Duration::from_secs_f64(seconds),
        };
    }

    fn taken(&mut self) {
        self.wanted = false;
        self.since = Instant::now();
    }
}

/// The thread that writes, and the one draft that goes to it and comes back.
struct Background {
    /// Here unless it is being written.
    draft: Option<Draft>,
    to: Option<SyncSender<Draft>>,
    back: Receiver<(Draft, Result<(), RunsError>)>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    fn start(mut writer: CheckpointWriter, subject: Subject) -> Result<Self, TrainError> {
        let (to, drafts) = sync_channel::<Draft>(1);
        let (done, back) = sync_channel(1);
        let write = move || {
            for draft in drafts {
                let written = writer.write(&draft.label(), draft.header(&subject), &draft.parts());
                if done.send((draft, written.map(drop))).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("checkpoint".into())
            .spawn(write)
            .map_err(TrainError::Thread)?;
        Ok(Self {
            draft: Some(Draft::default()),
            to: Some(to),
            back,
            thread: Some(thread),
        })
    }

    /// Copies the state into the draft, which must be here, and sends it off.
    fn hand_over(&mut self, view: &StateView<'_>) {
        let mut draft = self.draft.take().expect("nobody votes for two at a time");
        draft.fill(view);
        let to = self.to.as_ref().expect("it is there until the end");
        to.send(draft)
            .expect("the thread waits for drafts until the end");
    }

    /// What became of the draft, if it has come back since the last look.
    fn look(&mut self) -> Option<Result<(), RunsError>> {
        if self.draft.is_some() {
            return None;
        }
        match self.back.try_recv() {
            Ok((draft, outcome)) => {
                self.draft = Some(draft);
                Some(outcome)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => unreachable!("the thread returns every draft"),
        }
    }

    /// Waits until the draft is here, and says what became of it.
    fn wait(&mut self) -> Result<(), RunsError> {
        if self.draft.is_some() {
            return Ok(());
        }
        let (draft, outcome) = self.back.recv().expect("the thread returns every draft");
        self.draft = Some(draft);
        outcome
    }
}

impl Drop for Background {
    /// What is being written is finished first: it may be what the run goes on from.
    fn drop(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has ended the process, or is being reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resume_fingerprint::ResumeFingerprint;
    use crate::snapshot::Position;
    use lockstep_measure::{BestBy, Measure};
    use lockstep_place::{Access, Place};
    use lockstep_runs::RunLock;
    use std::fs;

    fn end(step: u64, epoch: Option<u32>) -> StepEnd {
        StepEnd {
            step,
            epoch,
            last: false,
        }
    }

    /// The steps, of 12 with an epoch every 4, after which a checkpoint is due.
    fn due(every: Interval) -> Vec<u64> {
        let mut due = Due::new(every);
        let mut at = Vec::new();
        for step in 1..=12 {
            due.note(end(step, (step % 4 == 0).then_some(step as u32 / 4)));
            if due.wanted {
                due.taken();
                at.push(step);
            }
        }
        at
    }

    #[test]
    fn checkpoints_fall_due_as_the_job_says() {
        assert_eq!(due(Interval::Steps(5)), [5, 10]);
        assert_eq!(due(Interval::Epochs(1)), [4, 8, 12]);
        assert_eq!(due(Interval::Epochs(2)), [8]);
        assert_eq!(due(Interval::Never), [] as [u64; 0]);
        assert_eq!(due(Interval::Seconds(3600.0)), [] as [u64; 0]);
        assert_eq!(due(Interval::Seconds(1e-9)).len(), 12);
    }

    struct Scratch {
        _store: tempfile::TempDir,
        run: RunDir,
        lock: RunLock,
    }

    impl Scratch {
        fn new() -> Self {
            let store = tempfile::tempdir().unwrap();
            let path = store.path().to_str().unwrap();
            let place = Place::parse(path, &Access::default()).unwrap();
            let (run, lock) = RunDir::create(&place, "job").unwrap();
            Self {
                _store: store,
                run,
                lock,
            }
        }

        fn writer(&self) -> Checkpointer {
            let rules = CheckpointRules {
                every: Interval::Steps(1),
                keep: 3,
                best: BestBy::Measure(Measure::Loss),
            };
            let subject = Subject {
                input_shape: [1, 1, 1],
                classes: 2,
                card: None,
                fingerprint: ResumeFingerprint::default(),
            };
            let generation = self.lock.begin(1, None).unwrap();
            Checkpointer::writer(&self.run, generation, &rules, subject).unwrap()
        }

        /// The step of the newest checkpoint.
        fn newest(&self) -> Option<u64> {
            let found = self.run.checkpoints().newest().unwrap()?;
            found.checkpoint.header()["step"].as_u64()
        }
    }

    fn with_view<T>(step: u64, then: impl FnOnce(&StateView<'_>) -> T) -> T {
        let position = Position {
            step,
            ..Position::default()
        };
        then(&StateView {
            position: &position,
            seconds: 0.0,
            state: &[1.0, 2.0],
            planes: [&[3.0, 4.0], &[]],
            average: None,
            best: None,
            history: "",
        })
    }

    #[test]
    fn what_falls_due_while_the_disk_is_busy_is_taken_as_soon_as_it_is_not() {
        let place = Scratch::new();
        let mut checkpoints = place.writer();
        assert_eq!(checkpoints.vote(Wish::GoOn, end(1, None)), Vote::Checkpoint);
        with_view(1, |view| checkpoints.take(view));
        // Nobody has looked yet whether the disk is done, so it counts as busy.
        assert_eq!(checkpoints.vote(Wish::GoOn, end(2, None)), Vote::GoOn);
        assert_eq!(checkpoints.vote(Wish::Stop, end(2, None)), Vote::Stop);
        while checkpoints.0.as_ref().unwrap().background.draft.is_none() {
            assert_eq!(checkpoints.news().unwrap(), None);
        }
        assert_eq!(place.newest(), Some(1));
        assert_eq!(checkpoints.vote(Wish::GoOn, end(3, None)), Vote::Checkpoint);
        let last = StepEnd {
            last: true,
            ..end(3, None)
        };
        assert_eq!(checkpoints.vote(Wish::GoOn, last), Vote::GoOn);
        with_view(3, |view| checkpoints.finish(view)).unwrap();
        assert_eq!(place.newest(), Some(3));
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_an_error_at_the_end() {
        let place = Scratch::new();
        let mut checkpoints = place.writer();
        let folder = place.run.checkpoints();
        let folder = folder.folder().local().unwrap().to_owned();
        fs::remove_dir(&folder).unwrap();
        let mut told = Vec::new();
        for step in 1..=3 {
            with_view(step, |view| checkpoints.take(view));
            while checkpoints.0.as_ref().unwrap().background.draft.is_none() {
                told.extend(checkpoints.news().unwrap());
            }
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(folder.to_str().unwrap()), "{told:?}");
        let error = with_view(4, |view| checkpoints.finish(view)).unwrap_err();
        assert!(
            error.to_string().contains(folder.to_str().unwrap()),
            "{error}"
        );
        fs::create_dir(&folder).unwrap();
        with_view(5, |view| checkpoints.finish(view)).unwrap();
        assert_eq!(place.newest(), Some(5));
    }

    #[test]
    fn what_is_on_its_way_when_a_trainer_ends_is_written() {
        let place = Scratch::new();
        let mut checkpoints = place.writer();
        with_view(7, |view| checkpoints.take(view));
        drop(checkpoints);
        assert_eq!(place.newest(), Some(7));
    }

    #[test]
    fn a_gang_that_was_replaced_writes_nothing_and_learns_why() {
        let place = Scratch::new();
        let mut checkpoints = place.writer();
        with_view(1, |view| checkpoints.finish(view)).unwrap();
        let newer = place.lock.begin(2, None).unwrap();
        with_view(2, |view| checkpoints.take(view));
        let error = loop {
            match checkpoints.news() {
                Err(error) => break error.to_string(),
                Ok(words) => assert_eq!(words, None),
            }
        };
        assert!(error.contains(&newer.to_string()), "{error}");
        assert_eq!(place.newest(), Some(1));
    }

    #[test]
    fn a_follower_never_asks_for_a_checkpoint() {
        let mut follower = Checkpointer::follower();
        assert_eq!(follower.vote(Wish::GoOn, end(1, Some(1))), Vote::GoOn);
        assert_eq!(follower.vote(Wish::Stop, end(1, Some(1))), Vote::Stop);
        with_view(1, |view| follower.finish(view)).unwrap();
    }
}
