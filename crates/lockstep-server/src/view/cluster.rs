//! The machines that jobs run on: this one, and those of the Ray cluster and of the Kubernetes namespace that the server
//! was pointed at.

mod kube;
mod ray;

use super::blocking;
use super::machine::Sample;
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::State;
use serde::Serialize;

/// Machines elsewhere.
#[derive(Debug, Serialize)]
pub(super) struct Cluster {
    /// What they are, for people.
    name: String,
    lead: String,
    nodes: Vec<Machine>,
    /// Why nothing is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Cluster {
    fn unknown(name: String, error: &dyn std::error::Error) -> Cluster {
        Cluster {
            name,
            lead: String::new(),
            nodes: Vec::new(),
            error: Some(error.to_string()),
        }
    }
}

/// One machine elsewhere.
#[derive(Debug, PartialEq, Serialize)]
struct Machine {
    name: String,
    state: &'static str,
    cpus: Share,
    memory: Share,
    gpus: Share,
    /// What else is to be said of it.
    what: String,
}

/// So much of something.
#[derive(Debug, PartialEq, Serialize)]
struct Share {
    used: f64,
    total: f64,
}

/// This machine.
pub(super) async fn here(State(server): State<Server>) -> Result<Json<Sample>, Refusal> {
    blocking(move || Ok(Json(Sample::take(&server)))).await
}

/// Those elsewhere. They may take their time to answer, so nothing else waits for them.
pub(super) async fn elsewhere(State(server): State<Server>) -> Result<Json<Vec<Cluster>>, Refusal> {
    blocking(move || {
        let settings = server.settings();
        let ray = settings.ray.iter().map(|address| ray::look(address));
        let kube = settings.kube.iter().map(kube::look);
        Ok(Json(ray.chain(kube).collect()))
    })
    .await
}
