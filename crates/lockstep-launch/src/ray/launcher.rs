//! Workers that actors of Ray start.

use crate::ray::RayError;
use crate::ray::protocol::{Open, Order, Waiting};
use crate::ray::room;
use crate::ray::shim::Shim;
use crate::ray::state::{SharedState, State};
use crate::remote::named;
use crate::{
    Ending, LaunchError, Launched, Launcher, NotReady, Notify, Site, WorkerId, WorkerSpec,
};
use lockstep_job::Resources;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of a worker is waited for before nobody can say whether it ended.
const END: Duration = Duration::from_secs(2);
/// How long the ends of all are waited for.
const END_ALL: Duration = Duration::from_secs(4);
/// How often somebody who waits for the cluster may say that he does no longer.
const LOOK: Duration = Duration::from_millis(50);
/// How often is told that room is waited for, if the autoscaler has nothing new.
const TELL: Duration = Duration::from_secs(10);

/// An autoscaler that says that it brings nodes is waited for, but not for longer than so many times the deadline.
const DEADLINES_OF_AUTOSCALER: u32 = 10;

/// What is asked of a cluster.
#[derive(Debug, Clone)]
pub struct RayRequest {
    /// The job's name, under which the cluster shows the placement group.
    pub name: String,
    /// How many workers there are at most.
    pub workers: usize,
    /// How many of them are enough to begin: the launcher is ready when there is room for these, and workers on later
    /// seats start when there is room for them.
    pub enough: usize,
    /// What each of them needs.
    pub resources: Resources,
    /// The program of which workers are hidden commands, usually this process's own.
    pub program: PathBuf,
    /// After how long without a word from the coordinator a worker ends itself, in seconds.
    pub lease_s: f64,
    /// The Python that has Ray, if not the one that `LOCKSTEP_PYTHON` names or else `python3`.
    pub python: Option<PathBuf>,
    /// The head's address, if not the one that `RAY_ADDRESS` names or else that of this machine's cluster.
    pub address: Option<String>,
}

/// Starts workers on a Ray cluster.
pub struct RayLauncher {
    request: RayRequest,
    shim: Shim,
    watched: Arc<SharedState>,
}

impl RayLauncher {
    /// Begins to reserve room for the workers. It is there when the launcher is
    /// [ready](Launcher::ready); until then, other things can be done.
    ///
    /// # Errors
    /// When the process that speaks with Ray cannot be started.
    pub fn open(request: RayRequest) -> Result<Self, RayError> {
        let named = |why: String| RayError::Program {
            path: request.program.clone(),
            why,
        };
        let size = std::fs::metadata(&request.program).map_err(|error| named(error.to_string()))?;
        let program = request.program.to_str();
        let open = Open {
            name: format!("lockstep-{}", request.name),
            workers: request.workers,
            enough: request.enough,
            worker: room::amounts(&request.resources),
            place: room::strategy(request.resources.place),
            labels: request.resources.labels.clone(),
            program: program
                .ok_or_else(|| named("its path is not valid UTF-8".to_owned()))?
                .to_owned(),
            size: size.len(),
            lease_s: request.lease_s,
        };
        let watched = Arc::new(SharedState::default());
        Ok(Self {
            shim: Shim::start(&request, &open, watched.clone())?,
            request,
            watched,
        })
    }

    /// Where the workers will be, in words, the first time that this is asked.
    fn arrived(&self) -> Option<String> {
        let mut state = self.watched.lock();
        let (ray, nodes) = state.cluster.take()?;
        let on = |(seat, node): (&usize, &String)| format!("worker {seat} on {node}");
        let seats = named(state.seats.iter().map(on).collect());
        Some(format!("Ray {ray}, {nodes} nodes: {seats}"))
    }

    fn why_no_room(&self, waiting: &Waiting) -> String {
        room::why_not(self.request.enough, &self.request.resources, waiting)
    }

    /// Why the workers cannot be started by now.
    fn too_late(&self, state: &State, deadline: Duration) -> RayError {
        let seconds = deadline.as_secs_f64();
        match &state.waiting {
            Some(waiting) => {
                let why = self.why_no_room(waiting);
                RayError::NoRoom(format!(
                    "the Ray cluster had no room for the workers within {seconds} s \
                     (gang.start_deadline_s): {why}"
                ))
            }
            None => RayError::Silent { seconds },
        }
    }
}

impl Launcher for RayLauncher {
    fn ready(
        &mut self,
        deadline: Duration,
        waiting: &mut dyn FnMut(Option<String>) -> bool,
    ) -> Result<bool, NotReady> {
        let began = Instant::now();
        let mut alone_since = began;
        let enough = self.request.enough;
        let mut told: Option<(Instant, Vec<String>)> = None;
        let not_ready = |error: RayError| NotReady(error.into());
        loop {
            let ready = self.watched.wait(LOOK, |state| match &state.failed {
                Some(error) => Some(Err(error.clone())),
                None => (0..enough)
                    .all(|seat| state.seats.contains_key(&seat))
                    .then_some(Ok(())),
            });
            match ready {
                Some(Err(error)) => return Err(not_ready(error)),
                Some(Ok(())) => return Ok(waiting(self.arrived())),
                None => {}
            }
            let state = self.watched.lock();
            let waiting_for = state.waiting.as_ref();
            if waiting_for.is_some_and(|waiting| !waiting.pending.is_empty()) {
                alone_since = Instant::now();
            }
            if alone_since.elapsed() > deadline
                || began.elapsed() > deadline * DEADLINES_OF_AUTOSCALER
            {
                return Err(not_ready(self.too_late(&state, deadline)));
            }
            let mut news = None;
            if let Some(waiting_for) = waiting_for
                && told.as_ref().is_none_or(|(at, pending)| {
                    at.elapsed() > TELL || *pending != waiting_for.pending
                })
                && state.seats.is_empty()
            {
                told = Some((Instant::now(), waiting_for.pending.clone()));
                let why = self.why_no_room(waiting_for);
                news = Some(format!("waiting for room on the Ray cluster: {why}"));
            }
            drop(state);
            if !waiting(news) {
                return Ok(false);
            }
        }
    }

    fn nodes(&self) -> Vec<(usize, String)> {
        // Those who come later are not there yet.
        let enough = self.request.enough;
        let state = self.watched.lock();
        let seats = state.seats.range(..enough);
        seats.map(|(seat, node)| (*seat, node.clone())).collect()
    }

    fn start(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, LaunchError> {
        let id = spec.id;
        let refused = |error: RayError| LaunchError {
            seat: id.seat,
            program: format!("{} {}", self.request.program.display(), spec.command),
            source: error.into(),
        };
        let launch = {
            let mut state = self.watched.lock();
            if let Some(error) = &state.failed {
                return Err(refused(error.clone()));
            }
            state.launches.add(id, notify)
        };
        self.shim.order(&Order::Start {
            launch,
            seat: id.seat,
            command: spec.command,
            invitation: &spec.invitation,
            speaks: spec.speaks,
        });
        Ok(Launched::default())
    }

    fn tell(&mut self, id: WorkerId, line: &str) {
        let launch = self.watched.lock().launches.number(id);
        if let Some(launch) = launch {
            self.shim.order(&Order::Tell { launch, line });
        }
    }

    fn end(&mut self, id: WorkerId) -> Ending {
        let launch = {
            let state = self.watched.lock();
            match state.launches.number(id) {
                Some(launch) if !state.launches.has_ended(launch) => launch,
                _ => return Ending::Certain,
            }
        };
        self.shim.order(&Order::End { launch });
        let ended = |state: &mut State| state.launches.has_ended(launch).then_some(());
        match self.watched.wait(END, ended) {
            Some(()) => Ending::Certain,
            None => Ending::Unknown,
        }
    }

    fn end_all(&mut self) {
        let left = self.watched.lock().launches.running();
        for &launch in &left {
            self.shim.order(&Order::End { launch });
        }
        self.watched.wait(END_ALL, |state| {
            left.iter()
                .all(|launch| state.launches.has_ended(*launch))
                .then_some(())
        });
    }

    fn describe(&self, id: WorkerId) -> String {
        let state = self.watched.lock();
        let pid = state.launches.pid(id);
        let node = state.seats.get(&id.seat);
        match (pid, node) {
            (Some(pid), Some(node)) => format!("pid {pid} on node {node}"),
            (None, Some(node)) => format!("on node {node}"),
            (_, None) => "not placed".to_owned(),
        }
    }

    fn site(&self) -> Site {
        let anywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let here = self.watched.lock().here.unwrap_or(anywhere);
        Site {
            listen: SocketAddr::new(here, 0),
            advertise: None,
            peers: match here {
                IpAddr::V4(_) => anywhere,
                IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
            },
            shares_memory: false,
            leased: true,
        }
    }
}
