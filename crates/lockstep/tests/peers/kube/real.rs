//! Jobs through a real API server, a real Job controller and KubeRay's real operator, with nodes that are processes of
//! this machine (`lockstep-testkit/servers/kubelet.py` says what they stand in for).

use crate::common::kube::{job, kube};
use crate::common::{LIMIT, Place, Running};
use lockstep_testkit::{KubeCluster, KubeParts};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// The folder of the programs that pods run.
pub(crate) fn programs() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_lockstep"));
    program.parent().unwrap().display().to_string()
}

pub(crate) fn cluster() -> KubeCluster {
    KubeCluster::start(&programs(), KubeParts::default())
}

fn with_operator() -> KubeCluster {
    let kuberay = KubeParts {
        kuberay: true,
        ..KubeParts::default()
    };
    KubeCluster::start(&programs(), kuberay)
}

/// Submits `job.toml` and follows it.
pub(crate) fn submit(place: &Place, cluster: &KubeCluster, id: &str, args: &[&str]) -> Running {
    let submit = ["submit", "job.toml", "--to", "kube", "--json", "--id", id];
    let mut command = place.command(&[&submit, args].concat());
    command.env("KUBECONFIG", cluster.kubeconfig());
    Running::new(command)
}

pub(crate) fn succeeded(run: Running) -> String {
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{result}\n{stderr}");
    result["weights_sha256"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_job_on_plain_kubernetes_has_the_bits_of_one_that_runs_here() {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    let here = place.weights(&[]);
    let cluster = cluster();
    let config = cluster.kubeconfig();

    let began = Instant::now();
    let mut run = submit(&place, &cluster, "whole", &[]);
    run.wait_for("first_step");
    println!(
        "from the command to the first step: {:.1} s",
        began.elapsed().as_secs_f64()
    );
    assert_eq!(succeeded(run), here);

    // What there is to see of it afterwards.
    let list = kube(&place, config, &["kube", "list"]);
    assert!(
        list.stdout.contains("whole") && list.stdout.contains("succeeded"),
        "{}",
        list.stdout
    );
    let status = kube(&place, config, &["kube", "status", "whole", "--json"]);
    assert!(status.stdout.contains("\"succeeded\""), "{}", status.stdout);
    let log = kube(&place, config, &["kube", "logs", "whole"]);
    assert!(log.stdout.contains(&here), "{}{}", log.stdout, log.stderr);
    let again = kube(&place, config, &["kube", "wait", "whole", "--json"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.result()["weights_sha256"], here.as_str());

    // Its name is taken, and its removal takes everything with it.
    let second = kube(
        &place,
        config,
        &["kube", "apply", "job.toml", "--id", "whole"],
    );
    assert!(
        second.stderr.contains("there is a job `whole`"),
        "{}",
        second.stderr
    );
    let gone = kube(&place, config, &["kube", "delete", "whole"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    let began = Instant::now();
    loop {
        let kinds = "jobs,pods,services,secrets,configmaps,networkpolicies";
        let left = cluster.kubectl(&["get", kinds, "-l", "lockstep.dev/run=whole", "-o", "name"]);
        if left.is_empty() {
            break;
        }
        assert!(began.elapsed() < LIMIT, "left: {left}");
        std::thread::sleep(Duration::from_millis(200));
    }
    // The run stays.
    assert!(place.path("runs/whole").exists());
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn pods_that_are_killed_evicted_and_drained_change_no_bit() {
    let place = Place::new();
    place.write_job(&job(&place, "[checkpoint]\nevery = \"20 steps\"\n"));
    // Long enough for what happens to it to happen before its end.
    let epochs = ["--epochs", "600"];
    let here = place.weights(&epochs);
    let mut cluster = cluster();
    for (id, orders) in [
        ("worker", vec!["kill worker-1"]),
        ("coordinator", vec!["kill coordinator-0"]),
        (
            "nodes",
            vec![
                "drain node-1",
                "undrain node-1",
                "drain node-2",
                "undrain node-2",
            ],
        ),
        ("server", vec!["restart apiserver"]),
    ] {
        let mut run = submit(&place, &cluster, id, &epochs);
        run.wait_for("first_step");
        run.wait_for("epoch");
        for order in orders {
            cluster.order(order);
        }
        assert_eq!(succeeded(run), here, "{id}");
        if matches!(id, "worker" | "coordinator") {
            let pods = cluster.kubectl(&[
                "get",
                "pods",
                "-l",
                &format!("lockstep.dev/run={id}"),
                "-o",
                "name",
            ]);
            assert_eq!(
                pods.lines().count(),
                3,
                "one was killed and replaced: {pods}"
            );
        }
    }
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_job_that_can_never_work_is_not_run_again_and_says_why() {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    let cluster = cluster();
    let config = cluster.kubeconfig();
    // The file is there for whoever submits, and not for the pods.
    let set = [
        "--set",
        "data.train={ images = \"/nowhere/images\", labels = \"/nowhere/labels\" }",
    ];
    let run = submit(&place, &cluster, "never", &set);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        result["error"]
            .as_str()
            .unwrap()
            .contains("/nowhere/images"),
        "{result}"
    );
    let state = cluster.kubectl(&["get", "job", "never", "-o", "json"]);
    let state: Value = serde_json::from_str(&state).unwrap();
    let conditions = state["status"]["conditions"].as_array().unwrap();
    let failed = conditions.iter().find(|one| one["type"] == "Failed");
    assert_eq!(failed.unwrap()["reason"], "PodFailurePolicy", "{state}");

    // A node that is not there is explained in the scheduler's words.
    let set = ["--set", "kube.node_selector={ pool = \"gpu\" }"];
    let applied = kube(
        &place,
        config,
        &[&["kube", "apply", "job.toml", "--id", "waits"], &set[..]].concat(),
    );
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    let began = Instant::now();
    loop {
        let status = kube(&place, config, &["kube", "status", "waits"]);
        if status
            .stdout
            .contains("didn't match Pod's node affinity/selector")
        {
            break;
        }
        assert!(began.elapsed() < LIMIT, "{}", status.stdout);
    }

    // Who may do nothing is told which verb on which resource.
    let refused = kube(&place, cluster.guest(), &["kube", "apply", "job.toml"]);
    assert!(
        refused.stderr.contains("you may not create jobs"),
        "{}",
        refused.stderr
    );
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn the_server_takes_all_that_is_let_through() {
    let place = Place::new();
    lockstep_testkit::assert_schemas_are_the_operators();
    let cluster = with_operator();
    let config = cluster.kubeconfig();
    for (name, more) in [
        ("plain", ""),
        ("queue", "kueue_queue = \"q\"\ndeadline_s = 60\n"),
        (
            "elastic",
            "tolerations = [\"a=b:NoSchedule\"]\nenv_from = [\"bucket\"]\npriority_class = \"low\"\n",
        ),
        ("ray", "engine = \"kuberay\"\nray_version = \"2.60.0\"\n"),
    ] {
        place.write_job(&job(&place, more));
        let args = ["kube", "apply", "job.toml", "--dry-run", "--id", name];
        let ran = kube(&place, config, &args);
        // A priority class must be there: the server's words for one that is not are passed on.
        match name {
            "elastic" => assert!(
                ran.stdout.contains("all 5") || ran.stderr.contains("PriorityClass"),
                "{}",
                ran.stderr
            ),
            _ => assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr),
        }
    }
}

/// Changes to a RayJob's `spec` that are refused here, and by KubeRay's operator after the server has taken them.
fn refused() -> Vec<(&'static str, Value)> {
    let group = |patch: Value| json!({ "rayClusterSpec": { "workerGroupSpecs": patch } });
    vec![
        ("ttl", json!({ "shutdownAfterJobFinishes": false })),
        (
            "suspend",
            json!({ "shutdownAfterJobFinishes": false, "ttlSecondsAfterFinished": 0, "suspend": true }),
        ),
        ("sidecar", json!({ "submissionMode": "SidecarMode" })),
        ("replicas", group(json!({ "minReplicas": 5 }))),
        (
            "labels",
            group(json!({ "rayStartParams": { "labels": "a=b" } })),
        ),
        (
            "twice",
            group(json!({ "rayStartParams": { "num-cpus": "1" }, "resources": { "CPU": "1" } })),
        ),
    ]
}

/// Lays a patch over a value; one for a list is laid over each of its items.
fn lay(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Array(items), patch @ Value::Object(_)) => {
            items.iter_mut().for_each(|item| lay(item, patch))
        }
        (Value::Object(map), Value::Object(patch)) => {
            for (key, patch) in patch {
                match patch {
                    Value::Null => drop(map.remove(key)),
                    patch => lay(map.entry(key.clone()).or_insert(json!({})), patch),
                }
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn the_operator_refuses_what_is_refused_here() {
    let place = Place::new();
    place.write_job(&job(
        &place,
        "engine = \"kuberay\"\nray_version = \"2.60.0\"\n",
    ));
    let cluster = with_operator();
    let rendered = kube(
        &place,
        cluster.kubeconfig(),
        &["kube", "render", "job.toml", "--id", "good"],
    );
    let path = place.path("manifests.yaml");
    std::fs::write(&path, &rendered.stdout).unwrap();
    let file = path.to_str().unwrap();
    let shown = cluster.kubectl(&["create", "--dry-run=client", "-o", "json", "-f", file]);
    let objects = serde_json::Deserializer::from_str(&shown).into_iter::<Value>();
    let good = objects
        .map(Result::unwrap)
        .find(|object| object["kind"] == "RayJob")
        .unwrap();

    let make = |name: &str, patch: &Value| {
        let mut object = good.clone();
        object["metadata"]["name"] = json!(name);
        lay(&mut object["spec"], patch);
        let path = place.path("object.json");
        std::fs::write(&path, object.to_string()).unwrap();
        cluster.kubectl(&["create", "-f", path.to_str().unwrap()]);
        object
    };
    let becomes = |name: &str| {
        let began = Instant::now();
        loop {
            let said = cluster.kubectl(&[
                "get",
                "rayjob",
                name,
                "-o",
                "jsonpath={.status.jobDeploymentStatus}",
            ]);
            if !said.is_empty() {
                return said;
            }
            assert!(began.elapsed() < LIMIT, "{name} is not looked at");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    lockstep_cluster::kube::check_ray_job(&make("good", &json!({}))).unwrap();
    assert_eq!(becomes("good"), "Initializing");
    for (name, patch) in refused() {
        let object = make(name, &patch);
        assert!(
            lockstep_cluster::kube::check_ray_job(&object).is_err(),
            "{name}"
        );
        assert_eq!(becomes(name), "ValidationFailed", "{name}");
    }
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_job_that_is_stopped_and_started_again_goes_on_with_the_same_bits() {
    let place = Place::new();
    place.write_job(&job(&place, "[checkpoint]\nevery = \"20 steps\"\n"));
    let epochs = ["--epochs", "400"];
    let here = place.weights(&epochs);
    let cluster = cluster();
    let config = cluster.kubeconfig();
    let mut run = submit(&place, &cluster, "pause", &epochs);
    run.wait_for("first_step");
    run.wait_for("epoch");
    let stopped = kube(&place, config, &["kube", "stop", "pause"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let (code, result, stderr) = run.finish();
    assert_ne!(code, Some(0), "{result}\n{stderr}");
    let began = Instant::now();
    loop {
        let status = kube(&place, config, &["kube", "status", "pause", "--json"]);
        if status.stdout.contains("\"stopped\"") {
            break;
        }
        assert!(began.elapsed() < LIMIT, "{}", status.stdout);
    }
    let started = kube(&place, config, &["kube", "start", "pause"]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let ended = kube(&place, config, &["kube", "wait", "pause", "--json"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.result()["weights_sha256"], here.as_str());
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn an_elastic_job_begins_with_the_workers_that_there_are_and_takes_in_the_others() {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    let epochs = ["--epochs", "600"];
    let here = place.weights(&epochs);
    let mut cluster = cluster();
    // One pod a node, and one node: the second pod waits for another.
    cluster.order("drain node-1");
    cluster.order("drain node-2");
    let elastic = [
        "--set",
        "train.workers={ min = 1, max = 2 }",
        "--set",
        "resources.place=\"strict-spread\"",
    ];
    let mut run = submit(
        &place,
        &cluster,
        "elastic",
        &[&epochs[..], &elastic].concat(),
    );
    run.wait_for("first_step");
    run.wait_for("epoch");
    cluster.order("undrain node-1");
    run.wait_for_worker(1);
    assert_eq!(succeeded(run), here);
}
