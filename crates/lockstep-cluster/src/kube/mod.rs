//! Jobs on Kubernetes, seen from outside the pods.
//!
//! A job file and its `[kube]` section come to a [`Plan`], and a plan to manifests: on plain Kubernetes an Indexed Job
//! with what belongs to it, or a RayJob for KubeRay. They are plain JSON, rendered as YAML that people can read. What
//! a server or an operator would refuse only later is refused before anything is sent. A [`Client`] sends them,
//! follows the log of the pod that coordinates, and says in words why a pod does not run.
//!
//! What runs inside the pods is the contract of `lockstep_job::pod`.

mod check;
mod client;
mod config;
mod error;
mod explain;
mod forward;
mod job;
mod log;
mod manifest;
mod name;
mod node;
mod plan;
mod request;
mod target;
mod yaml;

pub use check::{check_manifests, check_ray_job};
pub use client::Client;
pub use config::{Config, Wanted};
pub use error::KubeError;
pub use explain::{explain, first_reason};
pub use forward::Forward;
pub use job::{ClusterJob, JobEnd, JobName, JobState};
pub use log::Tail;
pub use manifest::{
    Manifest, ManifestKind, PLACEHOLDER, cluster, kube_manifests, pod_group, ray_manifests,
};
pub use name::{LONGEST, check_name, name_of};
pub use node::{KubeNode, KubeNodes, Resources};
pub use plan::{Plan, Travelling};
pub use target::Target;
pub use yaml::documents;
