//! Trials that Kubernetes trains: each is an Indexed Job under the name of its run.
//!
//! The search stays here, and reads what the pods wrote from the store. A trial that has come to its rung is stopped
//! as `lockstep kube stop` does it, and its Job is kept: it goes on from its checkpoint if the trial is chosen. A
//! search that is resumed finds the Jobs that an earlier one left.

use super::job_of;
use crate::args::TuneArgs;
use crate::view::harmless;
use anyhow::{Context, bail};
use lockstep_cluster::follow::{Follower, KubeJob, Outcome, Update};
use lockstep_cluster::kube::{
    Client, Config, JobEnd, JobName, KubeError, Manifest, ManifestKind, check_name,
};
use lockstep_cluster::submit::KubeRequest;
use lockstep_engine::{Stop, StopFlag};
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_job::{Job, KubeEngine};
use lockstep_runs::RunDir;
use lockstep_tune::{Search, Target, Trial, Tuning};
use std::path::Path;
use std::time::Duration;

/// How long a lost connection is tried again.
const PATIENCE: Duration = Duration::from_secs(120);

/// Trains trials as Jobs of a cluster.
pub(super) struct KubeTrials<'a> {
    args: &'a TuneArgs,
    stop: StopFlag,
    namespace: String,
}

impl<'a> KubeTrials<'a> {
    /// Finds out whether trials of this search can run on the cluster, before any does.
    pub(super) fn new(args: &'a TuneArgs, search: &Search, stop: StopFlag) -> anyhow::Result<Self> {
        check(args, &args.job.load()?)?;
        let last = search.tuning.rules.trials.saturating_sub(1);
        let name = search.tuning.run_name(last);
        check_name(&name).context("--name gives the job, and so its trials, another name")?;
        let client = connect(args)?;
        let manifests = manifests(args, &client, &name, &[])?;
        Ok(Self {
            args,
            stop,
            namespace: JobName::of(&manifests[0]).namespace,
        })
    }

    /// Removes the Jobs of trials that were stopped and not chosen again: unlike those that have ended, they would stay.
    pub(super) fn clean(&self, tuning: &Tuning) {
        let removed = connect(self.args).and_then(|client| {
            for trial in &tuning.trials {
                let job = self.job(&tuning.run_name(trial.number));
                match client.state(&job) {
                    Ok(state) if state.ended == Some(JobEnd::Stopped) || state.is_stopping() => {
                        client.delete(job.kind, &job.namespace, &job.name)?;
                    }
                    Ok(_) | Err(KubeError::NoSuchJob { .. }) => (),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        });
        if let Err(error) = removed {
            eprintln!("warning: Jobs of trials that were stopped are left: {error:#}");
        }
    }

    fn job(&self, name: &str) -> JobName {
        JobName {
            kind: ManifestKind::Job,
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Makes the trial's Job, or goes on with the one that there is.
    fn begin(&self, client: &Client, run: &RunDir, trial: &Trial) -> anyhow::Result<JobName> {
        let job = self.job(&run.name);
        match client.state(&job) {
            Ok(state) if state.ended == Some(JobEnd::Stopped) || state.is_stopping() => {
                client.suspend(&job, false)?;
            }
            // It runs, or waits to be let in, or has ended.
            Ok(_) => (),
            Err(KubeError::NoSuchJob { .. }) => {
                let manifests = manifests(self.args, client, &run.name, &trial.values)?;
                client.submit(&manifests)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(job)
    }

    /// Follows a trial's Job until it has ended, and has it stopped at the target or when all are to stop.
    fn follow(
        &self,
        mut follower: Follower<'_>,
        trial: &Trial,
        target: &Target<'_>,
    ) -> anyhow::Result<Outcome> {
        let (mut enough, mut asked, mut said) = (false, false, String::new());
        let mut updates = Vec::new();
        loop {
            let polled = follower.poll(&mut updates);
            for update in updates.drain(..) {
                let message = match update {
                    Update::Event(event) => match *event {
                        Event::Epoch(epoch) => {
                            enough |= !target.is_last && epoch.epoch >= target.epochs;
                            continue;
                        }
                        Event::Warning { message } => format!("warning: {message}"),
                        _ => continue,
                    },
                    Update::Preparing(message) | Update::Connection(message) => message,
                    Update::Line(_) => continue,
                    Update::Ended { outcome, .. } => return Ok(*outcome),
                };
                if message != said {
                    eprintln!("trial {}: {}", trial.number, harmless(&message));
                    said = message;
                }
            }
            polled?;
            if !asked && (enough || self.is_stopped()) {
                follower.remote().stop()?;
                asked = true;
            }
        }
    }

    /// Trains a trial until it has come to its target.
    pub(super) fn train(
        &self,
        run: &RunDir,
        trial: &Trial,
        target: &Target<'_>,
    ) -> anyhow::Result<RunResult> {
        let client = connect(self.args)?;
        let job = self.begin(&client, run, trial)?;
        let remote = KubeJob::new(&client, job, self.args.at.wanted(), PATIENCE);
        let outcome = self.follow(Follower::new(remote, PATIENCE, None), trial, target)?;
        let result = match outcome.result {
            Some(result) => result,
            None => RunResult {
                error: outcome.error,
                ..RunResult::without_run(
                    match outcome.code {
                        0 => Status::Succeeded,
                        code if code == crate::signals::INTERRUPTED => Status::Interrupted,
                        _ => Status::Failed,
                    },
                    Duration::ZERO,
                )
            },
        };
        let unseen = result.status != Status::Failed && run.metrics().entry()?.is_none();
        if unseen && !self.is_stopped() {
            bail!(
                "the pods of trial {} trained, and this machine sees no {}: run.store must be \
                 a bucket, or a folder that this machine shares with the pods",
                trial.number,
                run.metrics()
            );
        }
        Ok(result)
    }

    fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }
}

/// The cluster that is meant.
fn connect(args: &TuneArgs) -> anyhow::Result<Client> {
    Ok(Client::new(Config::find(&args.at.wanted())?)?)
}

/// The manifests of a trial.
fn manifests(
    args: &TuneArgs,
    client: &Client,
    name: &str,
    values: &[(String, String)],
) -> anyhow::Result<Vec<Manifest>> {
    let mut job = job_of(args, values);
    // By itself it would be KubeRay for an image that has Ray, and the runs of RayJobs have names of their own.
    job.set.push("kube.engine=\"kube\"".to_owned());
    let request = KubeRequest {
        source: &job.source()?,
        id: Some(name.to_owned()),
        namespace: args.at.namespace.clone(),
    };
    Ok(request.manifests(Some(client))?)
}

/// Refuses jobs whose trials could not be stopped, or whose runs could not be read here.
fn check(args: &TuneArgs, job: &Job) -> anyhow::Result<()> {
    if job.kube.engine == KubeEngine::Kuberay {
        bail!(
            "kube.engine is \"kuberay\": trials on Kubernetes are Indexed Jobs; leave it out, or add --set \
             kube.engine='\"kube\"'"
        );
    }
    if job.kube.kueue_queue.is_some() && !args.no_halving {
        bail!(
            "kube.kueue_queue: poor trials are stopped and good ones go on, which Kueue wants to decide itself; add \
             --no-halving"
        );
    }
    let store = &job.run.store;
    if !store.is_url() && !Path::new(store.as_str()).is_dir() {
        bail!(
            "run.store is {:?}, and there is no such folder here: the search reads what the pods wrote, so the store must \
             be a bucket, or a folder that this machine has at the same path as the pods",
            store.as_str()
        );
    }
    Ok(())
}
