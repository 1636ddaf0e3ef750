//! `[kube]`: how a job's pods look on Kubernetes. What a worker needs of a node is in `[resources]`.
//!
//! Keys are here for what most jobs need. `patch` reaches everything else: a piece of a manifest for each kind.

mod names;
mod text;

pub use text::{Toleration, Volume, VolumeSource};

use crate::Bytes;
use crate::field::Field;
use crate::keys::{Any, By, Each, keys, words};
use crate::resources::texts;
use names::{image, is_label_key, is_label_value, is_subdomain};
use serde_json::Value;
use std::collections::BTreeMap;

/// A year: longer than anything is kept or waited for.
const MAX_SECONDS: u64 = 31_536_000;
const MAX_RETRIES: u32 = 1_000;
const MAX_HEAD_CPUS: u32 = 1_000;
const MAX_USER: u64 = i32::MAX as u64;

/// The kinds of manifests that a patch can reach.
pub const PATCHED: [&str; 7] = [
    "Job",
    "PodGroup",
    "Service",
    "ConfigMap",
    "NetworkPolicy",
    "RayJob",
    "RayCluster",
];

keys! {
    /// How the pods of a job look on Kubernetes.
    pub struct Kube: all default {
        /// What starts the pods.
        engine: KubeEngine = default(KubeEngine::Auto) => Any;
        /// The image of the pods, with `lockstep` in its `PATH`.
        image: Option<String> = optional => By(image);
        /// When the image is pulled. If left out, Kubernetes decides by the image's tag.
        pull: Option<PullPolicy> = optional => Any;
        /// Secrets with which the image is pulled.
        pull_secrets: Vec<String> = default(Vec::new()) => Each(By(name));
        /// The namespace. If left out, that of the kubeconfig's context.
        namespace: Option<String> = optional => By(name);
        /// The account that pods run as, such as one that a bucket knows. They get no token of it for Kubernetes.
        service_account: Option<String> = optional => By(name);
        /// What Kubernetes calls a GPU.
        gpu_resource: String = default("nvidia.com/gpu".to_owned()) => By(label_key);
        /// Labels that a node must have, each with its value. Those of `resources.labels` count too.
        node_selector: BTreeMap<String, String> = default(BTreeMap::new()) => By(labels);
        /// Taints of nodes that pods put up with: `"key=value:effect"`, `"key:effect"` or `"key"`.
        tolerations: Vec<Toleration> = default(Vec::new()) => Each(By(Toleration::read));
        /// Labels of everything that is made.
        labels: BTreeMap<String, String> = default(BTreeMap::new()) => By(own_labels);
        /// Annotations of everything that is made.
        annotations: BTreeMap<String, String> = default(BTreeMap::new()) => By(annotations);
        /// What is mounted, by the path in the pods: `"claim:NAME"`, `"secret:NAME"` or `"host:/PATH"`, each with `:ro`
        /// behind it if nothing may be written.
        volumes: BTreeMap<String, Volume> = default(BTreeMap::new()) => By(Volume::read_all);
        /// Variables of the environment. This is no place for secrets.
        env: BTreeMap<String, String> = default(BTreeMap::new()) => By(variables);
        /// Secrets each key of which becomes a variable of the environment, such as a bucket's.
        env_from: Vec<String> = default(Vec::new()) => Each(By(name));
        /// The most that a pod may write to its cache folder, which goes away with the pod.
        cache: Option<Bytes> = optional => By(|field: &Field<'_>| Bytes::read(field, Bytes(1 << 20)));
        /// The user and group that pods run as.
        user: u64 = default(65_532) => 1..=MAX_USER;
        /// How often the pod of one worker may fail before the job does. Pods that Kubernetes takes away do not count.
        retries: u32 = default(6) => 0..=MAX_RETRIES;
        /// Seconds after which a job that has not ended is ended as failed.
        deadline_s: Option<u64> = optional => 1..=MAX_SECONDS;
        /// Seconds for which what has ended is kept in the cluster, its logs with it.
        ttl_s: u64 = default(86_400) => 0..=MAX_SECONDS;
        /// The priority class of the pods.
        priority_class: Option<String> = optional => By(name);
        /// The queue of Kueue that admits the job.
        kueue_queue: Option<String> = optional => By(name);
        /// The queue of Volcano that admits the job.
        volcano_queue: Option<String> = optional => Any, |field, ()| match kueue_queue {
            Some(Some(_)) => field.reject("cannot be used together with `kueue_queue`", "leave one out"),
            _ => name(field),
        };
        /// Whether Kubernetes places all pods that the job needs at once, or none of them (a PodGroup, in Kubernetes 1.37).
        gang_scheduling: GangScheduling = default(GangScheduling::Auto) => Any, |field, wanted| {
            let is_ray = engine == Some(KubeEngine::Kuberay);
            let by_volcano = matches!(volcano_queue, Some(Some(_)));
            match (wanted, is_ray, by_volcano) {
                (GangScheduling::On, true, _) => {
                    field.reject("cannot be \"on\" with `engine = \"kuberay\"`", "it is for Jobs of Kubernetes itself")
                }
                (GangScheduling::On, _, true) => {
                    field.reject("cannot be \"on\" together with `volcano_queue`", "Volcano places gangs by itself")
                }
                _ => Some(wanted),
            }
        };
        /// The version of Ray in the image, for `engine = "kuberay"`.
        ray_version: Option<String> = optional => By(version);
        /// Processors of Ray's head, for `engine = "kuberay"`. No worker is placed there.
        head_cpus: u32 = default(1) => 1..=MAX_HEAD_CPUS;
        /// Memory of Ray's head, for `engine = "kuberay"`.
        head_memory: Bytes = default(Bytes(2 << 30)) => By(|field: &Field<'_>| Bytes::read(field, Bytes(1 << 29)));
        /// What is laid over the manifests, by their kind (a JSON merge patch).
        patch: BTreeMap<String, Value> = default(BTreeMap::new()) => By(patches);
    }
}

words! {
    /// What starts the pods of a job.
    pub enum KubeEngine {
        /// KubeRay where it is installed and `ray_version` says that the image has Ray, else Kubernetes itself.
        "auto" Auto
        /// Kubernetes itself, by an Indexed Job.
        "kube" Kube
        /// KubeRay, by a RayJob.
        "kuberay" Kuberay
    }
}

words! {
    /// Whether Kubernetes' own gang scheduling is asked for.
    pub enum GangScheduling {
        /// Where the cluster has it, whoever submits may use it, and no queue admits the job.
        "auto" Auto
        /// Always.
        "on" On
        /// Never.
        "off" Off
    }
}

words! {
    /// When an image is pulled.
    pub enum PullPolicy {
        /// For each pod.
        "always" Always
        /// Where a node has it not.
        "if-not-present" IfNotPresent
        /// Never: nodes have it.
        "never" Never
    }
}

fn name(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    match is_subdomain(text) {
        true => Some(text.to_owned()),
        false => field.reject(
            format!("cannot be {text:?}"),
            "names in Kubernetes have small letters, digits, `-` and `.`, and begin and end with a letter or digit",
        ),
    }
}

fn label_key(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    match is_label_key(text) {
        true => Some(text.to_owned()),
        false => field.reject(format!("cannot be {text:?}"), "such as \"nvidia.com/gpu\""),
    }
}

/// Reads a table of texts, each of which `wrong` says nothing against.
fn checked(
    field: &Field<'_>,
    wrong: impl Fn(&str, &str) -> Option<String>,
) -> Option<BTreeMap<String, String>> {
    let found = texts(field)?;
    for (key, value) in &found {
        if let Some(why) = wrong(key, value) {
            return field.reject(format!("has {key:?}: {why}"), why);
        }
    }
    Some(found)
}

fn label_mistake(key: &str, value: &str) -> Option<String> {
    if !is_label_key(key) {
        return Some("a label's key has letters, digits, `-`, `_` and `.`, at most 63".to_owned());
    }
    let wrong = !is_label_value(value);
    wrong.then(|| "a label's value has letters, digits, `-`, `_` and `.`, at most 63".to_owned())
}

fn labels(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    checked(field, label_mistake)
}

/// Labels that are not those by which pods are found.
fn own_labels(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    checked(field, |key, value| {
        let ours = [
            "app.kubernetes.io/",
            "lockstep.dev/",
            "ray.io/",
            "batch.kubernetes.io/",
        ];
        match ours.iter().any(|prefix| key.starts_with(prefix)) {
            true => Some("this label is set already, to find the job's pods by".to_owned()),
            false => label_mistake(key, value),
        }
    })
}

fn annotations(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    checked(field, |key, _| {
        let wrong = !is_label_key(key);
        wrong.then(|| "an annotation's key has letters, digits, `-`, `_` and `.`".to_owned())
    })
}

fn variables(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    checked(field, |key, _| {
        let right = !key.is_empty()
            && !key.starts_with(|c: char| c.is_ascii_digit())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (!right).then(|| "a variable has letters, digits and `_`".to_owned())
    })
}

fn version(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    match parts.len() == 3 && parts.iter().all(number) {
        true => Some(text.to_owned()),
        false => field.reject(format!("cannot be {text:?}"), "such as \"2.60.0\""),
    }
}

fn patches(field: &Field<'_>) -> Option<BTreeMap<String, Value>> {
    let expected = "a table such as { Job = { spec = { suspend = true } } }";
    field.map(expected, |kind, field| {
        if !PATCHED.contains(&kind) {
            let label = format!("one of {}", PATCHED.join(", "));
            return field.reject("is not a kind that is made here", label);
        }
        let value = field.json()?;
        match field.is_table() {
            true => Some(value),
            false => field.reject("must be a table", "a piece of the manifest"),
        }
    })
}
