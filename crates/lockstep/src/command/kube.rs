//! `lockstep kube`: jobs on Kubernetes.

mod show;

use super::follow::{Watcher, print_log};
use super::run::view_of;
use crate::args::{KubeArgs, KubeClusterCommand, KubeCommand, KubeForwardArgs, KubeJobArgs};
use crate::view::harmless;
use lockstep_cluster::follow::KubeJob;
use lockstep_cluster::kube::{
    Client, ClusterJob, Config, Forward, JobName, KubeError, ManifestKind, documents,
};
use lockstep_cluster::submit::{JobSource, KubeRequest};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often a job that is watched is looked at.
const WATCH: Duration = Duration::from_secs(1);

pub(crate) fn run(command: &KubeCommand, started_at: Instant) -> anyhow::Result<ExitCode> {
    match command {
        KubeCommand::Render(args) => render(args)?,
        KubeCommand::Apply { job, dry_run } => apply(job, *dry_run)?,
        KubeCommand::Status {
            name,
            at,
            watch,
            json,
        } => {
            let (client, namespace) = connect(at)?;
            match watch {
                true => watched(&client, &namespace, name)?,
                false => super::print(show::status(&client, &namespace, name, *json)?)?,
            }
        }
        KubeCommand::Logs {
            name,
            follow,
            at,
            patience,
        } => logs(at, name, *follow, *patience)?,
        KubeCommand::Wait { name, at, follow } => {
            let (client, job) = find(at, name)?;
            let job = KubeJob::new(&client, job, at.wanted(), follow.patience);
            let watcher = Watcher {
                args: follow,
                started_at,
                view: view_of(&follow.show, format!("lockstep kube start {name}"), true),
            };
            return watcher.follow(job, None);
        }
        KubeCommand::Stop { name, at } => suspend(at, name, true)?,
        KubeCommand::Start { name, at } => suspend(at, name, false)?,
        KubeCommand::Delete { names, at } => delete(at, names)?,
        KubeCommand::List { at, json } => {
            let (client, namespace) = connect(at)?;
            super::print(show::list(&client, &namespace, *json)?)?;
        }
        KubeCommand::Forward(args) => forward(args)?,
        KubeCommand::Cluster(command) => cluster(command)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The cluster that is meant, and the namespace.
fn connect(at: &KubeArgs) -> anyhow::Result<(Client, String)> {
    let client = Client::new(Config::find(&at.wanted())?)?;
    let namespace = client.namespace();
    Ok((client, namespace))
}

/// The job of this name, and the cluster that it is on.
fn find(at: &KubeArgs, name: &str) -> anyhow::Result<(Client, JobName)> {
    let (client, namespace) = connect(at)?;
    let job = named(&client.job(&namespace, name)?, namespace, name);
    Ok((client, job))
}

fn named(job: &ClusterJob, namespace: String, name: &str) -> JobName {
    JobName {
        kind: job.kind,
        namespace,
        name: name.to_owned(),
    }
}

fn render(args: &KubeJobArgs) -> anyhow::Result<()> {
    let source = args.job.source()?;
    let request = request(args, &source);
    let manifests = request.manifests(None)?;
    let values = manifests.iter().map(|manifest| &manifest.value);
    let assumes = request.assumes()?.map(|words| format!("# {words}\n"));
    Ok(super::print(
        assumes.unwrap_or_default() + &documents(values),
    )?)
}

fn request<'r>(args: &KubeJobArgs, source: &'r JobSource) -> KubeRequest<'r> {
    KubeRequest {
        source,
        id: args.id.clone(),
        namespace: args.at.namespace.clone(),
    }
}

fn apply(args: &KubeJobArgs, dry_run: bool) -> anyhow::Result<()> {
    let (client, _) = connect(&args.at)?;
    let source = args.job.source()?;
    let manifests = request(args, &source).manifests(Some(&client))?;
    if !dry_run {
        let job = client.submit(&manifests)?;
        return Ok(super::print(format!("{}\n", job.name))?);
    }
    for manifest in &manifests {
        client.dry_run(manifest)?;
    }
    let count = manifests.len();
    Ok(super::print(format!(
        "the server would take all {count} objects\n"
    ))?)
}

fn watched(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let mut shown = String::new();
    loop {
        let text = show::status(client, namespace, name, false)?;
        if text != shown {
            super::print(format!("{text}\n"))?;
            shown = text;
        }
        if client.job(namespace, name)?.state().ended.is_some() {
            return Ok(());
        }
        std::thread::sleep(WATCH);
    }
}

fn logs(at: &KubeArgs, name: &str, follow: bool, patience: Duration) -> anyhow::Result<()> {
    let (client, job) = find(at, name)?;
    if !follow {
        return Ok(super::print(client.log(&job)?)?);
    }
    print_log(&mut KubeJob::new(&client, job, at.wanted(), patience))
}

fn suspend(at: &KubeArgs, name: &str, stop: bool) -> anyhow::Result<()> {
    let (client, namespace) = connect(at)?;
    let job = client.job(&namespace, name)?;
    let state = job.state();
    if matches!(state.word.as_str(), "succeeded" | "failed") {
        anyhow::bail!("the job `{name}` has {} before", state.word);
    }
    client.suspend(&named(&job, namespace, name), stop)?;
    let how = if stop { "was asked to stop" } else { "goes on" };
    Ok(super::print(format!("the job `{name}` {how}\n"))?)
}

fn delete(at: &KubeArgs, names: &[String]) -> anyhow::Result<()> {
    let (client, namespace) = connect(at)?;
    for name in names {
        let job = client.job(&namespace, name)?;
        client.delete(job.kind, &namespace, name)?;
        // What was applied by hand from rendered manifests belongs to nobody.
        for kind in ManifestKind::ALL.into_iter().skip(3) {
            match client.delete(kind, &namespace, name) {
                Ok(()) | Err(KubeError::NoSuchJob { .. } | KubeError::NoKind { .. }) => (),
                // Who may not remove groups has made none.
                Err(KubeError::Forbidden { .. }) if kind == ManifestKind::PodGroup => (),
                Err(error) => return Err(error.into()),
            }
        }
        super::print(format!("removed {name}\n"))?;
    }
    Ok(())
}

fn forward(args: &KubeForwardArgs) -> anyhow::Result<()> {
    let config = Config::find(&args.at.wanted())?;
    let (forward, target) = Forward::bind(config, &args.name, args.port, args.local)?;
    let (pod, port) = (&target.pod, target.port);
    super::print(format!(
        "{} is port {port} of the pod {pod}; Ctrl-C ends it\n",
        forward.address()?
    ))?;
    forward.serve(|error| eprintln!("{}", harmless(&error.to_string())))
}

fn cluster(command: &KubeClusterCommand) -> anyhow::Result<()> {
    match command {
        KubeClusterCommand::Start(args) => {
            let (client, _) = connect(&args.at)?;
            let source = args.job.source()?;
            let manifests = request(args, &source).cluster_manifests(&client)?;
            let cluster = client.submit(&manifests)?;
            Ok(super::print(format!("{}\n", cluster.name))?)
        }
        KubeClusterCommand::Inspect { name, at } => {
            let (client, namespace) = connect(at)?;
            Ok(super::print(show::status(
                &client, &namespace, name, false,
            )?)?)
        }
        KubeClusterCommand::Forward(args) => forward(args),
        KubeClusterCommand::Stop { name, at } => {
            let (client, namespace) = connect(at)?;
            client.delete(ManifestKind::RayCluster, &namespace, name)?;
            Ok(super::print(format!("removed {name}\n"))?)
        }
    }
}
