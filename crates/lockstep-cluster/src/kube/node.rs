//! The machines of a cluster, and what the pods of a namespace have asked for on each.

use crate::kube::request::About;
use crate::kube::{Client, KubeError};
use lockstep_place::http::Method;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many processors, bytes and GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Resources {
    /// Processors.
    pub cpus: f64,
    /// Bytes.
    pub memory: f64,
    /// Devices of `nvidia.com/gpu`, `amd.com/gpu` or another vendor's.
    pub gpus: f64,
}

/// A machine of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KubeNode {
    /// Its name.
    pub name: String,
    /// Whether it is ready and takes pods; unknown to those who may not list nodes.
    pub ready: Option<bool>,
    /// What pods can have of it; zero where that is not known.
    pub room: Resources,
    /// What the namespace's pods on it asked for.
    pub asked: Resources,
    /// How many pods each run has on it. Those of no run are under the empty name.
    pub pods: BTreeMap<String, usize>,
}

/// What is known of a cluster, seen from a namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KubeNodes {
    /// Its machines by name.
    pub nodes: Vec<KubeNode>,
    /// How many of the namespace's pods have no machine yet.
    pub waiting: usize,
    /// Whether nodes may be listed. If not, only those are known that pods run on.
    pub complete: bool,
}

impl Client {
    /// The machines, and what the pods of `namespace` asked for on each.
    ///
    /// # Errors
    /// When the server cannot be asked, or does not allow to list the pods.
    pub fn nodes(&self, namespace: &str) -> Result<KubeNodes, KubeError> {
        let pods = self.items("v1", "pods", namespace, "")?;
        let about = About::new("list", "nodes", "", "");
        match self.ask(about, Method::GET, "/api/v1/nodes", &|request| request) {
            Ok(answer) => Ok(tell(answer["items"].as_array(), &pods)),
            Err(KubeError::Forbidden { .. }) => Ok(tell(None, &pods)),
            Err(error) => Err(error),
        }
    }
}

fn tell(nodes: Option<&Vec<Value>>, pods: &[Value]) -> KubeNodes {
    let listed = nodes.into_iter().flatten().map(node);
    let mut found: BTreeMap<String, KubeNode> =
        listed.map(|node| (node.name.clone(), node)).collect();
    let mut waiting = 0;
    for pod in pods {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            continue;
        }
        let Some(name) = pod["spec"]["nodeName"].as_str() else {
            waiting += 1;
            continue;
        };
        let node = found.entry(name.to_owned()).or_insert_with(|| KubeNode {
            name: name.to_owned(),
            ..KubeNode::default()
        });
        let containers = pod["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            let asked = resources(&container["resources"]["requests"]);
            node.asked.cpus += asked.cpus;
            node.asked.memory += asked.memory;
            node.asked.gpus += asked.gpus;
        }
        let run = pod["metadata"]["labels"]["lockstep.dev/run"].as_str();
        *node
            .pods
            .entry(run.unwrap_or_default().to_owned())
            .or_default() += 1;
    }
    KubeNodes {
        nodes: found.into_values().collect(),
        waiting,
        complete: nodes.is_some(),
    }
}

fn node(node: &Value) -> KubeNode {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let takes_pods = node["spec"]["unschedulable"] != true;
    KubeNode {
        name: node["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        ready: Some(ready && takes_pods),
        room: resources(&node["status"]["allocatable"]),
        ..KubeNode::default()
    }
}

fn resources(given: &Value) -> Resources {
    let amount = |key: &str| given[key].as_str().and_then(quantity).unwrap_or(0.0);
    let all = given.as_object();
    let gpus = all
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.ends_with("/gpu"));
    Resources {
        cpus: amount("cpu"),
        memory: amount("memory"),
        gpus: gpus.map(|(key, _)| amount(key)).sum(),
    }
}

/// A quantity in Kubernetes' notation: `250m`, `2`, `1.5Gi`, `3e9`.
fn quantity(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 13] = [
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
    ];
    let plain = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let unit = UNITS.iter().rev().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?;
        Some(plain(number)? * factor)
    });
    unit.or_else(|| plain(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let read = [
            ("250m", 0.25),
            ("2", 2.0),
            ("1.5Gi", 1.5 * 1_073_741_824.0),
            ("129e6", 129e6),
            ("16Ki", 16384.0),
            ("4M", 4e6),
        ];
        for (text, value) in read {
            assert_eq!(quantity(text), Some(value), "{text}");
        }
        for wrong in ["", "Gi", "many", "1x", "NaN", "infinity"] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
    }

    fn pod(node: Option<&str>, run: Option<&str>, phase: &str) -> Value {
        json!({
            "metadata": { "labels": { "lockstep.dev/run": run } },
            "spec": { "nodeName": node, "containers": [
                { "resources": { "requests": { "cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1" } } },
                { "resources": {} },
            ] },
            "status": { "phase": phase },
        })
    }

    #[test]
    fn pods_count_on_their_machine_until_they_end() {
        let machine = json!({
            "metadata": { "name": "a" },
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }],
                "allocatable": { "cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2" },
            },
        });
        let pods = [
            pod(Some("a"), Some("r"), "Running"),
            pod(Some("a"), None, "Running"),
            pod(Some("a"), Some("r"), "Succeeded"),
            pod(None, Some("r"), "Pending"),
        ];
        let told = tell(Some(&vec![machine]), &pods);
        assert_eq!((told.waiting, told.complete), (1, true));
        let node = &told.nodes[0];
        assert_eq!(
            (node.ready, node.room.cpus, node.asked.cpus),
            (Some(true), 4.0, 3.0)
        );
        assert_eq!((node.room.gpus, node.asked.gpus), (2.0, 2.0));
        assert_eq!(
            node.pods,
            BTreeMap::from([("r".to_owned(), 1), (String::new(), 1)])
        );
    }

    #[test]
    fn who_may_not_list_nodes_still_sees_where_pods_run() {
        let told = tell(None, &[pod(Some("b"), Some("r"), "Running")]);
        assert!(!told.complete);
        assert_eq!(
            (told.nodes[0].name.as_str(), told.nodes[0].ready),
            ("b", None)
        );
    }
}
