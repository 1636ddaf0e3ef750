//! `lockstep submit`: runs a job on a cluster, through the Jobs API of its head.
//!
//! What travels is a package: the job file as it is, the files that it names by relative paths, a script
//! and the files that its command names among them, and this program.
//! The job's command is the same `lockstep run` that one would type; its events come back through the job's log.

pub(super) mod inputs;
pub(super) mod layout;
mod shell_command;

use super::client::connect;
use super::follow::{self, Follow, OURS, OnRay};
use super::run::failure;
use crate::args::{Engine, SubmitArgs};
use crate::view::{View, shell};
use anyhow::{Context, bail};
use layout::Layout;
use lockstep_base::fs::random_letters;
use lockstep_cluster::jobs::{Binary, Client, Needs, RuntimeEnv, Submission, introduced};
use lockstep_events::event::Event;
use lockstep_job::{Job, Location};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// What says that the program of the nodes' image is to be used.
const IMAGE: &str = "image";

pub(crate) fn run(args: &SubmitArgs, started_at: Instant) -> anyhow::Result<ExitCode> {
    let on_kube = args.head.to.as_deref() == Some(super::kube::TO);
    match (args.run.command.is_empty(), on_kube) {
        (true, true) if !args.run.place.metadata().is_empty() => bail!(
            "Kubernetes has no words for --priority, --after, --retries and --retry-code; `lockstep serve` has"
        ),
        (true, true) => return super::kube::submit(args, started_at),
        (true, false) => (),
        (false, false) => return shell_command::run(args),
        (false, true) => bail!(
            "on Kubernetes a job file is run; a command goes to `lockstep serve` or to a Ray head, or into the job \
             file as a script"
        ),
    }
    let mut shown = Shown::new(args);
    let submitted = submit(args, &mut shown);
    let (client, id, sent) = match submitted {
        Ok(submitted) => submitted,
        Err(error) => {
            if args.follow.show.json && !args.detach && !super::is_broken_pipe(&error) {
                shown.show(Event::Result(failure(started_at, &error)))?;
            }
            return Err(error);
        }
    };
    let view = match shown {
        Shown::Detached => {
            let line = match args.follow.show.json {
                true => told(&client, &id),
                false => id,
            };
            super::print(line + "\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        Shown::Followed(view) => view,
    };
    let remote = OnRay::new(&client, id, &args.head, args.follow.patience);
    Follow::new(Box::new(remote), &args.follow, started_at, view)
        .with_program(sent)
        .finish()
}

/// What is asked of the queue beyond Ray's words, for a server that has one.
fn place_in_queue(args: &SubmitArgs, client: &Client) -> anyhow::Result<Vec<(String, String)>> {
    let place = args.run.place.metadata();
    if !place.is_empty() && client.lockstep_version().is_none() {
        bail!(
            "{} is a Ray head, which has no words for --priority, --after, --retries and --retry-code; `lockstep serve` \
             has",
            client.address()
        );
    }
    Ok(place)
}

/// A job and where it is, for programs.
fn told(client: &Client, id: &str) -> String {
    serde_json::json!({"job": id, "address": client.address().to_string()}).to_string()
}

/// To whom the way to the head is shown.
enum Shown {
    /// To nobody but in words on standard error: standard output is for the id.
    Detached,
    /// As the first part of the run.
    Followed(Box<dyn View>),
}

impl Shown {
    fn new(args: &SubmitArgs) -> Self {
        match args.detach {
            true => Shown::Detached,
            false => Shown::Followed(follow::view(&args.follow, resume_command(args))),
        }
    }

    fn show(&mut self, event: Event) -> anyhow::Result<()> {
        match (self, event) {
            (Shown::Followed(view), event) => view.show(&event)?,
            (Shown::Detached, Event::Warning { message }) => eprintln!("warning: {message}"),
            (Shown::Detached, _) => (),
        }
        Ok(())
    }
}

/// Brings the job to the head. Returns its id, and what the program needs that travelled with it.
fn submit(args: &SubmitArgs, shown: &mut Shown) -> anyhow::Result<(Client, String, Option<Needs>)> {
    let job = args.job.load()?;
    let moving = inputs::moving(&args.job, &job)?;
    let Layout {
        mut package,
        job: file,
    } = layout::layout(&args.job.path, &moving.inputs)?;
    let client = connect(&args.head)?;
    let sent = match program(args, &client)? {
        Some(path) => Some(Binary::read(&path)?),
        None => None,
    };
    let store = match (moving.store, client.lockstep_store()) {
        // Where the server shows it, and where it stays.
        (true, Some(store)) => Some(store),
        (true, None) => {
            let message = format!(
                "the run goes to {}, a folder beside the job on the cluster, which Ray removes some time after the \
                 job's end; set run.store to a URL or to an absolute path that the nodes share to keep it",
                store_name(&job.run.store)
            );
            shown.show(Event::Warning { message })?;
            None
        }
        (false, _) => None,
    };
    let engine = engine(args, &client);
    let program = match &sent {
        None => "lockstep".to_owned(),
        Some(binary) => {
            let name = if package.has("lockstep") {
                "lockstep-program"
            } else {
                "lockstep"
            };
            package.add_program(name, binary);
            format!("./{name}")
        }
    };
    let message = format!("packing the job for {}", client.address());
    shown.show(Event::Preparing { message })?;
    let uri = client.upload(&package)?;
    let command = entrypoint(args, &program, &file, engine, store);
    let mut metadata = BTreeMap::from([
        (OURS.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("lockstep_job".to_owned(), job.name.clone()),
    ]);
    metadata.extend(place_in_queue(args, &client)?);
    let submission = Submission {
        entrypoint: match &sent {
            // What is in the nodes' image runs on the nodes.
            None => command,
            Some(_) => introduced(&command),
        },
        submission_id: submission_id(args, &job)?,
        runtime_env: RuntimeEnv {
            working_dir: Some(uri),
            env_vars: variables(args)?,
        },
        metadata,
        // Workers elsewhere ask for their own room.
        entrypoint_num_cpus: match engine {
            Engine::Local => Some(job.workers().max as f64),
            Engine::Ray => None,
        },
        ..Submission::default()
    };
    let id = client.submit(&submission)?;
    let whose = match client.lockstep_version() {
        Some(version) => format!("Lockstep {version}"),
        None => format!("Ray {}", client.ray_version()),
    };
    let message = format!("submitted as `{id}` to {}, {whose}", client.address());
    shown.show(Event::Note { message })?;
    Ok((client, id, sent.as_ref().map(Binary::needs)))
}

/// Where workers run, if nobody says: a server of ours is one machine without Ray.
fn engine(args: &SubmitArgs, client: &Client) -> Engine {
    args.engine.unwrap_or(match client.lockstep_version() {
        Some(_) => Engine::Local,
        None => Engine::Ray,
    })
}

/// The program that is to travel; none if that of the image is meant, or the same is there.
fn program(args: &SubmitArgs, client: &Client) -> anyhow::Result<Option<PathBuf>> {
    match &args.binary {
        None if client.lockstep_version() == Some(env!("CARGO_PKG_VERSION")) => Ok(None),
        None => {
            let own = std::env::current_exe().context("cannot find this program's own file")?;
            Ok(Some(own))
        }
        Some(path) if path == Path::new(IMAGE) => Ok(None),
        Some(path) => Ok(Some(path.clone())),
    }
}

/// The command that runs the job where its package was unpacked.
fn entrypoint(
    args: &SubmitArgs,
    program: &str,
    file: &str,
    engine: Engine,
    store: Option<&str>,
) -> String {
    let mut words = vec![program.to_owned(), "run".to_owned()];
    let mut job = args.job.words();
    job[0] = match file.starts_with('-') {
        true => format!("./{file}"),
        false => file.to_owned(),
    };
    words.append(&mut job);
    if let Some(store) = store {
        let store = serde_json::Value::from(store);
        words.extend(["--set".to_owned(), format!("run.store={store}")]);
    }
    if engine == Engine::Ray {
        words.extend(["--engine".to_owned(), "ray".to_owned()]);
    }
    words.push("--json".to_owned());
    if args.follow.show.verbose {
        words.push("--verbose".to_owned());
    }
    words.extend(resume_words(args));
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    words.join(" ")
}

fn resume_words(args: &SubmitArgs) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(run) = &args.resume {
        words.push("--resume".to_owned());
        words.extend(run.clone());
    }
    if let Some(which) = args.fork {
        words.push(format!("--fork={}", which.word()));
    }
    words
}

/// The command that goes on with the job's run.
fn resume_command(args: &SubmitArgs) -> String {
    let mut words = vec!["lockstep".to_owned(), "submit".to_owned()];
    words.extend(args.job.words());
    if let Some(to) = &args.head.to {
        words.extend(["--to".to_owned(), to.clone()]);
    }
    if args.engine == Some(Engine::Local) {
        words.extend(["--engine".to_owned(), "local".to_owned()]);
    }
    words.push("--resume".to_owned());
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    words.join(" ")
}

/// An id that no other job has: so the head can be asked for it if its answer is lost.
fn submission_id(args: &SubmitArgs, job: &Job) -> anyhow::Result<String> {
    match &args.id {
        Some(id) => Ok(id.clone()),
        None => Ok(format!("{}-{}", &job.name, random_letters::<8>()?)),
    }
}

fn variables(args: &SubmitArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let mut variables = BTreeMap::new();
    for pair in &args.env {
        let (name, value) = pair.split_once('=').context("--env has no `=`")?;
        if name.is_empty() {
            anyhow::bail!("--env {pair:?} has no name before the `=`");
        }
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}

/// The last part of a store's name: where it lies here means nothing there.
fn store_name(store: &Location) -> &str {
    store.as_str().rsplit('/').next().unwrap_or_default()
}
