//! Why a job does not run, in the words of whoever knows: the scheduler, the kubelet, the Job controller.

use serde_json::Value;

/// Why the pods of a job do not run, or did not; what weighs most first, each reason once.
pub fn explain(job: &Value, pods: &[Value], events: &[Value]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    let mut add = |reason: Option<String>| {
        if let Some(reason) = reason
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    };
    for pod in pods {
        add(out_of_memory(pod));
        add(taken_away(pod));
    }
    for pod in pods {
        add(waiting(pod));
        add(unscheduled(pod));
        add(ended(pod));
    }
    for event in events {
        let reason = event["reason"].as_str().unwrap_or_default();
        let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
        let there = pods.iter().find(|pod| pod["metadata"]["name"] == about);
        let waits = there.is_some_and(|pod| pod["status"]["phase"] == "Pending");
        let message = event["message"].as_str().unwrap_or_default();
        match reason {
            "FailedCreate" if pods.is_empty() => {
                add(Some(format!("no pod can be made: {message}")))
            }
            "FailedMount" | "FailedAttachVolume" | "FailedCreatePodSandBox" if waits => {
                add(Some(format!("pod {about}: {message}")));
            }
            _ => (),
        }
    }
    if job["spec"]["suspend"] == true {
        let queue = &job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"];
        add(queue
            .as_str()
            .map(|queue| format!("it waits in the queue `{queue}` to be admitted")));
    }
    reasons
}

/// What weighs most of [`explain`].
pub fn first_reason(job: &Value, pods: &[Value], events: &[Value]) -> Option<String> {
    let reasons = explain(job, pods, events);
    let more = reasons.len().saturating_sub(1);
    let first = reasons.into_iter().next()?;
    Some(match more {
        0 => first,
        more => format!("{first} (and {more} more)"),
    })
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or("?")
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| pod["status"][key].as_array().into_iter().flatten();
    of("initContainerStatuses").chain(of("containerStatuses"))
}

fn out_of_memory(pod: &Value) -> Option<String> {
    let killed = |status: &Value| {
        let ends = [&status["state"], &status["lastState"]];
        ends.iter()
            .any(|end| end["terminated"]["reason"] == "OOMKilled")
    };
    let status = statuses(pod).find(|status| killed(status))?;
    let containers = pod["spec"]["containers"].as_array()?;
    let container = containers.iter().find(|c| c["name"] == status["name"]);
    let limit = container.and_then(|c| c["resources"]["limits"]["memory"].as_str());
    let limit = limit.map_or("its limit".to_owned(), |limit| {
        format!("its limit of {}", amount(limit))
    });
    Some(format!(
        "pod {} was killed for using more memory than {limit} (OOMKilled); raise `memory` in [resources]",
        name(pod)
    ))
}

/// An amount of memory as people read it.
fn amount(limit: &str) -> String {
    match limit.parse::<u64>() {
        Ok(bytes) => lockstep_job::Bytes(bytes).to_string(),
        Err(_) => limit.to_owned(),
    }
}

fn taken_away(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array();
    let disrupted = conditions.into_iter().flatten();
    let mut disrupted =
        disrupted.filter(|c| c["type"] == "DisruptionTarget" && c["status"] == "True");
    let said = |value: &Value| value["message"].as_str().unwrap_or_default().to_owned();
    if let Some(condition) = disrupted.next_back() {
        return Some(format!(
            "pod {} was taken away: {}",
            name(pod),
            said(condition)
        ));
    }
    let evicted = pod["status"]["reason"] == "Evicted";
    evicted.then(|| format!("pod {} was evicted: {}", name(pod), said(&pod["status"])))
}

fn waiting(pod: &Value) -> Option<String> {
    for status in statuses(pod) {
        let waiting = &status["state"]["waiting"];
        let message = waiting["message"].as_str().unwrap_or_default();
        let image = status["image"].as_str().unwrap_or_default();
        match waiting["reason"].as_str() {
            Some(
                "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull",
            ) => {
                return Some(format!("the image {image} cannot be pulled: {message}"));
            }
            Some("ContainerCreating" | "PodInitializing") | None => (),
            Some(reason) => return Some(format!("pod {}: {reason}: {message}", name(pod))),
        }
    }
    None
}

fn unscheduled(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let condition = conditions
        .iter()
        .find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?;
    let message = condition["message"].as_str().unwrap_or_default();
    Some(format!("pods wait for a node: {message}"))
}

fn ended(pod: &Value) -> Option<String> {
    let status = statuses(pod).find(|status| {
        let end = &status["state"]["terminated"];
        end["exitCode"].as_i64().is_some_and(|code| code != 0) && end["reason"] != "OOMKilled"
    })?;
    let end = &status["state"]["terminated"];
    let message = end["message"].as_str().unwrap_or_default().trim();
    let last = message.lines().next_back().unwrap_or_default();
    let colon = if last.is_empty() { "" } else { ": " };
    Some(format!(
        "pod {} ended with code {}{colon}{last}",
        name(pod),
        end["exitCode"]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: Value) -> Value {
        json!({"metadata": {"name": "run-0-abc"}, "status": status, "spec": {"containers": [
            {"name": "lockstep", "resources": {"limits": {"memory": "2147483648"}}}]}})
    }

    fn one(status: Value) -> String {
        explain(&json!({}), &[pod(status)], &[]).join("; ")
    }

    #[test]
    fn a_pod_that_finds_no_node_is_explained_with_the_schedulers_words() {
        let said = one(
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}),
        );
        assert!(said.contains("3 Insufficient nvidia.com/gpu"), "{said}");
    }

    #[test]
    fn an_image_that_cannot_be_pulled_is_named() {
        let said = one(
            json!({"phase": "Pending", "containerStatuses": [{"name": "lockstep", "image": "x/y:z",
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}),
        );
        assert!(
            said.contains("x/y:z") && said.contains("not found"),
            "{said}"
        );
    }

    #[test]
    fn a_pod_that_used_too_much_memory_is_named_with_its_limit() {
        let said = one(
            json!({"phase": "Failed", "containerStatuses": [{"name": "lockstep",
            "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}),
        );
        assert!(
            said.contains("run-0-abc") && said.contains("2 GiB"),
            "{said}"
        );
    }

    #[test]
    fn an_evicted_pod_says_who_took_it_away() {
        let said = one(
            json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
            "message": "Eviction API: evicting"}]}),
        );
        assert!(said.contains("Eviction API"), "{said}");
    }

    #[test]
    fn a_quota_that_allows_no_pod_is_told() {
        let event = json!({"reason": "FailedCreate", "involvedObject": {"name": "run"},
            "message": "pods \"run-0-x\" is forbidden: exceeded quota: few, requested: cpu=1"});
        let said = explain(&json!({}), &[], &[event]).join("");
        assert!(said.contains("exceeded quota: few"), "{said}");
    }

    #[test]
    fn a_volume_that_cannot_be_mounted_is_told() {
        let event = json!({"reason": "FailedMount", "involvedObject": {"name": "run-0-abc"},
            "message": "secret \"keys\" not found"});
        let said = explain(&json!({}), &[pod(json!({"phase": "Pending"}))], &[event]).join("");
        assert!(said.contains("secret \"keys\" not found"), "{said}");
    }
}
