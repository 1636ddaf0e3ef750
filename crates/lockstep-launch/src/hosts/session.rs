//! What a host does while it has a coordinator: starts workers as it is told, and tells what becomes of them.
//!
//! A session ends with its link. Then its workers are ended before anything else is done, so that whoever finds the
//! link closed by this end may take them to be gone.

use crate::LocalLauncher;
use crate::hosts::oom;
use crate::hosts::protocol::{FromHost, HEARTBEAT, ToHost, pieces};
use crate::{
    COMMANDS, LaunchNotice, Launcher, Notify, WorkerEnd, WorkerEvent, WorkerId, WorkerSpec,
};
use lockstep_gang::{GangError, Link, LinkReader, LinkWriter};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often wishes to leave and clocks are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How often it is said that the host leaves: the first time, its worker may not be at work yet.
const LEAVING: Duration = Duration::from_secs(1);
/// How long the output of a worker that ended is waited for when the host leaves. Something that the worker started
/// may hold it open.
const OUTPUT: Duration = Duration::from_secs(1);
/// The lease until the coordinator says another.
const FIRST_LEASE: Duration = Duration::from_secs(15);
/// What may wait to be told; then workers wait with their output.
const WAITING: usize = 1024;

/// How a session ended.
#[derive(Debug)]
pub(crate) enum SessionEnd {
    /// The run is over.
    Over { success: bool },
    /// This host was asked to leave, and has no worker any more.
    Left,
    /// The coordinator does not want this host.
    SentAway(String),
    /// The coordinator is gone, or cannot be heard.
    Lost(String),
}

/// What can happen in a session.
enum Input {
    Order(ToHost),
    Closed(GangError),
    Notice(LaunchNotice),
}

/// A worker that was started, as far as it matters when this host leaves.
#[derive(Debug, Default)]
struct Started {
    ended: Option<Instant>,
    silent: bool,
    /// How often memory had run out when it was started.
    oom_kills: u64,
}

impl Started {
    fn is_done(&self) -> bool {
        self.ended
            .is_some_and(|ended| self.silent || ended.elapsed() > OUTPUT)
    }
}

struct Session<'a> {
    writer: LinkWriter,
    launcher: LocalLauncher,
    started: HashMap<u64, Started>,
    inputs: SyncSender<Input>,
    program: &'a Path,
}

/// Serves a coordinator until the session ends. No worker is left when this returns.
pub(crate) fn serve(link: Link, program: &Path, leaving: &AtomicBool) -> SessionEnd {
    let (reader, writer) = link.split();
    let (inputs, received) = sync_channel(WAITING);
    let listener = inputs.clone();
    let listening = thread::Builder::new()
        .name("coordinator".to_owned())
        .spawn(move || listen(reader, &listener));
    if let Err(error) = listening {
        return SessionEnd::Lost(format!("cannot start a thread: {error}"));
    }
    let mut session = Session {
        writer,
        launcher: LocalLauncher::new(program),
        started: HashMap::new(),
        inputs,
        program,
    };
    let end = session
        .go_on(&received, leaving)
        .unwrap_or_else(|error| SessionEnd::Lost(error.to_string()));
    session.launcher.end_all();
    session.writer.close();
    end
}

/// Passes on what the coordinator says, to the end of the link.
fn listen(mut reader: LinkReader, inputs: &SyncSender<Input>) {
    loop {
        let input = match reader.recv(HEARTBEAT) {
            Ok(None) => continue,
            Ok(Some(order)) => Input::Order(order),
            Err(error) => Input::Closed(error),
        };
        let last = matches!(input, Input::Closed(_));
        if inputs.send(input).is_err() || last {
            return;
        }
    }
}

impl Session<'_> {
    fn go_on(
        &mut self,
        received: &Receiver<Input>,
        leaving: &AtomicBool,
    ) -> Result<SessionEnd, GangError> {
        let (mut heard, mut lease) = (Instant::now(), FIRST_LEASE);
        let mut told = Instant::now();
        let mut leaving_told: Option<Instant> = None;
        loop {
            match received.recv_timeout(TICK) {
                Ok(Input::Order(order)) => {
                    heard = Instant::now();
                    match order {
                        ToHost::Welcome { lease_s } => lease = Duration::from_secs_f64(lease_s),
                        ToHost::Over { success } => return Ok(SessionEnd::Over { success }),
                        ToHost::GoAway { why } => return Ok(SessionEnd::SentAway(why)),
                        order => self.obey(order)?,
                    }
                }
                Ok(Input::Notice(notice)) => self.tell(notice)?,
                Ok(Input::Closed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if heard.elapsed() > lease {
                let seconds = lease.as_secs_f64();
                let why = format!("the coordinator was not heard for {seconds} s (gang.lease_s)");
                return Ok(SessionEnd::Lost(why));
            }
            if told.elapsed() > HEARTBEAT {
                told = Instant::now();
                self.writer.send(&FromHost::Alive)?;
            }
            if leaving.load(Ordering::Relaxed) {
                if leaving_told.is_none_or(|told| told.elapsed() > LEAVING) {
                    leaving_told = Some(Instant::now());
                    let why = "its host is about to be taken away (SIGTERM)".to_owned();
                    self.writer.send(&FromHost::Leaving { why })?;
                }
                if self.started.values().all(Started::is_done) {
                    return Ok(SessionEnd::Left);
                }
            }
        }
    }

    fn obey(&mut self, order: ToHost) -> Result<(), GangError> {
        match order {
            ToHost::Start {
                launch,
                command,
                invitation,
                speaks,
            } => return self.start(launch, &command, invitation, speaks),
            ToHost::Tell { launch, line } => self.launcher.tell(id(launch), &line),
            ToHost::End { launch } => drop(self.launcher.end(id(launch))),
            _ => {}
        }
        Ok(())
    }

    fn start(
        &mut self,
        launch: u64,
        command: &str,
        invitation: String,
        speaks: bool,
    ) -> Result<(), GangError> {
        let started = match COMMANDS.into_iter().find(|known| *known == command) {
            None => Err(format!("there is no command `{command}` for workers")),
            Some(command) => {
                let spec = WorkerSpec {
                    id: id(launch),
                    command,
                    invitation,
                    speaks,
                    memory: None,
                };
                let inputs = self.inputs.clone();
                let notify: Notify =
                    Arc::new(move |notice| inputs.send(Input::Notice(notice)).is_ok());
                let oom_kills = oom::kills();
                let started = Started {
                    oom_kills,
                    ..Started::default()
                };
                self.started.retain(|_, started| !started.is_done());
                self.started.insert(launch, started);
                let launched = self.launcher.start(&spec, notify);
                launched.map_err(|error| error.source.to_string())
            }
        };
        match started {
            Ok(launched) => {
                let pid = launched.pid.unwrap_or_default();
                self.writer.send(&FromHost::Started { launch, pid })
            }
            Err(why) => {
                self.started.remove(&launch);
                let text = format!("cannot start {}: {why}\n", self.program.display());
                self.writer.send(&FromHost::Wrote { launch, text })?;
                self.writer.send(&FromHost::Silent { launch })?;
                let end = WorkerEnd::Code(127);
                self.writer.send(&FromHost::Ended { launch, end })
            }
        }
    }

    /// Tells the coordinator what happened to a worker.
    fn tell(&mut self, notice: LaunchNotice) -> Result<(), GangError> {
        let launch = u64::from(notice.id.incarnation);
        let message = match notice.what {
            WorkerEvent::Said(line) => {
                for text in pieces(&line) {
                    self.writer.send(&FromHost::Said { launch, text })?;
                }
                return Ok(());
            }
            WorkerEvent::Wrote(line) => {
                let text = line + "\n";
                FromHost::Wrote { launch, text }
            }
            WorkerEvent::OutputEnded => {
                if let Some(started) = self.started.get_mut(&launch) {
                    started.silent = true;
                }
                FromHost::Silent { launch }
            }
            WorkerEvent::Ended(end) => {
                let mut before = 0;
                if let Some(started) = self.started.get_mut(&launch) {
                    started.ended = Some(Instant::now());
                    before = started.oom_kills;
                }
                let end = match end {
                    WorkerEnd::Signal(9) if oom::kills() > before => WorkerEnd::OutOfMemory,
                    end => end,
                };
                FromHost::Ended { launch, end }
            }
            WorkerEvent::Started(_) | WorkerEvent::Leaving(_) => return Ok(()),
        };
        self.writer.send(&message)
    }
}

/// A host has one seat, and each launch on it is another incarnation.
fn id(launch: u64) -> WorkerId {
    WorkerId {
        seat: 0,
        incarnation: launch as u32,
    }
}
