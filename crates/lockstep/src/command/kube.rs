//! `lockstep kube`, and `submit --to kube`: jobs on Kubernetes.

mod plan;
mod remote;
mod show;

use super::follow::{self, Follow, print_log};
use super::run::failure;
use crate::args::{
    KubeArgs, KubeClusterCommand, KubeCommand, KubeForwardArgs, KubeJobArgs, SubmitArgs,
};
use crate::view::{harmless, shell};
use lockstep_cluster::kube::{
    Client, Config, Forward, KubeError, Manifest, ManifestKind, documents,
};
use lockstep_events::event::Event;
use remote::OnKube;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What `--to` says when Kubernetes is meant.
pub(super) const TO: &str = "kube";
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
            let (client, namespace) = connect(at)?;
            let kind = client.job(&namespace, name)?.kind;
            let view = follow::view(follow, format!("lockstep kube start {name}"));
            let remote = OnKube::new(&client, kind, &namespace, name, at, follow.patience);
            return Follow::new(Box::new(remote), follow, started_at, view).finish();
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

fn render(args: &KubeJobArgs) -> anyhow::Result<()> {
    let manifests = plan::manifests(args, &plan::Asking::Nobody)?;
    let values = manifests.iter().map(|manifest| &manifest.value);
    Ok(super::print(documents(values))?)
}

fn apply(args: &KubeJobArgs, dry_run: bool) -> anyhow::Result<()> {
    let (client, _) = connect(&args.at)?;
    let manifests = plan::manifests(args, &plan::Asking::Cluster(&client))?;
    if !dry_run {
        client.submit(&manifests)?;
        return Ok(super::print(format!("{}\n", name(&manifests)))?);
    }
    for manifest in &manifests {
        client.dry_run(manifest)?;
    }
    let count = manifests.len();
    Ok(super::print(format!(
        "the server would take all {count} objects\n"
    ))?)
}

fn name(manifests: &[Manifest]) -> &str {
    let first = manifests
        .first()
        .map(|manifest| &manifest.value["metadata"]["name"]);
    first.and_then(|name| name.as_str()).unwrap_or_default()
}

/// `submit --to kube`.
pub(super) fn submit(args: &SubmitArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let json = args.follow.show.json;
    let mut view = follow::view(&args.follow, again(args));
    let submitted = bring(args);
    let (client, manifests) = match submitted {
        Ok(submitted) => submitted,
        Err(error) => {
            if json && !args.detach && !super::is_broken_pipe(&error) {
                view.show(&Event::Result(failure(started_at, &error)))?;
            }
            return Err(error);
        }
    };
    let meta = &manifests[0].value["metadata"];
    let namespace = meta["namespace"].as_str().unwrap_or_default();
    let (name, kind) = (name(&manifests), manifests[0].kind);
    if args.detach {
        let line = match json {
            true => serde_json::json!({"job": name, "namespace": namespace}).to_string(),
            false => name.to_owned(),
        };
        super::print(line + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!(
        "submitted as the {} `{name}` in the namespace `{namespace}` of {}",
        kind.word(),
        client.server()
    );
    view.show(&Event::Note { message })?;
    let remote = OnKube::new(
        &client,
        kind,
        namespace,
        name,
        &args.at,
        args.follow.patience,
    );
    Follow::new(Box::new(remote), &args.follow, started_at, view).finish()
}

fn bring(args: &SubmitArgs) -> anyhow::Result<(Client, Vec<Manifest>)> {
    if args.fork.is_some() || args.binary.is_some() || !args.env.is_empty() {
        anyhow::bail!(
            "--fork, --binary and --env are not for --to kube: pods run the `lockstep` of their image, with the \
             variables of kube.env"
        );
    }
    let resumed = match &args.resume {
        Some(None) => anyhow::bail!("--resume needs the run's name with --to kube"),
        Some(Some(run)) => Some(run.clone()),
        None => None,
    };
    let job = KubeJobArgs {
        job: args.job.clone(),
        at: args.at.clone(),
        id: args.id.clone().or(resumed),
    };
    let (client, _) = connect(&args.at)?;
    let manifests = plan::manifests(&job, &plan::Asking::Cluster(&client))?;
    client.submit(&manifests)?;
    Ok((client, manifests))
}

fn again(args: &SubmitArgs) -> String {
    let mut words = vec!["lockstep".to_owned(), "submit".to_owned()];
    words.extend(args.job.words());
    words.extend(["--to", TO, "--resume"].map(str::to_owned));
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    words.join(" ")
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
    let (client, namespace) = connect(at)?;
    let kind = client.job(&namespace, name)?.kind;
    if !follow {
        return Ok(super::print(client.log(kind, &namespace, name)?)?);
    }
    let mut remote = OnKube::new(&client, kind, &namespace, name, at, patience);
    print_log(&mut remote)
}

fn suspend(at: &KubeArgs, name: &str, stop: bool) -> anyhow::Result<()> {
    let (client, namespace) = connect(at)?;
    let job = client.job(&namespace, name)?;
    let state = job.state();
    if matches!(state.word.as_str(), "succeeded" | "failed") {
        anyhow::bail!("the job `{name}` has {} before", state.word);
    }
    client.suspend(job.kind, &namespace, name, stop)?;
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
                Ok(()) | Err(KubeError::NoSuchJob { .. }) => (),
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
            if !client.has_kuberay()? {
                return Err(KubeError::NoKind {
                    kind: "RayCluster".to_owned(),
                }
                .into());
            }
            let manifests = plan::cluster(args, &client)?;
            client.submit(&manifests)?;
            Ok(super::print(format!("{}\n", name(&manifests)))?)
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
