//! Which pod and which port are meant by the name of a job, of a RayCluster or of a Service.

use crate::kube::client::Client;
use crate::kube::manifest::ManifestKind;
use crate::kube::{ClusterJob, KubeError, first_reason, log};
use serde_json::Value;

/// The port of Ray's dashboard, where jobs are submitted too.
const DASHBOARD: u16 = 8265;

/// A port of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The pod's name.
    pub pod: String,
    /// The port.
    pub port: u16,
}

impl Client {
    /// The pod and the port that are meant. Of a RayJob and a RayCluster that is the head, and its dashboard unless
    /// another port is asked for; of a Job the pod that coordinates; of a Service one of its pods.
    ///
    /// # Errors
    /// When there is nothing of that name, none of its pods runs, or it has no such port.
    pub fn target(
        &self,
        namespace: &str,
        name: &str,
        port: Option<u16>,
    ) -> Result<Target, KubeError> {
        match self.job(namespace, name) {
            Ok(found) => self.of_job(namespace, name, port, &found),
            Err(KubeError::NoSuchJob { .. }) => self.of_service(namespace, name, port),
            Err(error) => Err(error),
        }
    }

    fn of_job(
        &self,
        namespace: &str,
        name: &str,
        port: Option<u16>,
        found: &ClusterJob,
    ) -> Result<Target, KubeError> {
        let pods = self.pods(namespace, name)?;
        let (pod, usual) = match found.kind {
            ManifestKind::Job => (log::teller(found.kind, &pods).filter(runs), None),
            _ => (newest(pods.iter().filter(head)), Some(DASHBOARD)),
        };
        let port = port.or(usual).ok_or_else(|| KubeError::NoPort {
            name: name.to_owned(),
            wanted: "of its own".to_owned(),
            known: "say which of its pod is meant: --port 6006".to_owned(),
        })?;
        let pod = pod.ok_or_else(|| {
            let events = self.events(namespace, name);
            let why = first_reason(&found.value, &pods, &events);
            no_pod(name, &why.unwrap_or_else(|| found.state().word))
        })?;
        Ok(target(pod, port))
    }

    fn of_service(
        &self,
        namespace: &str,
        name: &str,
        port: Option<u16>,
    ) -> Result<Target, KubeError> {
        let nothing = || KubeError::NothingToReach {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        };
        let service = match self.get(ManifestKind::Service, namespace, name) {
            Ok(service) => service,
            Err(KubeError::NoSuchJob { .. }) => return Err(nothing()),
            Err(error) => return Err(error),
        };
        let selector = selector(&service).ok_or_else(nothing)?;
        let wanted = target_port(&service, name, port)?;
        let pods = self.selected(namespace, &selector)?;
        let pod = newest(pods.iter()).ok_or_else(|| no_pod(name, ""))?;
        let port = container_port(pod, &wanted).ok_or_else(|| KubeError::NoPort {
            name: name.to_owned(),
            wanted: wanted.to_string(),
            known: "its pods have no container port of that name".to_owned(),
        })?;
        Ok(target(pod, port))
    }
}

fn target(pod: &Value, port: u16) -> Target {
    let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
    Target {
        pod: pod.to_owned(),
        port,
    }
}

fn no_pod(name: &str, why: &str) -> KubeError {
    KubeError::NoPod {
        name: name.to_owned(),
        why: match why {
            "" => String::new(),
            why => format!(": {why}"),
        },
    }
}

fn runs(pod: &&Value) -> bool {
    pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
}

fn head(pod: &&Value) -> bool {
    pod["metadata"]["labels"]["ray.io/node-type"] == "head"
}

/// The youngest that runs, of those that are ready if any is.
fn newest<'v>(pods: impl Iterator<Item = &'v Value>) -> Option<&'v Value> {
    let rank = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let ready = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
        let made = pod["metadata"]["creationTimestamp"].as_str();
        (
            conditions.is_some_and(|conditions| conditions.iter().any(ready)),
            made.unwrap_or_default().to_owned(),
        )
    };
    pods.filter(runs).max_by_key(rank)
}

/// The pods of a Service, as a query writes it.
fn selector(service: &Value) -> Option<String> {
    let labels = service["spec"]["selector"].as_object()?;
    let pair = |(key, value): (&String, &Value)| {
        format!(
            "{}%3D{}",
            key.replace('/', "%2F"),
            value.as_str().unwrap_or_default()
        )
    };
    let pairs: Vec<String> = labels.iter().map(pair).collect();
    (!pairs.is_empty()).then(|| pairs.join("%2C"))
}

/// What a port of a Service is called in its pods: a number or a name. The first one is meant if none is named.
fn target_port(service: &Value, name: &str, port: Option<u16>) -> Result<Value, KubeError> {
    let ports = service["spec"]["ports"].as_array();
    let ports: &[Value] = ports.map_or(&[], Vec::as_slice);
    let found = match port {
        Some(port) => ports.iter().find(|found| found["port"] == port),
        None => ports.first(),
    };
    let found = found.ok_or_else(|| {
        let known: Vec<String> = ports.iter().map(|port| port["port"].to_string()).collect();
        KubeError::NoPort {
            name: name.to_owned(),
            wanted: port.map_or_else(|| "at all".to_owned(), |port| port.to_string()),
            known: format!("the Service has {}", known.join(", ")),
        }
    })?;
    Ok(match &found["targetPort"] {
        Value::Null => found["port"].clone(),
        target => target.clone(),
    })
}

/// The number of a port of a pod.
fn container_port(pod: &Value, wanted: &Value) -> Option<u16> {
    let number = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
    if let Some(number) = number(wanted) {
        return Some(number);
    }
    let containers = pod["spec"]["containers"].as_array()?.iter();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter());
    let named = ports.find_map(|ports| ports.iter().find(|port| port["name"] == *wanted));
    number(&named?["containerPort"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_port_of_a_service_is_followed_to_that_of_its_pods() {
        let service = json!({"spec": {
            "selector": {"app.kubernetes.io/name": "server", "x": "y"},
            "ports": [{"port": 80, "targetPort": "http"}, {"port": 9000}],
        }});
        let pod = json!({"spec": {"containers": [
            {"name": "a"},
            {"name": "b", "ports": [{"name": "other", "containerPort": 1}, {"name": "http", "containerPort": 8265}]},
        ]}});
        let port =
            |port| target_port(&service, "s", port).map(|wanted| container_port(&pod, &wanted));
        assert_eq!(port(None).unwrap(), Some(8265));
        assert_eq!(port(Some(80)).unwrap(), Some(8265));
        assert_eq!(port(Some(9000)).unwrap(), Some(9000));
        let said = port(Some(81)).unwrap_err().to_string();
        assert!(said.contains("80, 9000"), "{said}");
        assert_eq!(
            selector(&service).unwrap(),
            "app.kubernetes.io%2Fname%3Dserver%2Cx%3Dy"
        );
    }

    #[test]
    fn a_pod_that_is_ready_comes_before_a_younger_one_and_one_that_goes_not_at_all() {
        let pod = |name: &str, made: &str, ready: &str| {
            json!({"metadata": {"name": name, "creationTimestamp": made}, "status": {
                "phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})
        };
        let mut going = pod("going", "3", "True");
        going["metadata"]["deletionTimestamp"] = json!("4");
        let pods = [pod("old", "1", "True"), pod("young", "2", "False"), going];
        assert_eq!(newest(pods.iter()).unwrap()["metadata"]["name"], "old");
    }
}
