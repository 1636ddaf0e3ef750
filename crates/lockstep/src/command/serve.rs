//! `lockstep serve`: jobs, runs and models for a team, over HTTP.

mod token;

use super::runs::store::store_place;
use crate::args::{DoorArgs, GuardArgs, QueueArgs, ServeArgs, ServeCommand, ServerPlaceArgs};
use crate::learners::LEARNERS;
use crate::tracking::export;
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_cluster::kube::Wanted;
use lockstep_place::Place;
use lockstep_queue::{JobUser, QueueSettings};
use lockstep_runs::STORE_VARIABLE;
use lockstep_runs::registry::Registry;
use lockstep_server::{GuardSettings, Ready, Settings, serve};
use lockstep_serving::{HeldModels, ModelSource, ServingSettings};
use lockstep_track::mlflow::registered_files;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How many requests wait for a disk, or are being answered from one, at a time.
const MOST_BLOCKING: usize = 48;
/// How long a model that nobody asks for predictions is held.
const MODEL_IDLE: Duration = Duration::from_secs(600);
/// How many models are held at a time.
const MOST_MODELS: usize = 4;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(ServeCommand::Token(command)) = &args.command {
        return token::run(command);
    }
    let settings = settings(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // What they do may take some MiB each.
        .max_blocking_threads(MOST_BLOCKING)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(serve(settings, ready, stopped()))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ServeArgs) -> anyhow::Result<Settings> {
    let (store, folder) = place(&args.place)?;
    let mut queue = queue(&args.queue, folder.clone())?;
    // What a job trains outlives the job, and is shown.
    queue.variables = vec![(STORE_VARIABLE, name_for_jobs(&store)?)];
    Ok(Settings {
        listen: SocketAddr::new(args.host, args.port),
        cache: CacheDir::locate()?,
        ray: args.ray.clone(),
        kube: args.kube.as_ref().map(|namespace| Wanted {
            kubeconfig: None,
            context: args.kube_context.clone(),
            namespace: Some(namespace.clone()),
        }),
        models: models(&store)?,
        store,
        for_mlflow: |run| registered_files(run, export).map_err(|error| error.to_string()),
        queue,
        guard: guard(&args.guard),
        folder,
    })
}

/// The store as jobs are told of it, which run in other folders.
fn name_for_jobs(store: &Place) -> anyhow::Result<String> {
    let Some(path) = store.local() else {
        return Ok(store.to_string());
    };
    let path = absolute(path.to_owned())?;
    let name = path.to_str().map(str::to_owned);
    name.with_context(|| format!("--store: {} is not text", path.display()))
}

/// The store, and the folder of the server's own files.
pub(super) fn place(args: &ServerPlaceArgs) -> anyhow::Result<(Place, PathBuf)> {
    let store = store_place(&args.store)?;
    let folder = match (&args.folder, store.local()) {
        (Some(folder), _) => folder.clone(),
        (None, Some(store)) => store.join(".server"),
        (None, None) => bail!(
            "{store} is not on this machine, so --folder must name a folder here for the server's own files: jobs, \
             packages, tokens"
        ),
    };
    Ok((store, absolute(folder)?))
}

/// The models of a store. None is opened before somebody asks.
fn models(store: &Place) -> anyhow::Result<HeldModels> {
    let source = ModelSource {
        registry: Registry::of(store)?,
        learners: LEARNERS,
    };
    let settings = ServingSettings {
        idle: Some(MODEL_IDLE),
        max_models: MOST_MODELS,
        ..ServingSettings::default()
    };
    Ok(HeldModels::new(source, settings))
}

fn guard(args: &GuardArgs) -> GuardSettings {
    GuardSettings {
        upload_limit: args.upload_limit,
        ..door(&args.door)
    }
}

/// Who may come in, and how.
pub(super) fn door(args: &DoorArgs) -> GuardSettings {
    GuardSettings {
        require_token: args.require_token,
        hosts: args.hosts.clone(),
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        ..GuardSettings::default()
    }
}

fn queue(args: &QueueArgs, folder: PathBuf) -> anyhow::Result<QueueSettings> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut queue = QueueSettings::new(folder, program);
    let machine = &mut queue.machine;
    machine.cpus = args.cpus.unwrap_or(machine.cpus);
    machine.memory = args.memory.unwrap_or(machine.memory);
    machine.gpus = args.gpus.unwrap_or(machine.gpus);
    machine.resources = args.resources.iter().cloned().collect();
    machine.labels = args.labels.iter().cloned().collect();
    queue.per_user = args.per_user;
    queue.job_user = args.job_user.as_deref().map(JobUser::find).transpose()?;
    queue.retention.count = args.keep_jobs;
    queue.retention.age = Duration::from_secs_f64(args.keep_days * 86_400.0);
    queue.grace_s = args.grace.as_secs_f64();
    queue.log_limit = args.log_limit;
    queue.package_limit = args.package_limit;
    Ok(queue)
}

fn absolute(path: PathBuf) -> anyhow::Result<PathBuf> {
    std::path::absolute(&path).with_context(|| format!("cannot find {}", path.display()))
}

pub(super) fn ready(ready: Ready) {
    if let Some(token) = &ready.token {
        eprintln!("This token lets you do everything. It is shown only now:\n\n    {token}\n");
        eprintln!("`lockstep serve token add NAME` makes one for somebody else.");
    }
    let scheme = if ready.encrypted { "https" } else { "http" };
    if !ready.encrypted && !ready.address.ip().to_canonical().is_loopback() {
        eprintln!("warning: tokens are sent as plain text; --tls-cert and --tls-key encrypt them");
    }
    if ready.jobs_are_admins {
        eprintln!(
            "warning: jobs run as the server's own user and can read its tokens, so whoever has the role submit may do \
             everything, as admin may; --job-user NAME has jobs run as another user"
        );
    }
    eprintln!("Lockstep serves {scheme}://{}", ready.address);
}

/// Ctrl-C and its likes. Jobs go on: they have processes of their own.
pub(super) async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let end = signal(SignalKind::terminate());
    let (Ok(mut interrupt), Ok(mut end)) = (interrupt, end) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => (),
        _ = end.recv() => (),
    }
}
