//! A job's log as it grows, whatever happens to the connection.
//!
//! A head sends a log from its beginning on every connection, so what was read is counted, and as much is passed
//! over after a connection was made again. A connection that ends says nothing of the job: the job itself is asked.
//! Where websockets do not get through, the log is asked for again and again instead. It can also be asked for
//! in between: a head sends over the connection what was written up to two seconds ago.

use crate::jobs::websocket::{NotOpened, Received, Websocket};
use crate::jobs::{Client, JobInfo, JobsError};
use crate::log::{LogEvent, Retry};
use std::time::{Duration, Instant};

/// Pauses between two attempts to connect, the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// After so long without a word of the log, the job is asked whether it still runs.
const QUIET: Duration = Duration::from_secs(10);
/// After so many refusals to open a websocket, the log is asked for instead.
const REFUSALS: u32 = 3;
/// How often, at most, a whole log is asked for; a long one less often.
const ASKED: Duration = Duration::from_secs(2);
/// How long the answer to a look may take: it only saves time.
const LOOK: Duration = Duration::from_secs(1);

/// A job's log from its beginning, as it grows.
pub struct Tail<'c> {
    client: &'c Client,
    id: String,
    retry: Retry,
    /// Bytes of the log that were heard.
    seen: usize,
    /// Bytes of the log that came over this connection.
    at: usize,
    socket: Option<Websocket>,
    /// When the log last grew, or the job was asked.
    stirred: Instant,
    refusals: u32,
    /// The job, once it has ended and only this is left to tell.
    ended: Option<Box<JobInfo>>,
}

impl<'c> Tail<'c> {
    pub(crate) fn new(client: &'c Client, id: String, patience: Duration) -> Self {
        Self {
            client,
            id,
            retry: Retry::new(patience, PAUSES),
            seen: 0,
            at: 0,
            socket: None,
            stirred: Instant::now(),
            refusals: 0,
            ended: None,
        }
    }

    /// Waits for more of the log, about as long as `wait`.
    ///
    /// # Errors
    /// When there is no such job, when the head does not let us in any more, and when it could not be reached
    /// for longer than the patience.
    pub fn next(&mut self, wait: Duration) -> Result<LogEvent, JobsError> {
        if let Some(job) = &self.ended {
            return Ok(LogEvent::Ended(job.clone()));
        }
        if self.socket.is_none() && !self.retry.is_due(wait) {
            return Ok(LogEvent::Nothing);
        }
        if self.socket.is_none() && self.refusals >= REFUSALS {
            return self.ask();
        }
        if self.socket.is_none() {
            match Websocket::open(self.client, &self.id) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    self.at = 0;
                    self.stirred = Instant::now();
                }
                Err(NotOpened::Failed(error)) => return self.lost(error),
                Err(NotOpened::NoUpgrade(why)) => return self.refused(why),
            }
        }
        let Some(socket) = &mut self.socket else {
            return Ok(LogEvent::Nothing);
        };
        match socket.receive(self.client, wait) {
            Received::Text(text) => {
                let from = self.at;
                self.at += text.len();
                Ok(self.heard(from, &text))
            }
            Received::Nothing if self.stirred.elapsed() < QUIET => Ok(LogEvent::Nothing),
            Received::Nothing => {
                self.stirred = Instant::now();
                match self.client.job(&self.id) {
                    // The end should have come through here: something between us swallowed it.
                    Ok(job) if job.status.is_final() => {
                        self.closed("nothing comes any more", false)
                    }
                    _ => Ok(LogEvent::Nothing),
                }
            }
            Received::Closed => self.closed("the head closed the connection", true),
            Received::Broken(why) => self.closed(&why, false),
        }
    }

    /// Asks for the log as it is now. Only what is new is told; whatever goes wrong is left to [`Tail::next`].
    pub fn look(&mut self) -> Option<String> {
        if self.retry.lost.is_some() || self.ended.is_some() {
            return None;
        }
        let log = self.client.logs_within(LOOK, &self.id).ok()?;
        match self.heard(0, &log) {
            LogEvent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What of a piece of the log is new, which begins at byte `from`.
    fn heard(&mut self, from: usize, text: &str) -> LogEvent {
        self.retry.back();
        self.stirred = Instant::now();
        // The same log in the same encoding: what was seen ends where a character does.
        let new = text.get(self.seen.saturating_sub(from)..);
        let new = new.unwrap_or_default();
        self.seen += new.len();
        match new.is_empty() {
            true => LogEvent::Nothing,
            false => LogEvent::Text(new.to_owned()),
        }
    }

    /// No websocket: is there no such job, or does only this not get through?
    fn refused(&mut self, why: String) -> Result<LogEvent, JobsError> {
        if let Err(error) = self.client.job(&self.id) {
            return self.lost(error);
        }
        self.refusals += 1;
        self.retry.put_off();
        Ok(LogEvent::Lost(why))
    }

    /// A connection is over: is the job?
    fn closed(&mut self, why: &str, in_order: bool) -> Result<LogEvent, JobsError> {
        self.socket = None;
        match self.client.job(&self.id) {
            Ok(job) if job.status.is_final() && in_order => {
                self.ended = Some(Box::new(job.clone()));
                Ok(LogEvent::Ended(Box::new(job)))
            }
            Ok(job) if job.status.is_final() => match self.client.logs(&self.id) {
                Ok(log) => {
                    self.ended = Some(Box::new(job));
                    Ok(self.heard(0, &log))
                }
                Err(error) => self.lost(error),
            },
            Ok(_) => {
                self.retry.put_off();
                Ok(LogEvent::Lost(why.to_owned()))
            }
            Err(error) => self.lost(error),
        }
    }

    /// Reads the log as a whole, where websockets do not get through.
    fn ask(&mut self) -> Result<LogEvent, JobsError> {
        let began = Instant::now();
        let answer = (|| Ok((self.client.job(&self.id)?, self.client.logs(&self.id)?)))();
        match answer {
            Ok((job, log)) => {
                let heard = self.heard(0, &log);
                if job.status.is_final() {
                    self.ended = Some(Box::new(job));
                }
                self.retry.next = Instant::now() + ASKED.max(began.elapsed() * 10);
                Ok(heard)
            }
            Err(error) => self.lost(error),
        }
    }

    /// Tries again later, unless there is no hope or no patience left.
    fn lost(&mut self, error: JobsError) -> Result<LogEvent, JobsError> {
        if !error.is_passing() {
            return Err(error);
        }
        if let Some(for_) = self.retry.out_of_patience() {
            return Err(JobsError::Lost {
                id: self.id.clone(),
                address: self.client.address().to_string(),
                for_,
                cause: error.to_string(),
            });
        }
        self.retry.put_off();
        Ok(LogEvent::Lost(error.to_string()))
    }
}
