//! `lockstep jobs`: looks after the jobs of a cluster.

use super::follow::{Watcher, print_log};
use super::run::view_of;
use crate::args::JobsCommand;
use crate::view::{harmless, lines_of, seconds, shell};
use lockstep_cluster::follow::{RayJob, wait_stopped};
use lockstep_cluster::jobs::{Client, JobInfo, JobStatus};
use lockstep_events::Recorded;
use std::process::ExitCode;
use std::time::Instant;

/// The widest that a job's command is shown.
const COMMAND: usize = 48;

pub(crate) fn run(command: &JobsCommand, started_at: Instant) -> anyhow::Result<ExitCode> {
    match command {
        JobsCommand::List { head, json } => list(&head.connect()?, *json)?,
        JobsCommand::Status { id, head, json } => status(&head.connect()?.job(id)?, *json)?,
        JobsCommand::Logs {
            id,
            follow: false,
            head,
            ..
        } => super::print(head.connect()?.logs(id)?)?,
        JobsCommand::Logs {
            id, head, patience, ..
        } => {
            let client = head.connect()?;
            print_log(&mut RayJob::new(&client, id, head.to.as_deref(), *patience))?;
        }
        JobsCommand::Wait { id, head, follow } => {
            let client = head.connect()?;
            // Before anything is shown: there may be no such job.
            client.job(id)?;
            let job = RayJob::new(&client, id, head.to.as_deref(), follow.patience);
            let watcher = Watcher {
                args: follow,
                started_at,
                view: view_of(
                    &follow.show,
                    "lockstep submit JOB --resume".to_owned(),
                    true,
                ),
            };
            return watcher.follow(job, None);
        }
        JobsCommand::Stop { id, no_wait, head } => stop(&head.connect()?, id, !no_wait)?,
        JobsCommand::Rm { ids, head } => remove(&head.connect()?, ids)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(client: &Client, json: bool) -> anyhow::Result<()> {
    let mut jobs = client.jobs()?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.start_time));
    if json {
        return super::print_json(&jobs);
    }
    if jobs.is_empty() {
        return Ok(super::print(format!("no jobs at {}\n", client.address()))?);
    }
    let titles = ["job", "status", ">submitted", ">took", "command"];
    let row = |job: &JobInfo| {
        let command: String = harmless(&job.shown()).chars().take(COMMAND).collect();
        vec![
            harmless(job.id()),
            job.status.to_string(),
            submitted(job),
            took(job),
            command,
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    Ok(super::print(lines_of(&titles, &rows))?)
}

fn status(job: &JobInfo, json: bool) -> anyhow::Result<()> {
    if json {
        return super::print_json(job);
    }
    let mut pairs = vec![
        ("job", job.id().to_owned()),
        ("status", job.status.to_string()),
        ("submitted", submitted(job)),
        ("took", took(job)),
        ("command", job.entrypoint.clone()),
    ];
    if let Some(code) = job.driver_exit_code {
        pairs.push(("exit code", code.to_string()));
    }
    if let Some(message) = &job.message {
        pairs.push(("the head", message.clone()));
    }
    let mut text = String::new();
    for (name, value) in pairs {
        let value: Vec<String> = value.lines().map(harmless).collect();
        text += &format!("{name:<10} {}\n", value.join("\n           "));
    }
    Ok(super::print(text)?)
}

fn stop(client: &Client, id: &str, wait: bool) -> anyhow::Result<()> {
    if !client.stop(id)? {
        let job = client.job(id)?;
        return Ok(super::print(format!(
            "the job `{id}` had {} before\n",
            job.status
        ))?);
    }
    if !wait {
        return Ok(super::print(format!("the job `{id}` was asked to stop\n"))?);
    }
    let how = match wait_stopped(client, id)?.status {
        JobStatus::Stopped => "has stopped".to_owned(),
        status => format!("had {status} before"),
    };
    Ok(super::print(format!("the job `{id}` {how}\n"))?)
}

fn remove(client: &Client, ids: &[String]) -> anyhow::Result<()> {
    for id in ids {
        let job = client.job(id)?;
        if !job.status.is_final() {
            anyhow::bail!(
                "the job `{id}` is {}; stop it first: lockstep jobs stop {}",
                job.status,
                shell(id)
            );
        }
        client.delete(id)?;
        super::print(format!("removed {id}\n"))?;
    }
    Ok(())
}

/// How long ago a job was submitted.
fn submitted(job: &JobInfo) -> String {
    match job.start_time {
        Some(time) => {
            let ago = Recorded::clock() - time as f64 / 1e3;
            format!("{} ago", seconds(ago.max(1.0).round()))
        }
        None => String::new(),
    }
}

/// How long a job has taken, so far or in all.
fn took(job: &JobInfo) -> String {
    let now = (Recorded::clock() * 1e3) as u64;
    let took = job.took_ms(now).map(|took| seconds(took as f64 / 1e3));
    took.unwrap_or_default()
}
