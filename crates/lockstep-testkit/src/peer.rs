//! Programs that a machine may lack: those that take long to bring, and those that only the system can bring.

use crate::{browser, mlflow, ray, server};
use std::io::Write;

/// A program to hold a conversation with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A cluster of Ray.
    Ray,
    /// A server of MLflow.
    Mlflow,
    /// Azurite, which stands for Azure's blobs.
    Azurite,
    /// Node and Chromium.
    Browser,
}

impl Peer {
    /// Whether it could be talked to without bringing anything large. If not, this says that the test is skipped, and
    /// what would bring the peer.
    pub fn is_here(self) -> bool {
        let is_here = match self {
            Peer::Ray => ray::environment(&ray::ray_version()).is_here(),
            Peer::Mlflow => mlflow::environment().is_here(),
            Peer::Azurite => server::azurite().is_here(),
            Peer::Browser => browser::program().is_some() && browser::has_node(),
        };
        if !is_here {
            let bring = match self {
                Peer::Browser => "make test-tools (needs root) brings Node and Chromium",
                Peer::Ray | Peer::Mlflow | Peer::Azurite => "make test-peers brings it",
            };
            let test = std::thread::current();
            let test = test.name().unwrap_or("a test").to_owned();
            // Written to the stream itself: the test runner keeps what is printed by a test that succeeds to itself.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: {test}: {self:?} is not here; {bring}"
            );
        }
        is_here
    }
}
