//! What is reached over the network: a Ray head or `lockstep serve`, Kubernetes, MLflow.

use super::check::{Check, State};
use crate::args::{DoctorArgs, HeadArgs, KUBE};
use crate::view::plural;
use lockstep_cluster::jobs::NodeState;
use lockstep_cluster::kube::{Client, Config, KubeError, ManifestKind};
use lockstep_engine::describe;
use lockstep_job::{Job, Track};
use lockstep_track::mlflow::{self, MlflowSettings};

pub(super) fn checks(args: &DoctorArgs, job: Option<&Job>) -> Vec<Check> {
    let is_kube = args.to.as_deref() == Some(KUBE);
    let head = args.to.as_deref().filter(|_| !is_kube);
    let mut checks = vec![ray(head, job), kubernetes(args, is_kube)];
    checks.push(tracking(job));
    checks
}

/// A head that answers, and has room for the job.
fn ray(to: Option<&str>, job: Option<&Job>) -> Check {
    let variables = ["RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"];
    let named = variables
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    if to.is_none() && !named {
        return Check::wrong(
            State::Absent,
            "ray",
            "no head was named",
            "look at one with --to http://HEAD:8265",
        );
    }
    let head = HeadArgs {
        to: to.map(str::to_owned),
        headers: None,
    };
    let connected = head.connect().and_then(|client| {
        let cluster = match client.lockstep_version() {
            Some(_) => None,
            None => Some(client.cluster()?),
        };
        Ok((client, cluster))
    });
    let (client, cluster) = match connected {
        Ok(found) => found,
        Err(error) => {
            let help = "look whether the head runs and its dashboard's port (8265) is reachable from here: ray status there; \
                        kubectl port-forward for one on Kubernetes; LOCKSTEP_TOKEN or RAY_AUTH_TOKEN if it wants a token";
            return Check::wrong(State::Problem, "ray", describe(&error), help);
        }
    };
    let at = client.address().to_string();
    let Some(cluster) = cluster else {
        let version = client.lockstep_version().unwrap_or_default();
        return Check::ok("ray", format!("`lockstep serve` {version} at {at}"));
    };
    let alive = cluster
        .nodes
        .iter()
        .filter(|node| node.state != NodeState::Dead);
    let free: f64 = alive.clone().map(|node| node.cpus.free).sum();
    let nodes = plural(alive.count(), "node");
    let found = format!(
        "Ray {} at {at}: {nodes}, {free} cores free",
        cluster.ray_version
    );
    let wanted = job.map_or(0, |job| job.workers().max);
    match free < wanted as f64 {
        false => Check::ok("ray", found),
        true => Check::wrong(
            State::Warning,
            "ray",
            found,
            format!(
                "the job's {wanted} workers have to wait for cores: stop other jobs, or add nodes"
            ),
        ),
    }
}

fn kubernetes(args: &DoctorArgs, asked: bool) -> Check {
    let name = "kubernetes";
    let looked = Config::find(&args.at.wanted())
        .and_then(Client::new)
        .and_then(|client| {
            let namespace = client.namespace();
            let jobs = client.list(ManifestKind::Job, &namespace)?.len();
            let kuberay = match client.has_kuberay()? {
                true => "with KubeRay",
                false => "without KubeRay",
            };
            let (server, jobs) = (client.server().to_owned(), plural(jobs, "job"));
            Ok(format!(
                "{server}, namespace {namespace}: {jobs} of Lockstep, {kuberay}"
            ))
        });
    match looked {
        Ok(found) => Check::ok(name, found),
        Err(error @ KubeError::NoConfig { .. }) if !asked => {
            let help = "set KUBECONFIG, or begin with a small cluster as in deploy/minikube";
            Check::wrong(State::Absent, name, describe(&error), help)
        }
        Err(error) => {
            let state = if asked {
                State::Problem
            } else {
                State::Warning
            };
            let help = "look whether the cluster runs (kubectl get nodes) and the account may list jobs (kubectl auth can-i \
                        list jobs); choose another with --context and --namespace";
            Check::wrong(state, name, describe(&error), help)
        }
    }
}

fn tracking(job: Option<&Job>) -> Check {
    let name = "mlflow";
    let (track, job) = match job {
        Some(job) => (job.track.clone(), job.name.clone()),
        None => (Track::default(), "doctor".to_owned()),
    };
    let variable = |name: &str| std::env::var(name).ok();
    let help = "look whether the server runs and its address is right (track.mlflow, MLFLOW_TRACKING_URI), and who we are to \
                it (MLFLOW_TRACKING_TOKEN); a run goes on without it, and `lockstep runs push` sends what it missed";
    let settings = match MlflowSettings::of(&track, &job, &variable) {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            let help = "name one with track.mlflow in the job file or MLFLOW_TRACKING_URI";
            return Check::wrong(State::Absent, name, "no server was named", help);
        }
        Err(why) => return Check::wrong(State::Problem, name, why, help),
    };
    match mlflow::reach(&settings) {
        Ok(()) => Check::ok(name, format!("{} answers", settings.server)),
        Err(error) => Check::wrong(State::Warning, name, error.to_string(), help),
    }
}
