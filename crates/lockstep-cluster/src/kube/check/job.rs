//! Rules for a RayJob.

use super::{Rule, is_set, name_mistake};
use crate::kube::name::LONGEST;
use serde_json::Value;

/// All of them.
pub(super) const RULES: [Rule; 12] = [
    name,
    suspend_needs_shutdown,
    ttl,
    deletion,
    has_cluster,
    selector,
    retries,
    interactive,
    sidecar,
    deadlines,
    runtime_env,
    kubernetes_tokens,
];

fn yes(value: &Value) -> bool {
    value == true
}

fn name(job: &Value) -> Option<String> {
    name_mistake(job, LONGEST)
}

fn suspend_needs_shutdown(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    (yes(&spec["suspend"]) && !yes(&spec["shutdownAfterJobFinishes"]))
        .then(|| "`suspend` needs `shutdownAfterJobFinishes`".to_owned())
}

fn ttl(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    let ttl = spec["ttlSecondsAfterFinished"].as_i64().unwrap_or_default();
    if ttl < 0 {
        return Some(format!(
            "`ttlSecondsAfterFinished` is {ttl}, and must not be negative"
        ));
    }
    (ttl > 0 && !yes(&spec["shutdownAfterJobFinishes"]))
        .then(|| "`ttlSecondsAfterFinished` needs `shutdownAfterJobFinishes`".to_owned())
}

fn deletion(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    let strategy = &spec["deletionStrategy"];
    if strategy.is_null() {
        return None;
    }
    let rules = is_set(&strategy["deletionRules"]);
    let (success, failure) = (
        is_set(&strategy["onSuccess"]),
        is_set(&strategy["onFailure"]),
    );
    if rules && yes(&spec["shutdownAfterJobFinishes"]) {
        return Some(
            "`deletionStrategy.deletionRules` and `shutdownAfterJobFinishes` exclude each other"
                .to_owned(),
        );
    }
    if rules && (success || failure) {
        return Some("`deletionRules` and `onSuccess`/`onFailure` exclude each other".to_owned());
    }
    (!(rules || success && failure)).then(|| {
        "`deletionStrategy` needs `deletionRules`, or both `onSuccess` and `onFailure`".to_owned()
    })
}

fn has_cluster(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    (spec["rayClusterSpec"].is_null() && !is_set(&spec["clusterSelector"]))
        .then(|| "it needs a `rayClusterSpec` or a `clusterSelector`".to_owned())
}

fn selector(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    if !is_set(&spec["clusterSelector"]) {
        return None;
    }
    if !is_set(&spec["clusterSelector"]["ray.io/cluster"]) {
        return Some("`clusterSelector` must name a cluster: `ray.io/cluster`".to_owned());
    }
    if yes(&spec["suspend"]) {
        return Some("`suspend` and `clusterSelector` exclude each other".to_owned());
    }
    (spec["submissionMode"] == "SidecarMode")
        .then(|| "SidecarMode and `clusterSelector` exclude each other".to_owned())
}

fn retries(job: &Value) -> Option<String> {
    let limit = job["spec"]["backoffLimit"].as_i64().unwrap_or_default();
    if limit < 0 {
        return Some(format!(
            "`backoffLimit` is {limit}, and must not be negative"
        ));
    }
    (limit > 0 && is_set(&job["spec"]["clusterSelector"]))
        .then(|| "`backoffLimit` and `clusterSelector` exclude each other".to_owned())
}

fn interactive(job: &Value) -> Option<String> {
    let limit = job["spec"]["backoffLimit"].as_i64().unwrap_or_default();
    (limit > 0 && job["spec"]["submissionMode"] == "InteractiveMode")
        .then(|| "`backoffLimit` and InteractiveMode exclude each other".to_owned())
}

fn sidecar(job: &Value) -> Option<String> {
    let spec = &job["spec"];
    if spec["submissionMode"] != "SidecarMode" {
        return None;
    }
    for key in ["submitterPodTemplate", "submitterConfig"] {
        if !spec[key].is_null() {
            return Some(format!("SidecarMode and `{key}` exclude each other"));
        }
    }
    let head = &spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["restartPolicy"];
    (is_set(head) && head != "Never")
        .then(|| "in SidecarMode the head's `restartPolicy` must be Never".to_owned())
}

fn deadlines(job: &Value) -> Option<String> {
    let keys = ["activeDeadlineSeconds", "preRunningDeadlineSeconds"];
    keys.iter().find_map(|key| {
        let seconds = job["spec"][*key].as_i64()?;
        (seconds <= 0).then(|| format!("`{key}` is {seconds}, and must be positive"))
    })
}

fn runtime_env(job: &Value) -> Option<String> {
    let text = job["spec"]["runtimeEnvYAML"].as_str()?;
    if text.trim().is_empty() {
        return None;
    }
    match serde_saphyr::from_str::<serde_json::Map<String, Value>>(text) {
        Ok(_) => None,
        Err(_) => Some("`runtimeEnvYAML` is no YAML with keys and values".to_owned()),
    }
}

fn kubernetes_tokens(job: &Value) -> Option<String> {
    yes(&job["spec"]["rayClusterSpec"]["authOptions"]["enableK8sTokenAuth"])
        .then(|| "`enableK8sTokenAuth` is not for RayJobs".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::check_ray_job;
    use crate::kube::manifest::merge;
    use serde_json::{Value, json};

    /// A RayJob that the operator takes.
    fn good() -> Value {
        let container = json!([{ "name": "ray", "image": "x" }]);
        json!({
            "kind": "RayJob",
            "metadata": { "name": "train" },
            "spec": {
                "shutdownAfterJobFinishes": true,
                "ttlSecondsAfterFinished": 60,
                "rayClusterSpec": {
                    "headGroupSpec": { "rayStartParams": {}, "template": { "spec": { "containers": container } } },
                    "workerGroupSpecs": [],
                },
            },
        })
    }

    /// What is said of the good one with a patch laid over it.
    fn refused(patch: Value) -> String {
        let mut job = good();
        merge(&mut job, &patch);
        let error = check_ray_job(&job).expect_err("this was taken");
        error.to_string()
    }

    fn spec(patch: Value) -> String {
        refused(json!({ "spec": patch }))
    }

    #[test]
    fn a_good_one_is_taken() {
        check_ray_job(&good()).unwrap();
    }

    #[test]
    fn a_name_over_47_characters_or_that_is_no_label_is_refused() {
        assert!(refused(json!({"metadata": {"name": "a".repeat(48)}})).contains("48 characters"));
        assert!(refused(json!({"metadata": {"name": "1st"}})).contains("begins with a letter"));
    }

    #[test]
    fn a_ttl_without_shutdown_is_refused() {
        assert!(spec(json!({"shutdownAfterJobFinishes": false})).contains("ttlSeconds"));
        assert!(spec(json!({"ttlSecondsAfterFinished": -1})).contains("negative"));
    }

    #[test]
    fn suspend_without_shutdown_is_refused() {
        let patch = json!({"suspend": true, "shutdownAfterJobFinishes": false, "ttlSecondsAfterFinished": 0});
        assert!(spec(patch).contains("`suspend`"));
    }

    #[test]
    fn rules_of_deletion_together_with_shutdown_are_refused() {
        let rules = json!({"deletionRules": [{"policy": "DeleteCluster"}]});
        assert!(spec(json!({ "deletionStrategy": rules })).contains("exclude each other"));
        assert!(spec(json!({"deletionStrategy": {}})).contains("needs"));
    }

    #[test]
    fn a_job_without_a_cluster_is_refused() {
        assert!(spec(json!({"rayClusterSpec": null})).contains("clusterSelector"));
    }

    #[test]
    fn retries_with_a_selector_or_interactive_are_refused() {
        let selector = json!({"ray.io/cluster": "c"});
        assert!(
            spec(json!({"backoffLimit": 1, "clusterSelector": selector})).contains("backoffLimit")
        );
        let interactive = json!({"backoffLimit": 1, "submissionMode": "InteractiveMode"});
        assert!(spec(interactive).contains("InteractiveMode"));
    }

    #[test]
    fn sidecar_mode_with_a_submitter_or_a_head_that_restarts_is_refused() {
        for key in ["submitterPodTemplate", "submitterConfig"] {
            assert!(spec(json!({"submissionMode": "SidecarMode", key: {}})).contains(key));
        }
        let head = json!({"headGroupSpec": {"template": {"spec": {"restartPolicy": "Always"}}}});
        let patch = json!({"submissionMode": "SidecarMode", "rayClusterSpec": head});
        assert!(spec(patch).contains("restartPolicy"));
    }

    #[test]
    fn deadlines_that_are_not_positive_are_refused() {
        for key in ["activeDeadlineSeconds", "preRunningDeadlineSeconds"] {
            assert!(spec(json!({ key: 0 })).contains(key));
        }
    }

    #[test]
    fn a_runtime_environment_that_is_no_yaml_is_refused() {
        assert!(spec(json!({"runtimeEnvYAML": "a: [b"})).contains("no YAML"));
        assert!(spec(json!({"runtimeEnvYAML": "just words"})).contains("no YAML"));
    }

    #[test]
    fn tokens_of_kubernetes_are_refused() {
        let patch = json!({"rayClusterSpec": {"authOptions": {"enableK8sTokenAuth": true}}});
        assert!(spec(patch).contains("enableK8sTokenAuth"));
    }
}
