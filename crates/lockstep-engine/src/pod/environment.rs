//! What a pod finds in the variables of its environment.

use super::PodError;
use lockstep_gang::Secret;
use lockstep_job::Job;
use lockstep_job::pod::{ADDRESS, COORDINATOR, INDEX, PATIENCE, RUN, TOKEN};
use lockstep_launch::hosts::read_token;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// What a pod finds in its environment.
#[derive(Debug)]
pub struct PodEnvironment {
    /// The pod's number.
    pub index: usize,
    /// The run's name.
    pub run: String,
    /// Name and port of number 0.
    pub coordinator: String,
    /// What lets hosts in.
    pub token: Secret,
    /// How long the others are waited for, in seconds, where that is said.
    pub patience_s: Option<f64>,
}

impl PodEnvironment {
    /// Reads the variables of this process.
    ///
    /// # Errors
    /// When one is missing, or is not what it should be.
    pub fn read() -> Result<Self, PodError> {
        let index = pod_index()?;
        let run = variable(RUN)?;
        if !Job::is_valid_name(&run) {
            return Err(PodError::Run { name: run });
        }
        let coordinator = variable(COORDINATOR)?;
        if coordinator.rsplit_once(':').is_none() {
            return Err(PodError::CoordinatorWithoutPort { coordinator });
        }
        Ok(Self {
            index,
            run,
            coordinator,
            token: read_token(Path::new(&variable(TOKEN)?))?,
            patience_s: match std::env::var(PATIENCE) {
                Ok(seconds) => Some(patience(seconds)?),
                Err(_) => None,
            },
        })
    }

    /// Where number 0 listens: at its own address, under the port that the others know.
    pub(super) fn listen(&self) -> Result<SocketAddr, PodError> {
        let name = &self.coordinator;
        let Ok(address) = std::env::var(ADDRESS) else {
            let found = name.to_socket_addrs();
            let mut found = found.map_err(|source| PodError::LookUp {
                name: name.clone(),
                source,
            })?;
            return found
                .next()
                .ok_or_else(|| PodError::NoAddress { name: name.clone() });
        };
        let address: IpAddr = match address.parse() {
            Ok(address) => address,
            Err(source) => return Err(PodError::Address { address, source }),
        };
        let port = name.rsplit_once(':');
        let port = port.and_then(|(_, port)| port.parse().ok());
        Ok(SocketAddr::new(address, port.ok_or(PodError::Port)?))
    }
}

/// This pod's number.
///
/// # Errors
/// When nobody has said it.
pub fn pod_index() -> Result<usize, PodError> {
    let index = variable(INDEX)?;
    match index.parse() {
        Ok(number) => Ok(number),
        Err(source) => Err(PodError::Index { index, source }),
    }
}

fn patience(seconds: String) -> Result<f64, PodError> {
    let number = seconds.parse().ok();
    let number = number.filter(|seconds| (0.0..1e9).contains(seconds));
    number.ok_or(PodError::Patience { seconds })
}

fn variable(name: &'static str) -> Result<String, PodError> {
    std::env::var(name).map_err(|source| PodError::Missing { name, source })
}
