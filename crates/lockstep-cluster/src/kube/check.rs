//! Mistakes in manifests for KubeRay that are found before anything is sent.
//!
//! A patch of the job file can change anything. The operator refuses most mistakes by itself, in the status of the
//! RayJob, and its words are shown: they are not looked for here. Two kinds are:
//!
//! - a patch that contradicts what Lockstep itself writes into a RayJob, since the operator then names a key that
//!   nobody finds in the job file;
//! - mistakes in a cluster. Of a RayCluster that the operator refuses, only an event tells; it has no pods, for ever.

use crate::kube::KubeError;
use crate::kube::manifest::{Manifest, ManifestKind};
use serde_json::Value;

const AUTOSCALER_V2: &str = "RAY_enable_autoscaler_v2";

/// Looks for such mistakes in all of them.
///
/// # Errors
/// At the first manifest that has one, with the reason.
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

/// Looks for such mistakes in a RayJob.
///
/// # Errors
/// With the reason for which the operator would refuse it.
pub fn check_ray_job(job: &Value) -> Result<(), KubeError> {
    let spec = &job["spec"];
    let found =
        ray_job(spec).or_else(|| cluster(&spec["rayClusterSpec"], &job["metadata"]["annotations"]));
    rejected(job, found)
}

fn check_cluster(value: &Value) -> Result<(), KubeError> {
    let found = cluster(&value["spec"], &value["metadata"]["annotations"]);
    rejected(value, found)
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

/// What contradicts what Lockstep writes: `shutdownAfterJobFinishes`, a time to live, `suspend` for a queue, and a
/// submitter of its own.
fn ray_job(spec: &Value) -> Option<String> {
    let shutdown = spec["shutdownAfterJobFinishes"] == true;
    if spec["suspend"] == true && !shutdown {
        return Some("`suspend` needs `shutdownAfterJobFinishes`".to_owned());
    }
    let ttl = spec["ttlSecondsAfterFinished"].as_i64().unwrap_or_default();
    if ttl > 0 && !shutdown {
        return Some("`ttlSecondsAfterFinished` needs `shutdownAfterJobFinishes`".to_owned());
    }
    if is_set(&spec["deletionStrategy"]["deletionRules"]) && shutdown {
        return Some(
            "`deletionStrategy.deletionRules` and `shutdownAfterJobFinishes` exclude each other"
                .to_owned(),
        );
    }
    let submitter = ["submitterPodTemplate", "submitterConfig"]
        .into_iter()
        .find(|key| !spec[*key].is_null());
    submitter
        .filter(|_| spec["submissionMode"] == "SidecarMode")
        .map(|key| format!("SidecarMode and `{key}` exclude each other"))
}

/// The first rule that a cluster breaks.
fn cluster(spec: &Value, annotations: &Value) -> Option<String> {
    groups(spec)
        .iter()
        .find_map(|(name, group)| in_group(name, group))
        .or_else(|| redis(spec, annotations))
        .or_else(|| autoscaler(spec))
}

/// The groups, each with the name that people know.
fn groups(spec: &Value) -> Vec<(String, &Value)> {
    let workers = spec["workerGroupSpecs"].as_array().into_iter().flatten();
    let named = workers.map(|group| {
        let name = group["groupName"].as_str().unwrap_or_default();
        (format!("the group `{name}`"), group)
    });
    std::iter::once(("the head".to_owned(), &spec["headGroupSpec"]))
        .chain(named)
        .collect()
}

fn in_group(name: &str, group: &Value) -> Option<String> {
    let params = &group["rayStartParams"];
    let resources = ["num-cpus", "num-gpus", "memory", "resources"];
    if is_set(&group["resources"]) && resources.iter().any(|key| is_set(&params[*key])) {
        return Some(format!(
            "{name} has resources both in `rayStartParams` and in `resources`"
        ));
    }
    if !params["labels"].is_null() {
        return Some(format!(
            "{name} has `rayStartParams.labels`; `labels` of the group is meant"
        ));
    }
    let (least, most) = (
        group["minReplicas"].as_i64()?,
        group["maxReplicas"].as_i64()?,
    );
    (least > most)
        .then(|| format!("{name} has a `minReplicas` of {least} above its `maxReplicas` of {most}"))
}

/// A variable of the head.
fn variable<'s>(spec: &'s Value, name: &str) -> Option<&'s Value> {
    let env = &spec["headGroupSpec"]["template"]["spec"]["containers"][0]["env"];
    env.as_array()?
        .iter()
        .find(|variable| variable["name"] == name)
}

fn redis(spec: &Value, annotations: &Value) -> Option<String> {
    let options = !spec["gcsFaultToleranceOptions"].is_null();
    let params = &spec["headGroupSpec"]["rayStartParams"];
    let enabled = &annotations["ray.io/ft-enabled"];
    if options && is_set(enabled) {
        return Some(
            "`gcsFaultToleranceOptions` and the annotation ray.io/ft-enabled exclude each other"
                .to_owned(),
        );
    }
    let address = variable(spec, "RAY_REDIS_ADDRESS").is_some();
    if !options && enabled != "true" && address {
        return Some("RAY_REDIS_ADDRESS needs `gcsFaultToleranceOptions`".to_owned());
    }
    if is_set(&params["redis-username"]) || variable(spec, "REDIS_USERNAME").is_some() {
        return Some("the user of Redis belongs into `gcsFaultToleranceOptions`".to_owned());
    }
    let beside = address
        || is_set(&params["redis-password"])
        || variable(spec, "REDIS_PASSWORD").is_some()
        || is_set(&annotations["ray.io/external-storage-namespace"]);
    (options && beside).then(|| {
        "settings of Redis stand beside `gcsFaultToleranceOptions`; put them inside".to_owned()
    })
}

fn autoscaler(spec: &Value) -> Option<String> {
    let options = &spec["autoscalerOptions"];
    let by_variable = variable(spec, AUTOSCALER_V2).map(|variable| &variable["value"]);
    let variable_on = by_variable.is_some_and(|value| value == "1" || value == "true");
    if spec["enableInTreeAutoscaling"] != true {
        return variable_on.then(|| format!("{AUTOSCALER_V2} needs `enableInTreeAutoscaling`"));
    }
    if is_set(&options["version"]) && by_variable.is_some() {
        return Some(format!(
            "`autoscalerOptions.version` and {AUTOSCALER_V2} exclude each other"
        ));
    }
    let v2 = options["version"] == "v2" || variable_on;
    let groups = groups(spec);
    let (name, _) = groups.iter().find(|(_, group)| {
        let policy = &group["template"]["spec"]["restartPolicy"];
        v2 && is_set(policy) && policy != "Never"
    })?;
    Some(format!(
        "with autoscaler v2, `restartPolicy` of {name} must be Never"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::manifest::merge;
    use serde_json::json;

    fn worker(patch: Value) -> Value {
        let mut group = json!({
            "groupName": "w", "minReplicas": 1, "maxReplicas": 2, "rayStartParams": {},
            "template": { "spec": { "containers": [{ "name": "ray", "image": "x" }] } },
        });
        merge(&mut group, &patch);
        group
    }

    /// The spec of a cluster that the operator takes.
    fn good_cluster() -> Value {
        let template = json!({ "spec": { "containers": [{ "name": "ray", "image": "x" }] } });
        json!({
            "headGroupSpec": { "rayStartParams": {}, "template": template },
            "workerGroupSpecs": [worker(json!({}))],
        })
    }

    /// What is said of a RayJob as Lockstep writes it, with a patch of its spec laid over it.
    fn job(patch: Value) -> Result<(), String> {
        let mut job = json!({ "kind": "RayJob", "metadata": { "name": "train" }, "spec": {
            "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 60, "submitterPodTemplate": {},
            "rayClusterSpec": good_cluster(),
        } });
        merge(&mut job["spec"], &patch);
        check_ray_job(&job).map_err(|error| error.to_string())
    }

    /// The same of a RayCluster.
    fn cluster(patch: Value) -> Result<(), String> {
        let mut cluster =
            json!({ "kind": "RayCluster", "metadata": { "name": "c" }, "spec": good_cluster() });
        merge(&mut cluster, &patch);
        check_cluster(&cluster).map_err(|error| error.to_string())
    }

    fn spec(patch: Value) -> String {
        cluster(json!({ "spec": patch })).expect_err("this was taken")
    }

    fn head(env: &str, value: &str) -> Value {
        let env = json!([{ "name": env, "value": value }]);
        json!({ "template": { "spec": { "containers": [{ "name": "ray", "image": "x", "env": env }] } } })
    }

    #[test]
    fn good_ones_are_taken() {
        assert_eq!(job(json!({})), Ok(()));
        assert_eq!(cluster(json!({})), Ok(()));
    }

    #[test]
    fn a_patch_that_contradicts_what_lockstep_writes_is_refused() {
        let rules = json!({"deletionRules": [{"policy": "DeleteCluster"}]});
        for (patch, named) in [
            (json!({"shutdownAfterJobFinishes": false}), "ttlSeconds"),
            (
                json!({"suspend": true, "shutdownAfterJobFinishes": false}),
                "`suspend`",
            ),
            (json!({ "deletionStrategy": rules }), "exclude each other"),
            (
                json!({"submissionMode": "SidecarMode"}),
                "submitterPodTemplate",
            ),
        ] {
            let said = job(patch).expect_err(named);
            assert!(said.contains(named), "{said}");
            assert!(said.contains("refused by KubeRay's operator"), "{said}");
        }
    }

    #[test]
    fn the_cluster_of_a_job_is_looked_at_too() {
        let group = worker(json!({ "minReplicas": 3 }));
        let patch = json!({"rayClusterSpec": {"workerGroupSpecs": [group]}});
        assert!(job(patch).unwrap_err().contains("above"));
    }

    #[test]
    fn groups_that_the_operator_leaves_lying_are_refused() {
        for (patch, named) in [
            (json!({ "minReplicas": 3 }), "above"),
            (
                json!({"rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}),
                "both in",
            ),
            (
                json!({"rayStartParams": {"labels": "a=b"}}),
                "rayStartParams.labels",
            ),
        ] {
            let said = spec(json!({ "workerGroupSpecs": [worker(patch)] }));
            assert!(said.contains(named), "{said}");
        }
    }

    #[test]
    fn autoscaler_v2_with_pods_that_restart_is_refused() {
        let group = worker(json!({"template": {"spec": {"restartPolicy": "Always"}}}));
        let patch = json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"},
            "workerGroupSpecs": [group]});
        assert!(spec(patch).contains("must be Never"));
        let patch = json!({"headGroupSpec": head("RAY_enable_autoscaler_v2", "1")});
        assert!(spec(patch).contains("enableInTreeAutoscaling"));
    }

    #[test]
    fn redis_beside_the_options_of_fault_tolerance_is_refused() {
        let options = json!({"redisAddress": "redis:6379"});
        for (name, value) in [("REDIS_PASSWORD", "x"), ("RAY_REDIS_ADDRESS", "x")] {
            let patch =
                json!({"gcsFaultToleranceOptions": options, "headGroupSpec": head(name, value)});
            assert!(spec(patch).contains("Redis"), "{name}");
        }
        assert!(spec(json!({"headGroupSpec": head("RAY_REDIS_ADDRESS", "x")})).contains("needs"));
        let patch = json!({"metadata": {"annotations": {"ray.io/ft-enabled": "true"}},
            "spec": {"gcsFaultToleranceOptions": options}});
        assert!(cluster(patch).unwrap_err().contains("ft-enabled"));
    }
}
