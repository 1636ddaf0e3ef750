//! A job on a cluster, shown to its end as if it ran here, by the same views as those of `lockstep run`.

mod interrupts;

use super::run::{failure, view_as};
use crate::args::FollowArgs;
use crate::signals::INTERRUPTED;
use crate::view::{Options, View, harmless};
use interrupts::{InterruptChoice, Interrupts};
use lockstep_cluster::follow::{Follower, Outcome, Remote, Update};
use lockstep_cluster::jobs::{JobInfo, LogEvent, Needs};
use lockstep_events::event::{Event, Status};
use lockstep_job::masked;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long more of a log is waited for at a time.
const TICK: Duration = Duration::from_secs(1);

/// Writes a job's log to standard output as it comes, to its end.
pub(super) fn print_log(remote: &mut dyn Remote) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    loop {
        match remote.next(TICK)? {
            LogEvent::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            LogEvent::Nothing => (),
            LogEvent::Lost(why) => eprintln!("the connection is lost and tried again: {why}"),
            LogEvent::Ended(_) => return Ok(()),
        }
    }
}

/// The view that suits the flags. Of the command, secrets are not shown.
pub(super) fn view(args: &FollowArgs, resume_command: String) -> Box<dyn View> {
    let options = Options {
        quiet: args.show.quiet,
        verbose: args.show.verbose,
        resume_command: masked(&resume_command),
        elsewhere: true,
    };
    view_as(args.show.json, options)
}

/// Whom a job is shown to.
pub(super) struct Watcher<'a> {
    pub(super) args: &'a FollowArgs,
    pub(super) started_at: Instant,
    pub(super) view: Box<dyn View>,
}

impl Watcher<'_> {
    /// Shows a job to its end, with which a program travelled that needs `sent`. Returns what this command ends with.
    pub(super) fn follow<'c>(
        mut self,
        remote: impl Remote + 'c,
        sent: Option<Needs>,
    ) -> anyhow::Result<ExitCode> {
        let follower = Follower::new(remote, self.args.patience, sent);
        match self.until_ended(follower) {
            Ok(Some((job, outcome))) => self.conclude(&job, outcome),
            Ok(None) => Ok(ExitCode::from(INTERRUPTED)),
            Err(error) => self.fail(error),
        }
    }

    /// Shows that a job failed before its end was seen, where a program reads it.
    pub(super) fn fail<T>(&mut self, error: anyhow::Error) -> anyhow::Result<T> {
        if self.args.show.json && !super::is_broken_pipe(&error) {
            let failed = failure(self.started_at, &error);
            self.view.show(&Event::Result(failed))?;
        }
        Err(error)
    }

    /// How the job ended; nothing if whoever watched has left.
    fn until_ended(
        &mut self,
        mut follower: Follower<'_>,
    ) -> anyhow::Result<Option<(JobInfo, Outcome)>> {
        let mut interrupts = Interrupts::heed()?;
        let id = follower.remote().id().to_owned();
        let mut updates = Vec::new();
        loop {
            match interrupts.asked() {
                InterruptChoice::Nothing => (),
                InterruptChoice::Wait => self.tell(format!(
                    "the job `{id}` goes on; press Ctrl-C again within 3 seconds to stop it"
                ))?,
                InterruptChoice::Leave => {
                    let [again, stop] = follower.remote().again();
                    eprintln!(
                        "left the job `{id}` to itself; `{again}` shows it again, `{stop}` stops it"
                    );
                    return Ok(None);
                }
                InterruptChoice::Stop => {
                    self.tell(format!("stopping the job `{id}`"))?;
                    follower.remote().stop()?;
                }
                InterruptChoice::Now => return Ok(None),
            }
            let polled = follower.poll(&mut updates);
            for update in updates.drain(..) {
                match update {
                    Update::Event(event) => self.view.show(&event)?,
                    Update::Preparing(message) => {
                        let message = harmless(&message);
                        self.view.show(&Event::Preparing { message })?;
                    }
                    Update::Line(line) if self.args.show.verbose => {
                        eprintln!("[job] {}", harmless(&line));
                    }
                    Update::Line(_) => (),
                    Update::Connection(message) => self.tell(message)?,
                    Update::Ended { job, outcome } => return Ok(Some((*job, *outcome))),
                }
            }
            polled?;
        }
    }

    /// Shows the end.
    fn conclude(mut self, job: &JobInfo, outcome: Outcome) -> anyhow::Result<ExitCode> {
        let error = outcome.error.map(|error| {
            let lines: Vec<String> = error.lines().map(harmless).collect();
            lines.join("\n")
        });
        match outcome.result {
            Some(result) => self.view.show(&Event::Result(result))?,
            None if self.args.show.json => {
                let what = error.clone();
                let what = what.unwrap_or_else(|| format!("the job is {}", job.status));
                let mut told = failure(self.started_at, &anyhow::anyhow!(what));
                if outcome.code == 0 {
                    told.status = Status::Succeeded;
                    told.error = None;
                }
                self.view.show(&Event::Result(told))?;
            }
            None if error.is_none() && !self.args.show.quiet => {
                super::print(format!("the job `{}` {}\n", job.id(), job.status))?;
            }
            None => (),
        }
        drop(self.view);
        if let Some(error) = error {
            crate::print_error(&error);
        }
        Ok(ExitCode::from(outcome.code))
    }

    /// What is about following, not about the run. Programs that read events need not see it.
    fn tell(&mut self, message: String) -> io::Result<()> {
        if self.args.show.json || self.args.show.quiet {
            eprintln!("{message}");
            return Ok(());
        }
        self.view.show(&Event::Note { message })
    }
}
