//! What a server is told when it starts.

use crate::GuardSettings;
use lockstep_base::fs::CacheDir;
use lockstep_cluster::kube::Wanted;
use lockstep_place::Place;
use lockstep_queue::QueueSettings;
use lockstep_runs::RunDir;
use lockstep_serving::HeldModels;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Files of a folder: their names within it, and what they hold.
pub type FolderFiles = Vec<(String, Vec<u8>)>;

/// How a server is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The store of runs that it shows.
    pub store: Place,
    /// Where indexes of stores that are not on this machine are kept.
    pub cache: CacheDir,
    /// The folder of its own files: jobs, packages, hashes of tokens, the audit log.
    pub folder: PathBuf,
    /// The head of a Ray cluster whose nodes are shown too.
    pub ray: Option<String>,
    /// The Kubernetes namespace whose nodes and pods are shown too.
    pub kube: Option<Wanted>,
    /// Makes the folder that MLflow's clients load a registered model from, or says why it cannot.
    pub for_mlflow: fn(&RunDir) -> Result<FolderFiles, String>,
    /// The models of the store, for predictions. None is held before somebody asks.
    pub models: HeldModels,
    /// How its queue of jobs is to be.
    pub queue: QueueSettings,
    /// How it protects itself.
    pub guard: GuardSettings,
}
