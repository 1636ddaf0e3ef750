//! `lockstep submit`: runs a job or a command on a cluster.
//!
//! What is sent, and how it is run there, [`lockstep_cluster::submit`] decides; here the arguments become one request,
//! and the way of the job is shown.

use super::follow::{Watcher, print_log};
use super::print;
use super::run::view_of;
use crate::args::{Engine, SubmitArgs};
use lockstep_cluster::follow::{KubeJob, RayJob, command_outcome};
use lockstep_cluster::jobs::{Client, Needs};
use lockstep_cluster::kube::{Client as KubeClient, JobName};
use lockstep_cluster::shell_line;
use lockstep_events::event::Event;
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

/// A job that was brought to its cluster.
enum Submitted {
    Head {
        client: Client,
        id: String,
        /// What the program needs that travelled with it.
        sent: Option<Needs>,
    },
    Kube {
        client: KubeClient,
        job: JobName,
    },
}

pub(crate) fn run(args: &SubmitArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    if !args.run.command.is_empty() && !args.is_for_kube() {
        return run_command(args);
    }
    let mut watcher = Watcher {
        args: &args.follow,
        started_at,
        view: view_of(&args.follow.show, resume_command(args), true),
    };
    let submitted = match submit(args, &mut watcher) {
        Ok(submitted) => submitted,
        Err(error) if args.detach => return Err(error),
        Err(error) => return watcher.fail(error),
    };
    if args.detach {
        print(submitted.line(args.follow.show.json) + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let message = submitted.note();
    watcher.view.show(&Event::Note { message })?;
    let patience = args.follow.patience;
    match &submitted {
        Submitted::Head { client, id, sent } => {
            let job = RayJob::new(client, id, args.head.to.as_deref(), patience);
            watcher.follow(job, *sent)
        }
        Submitted::Kube { client, job } => {
            let job = KubeJob::new(client, job.clone(), args.at.wanted(), patience);
            watcher.follow(job, None)
        }
    }
}

/// Brings the job to its cluster.
fn submit(args: &SubmitArgs, watcher: &mut Watcher<'_>) -> anyhow::Result<Submitted> {
    let request = args.request()?;
    if args.is_for_kube() {
        let (client, job) = request.submit_to_kube(&args.at.wanted())?;
        return Ok(Submitted::Kube { client, job });
    }
    let packed = request.pack()?;
    let client = args.head.connect()?;
    let mut prepared = packed.prepare(&client)?;
    match prepared.warning.take() {
        // Standard output is for the id.
        Some(message) if args.detach => eprintln!("warning: {message}"),
        Some(message) => watcher.view.show(&Event::Warning { message })?,
        None => (),
    }
    if !args.detach {
        let message = format!("packing the job for {}", client.address());
        watcher.view.show(&Event::Preparing { message })?;
    }
    Ok(Submitted::Head {
        id: prepared.send(&client)?,
        sent: prepared.sent,
        client,
    })
}

/// `lockstep submit -- COMMAND`: any command, on a server of ours or on a Ray head.
fn run_command(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let request = args.request()?;
    let packed = request.pack()?;
    let client = args.head.connect()?;
    let id = packed.prepare(&client)?.send(&client)?;
    if !args.wait {
        let sent = None;
        let submitted = Submitted::Head { client, id, sent };
        print(submitted.line(args.follow.show.json) + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.follow.show.quiet {
        eprintln!("submitted as `{id}` to {}", client.address());
    }
    let to = args.head.to.as_deref();
    print_log(&mut RayJob::new(&client, &id, to, args.follow.patience))?;
    let outcome = command_outcome(&client.job(&id)?);
    if let Some(error) = outcome.error {
        crate::print_error(&error);
    }
    Ok(ExitCode::from(outcome.code))
}

impl Submitted {
    /// The job's id, or for programs also where it is.
    fn line(&self, json: bool) -> String {
        match self {
            Self::Head { client, id, .. } if json => {
                json!({"job": id, "address": client.address().to_string()}).to_string()
            }
            Self::Kube { job, .. } if json => {
                json!({"job": job.name, "namespace": job.namespace}).to_string()
            }
            Self::Head { id, .. } => id.clone(),
            Self::Kube { job, .. } => job.name.clone(),
        }
    }

    /// Where the job is, for people.
    fn note(&self) -> String {
        match self {
            Self::Head { client, id, .. } => {
                let whose = match client.lockstep_version() {
                    Some(version) => format!("Lockstep {version}"),
                    None => format!("Ray {}", client.ray_version()),
                };
                format!("submitted as `{id}` to {}, {whose}", client.address())
            }
            Self::Kube { client, job } => format!(
                "submitted as the {} `{}` in the namespace `{}` of {}",
                job.kind.word(),
                job.name,
                job.namespace,
                client.server()
            ),
        }
    }
}

/// The command that goes on with the job's run.
fn resume_command(args: &SubmitArgs) -> String {
    let mut words = vec!["lockstep".to_owned(), "submit".to_owned()];
    words.extend(args.job.words());
    if let Some(to) = &args.head.to {
        words.extend(["--to".to_owned(), to.clone()]);
    }
    if args.engine == Some(Engine::Local) && !args.is_for_kube() {
        words.extend(["--engine", "local"].map(str::to_owned));
    }
    words.push("--resume".to_owned());
    shell_line(words)
}
