//! The seam between following a job and where it runs: a Ray cluster, or Kubernetes.

use crate::args::HeadArgs;
use crate::view::shell;
use lockstep_cluster::jobs::{Client, Heard, JobInfo, JobsError, Tail};
use std::io::{self, Write};
use std::time::Duration;

/// How long more of a log is waited for at a time.
const TICK: Duration = Duration::from_secs(1);

/// Writes a job's log to standard output as it comes, to its end.
///
/// # Errors
/// When it cannot be followed any more, or nobody reads what is written.
pub(crate) fn print_log(remote: &mut dyn Remote) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    loop {
        match remote.next(TICK)? {
            Heard::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Heard::Nothing => (),
            Heard::Lost(why) => eprintln!("the connection is lost and tried again: {why}"),
            Heard::Ended(_) => return Ok(()),
        }
    }
}

/// A job on a cluster, as whoever follows it needs it.
pub(crate) trait Remote {
    /// The job's id.
    fn id(&self) -> &str;

    /// Who is asked about it, in words: `the head`.
    fn who(&self) -> &'static str;

    /// Waits for more of its log.
    ///
    /// # Errors
    /// When it cannot be followed any more.
    fn next(&mut self, wait: Duration) -> anyhow::Result<Heard>;

    /// Asks for what is in the log beyond what was heard.
    fn look(&mut self) -> Option<String> {
        None
    }

    /// How the job is.
    ///
    /// # Errors
    /// When nobody can say, for now or for good.
    fn job(&self) -> Result<JobInfo, NotTold>;

    /// Its whole log, where that can be had once more.
    ///
    /// # Errors
    /// When it cannot be asked for.
    fn log(&self) -> anyhow::Result<Option<String>>;

    /// Asks it to stop, in good order.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn stop(&self) -> anyhow::Result<()>;

    /// Why its run has not begun.
    fn why_not_yet(&self) -> Option<String>;

    /// How it is found again, and how it is stopped: two commands.
    fn again(&self) -> [String; 2];

    /// Whether a run that told its result may go on: a process that was taken away is started anew.
    fn may_go_on(&self) -> bool {
        false
    }
}

/// Why nobody can say how a job is.
pub(crate) enum NotTold {
    /// It may be said in a moment.
    Passing(anyhow::Error),
    /// It will not be.
    Lasting(anyhow::Error),
}

/// A job on a Ray cluster.
pub(crate) struct OnRay<'c> {
    client: &'c Client,
    id: String,
    head: HeadArgs,
    tail: Tail<'c>,
}

impl<'c> OnRay<'c> {
    pub(crate) fn new(
        client: &'c Client,
        id: String,
        head: &HeadArgs,
        patience: Duration,
    ) -> OnRay<'c> {
        OnRay {
            tail: client.tail(&id, patience),
            client,
            id,
            head: head.clone(),
        }
    }
}

impl Remote for OnRay<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn who(&self) -> &'static str {
        "the head"
    }

    fn next(&mut self, wait: Duration) -> anyhow::Result<Heard> {
        Ok(self.tail.next(wait)?)
    }

    fn look(&mut self) -> Option<String> {
        self.tail.look()
    }

    fn job(&self) -> Result<JobInfo, NotTold> {
        self.client
            .job(&self.id)
            .map_err(|error: JobsError| match error.is_passing() {
                true => NotTold::Passing(error.into()),
                false => NotTold::Lasting(error.into()),
            })
    }

    fn log(&self) -> anyhow::Result<Option<String>> {
        Ok(Some(self.client.logs(&self.id)?))
    }

    fn stop(&self) -> anyhow::Result<()> {
        self.client.stop(&self.id)?;
        Ok(())
    }

    fn why_not_yet(&self) -> Option<String> {
        let job = self.client.job(&self.id).ok()?;
        match job.status.is_final() {
            true => None,
            false => job.message,
        }
    }

    fn again(&self) -> [String; 2] {
        let to = self.head.to.as_ref();
        let to = to
            .map(|to| format!(" --to {}", shell(to)))
            .unwrap_or_default();
        let id = &self.id;
        [
            format!("lockstep jobs wait {id}{to}"),
            format!("lockstep jobs stop {id}{to}"),
        ]
    }
}
