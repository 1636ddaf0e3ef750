//! A host's loop: finds the coordinator, serves it, and looks for the next one when it is lost.

use crate::hosts::HostsError;
use crate::hosts::protocol::Hello;
use crate::hosts::session::{self, SessionEnd};
use lockstep_gang::{HostListener, Link, Secret};
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long one attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(3);
/// How long the next attempt is waited with, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often it is looked elsewhere whether the run is over, while the coordinator is out of reach.
const LOOK: Duration = Duration::from_secs(2);

/// A process on which workers are to be started.
#[derive(Debug)]
pub struct Host {
    /// Its number, which is the seat of its workers.
    pub index: usize,
    /// Name and port of the coordinator.
    pub coordinator: String,
    /// What proves that it belongs to the run.
    pub token: Secret,
    /// The program of which workers are hidden commands, usually this process's own.
    pub program: PathBuf,
    /// How long the coordinator may be out of reach.
    pub patience: Duration,
}

/// How a host's work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEnd {
    /// The run is over.
    Over {
        /// Whether it succeeded.
        success: bool,
    },
    /// It was asked to leave.
    Left,
}

/// What a host asks, and whom it tells.
pub struct Surroundings<'a> {
    /// Raised when the host is to leave in good order.
    pub leaving: &'a AtomicBool,
    /// Says whether the run is over, and whether it succeeded. Asked while the coordinator is out of reach: it may be
    /// done and gone.
    pub is_over: &'a mut dyn FnMut() -> Option<bool>,
    /// Told, in words, what people may want to know.
    pub say: &'a mut dyn FnMut(String),
}

impl Host {
    /// Serves the coordinator, and the one after it if that is lost, until the run is over or this host is to leave.
    ///
    /// Workers die with the calling thread.
    ///
    /// # Errors
    /// When the coordinator is out of reach for longer than the host's patience, or sends it away.
    pub fn serve(&self, around: &mut Surroundings<'_>) -> Result<HostEnd, HostsError> {
        loop {
            let link = match self.connect(around)? {
                Search::Coordinator(link) => link,
                Search::End(end) => return Ok(end),
            };
            (around.say)(format!("serving the coordinator at {}", self.coordinator));
            match session::serve(*link, &self.program, around.leaving) {
                SessionEnd::Over { success } => return Ok(HostEnd::Over { success }),
                SessionEnd::Left => return Ok(HostEnd::Left),
                SessionEnd::SentAway(why) => return Err(HostsError::SentAway(why)),
                SessionEnd::Lost(why) => {
                    (around.say)(format!(
                        "the coordinator is lost ({why}); looking for the next"
                    ));
                }
            }
        }
    }

    /// Looks for the coordinator.
    fn connect(&self, around: &mut Surroundings<'_>) -> Result<Search, HostsError> {
        let began = Instant::now();
        let (mut pause, mut looked) = (PAUSE.0, began);
        let mut told = false;
        loop {
            if around.leaving.load(Ordering::Relaxed) {
                return Ok(Search::End(HostEnd::Left));
            }
            let last = match self.attempt() {
                Ok(link) => return Ok(Search::Coordinator(Box::new(link))),
                Err(why) => why,
            };
            if !std::mem::replace(&mut told, true) {
                (around.say)(format!(
                    "waiting for the coordinator at {}",
                    self.coordinator
                ));
            }
            let late = began.elapsed() > self.patience;
            if looked.elapsed() > LOOK || late {
                looked = Instant::now();
                if let Some(success) = (around.is_over)() {
                    return Ok(Search::End(HostEnd::Over { success }));
                }
            }
            if late {
                return Err(HostsError::NoCoordinator {
                    coordinator: self.coordinator.clone(),
                    seconds: self.patience.as_secs_f64(),
                    last,
                });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Tries every address that the coordinator's name has now.
    fn attempt(&self) -> Result<Link, String> {
        let addresses = self.coordinator.to_socket_addrs();
        let addresses = addresses.map_err(|error| format!("cannot look up its name: {error}"))?;
        let mut last = "its name has no address".to_owned();
        let hello = Hello::own();
        for address in addresses {
            match HostListener::connect(address, &self.token, self.index, &hello, ATTEMPT) {
                Ok(link) => return Ok(link),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }
}

/// What came of looking for the coordinator.
enum Search {
    Coordinator(Box<Link>),
    End(HostEnd),
}
