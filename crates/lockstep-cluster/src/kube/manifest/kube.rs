//! A job on plain Kubernetes: one Indexed Job, and what its pods need to find and trust each other.

use super::pod::{self as pods, CONTAINER};
use super::{Manifest, ManifestKind, config_map, manifest, merge, secret};
use crate::kube::Plan;
use lockstep_job::pod;
use serde_json::{Value, json};

/// The manifests of a job on plain Kubernetes, the Job first: it owns the others. `token` is the run's; with `group`, its
/// pods are placed as that group.
pub fn kube_manifests(plan: &Plan, token: &str, group: Option<Manifest>) -> Vec<Manifest> {
    let mut manifests = vec![
        job(plan, group.is_some()),
        service(plan),
        secret(plan, pod::TOKEN_FILE, token),
        config_map(plan),
        policy(plan),
    ];
    manifests.extend(group);
    manifests
}

/// The group as which Kubernetes' scheduler places as many pods as the run needs to begin, or none of them.
///
/// A Workload, of which controllers make groups, is not needed for a group that is made by hand.
pub fn pod_group(plan: &Plan) -> Manifest {
    let (_, fewest) = plan.workers;
    let mut spec = json!({ "schedulingPolicy": { "gang": { "minCount": fewest } } });
    if let Some(class) = &plan.kube.priority_class {
        spec["priorityClassName"] = json!(class);
    }
    manifest(plan, ManifestKind::PodGroup, json!({ "spec": spec }))
}

fn job(plan: &Plan, grouped: bool) -> Manifest {
    let (most, _) = plan.workers;
    let mut spec = json!({
        "completionMode": "Indexed",
        "completions": most,
        "parallelism": most,
        "backoffLimitPerIndex": plan.kube.retries,
        // One worker that is given up is the end of the gang.
        "maxFailedIndexes": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": { "rules": [
            {
                "action": "FailJob",
                "onExitCodes": { "containerName": CONTAINER, "operator": "In", "values": [pod::FAILED] },
            },
            {
                "action": "Ignore",
                "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
            },
        ] },
        "ttlSecondsAfterFinished": plan.kube.ttl_s,
        "template": template(plan, grouped),
    });
    if let Some(deadline) = plan.kube.deadline_s {
        spec["activeDeadlineSeconds"] = json!(deadline);
    }
    let mut body = json!({ "spec": spec });
    if let Some(queue) = &plan.kube.kueue_queue {
        // Kueue starts it when its queue has room.
        body["spec"]["suspend"] = json!(true);
        body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
    }
    manifest(plan, ManifestKind::Job, body)
}

fn template(plan: &Plan, grouped: bool) -> Value {
    let mut container = pods::container(plan, CONTAINER);
    let mut command = vec![
        "lockstep".to_owned(),
        pod::COMMAND.to_owned(),
        plan.job_path(),
    ];
    command.extend(plan.words.clone());
    container["command"] = json!(command);
    let mut env = pods::variables(plan);
    let mut set = |name: &str, value: String| env.push(json!({ "name": name, "value": value }));
    let service = &plan.name;
    set(pod::RUN, plan.name.clone());
    set(
        pod::COORDINATOR,
        format!("{service}-0.{service}:{}", pod::PORT),
    );
    set(
        pod::TOKEN,
        format!("{}/{}", pod::TOKEN_FOLDER, pod::TOKEN_FILE),
    );
    set(pod::PATIENCE, plan.patience_s.to_string());
    set("LOCKSTEP_CACHE", pod::CACHE_FOLDER.to_owned());
    env.push(json!({
        "name": pod::ADDRESS,
        "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } },
    }));
    container["env"] = Value::Array(env);
    container["ports"] = json!([{ "name": "gang", "containerPort": pod::PORT }]);
    push(
        &mut container["volumeMounts"],
        json!({
            "name": "token", "mountPath": pod::TOKEN_FOLDER, "readOnly": true,
        }),
    );
    let mut template = pods::template(plan, &[container]);
    push(
        &mut template["spec"]["volumes"],
        json!({
            "name": "token", "secret": { "secretName": plan.name, "defaultMode": 0o400 },
        }),
    );
    // Together with the Service, it gives pod I the name JOB-I.SERVICE.
    template["spec"]["subdomain"] = json!(service);
    if grouped {
        template["spec"]["schedulingGroup"] = json!({ "podGroupName": plan.name });
    }
    merge(&mut template["spec"], &pods::spread(plan));
    template
}

fn push(list: &mut Value, item: Value) {
    if let Value::Array(items) = list {
        items.push(item);
    }
}

/// The Service that gives every pod a name. Pods look for each other before any of them is ready.
fn service(plan: &Plan) -> Manifest {
    let body = json!({ "spec": {
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": { "lockstep.dev/run": plan.name },
        "ports": [{ "name": "gang", "port": pod::PORT }],
    } });
    manifest(plan, ManifestKind::Service, body)
}

/// Nobody but the gang reaches its pods, on any port.
fn policy(plan: &Plan) -> Manifest {
    let gang = json!({ "matchLabels": { "lockstep.dev/run": plan.name } });
    let body = json!({ "spec": {
        "podSelector": gang,
        "policyTypes": ["Ingress"],
        "ingress": [{ "from": [{ "podSelector": gang }] }],
    } });
    manifest(plan, ManifestKind::NetworkPolicy, body)
}
