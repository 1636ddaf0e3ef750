//! The coordinator's end: lets hosts in, hears them, and says when one is gone for certain.
//!
//! A link that the host's end closed means that its workers are gone: a host ends them before it closes, and the kernel
//! ends them with a host that dies. A host that is only silent may be out of reach and alive. It is not told any more
//! that the coordinator is there, so that its lease runs out, and is taken to be gone when that must have happened.

use crate::hosts::HostsError;
use crate::hosts::launcher::HostLauncher;
use crate::hosts::protocol::{FromHost, HEARTBEAT, Hello, ToHost};
use crate::hosts::state::{Connection, SharedState, Silence, State};
use crate::remote::{LaunchReport, PendingNotices};
use lockstep_gang::{
    GangError, HostConnection, HostListener, Link, LinkReader, LinkWriter, Secret,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the one at the listener looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// What may wait to be said to one host.
const ORDERS: usize = 1024;
/// For the third part of a lease a host may be silent before it is met with silence.
const PART_OF_LEASE: u32 = 3;
/// What is added to a lease for a host's clock and the ends of its workers.
const MARGIN: Duration = Duration::from_secs(1);
/// How long hosts may take to go when the run is over.
const GOODBYE: Duration = Duration::from_secs(5);

/// Whom a coordinator lets in.
pub struct HostsRequest {
    /// Where it listens for hosts, and for their workers under another port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What hosts must have.
    pub token: Secret,
    /// How many hosts there are at most. Their numbers are those of the seats.
    pub seats: usize,
    /// How many are enough to begin.
    pub enough: usize,
    /// After how long without a word from the coordinator a host ends its workers.
    pub lease: Duration,
    /// Told, in words, what is odd, such as somebody who was refused.
    pub warn: Box<dyn Fn(String) + Send>,
}

/// The hosts of a run. Dropping it closes the links to them: they end their workers, and wait for the next coordinator.
pub struct Hosts {
    watched: Arc<SharedState>,
    address: SocketAddr,
    seats: usize,
    enough: usize,
    closing: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Hosts {
    /// Listens for hosts from now on.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub fn open(request: HostsRequest) -> Result<Self, HostsError> {
        let mut listener = HostListener::bind(request.listen, request.token)?;
        let address = listener.address();
        let watched = Arc::new(SharedState::default());
        let closing = Arc::new(AtomicBool::new(false));
        let porter = Porter {
            watched: watched.clone(),
            seats: request.seats,
            lease: request.lease,
        };
        let (closed, warn) = (closing.clone(), request.warn);
        let attend = move || {
            while !closed.load(Ordering::Relaxed) {
                let came = match listener.accept::<Hello>(LOOK) {
                    Ok(None) => continue,
                    Ok(Some(HostConnection::Host { index, hello, link })) => {
                        porter.admit(index, hello, link)
                    }
                    Ok(Some(HostConnection::Refused(refusal))) => Err(refusal.to_string()),
                    Err(error) => {
                        thread::sleep(LOOK);
                        Err(error.to_string())
                    }
                };
                if let Err(odd) = came {
                    warn(odd);
                }
            }
        };
        let listener = thread::Builder::new()
            .name("listener".to_owned())
            .spawn(attend);
        Ok(Self {
            watched,
            address,
            seats: request.seats,
            enough: request.enough,
            closing,
            listener: Some(listener.map_err(HostsError::system("start a thread"))?),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What starts workers on the hosts.
    pub fn launcher(&self) -> HostLauncher {
        let site = SocketAddr::new(self.address.ip(), 0);
        HostLauncher::new(self.watched.clone(), site, self.seats, self.enough)
    }

    /// Tells all hosts that the run is over, those too that come from now on, and returns when they are gone, or do not
    /// go.
    pub fn dismiss(&self, success: bool) {
        self.watched.change(|state| {
            state.over = Some(success);
            for connection in state.connections.values() {
                connection.say(ToHost::Over { success });
            }
        });
        let gone = |state: &mut State| state.connections.is_empty().then_some(());
        self.watched.wait(GOODBYE, gone);
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        // With its queue gone, the writer of each link closes it.
        self.watched.change(|state| state.connections.clear());
    }
}

/// Who lets hosts in.
struct Porter {
    watched: Arc<SharedState>,
    seats: usize,
    lease: Duration,
}

impl Porter {
    /// Lets a host in, or says why not.
    fn admit(&self, index: usize, hello: Hello, mut link: Link) -> Result<(), String> {
        let own = Hello::own();
        let why = if index >= self.seats {
            Some(format!("the run has seats for {} hosts", self.seats))
        } else if hello.version != own.version {
            let (theirs, ours) = (hello.version, own.version);
            Some(format!(
                "its version is {theirs}, and the coordinator's {ours}"
            ))
        } else {
            None
        };
        if let Some(why) = why {
            let told = format!("host {index} ({}) was sent away: {why}", hello.name);
            let _ = link.send(&ToHost::GoAway { why });
            return Err(told);
        }
        let (reader, writer) = link.split();
        let (orders, received) = sync_channel(ORDERS);
        let silence = Arc::new(Silence::default());
        let lease_s = self.lease.as_secs_f64();
        let connection = Connection::new(index, orders, silence.clone());
        connection.say(ToHost::Welcome { lease_s });
        let name = hello.name.clone();
        let number = self.watched.change(|state| {
            if let Some(success) = state.over {
                connection.say(ToHost::Over { success });
            }
            state.arrive(connection, name)
        });
        let hearing = Hearing {
            watched: self.watched.clone(),
            number,
            who: format!("host {index} ({})", hello.name),
            lease: self.lease,
            silence: silence.clone(),
        };
        let named = |what: &str| thread::Builder::new().name(format!("{what}-{index}"));
        let spoken = named("to-host").spawn(move || speak(writer, &received, &silence));
        let heard = named("from-host").spawn(move || hearing.hear(reader));
        spoken.and(heard).map(drop).map_err(|error| {
            tell(
                self.watched
                    .change(|state| state.gone(number, "no thread to hear it")),
            );
            format!("cannot start a thread for host {index}: {error}")
        })
    }
}

/// Says to a host what there is to say, and that the coordinator is there, until nobody has anything to say any more.
fn speak(mut writer: LinkWriter, orders: &Receiver<ToHost>, silence: &Silence) {
    loop {
        let said = match orders.recv_timeout(HEARTBEAT) {
            Ok(order) => writer.send(&order),
            Err(RecvTimeoutError::Timeout) if silence.is_kept() => Ok(()),
            Err(RecvTimeoutError::Timeout) => writer.send(&ToHost::Alive),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if said.is_err() {
            break;
        }
    }
    writer.close();
}

/// Hears one host.
struct Hearing {
    watched: Arc<SharedState>,
    number: u64,
    /// The host, for people.
    who: String,
    lease: Duration,
    silence: Arc<Silence>,
}

impl Hearing {
    /// Hears it until it is gone for certain.
    fn hear(self, mut reader: LinkReader) {
        let patience = self.lease / PART_OF_LEASE;
        let limit = patience + self.lease + MARGIN;
        let mut heard = Instant::now();
        let why = loop {
            match reader.recv(HEARTBEAT) {
                Ok(Some(message)) => {
                    heard = Instant::now();
                    self.silence.unheard.store(false, Ordering::Relaxed);
                    self.take(message);
                }
                Ok(None) => {}
                Err(GangError::Closed) => break format!("{} is gone", self.who),
                Err(error) => break format!("{} is out of reach: {error}", self.who),
            }
            if heard.elapsed() > patience {
                self.silence.unheard.store(true, Ordering::Relaxed);
            }
            if heard.elapsed() > limit {
                let seconds = heard.elapsed().as_secs_f64();
                break format!("{} was not heard for {seconds:.0} s", self.who);
            }
        };
        tell(self.watched.change(|state| state.gone(self.number, &why)));
    }

    fn take(&self, message: FromHost) {
        let (launch, reported) = match message {
            FromHost::Alive => return,
            FromHost::Leaving { why } => {
                return tell(
                    self.watched
                        .change(|state| state.leaving(self.number, &why)),
                );
            }
            FromHost::Started { launch, pid } => (launch, LaunchReport::Started(pid)),
            FromHost::Said { launch, text } => (launch, LaunchReport::Said(text.into_bytes())),
            FromHost::Wrote { launch, text } => (launch, LaunchReport::Wrote(text.into_bytes())),
            FromHost::Silent { launch } => (launch, LaunchReport::Silent),
            FromHost::Ended { launch, end } => (launch, LaunchReport::Ended(end)),
        };
        self.watched
            .change(|state| state.hear(launch, reported))
            .tell();
    }
}

fn tell(tidings: Vec<PendingNotices>) {
    for tidings in tidings {
        tidings.tell();
    }
}
