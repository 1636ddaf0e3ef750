//! A job on a cluster, followed to its end as if it ran here.
//!
//! The events of the run are lines of the job's log. They are shown by the same views as those of `lockstep run`,
//! and the last of them, the result, is shown once whoever runs it has confirmed the job's end.

mod interrupts;
mod lines;
mod outcome;
mod remote;

pub(super) use outcome::command_outcome;
pub(super) use remote::{NotTold, OnRay, Remote, print_log};

use super::run::{failure, view_as};
use crate::args::FollowArgs;
use crate::signals::INTERRUPTED;
use crate::view::{Options, View, harmless};
use interrupts::{Asked, Interrupts};
use lines::{Line, Lines};
use lockstep_cluster::jobs::{Heard, JobInfo, Needs};
use lockstep_events::event::{Event, RunResult};
use outcome::Outcome;
use std::collections::VecDeque;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The key of a job's metadata that says that it is ours, and so tells a result.
pub(super) const OURS: &str = "lockstep_version";

/// How often signals are looked at while the log is quiet.
const TICK: Duration = Duration::from_millis(200);
/// How long, and how often, the first step is looked for in the log itself: its connection shows it seconds later.
const EARLY: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);
/// How often a job whose run has not begun is asked why.
const WHY_NOT_YET: Duration = Duration::from_secs(5);
/// How often a job that has told its result is asked whether it has ended.
const ENDED: Duration = Duration::from_millis(250);
/// How long the head may take to notice the end of a job that has told its result.
const NOTICED: Duration = Duration::from_secs(60);
/// How many lines that are no events are kept for when things go wrong.
const KEPT: usize = 20;

/// A job, and whom it is shown to.
pub(super) struct Follow<'c> {
    remote: Box<dyn Remote + 'c>,
    id: String,
    args: FollowArgs,
    started_at: Instant,
    sent: Option<Needs>,
    view: Box<dyn View>,
    /// The last result that the run told.
    result: Option<RunResult>,
    /// Whether the run has told anything.
    begun: bool,
    /// Whether the run has told of its first step, or its end.
    stepped: bool,
    /// The last lines that were no events.
    said: VecDeque<String>,
    lines: Lines,
    lost: bool,
}

/// Why following ended.
enum End {
    /// The job has ended.
    Job(Box<JobInfo>),
    /// Whoever watched has left.
    Left,
}

impl<'c> Follow<'c> {
    /// Follows a job and shows it in `view`.
    pub(super) fn new(
        remote: Box<dyn Remote + 'c>,
        args: &FollowArgs,
        started_at: Instant,
        view: Box<dyn View>,
    ) -> Self {
        Self {
            id: remote.id().to_owned(),
            remote,
            args: args.clone(),
            started_at,
            sent: None,
            view,
            result: None,
            begun: false,
            stepped: false,
            said: VecDeque::new(),
            lines: Lines::default(),
            lost: false,
        }
    }

    /// What the program needs that travelled with the job, for when it does not run there.
    pub(super) fn with_program(mut self, sent: Option<Needs>) -> Self {
        self.sent = sent;
        self
    }

    /// Shows the job to its end, and returns what this command ends with.
    pub(super) fn finish(mut self) -> anyhow::Result<ExitCode> {
        let job = match self.until_ended() {
            Ok(End::Job(job)) => job,
            Ok(End::Left) => return Ok(ExitCode::from(INTERRUPTED)),
            Err(error) => {
                if self.args.show.json && !super::is_broken_pipe(&error) {
                    let failed = failure(self.started_at, &error);
                    self.view.show(&Event::Result(failed))?;
                }
                return Err(error);
            }
        };
        let outcome = self.judge(&job)?;
        self.conclude(&job, outcome)
    }

    fn until_ended(&mut self) -> anyhow::Result<End> {
        let mut interrupts = Interrupts::heed()?;
        let began = Instant::now();
        let (mut asked_why, mut looked, mut asked_end) = (began, began, began);
        loop {
            match interrupts.asked() {
                Asked::Nothing => (),
                Asked::Wait => self.tell(&format!(
                    "the job `{}` goes on; press Ctrl-C again within 3 seconds to stop it",
                    self.id
                ))?,
                Asked::Leave => {
                    self.leave();
                    return Ok(End::Left);
                }
                Asked::Stop => {
                    self.tell(&format!("stopping the job `{}`", self.id))?;
                    self.remote.stop()?;
                }
                Asked::Now => return Ok(End::Left),
            }
            if !self.stepped && looked.elapsed() > LOOK && began.elapsed() < EARLY {
                looked = Instant::now();
                if let Some(text) = self.remote.look() {
                    self.text(&text)?;
                }
            }
            match self.remote.next(TICK)? {
                Heard::Text(text) => {
                    self.found_again()?;
                    self.text(&text)?;
                }
                Heard::Nothing => (),
                Heard::Lost(why) => self.lost(&why)?,
                Heard::Ended(job) => {
                    if let Some(rest) = self.lines.rest() {
                        self.line(rest)?;
                    }
                    return Ok(End::Job(job));
                }
            }
            // The log's connection is closed seconds after the job's end, which need not be waited for.
            if self.result.is_some() && self.remote.may_go_on() {
                if asked_end.elapsed() > ENDED {
                    asked_end = Instant::now();
                    if let Ok(job) = self.remote.job()
                        && job.status.is_final()
                    {
                        return Ok(End::Job(Box::new(job)));
                    }
                }
            } else if self.result.is_some() {
                return Ok(End::Job(Box::new(self.confirmed()?)));
            }
            if !self.begun && asked_why.elapsed() > WHY_NOT_YET {
                asked_why = Instant::now();
                self.say_why_not_yet()?;
            }
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        for line in self.lines.push(text) {
            self.line(line)?;
        }
        Ok(())
    }

    fn line(&mut self, line: Line) -> io::Result<()> {
        match line {
            Line::Event(event) => {
                self.begun = true;
                self.stepped |= matches!(*event, Event::FirstStep { .. } | Event::Result(_));
                match *event {
                    Event::Result(result) => self.result = Some(result),
                    event => self.view.show(&event)?,
                }
            }
            Line::Head(message) if self.begun => self.keep(message),
            Line::Head(message) => {
                let message = harmless(&message);
                self.view.show(&Event::Preparing { message })?;
            }
            Line::Other(line) => {
                if self.args.show.verbose {
                    eprintln!("[job] {}", harmless(&line));
                }
                self.keep(line);
            }
        }
        Ok(())
    }

    fn keep(&mut self, line: String) {
        if self.said.len() == KEPT {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    /// A job whose run has told its result ends soon; it has ended when the head says so.
    fn confirmed(&mut self) -> anyhow::Result<JobInfo> {
        let began = Instant::now();
        let limit = NOTICED.max(self.args.patience);
        loop {
            let who = self.remote.who();
            let cause = match self.remote.job() {
                Ok(job) if job.status.is_final() => return Ok(job),
                Ok(job) => format!(
                    "the run told its result, and {who} says it is {}",
                    job.status
                ),
                Err(NotTold::Passing(error)) => {
                    self.lost(&error.to_string())?;
                    error.to_string()
                }
                Err(NotTold::Lasting(error)) => return Err(error),
            };
            if began.elapsed() > limit {
                let [again, _] = self.remote.again();
                anyhow::bail!(
                    "{who} did not tell the end of the job `{}` for {} s ({cause}). How it ends is not known; it may \
                     well go on: `{again}`",
                    self.id,
                    began.elapsed().as_secs()
                );
            }
            std::thread::sleep(ENDED);
        }
    }

    /// How the job ended. Where the stream has brought no result, the whole log is looked through.
    fn judge(&mut self, job: &JobInfo) -> anyhow::Result<Outcome> {
        let ours = job
            .metadata
            .as_ref()
            .is_some_and(|data| data.contains_key(OURS));
        if self.result.is_none() && ours {
            let log = self.remote.log()?.unwrap_or_default();
            if !log.is_empty() {
                self.said.clear();
            }
            let mut lines = Lines::default();
            for line in lines.push(&(log + "\n")) {
                match line {
                    Line::Event(event) => {
                        if let Event::Result(result) = *event {
                            self.result = Some(result);
                        }
                    }
                    Line::Head(line) | Line::Other(line) => self.keep(line),
                }
            }
        }
        let result = self.result.take();
        if result.is_none() && !ours {
            return Ok(outcome::of_command(job));
        }
        let said: Vec<String> = self.said.iter().map(|line| harmless(line)).collect();
        Ok(outcome::outcome(
            job,
            result,
            &said.join("\n"),
            self.sent.as_ref(),
        ))
    }

    /// Shows the end.
    fn conclude(mut self, job: &JobInfo, outcome: Outcome) -> anyhow::Result<ExitCode> {
        let code = outcome.exit_code();
        match outcome.result {
            Some(result) => self.view.show(&Event::Result(result))?,
            None if self.args.show.json => {
                let what = outcome.error.clone();
                let what = what.unwrap_or_else(|| format!("the job is {}", job.status));
                let mut told = failure(self.started_at, &anyhow::anyhow!(what));
                if outcome.code == 0 {
                    told.status = lockstep_events::event::Status::Succeeded;
                    told.error = None;
                }
                self.view.show(&Event::Result(told))?;
            }
            None if outcome.error.is_none() && !self.args.show.quiet => {
                super::print(format!("the job `{}` {}\n", job.id(), job.status))?;
            }
            None => (),
        }
        drop(self.view);
        if let Some(error) = outcome.error {
            crate::print_error(&error);
        }
        Ok(code)
    }

    fn lost(&mut self, why: &str) -> io::Result<()> {
        if !std::mem::replace(&mut self.lost, true) {
            self.tell(&format!(
                "the connection to {} is lost and tried again: {why}",
                self.remote.who()
            ))?;
        }
        Ok(())
    }

    fn found_again(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.lost, false) {
            self.tell(&format!("the connection to {} is back", self.remote.who()))?;
        }
        Ok(())
    }

    fn say_why_not_yet(&mut self) -> io::Result<()> {
        if let Some(message) = self.remote.why_not_yet() {
            let message = harmless(&message);
            self.view.show(&Event::Preparing { message })?;
        }
        Ok(())
    }

    /// What is about following, not about the run. Programs that read events need not see it.
    fn tell(&mut self, message: &str) -> io::Result<()> {
        if self.args.show.json || self.args.show.quiet {
            eprintln!("{message}");
            return Ok(());
        }
        let message = message.to_owned();
        self.view.show(&Event::Note { message })
    }

    fn leave(&self) {
        let (id, [again, stop]) = (&self.id, self.remote.again());
        eprintln!("left the job `{id}` to itself; `{again}` shows it again, `{stop}` stops it");
    }
}

/// The view that suits the flags.
pub(super) fn view(args: &FollowArgs, resume_command: String) -> Box<dyn View> {
    let options = Options {
        quiet: args.show.quiet,
        verbose: args.show.verbose,
        resume_command,
        elsewhere: true,
    };
    view_as(args.show.json, options)
}
