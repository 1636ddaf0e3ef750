//! Rules for the cluster of a RayJob, and for a RayCluster.

use super::{is_set, name_mistake};
use serde_json::Value;

/// The longest name of a RayCluster.
const LONGEST: usize = 53;
const V2: &str = "RAY_enable_autoscaler_v2";

/// What is wrong with a RayCluster's name.
pub(super) fn name(cluster: &Value) -> Option<String> {
    name_mistake(cluster, LONGEST)
}

/// The first rule that a cluster breaks.
pub(super) fn first_mistake(spec: &Value, annotations: &Value) -> Option<String> {
    containers(spec)
        .or_else(|| resources_twice(spec))
        .or_else(|| labels(spec))
        .or_else(|| replicas(spec))
        .or_else(|| redis(spec, annotations))
        .or_else(|| autoscaler(spec))
        .or_else(|| token(spec))
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

fn containers(spec: &Value) -> Option<String> {
    let empty = |group: &Value| !is_set(&group["template"]["spec"]["containers"]);
    let (name, _) = groups(spec).into_iter().find(|(_, group)| empty(group))?;
    Some(format!("{name} has no container"))
}

fn resources_twice(spec: &Value) -> Option<String> {
    let keys = ["num-cpus", "num-gpus", "memory", "resources"];
    let twice = |group: &Value| {
        let params = &group["rayStartParams"];
        is_set(&group["resources"]) && keys.iter().any(|key| is_set(&params[*key]))
    };
    let (name, _) = groups(spec).into_iter().find(|(_, group)| twice(group))?;
    Some(format!(
        "{name} has resources both in `rayStartParams` and in `resources`"
    ))
}

fn labels(spec: &Value) -> Option<String> {
    let wrong = |group: &Value| !group["rayStartParams"]["labels"].is_null();
    let (name, _) = groups(spec).into_iter().find(|(_, group)| wrong(group))?;
    Some(format!(
        "{name} has `rayStartParams.labels`; `labels` of the group is meant"
    ))
}

fn autoscales(spec: &Value) -> bool {
    spec["enableInTreeAutoscaling"] == true
}

fn replicas(spec: &Value) -> Option<String> {
    for (name, group) in groups(spec).into_iter().skip(1) {
        let (least, most) = (group["minReplicas"].as_i64(), group["maxReplicas"].as_i64());
        if !autoscales(spec) && (least.is_none() || most.is_none()) {
            return Some(format!(
                "{name} needs `minReplicas` and `maxReplicas` where nothing is scaled"
            ));
        }
        if least.is_some_and(|n| n < 0) || most.is_some_and(|n| n < 0) {
            return Some(format!("{name} has a negative number of replicas"));
        }
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            return Some(format!(
                "{name} has a `minReplicas` of {least} above its `maxReplicas` of {most}"
            ));
        }
    }
    None
}

/// The value of a variable of the head.
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
    if !options && enabled != "true" && variable(spec, "RAY_REDIS_ADDRESS").is_some() {
        return Some("RAY_REDIS_ADDRESS needs `gcsFaultToleranceOptions`".to_owned());
    }
    if is_set(&params["redis-username"]) || variable(spec, "REDIS_USERNAME").is_some() {
        return Some("the user of Redis belongs into `gcsFaultToleranceOptions`".to_owned());
    }
    if !options {
        return None;
    }
    let beside = is_set(&params["redis-password"])
        || variable(spec, "REDIS_PASSWORD").is_some()
        || variable(spec, "RAY_REDIS_ADDRESS").is_some()
        || is_set(&annotations["ray.io/external-storage-namespace"]);
    beside.then(|| {
        "settings of Redis stand beside `gcsFaultToleranceOptions`; put them inside".to_owned()
    })
}

fn autoscaler(spec: &Value) -> Option<String> {
    let options = &spec["autoscalerOptions"];
    let by_variable = variable(spec, V2).map(|v| &v["value"]);
    let variable_on = by_variable.is_some_and(|v| v == "1" || v == "true");
    if options["idleTimeoutSeconds"]
        .as_i64()
        .is_some_and(|s| s < 0)
    {
        return Some("`autoscalerOptions.idleTimeoutSeconds` is negative".to_owned());
    }
    if !autoscales(spec) {
        return variable_on.then(|| format!("{V2} needs `enableInTreeAutoscaling`"));
    }
    if is_set(&options["version"]) && by_variable.is_some() {
        return Some(format!(
            "`autoscalerOptions.version` and {V2} exclude each other"
        ));
    }
    let v2 = options["version"] == "v2" || variable_on;
    for (name, group) in groups(spec) {
        let policy = &group["template"]["spec"]["restartPolicy"];
        if v2 && is_set(policy) && policy != "Never" {
            return Some(format!(
                "with autoscaler v2, `restartPolicy` of {name} must be Never"
            ));
        }
        if group["suspend"] == true {
            return Some(format!(
                "{name} cannot be suspended while the cluster is scaled"
            ));
        }
    }
    None
}

fn token(spec: &Value) -> Option<String> {
    if spec["authOptions"]["mode"] != "token" {
        return None;
    }
    let version = spec["rayVersion"].as_str().unwrap_or_default();
    let numbers: Vec<u32> = version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    numbers
        .get(..2)
        .is_none_or(|numbers| numbers < &[2, 52][..])
        .then(|| format!("tokens need `rayVersion` 2.52.0 or later, found {version:?}"))
}

#[cfg(test)]
mod tests {
    use super::super::check_cluster;
    use crate::kube::manifest::merge;
    use serde_json::{Value, json};

    fn good() -> Value {
        let template = json!({ "spec": { "containers": [{ "name": "ray", "image": "x" }] } });
        json!({ "kind": "RayCluster", "metadata": { "name": "c" }, "spec": {
            "headGroupSpec": { "rayStartParams": {}, "template": template },
            "workerGroupSpecs": [worker(json!({}))],
        } })
    }

    fn worker(patch: Value) -> Value {
        let mut group = json!({
            "groupName": "w", "minReplicas": 1, "maxReplicas": 2, "rayStartParams": {},
            "template": { "spec": { "containers": [{ "name": "ray", "image": "x" }] } },
        });
        merge(&mut group, &patch);
        group
    }

    fn refused(patch: Value) -> String {
        let mut cluster = good();
        merge(&mut cluster, &patch);
        check_cluster(&cluster)
            .expect_err("this was taken")
            .to_string()
    }

    fn spec(patch: Value) -> String {
        refused(json!({ "spec": patch }))
    }

    fn head(env: &str, value: &str) -> Value {
        let env = json!([{ "name": env, "value": value }]);
        json!({ "template": { "spec": { "containers": [{ "name": "ray", "image": "x", "env": env }] } } })
    }

    #[test]
    fn a_good_one_is_taken() {
        check_cluster(&good()).unwrap();
    }

    #[test]
    fn a_name_over_53_characters_is_refused() {
        assert!(refused(json!({"metadata": {"name": "a".repeat(54)}})).contains("54 characters"));
    }

    #[test]
    fn replicas_that_are_unset_or_the_wrong_way_round_are_refused() {
        for key in ["minReplicas", "maxReplicas"] {
            let group = worker(json!({ key: null }));
            assert!(
                spec(json!({ "workerGroupSpecs": [group] })).contains("where nothing is scaled")
            );
        }
        let group = worker(json!({ "minReplicas": 3 }));
        assert!(spec(json!({ "workerGroupSpecs": [group] })).contains("above"));
    }

    #[test]
    fn resources_in_two_places_are_refused() {
        let group = worker(json!({"rayStartParams": {"num-cpus": "1"}, "resources": {"CPU": "1"}}));
        assert!(spec(json!({ "workerGroupSpecs": [group] })).contains("both in"));
    }

    #[test]
    fn labels_among_the_start_parameters_are_refused() {
        let group = worker(json!({"rayStartParams": {"labels": "a=b"}}));
        assert!(spec(json!({ "workerGroupSpecs": [group] })).contains("rayStartParams.labels"));
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
        assert!(refused(patch).contains("ft-enabled"));
    }

    #[test]
    fn tokens_with_a_ray_that_has_none_are_refused() {
        let patch = json!({"authOptions": {"mode": "token"}, "rayVersion": "2.51.0"});
        assert!(spec(patch).contains("2.52.0"));
    }
}
