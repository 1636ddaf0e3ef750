//! Pods: what is in each, whoever starts it, and what they may not do.

use super::{keys, labels};
use crate::kube::Plan;
use lockstep_job::{Placement, PullPolicy, VolumeSource, pod};
use serde_json::{Map, Value, json};

/// Seconds for which a pod that is to go may write its state.
const GRACE_S: u32 = 60;

/// The container that a pod is about.
pub(super) const CONTAINER: &str = "lockstep";

/// How much a container gets: what it asks for is also its limit, so that nobody is slowed down or ended for others.
pub(super) fn amounts(plan: &Plan) -> Value {
    let mut amounts = Map::new();
    amounts.insert("cpu".to_owned(), json!(cpus(plan.resources.cpus)));
    amounts.insert("memory".to_owned(), json!(plan.memory().0.to_string()));
    if plan.resources.gpus > 0.0 {
        // Kubernetes hands out whole GPUs.
        let gpus = plan.resources.gpus.ceil() as u64;
        amounts.insert(plan.kube.gpu_resource.clone(), json!(gpus.to_string()));
    }
    json!({ "limits": amounts.clone(), "requests": amounts })
}

fn cpus(cpus: f64) -> String {
    match cpus.fract() == 0.0 {
        true => format!("{cpus:.0}"),
        false => format!("{:.0}m", (cpus * 1000.0).ceil()),
    }
}

/// A container that may do as little as possible.
pub(super) fn container(plan: &Plan, name: &str) -> Value {
    let mut container = json!({
        "name": name,
        "image": plan.image(),
        "resources": amounts(plan),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": mounts(plan),
    });
    if let Some(pull) = plan.kube.pull {
        container["imagePullPolicy"] = json!(match pull {
            PullPolicy::Always => "Always",
            PullPolicy::IfNotPresent => "IfNotPresent",
            PullPolicy::Never => "Never",
        });
    }
    if !plan.kube.env_from.is_empty() {
        let secret = |name: &String| json!({ "secretRef": { "name": name } });
        container["envFrom"] = plan.kube.env_from.iter().map(secret).collect();
    }
    container
}

/// What of NVIDIA's driver a container with GPUs is given: without it, some runtimes leave out what computes.
const CAPABILITIES: (&str, &str) = ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");

/// The user's own variables, as a container has them.
pub(super) fn variables(plan: &Plan) -> Vec<Value> {
    let home = json!({ "name": "HOME", "value": "/tmp" });
    let (name, value) = CAPABILITIES;
    let has_gpus = plan.resources.gpus > 0.0 && !plan.kube.env.contains_key(name);
    let capabilities = has_gpus.then(|| json!({ "name": name, "value": value }));
    let own = plan.kube.env.iter();
    let own = own.map(|(name, value)| json!({ "name": name, "value": value }));
    let first = std::iter::once(home).chain(capabilities);
    first.chain(own).collect()
}

/// A pod around `containers`.
pub(super) fn template(plan: &Plan, containers: &[Value]) -> Value {
    let user = plan.kube.user;
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": containers,
        "volumes": volumes(plan),
    });
    let kube = &plan.kube;
    if !kube.pull_secrets.is_empty() {
        let name = |name: &String| json!({ "name": name });
        spec["imagePullSecrets"] = kube.pull_secrets.iter().map(name).collect();
    }
    if let Some(account) = &kube.service_account {
        spec["serviceAccountName"] = json!(account);
    }
    if let Some(class) = &kube.priority_class {
        spec["priorityClassName"] = json!(class);
    }
    if kube.volcano_queue.is_some() {
        spec["schedulerName"] = json!("volcano");
    }
    let mut selector = plan.resources.labels.clone();
    selector.extend(kube.node_selector.clone());
    if !selector.is_empty() {
        spec["nodeSelector"] = json!(selector);
    }
    if !kube.tolerations.is_empty() {
        let toleration = |t: &lockstep_job::Toleration| {
            let mut value = json!({ "key": t.key, "operator": "Exists" });
            if let Some(wanted) = &t.value {
                value["operator"] = json!("Equal");
                value["value"] = json!(wanted);
            }
            if let Some(effect) = &t.effect {
                value["effect"] = json!(effect);
            }
            value
        };
        spec["tolerations"] = kube.tolerations.iter().map(toleration).collect();
    }
    let mut template = json!({ "metadata": { "labels": labels(plan) }, "spec": spec });
    let mut annotations = json!(kube.annotations);
    if let Some(queue) = &kube.volcano_queue {
        annotations["scheduling.volcano.sh/queue-name"] = json!(queue);
    }
    if annotations != json!({}) {
        template["metadata"]["annotations"] = annotations;
    }
    template
}

/// How the pods of a gang are spread over nodes: a part of a pod's `spec`.
pub(super) fn spread(plan: &Plan) -> Value {
    let gang = json!({ "matchLabels": { "lockstep.dev/run": plan.name } });
    let nodes = "kubernetes.io/hostname";
    match plan.resources.place {
        _ if plan.workers.0 == 1 => json!({}),
        Placement::Pack => json!({ "affinity": { "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 100, "podAffinityTerm": { "labelSelector": gang, "topologyKey": nodes } },
            ],
        } } }),
        Placement::Spread => json!({ "topologySpreadConstraints": [
            { "labelSelector": gang, "maxSkew": 1, "topologyKey": nodes, "whenUnsatisfiable": "ScheduleAnyway" },
        ] }),
        Placement::StrictSpread => json!({ "affinity": { "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                { "labelSelector": gang, "topologyKey": nodes },
            ],
        } } }),
    }
}

fn mounts(plan: &Plan) -> Value {
    let mut mounts = vec![
        json!({ "name": "job", "mountPath": pod::JOB_FOLDER, "readOnly": true }),
        json!({ "name": "cache", "mountPath": pod::CACHE_FOLDER }),
        json!({ "name": "tmp", "mountPath": "/tmp" }),
        json!({ "name": "shm", "mountPath": "/dev/shm" }),
    ];
    for (i, (path, volume)) in plan.kube.volumes.iter().enumerate() {
        let mut mount = json!({ "name": format!("volume-{i}"), "mountPath": path });
        if volume.read_only {
            mount["readOnly"] = json!(true);
        }
        mounts.push(mount);
    }
    Value::Array(mounts)
}

fn volumes(plan: &Plan) -> Value {
    let files = keys(plan).into_iter().zip(plan.travelling.files.keys());
    let items: Vec<Value> = files
        .map(|(key, path)| json!({ "key": key, "path": path }))
        .collect();
    let cache = match plan.kube.cache {
        Some(limit) => json!({ "sizeLimit": limit.0.to_string() }),
        None => json!({}),
    };
    let mut volumes = vec![
        json!({ "name": "job", "configMap": { "name": plan.name, "items": items } }),
        json!({ "name": "cache", "emptyDir": cache }),
        json!({ "name": "tmp", "emptyDir": {} }),
        // What scripts share between their processes. It counts as memory of the pod.
        json!({ "name": "shm", "emptyDir": { "medium": "Memory" } }),
    ];
    for (i, volume) in plan.kube.volumes.values().enumerate() {
        let name = format!("volume-{i}");
        volumes.push(match &volume.source {
            VolumeSource::Claim(claim) => {
                json!({ "name": name, "persistentVolumeClaim": { "claimName": claim, "readOnly": volume.read_only } })
            }
            VolumeSource::Secret(secret) => {
                json!({ "name": name, "secret": { "secretName": secret, "defaultMode": 0o400 } })
            }
            VolumeSource::Host(path) => json!({ "name": name, "hostPath": { "path": path } }),
        });
    }
    Value::Array(volumes)
}
