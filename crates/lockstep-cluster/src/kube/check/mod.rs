//! What KubeRay's operator refuses only after the server has taken it, found before anything is sent.
//!
//! The rules are those of `controllers/ray/utils/validation.go` of KubeRay 1.6, and what 1.7 is known to add. They look at manifests as they
//! are sent, since a patch of the job file may have changed anything. Each rule is a function of its own.

mod cluster;
mod job;

use crate::kube::KubeError;
use crate::kube::manifest::{Manifest, ManifestKind};
use serde_json::Value;

/// A rule: what is wrong with the value, if anything.
type Rule = fn(&Value) -> Option<String>;

/// Finds out whether the operator would take all of them.
///
/// # Errors
/// At the first that it would refuse, with the reason.
pub fn check_manifests(manifests: &[Manifest]) -> Result<(), KubeError> {
    for manifest in manifests {
        match manifest.kind {
            ManifestKind::RayJob => check_ray_job(&manifest.value)?,
            ManifestKind::RayCluster => check_cluster(&manifest.value)?,
            _ => (),
        }
    }
    Ok(())
}

/// Finds out whether the operator would take a RayJob.
///
/// # Errors
/// With the reason for which it would not.
pub fn check_ray_job(job: &Value) -> Result<(), KubeError> {
    let found = job::RULES.iter().find_map(|rule| rule(job));
    let spec = &job["spec"]["rayClusterSpec"];
    let annotations = &job["metadata"]["annotations"];
    let found = found.or_else(|| match spec.is_null() {
        true => None,
        false => cluster::first_mistake(spec, annotations),
    });
    rejected(job, found)
}

/// Finds out whether the operator would take a RayCluster.
///
/// # Errors
/// With the reason for which it would not.
pub fn check_cluster(cluster: &Value) -> Result<(), KubeError> {
    let found = cluster::name(cluster);
    let found = found
        .or_else(|| cluster::first_mistake(&cluster["spec"], &cluster["metadata"]["annotations"]));
    rejected(cluster, found)
}

fn rejected(value: &Value, why: Option<String>) -> Result<(), KubeError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match why {
        None => Ok(()),
        Some(why) => Err(KubeError::Rejected {
            kind: text(&value["kind"]),
            name: text(&value["metadata"]["name"]),
            why,
        }),
    }
}

/// Why an object that may have so many characters cannot have its name.
fn name_mistake(value: &Value, longest: usize) -> Option<String> {
    let name = value["metadata"]["name"].as_str().unwrap_or_default();
    if name.len() > longest {
        return Some(format!(
            "its name has {} characters, and at most {longest} fit",
            name.len()
        ));
    }
    (!crate::kube::name::is_label(name)).then(|| {
        "its name may have small letters, digits and `-`, and begins with a letter".to_owned()
    })
}

/// Whether a value is there and has something in it.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}
