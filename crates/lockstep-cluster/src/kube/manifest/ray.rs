//! A job through KubeRay: a RayJob with a cluster of its own, and a RayCluster that stands.
//!
//! The head has no processors for workers, so they cannot starve it; the job is never run a second time by the
//! operator, since recovery is the run's own; the job's id is ours; and the cluster asks for a token.

use super::pod::{self as pods, CONTAINER};
use super::{Manifest, ManifestKind, config_map, labels, manifest, merge, secret};
use crate::kube::{KubeError, Plan};
use crate::shell_line;
use lockstep_job::pod;
use serde_json::{Value, json};

/// The key of a Secret in which KubeRay and Ray look for the token.
const TOKEN_KEY: &str = "auth_token";
/// The first Ray that has tokens.
const TOKENS_SINCE: [u32; 2] = [2, 52];
/// Processors and memory of the pod that brings the job to the head.
const SUBMITTER: (&str, &str) = ("500m", "512Mi");

/// The manifests of a job through KubeRay, the RayJob first: it owns the others.
///
/// # Errors
/// When the job does not say which Ray its image has, or when that one has no tokens.
pub fn ray_manifests(plan: &Plan, token: &str) -> Result<Vec<Manifest>, KubeError> {
    let cluster = cluster_spec(plan, false)?;
    let mut spec = json!({
        "entrypoint": entrypoint(plan),
        "jobId": plan.name,
        // The submitter asks for the job's id before it submits, so that one that is started anew finds the job.
        "submissionMode": "K8sJobMode",
        "backoffLimit": 0,
        "submitterConfig": { "backoffLimit": 2 },
        "submitterPodTemplate": submitter(plan),
        "shutdownAfterJobFinishes": true,
        "ttlSecondsAfterFinished": plan.kube.ttl_s,
        "rayClusterSpec": cluster,
    });
    if let Some(deadline) = plan.kube.deadline_s {
        spec["activeDeadlineSeconds"] = json!(deadline);
    }
    let mut body = json!({ "spec": spec });
    queue(plan, &mut body);
    if plan.kube.kueue_queue.is_some() {
        body["spec"]["suspend"] = json!(true);
    }
    Ok(vec![
        manifest(plan, ManifestKind::RayJob, body),
        secret(plan, TOKEN_KEY, token),
        config_map(plan),
        policy(plan),
    ])
}

/// The manifests of a RayCluster that stands until it is stopped, with autoscaling between the fewest and the most
/// workers.
///
/// # Errors
/// As [`ray_manifests`].
pub fn cluster(plan: &Plan, token: &str) -> Result<Vec<Manifest>, KubeError> {
    let (most, fewest) = plan.workers;
    let mut body = json!({ "spec": cluster_spec(plan, fewest < most)? });
    queue(plan, &mut body);
    Ok(vec![
        manifest(plan, ManifestKind::RayCluster, body),
        secret(plan, TOKEN_KEY, token),
        config_map(plan),
        policy(plan),
    ])
}

fn queue(plan: &Plan, body: &mut Value) {
    if let Some(queue) = &plan.kube.kueue_queue {
        body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
    }
    if let Some(queue) = &plan.kube.volcano_queue {
        body["metadata"]["labels"]["volcano.sh/queue-name"] = json!(queue);
    }
}

/// The same command that one would type on a node of the cluster.
fn entrypoint(plan: &Plan) -> String {
    let mut words = vec!["lockstep".to_owned(), "run".to_owned(), plan.job_path()];
    words.extend(plan.words.clone());
    words.extend(["--engine", "ray", "--json"].map(str::to_owned));
    shell_line(words)
}

fn cluster_spec(plan: &Plan, autoscaling: bool) -> Result<Value, KubeError> {
    let version = plan
        .kube
        .ray_version
        .as_deref()
        .ok_or(KubeError::NoRayVersion)?;
    let numbers: Vec<u32> = version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    if numbers
        .get(..2)
        .is_none_or(|numbers| numbers < &TOKENS_SINCE[..])
    {
        return Err(KubeError::OldRay {
            found: version.to_owned(),
        });
    }
    let (most, fewest) = plan.workers;
    let mut spec = json!({
        "rayVersion": version,
        "authOptions": { "mode": "token", "secretName": plan.name },
        "headGroupSpec": {
            // No processors: no worker is placed beside the head.
            "rayStartParams": { "num-cpus": "0", "dashboard-host": "0.0.0.0" },
            "template": head(plan),
        },
        "workerGroupSpecs": [{
            "groupName": "workers",
            "replicas": if autoscaling { fewest } else { most },
            "minReplicas": if autoscaling { fewest } else { most },
            "maxReplicas": most,
            "rayStartParams": {},
            "template": worker(plan),
        }],
    });
    if autoscaling {
        spec["enableInTreeAutoscaling"] = json!(true);
        spec["autoscalerOptions"] = json!({ "version": "v2", "idleTimeoutSeconds": 300 });
    }
    Ok(spec)
}

fn head(plan: &Plan) -> Value {
    let mut container = pods::container(plan, CONTAINER);
    let amounts = json!({
        "cpu": plan.kube.head_cpus.to_string(),
        "memory": plan.kube.head_memory.0.to_string(),
    });
    container["resources"] = json!({ "limits": amounts.clone(), "requests": amounts });
    container["ports"] = json!([
        { "name": "gcs-server", "containerPort": 6379 },
        { "name": "dashboard", "containerPort": 8265 },
        { "name": "client", "containerPort": 10001 },
    ]);
    container["env"] = variables(plan);
    pods::template(plan, &[container])
}

fn worker(plan: &Plan) -> Value {
    let mut container = pods::container(plan, CONTAINER);
    container["env"] = variables(plan);
    let mut template = pods::template(plan, &[container]);
    merge(&mut template["spec"], &pods::spread(plan));
    template
}

fn variables(plan: &Plan) -> Value {
    let mut env = pods::variables(plan);
    env.push(json!({ "name": "LOCKSTEP_CACHE", "value": pod::CACHE_FOLDER }));
    Value::Array(env)
}

/// The pod that brings the job to the head. It is a part of the gang for the network's policy.
fn submitter(plan: &Plan) -> Value {
    let mut container = pods::container(plan, "ray-job-submitter");
    let amounts = json!({ "cpu": SUBMITTER.0, "memory": SUBMITTER.1 });
    container["resources"] = json!({ "limits": amounts.clone(), "requests": amounts });
    container["env"] = variables(plan);
    let mut template = pods::template(plan, &[container]);
    template["metadata"]["labels"] = labels(plan);
    template
}

/// Nobody but the gang, and the operator, reaches the pods.
fn policy(plan: &Plan) -> Manifest {
    let gang = json!({ "matchLabels": { "lockstep.dev/run": plan.name } });
    let operator = json!({ "matchLabels": { "app.kubernetes.io/name": "kuberay-operator" } });
    let body = json!({ "spec": {
        "podSelector": gang,
        "policyTypes": ["Ingress"],
        "ingress": [
            { "from": [{ "podSelector": gang }] },
            {
                "from": [{ "namespaceSelector": {}, "podSelector": operator }],
                "ports": [{ "port": 8265 }],
            },
        ],
    } });
    manifest(plan, ManifestKind::NetworkPolicy, body)
}
