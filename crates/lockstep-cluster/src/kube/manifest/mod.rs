//! Manifests: what is made in the cluster for a job, as plain JSON.

mod kube;
mod pod;
mod ray;

pub use kube::{kube_manifests, pod_group};
pub use ray::{cluster, ray_manifests};

use crate::kube::Plan;
use serde_json::{Map, Value, json};

/// What stands in a rendered Secret in place of a token, which nobody should find in a file.
pub const PLACEHOLDER: &str = "put 64 random hexadecimal digits here: openssl rand -hex 32";

/// One object, as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// What it is.
    pub kind: ManifestKind,
    /// All of it.
    pub value: Value,
}

/// The kinds of objects that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestKind {
    /// A Job of Kubernetes.
    Job,
    /// A RayJob of KubeRay.
    RayJob,
    /// A RayCluster of KubeRay.
    RayCluster,
    /// The Service that gives pods their names.
    Service,
    /// The Secret with the run's token.
    Secret,
    /// The ConfigMap with the job's files.
    ConfigMap,
    /// The policy that admits the gang alone.
    NetworkPolicy,
    /// The group of pods that are placed together, from Kubernetes 1.37.
    PodGroup,
}

impl ManifestKind {
    /// All kinds, those that own others first.
    pub const ALL: [ManifestKind; 8] = [
        Self::Job,
        Self::RayJob,
        Self::RayCluster,
        Self::Service,
        Self::Secret,
        Self::ConfigMap,
        Self::NetworkPolicy,
        Self::PodGroup,
    ];

    /// As manifests write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::RayJob => "RayJob",
            Self::RayCluster => "RayCluster",
            Self::Service => "Service",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::NetworkPolicy => "NetworkPolicy",
            Self::PodGroup => "PodGroup",
        }
    }

    /// Group and version, as manifests write them.
    pub fn api(self) -> &'static str {
        match self {
            Self::Job => "batch/v1",
            Self::RayJob | Self::RayCluster => "ray.io/v1",
            Self::NetworkPolicy => "networking.k8s.io/v1",
            Self::PodGroup => "scheduling.k8s.io/v1beta1",
            Self::Service | Self::Secret | Self::ConfigMap => "v1",
        }
    }

    /// As paths of the API write it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Job => "jobs",
            Self::RayJob => "rayjobs",
            Self::RayCluster => "rayclusters",
            Self::Service => "services",
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
            Self::NetworkPolicy => "networkpolicies",
            Self::PodGroup => "podgroups",
        }
    }
}

/// An object with what all of them have, and what the job's patch says of its kind.
fn manifest(plan: &Plan, kind: ManifestKind, body: Value) -> Manifest {
    let mut value = json!({
        "apiVersion": kind.api(),
        "kind": kind.word(),
        "metadata": {
            "name": plan.name,
            "namespace": plan.namespace,
            "labels": labels(plan),
        },
    });
    if !plan.kube.annotations.is_empty() {
        value["metadata"]["annotations"] = json!(plan.kube.annotations);
    }
    merge(&mut value, &body);
    if let Some(patch) = plan.kube.patch.get(kind.word()) {
        merge(&mut value, patch);
    }
    Manifest { kind, value }
}

/// The labels of everything.
fn labels(plan: &Plan) -> Value {
    let mut labels: Map<String, Value> = Map::new();
    for (key, value) in &plan.kube.labels {
        labels.insert(key.clone(), json!(value));
    }
    labels.insert("app.kubernetes.io/name".to_owned(), json!("lockstep"));
    labels.insert("app.kubernetes.io/instance".to_owned(), json!(plan.name));
    labels.insert("app.kubernetes.io/managed-by".to_owned(), json!("lockstep"));
    labels.insert("lockstep.dev/run".to_owned(), json!(plan.name));
    Value::Object(labels)
}

/// Lays `patch` over `value` (RFC 7396).
pub(crate) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    if let Value::Object(map) = value {
        for (key, patch) in patch {
            match patch {
                Value::Null => drop(map.remove(key)),
                patch => merge(map.entry(key.clone()).or_insert(Value::Null), patch),
            }
        }
    }
}

/// The Secret with a token under `key`.
fn secret(plan: &Plan, key: &str, token: &str) -> Manifest {
    let body = json!({ "type": "Opaque", "stringData": { key: token } });
    manifest(plan, ManifestKind::Secret, body)
}

/// The ConfigMap with the job's files. Keys have no slashes, so each file is known by a number, and mounted under
/// its path.
fn config_map(plan: &Plan) -> Manifest {
    let (mut texts, mut others) = (Map::new(), Map::new());
    for (key, (_, bytes)) in keys(plan).into_iter().zip(&plan.travelling.files) {
        match std::str::from_utf8(bytes) {
            Ok(text) => drop(texts.insert(key, json!(text))),
            Err(_) => drop(others.insert(key, json!(crate::kube::request::base64(bytes)))),
        }
    }
    let mut body = json!({ "data": texts });
    if !others.is_empty() {
        body["binaryData"] = Value::Object(others);
    }
    manifest(plan, ManifestKind::ConfigMap, body)
}

/// The key of each file, in order.
fn keys(plan: &Plan) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let key = |(i, path): (usize, &String)| match path.chars().all(plain) && path.len() < 200 {
        true => path.clone(),
        false => format!("{i}-{}", path.rsplit('/').next().unwrap_or_default())
            .chars()
            .filter(|c| plain(*c))
            .take(200)
            .collect(),
    };
    plan.travelling.files.keys().enumerate().map(key).collect()
}
