//! `lockstep submit -- COMMAND`: any command, on a server of ours or on a Ray head.

use super::{place_in_queue, variables};
use crate::args::SubmitArgs;
use crate::command::client::connect;
use crate::command::follow::{OnRay, command_outcome, print_log};
use crate::view::shell;
use anyhow::{Context, bail};
use lockstep_base::fs::random_letters;
use lockstep_cluster::jobs::{Client, Package, RuntimeEnv, Submission, files_to_send};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The most letters of a command's name in its job's id.
const NAME: usize = 40;

pub(super) fn run(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let package = match &args.run.working_dir {
        Some(folder) => Some(package(folder)?),
        None => None,
    };
    let client = connect(&args.head)?;
    let submission = submission(args, &client, package)?;
    let id = client.submit(&submission)?;
    let json = args.follow.show.json;
    if !args.wait {
        let line = match json {
            true => super::told(&client, &id),
            false => id,
        };
        crate::command::print(line + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.follow.show.quiet {
        eprintln!("submitted as `{id}` to {}", client.address());
    }
    let mut remote = OnRay::new(&client, id.clone(), &args.head, args.follow.patience);
    print_log(&mut remote)?;
    let job = client.job(&id)?;
    let (error, code) = command_outcome(&job);
    if let Some(error) = error {
        crate::print_error(&error);
    }
    Ok(code)
}

fn submission(
    args: &SubmitArgs,
    client: &Client,
    package: Option<Package>,
) -> anyhow::Result<Submission> {
    let wanted = &args.run;
    let mut metadata = BTreeMap::new();
    for pair in &wanted.metadata {
        let (name, value) = pair.split_once('=').context("--metadata has no `=`")?;
        metadata.insert(name.to_owned(), value.to_owned());
    }
    metadata.extend(place_in_queue(args, client)?);
    let working_dir = match package {
        Some(package) => Some(client.upload(&package)?),
        None => None,
    };
    let words: Vec<String> = wanted.command.iter().map(|word| shell(word)).collect();
    Ok(Submission {
        entrypoint: words.join(" "),
        submission_id: match &args.id {
            Some(id) => id.clone(),
            None => format!("{}-{}", name(&wanted.command), random_letters::<8>()?),
        },
        runtime_env: RuntimeEnv {
            working_dir,
            env_vars: variables(args)?,
        },
        metadata,
        entrypoint_num_cpus: wanted.cpus,
        entrypoint_num_gpus: wanted.gpus,
        entrypoint_memory: wanted.memory,
        entrypoint_resources: wanted.resources.iter().cloned().collect(),
    })
}

fn package(folder: &Path) -> anyhow::Result<Package> {
    if !folder.is_dir() {
        bail!("--working-dir: {} is no folder", folder.display());
    }
    let mut package = Package::new();
    for (name, path) in files_to_send(folder)? {
        package.add_file(name, path);
    }
    Ok(package)
}

/// What a job is called whose command this is.
fn name(command: &[String]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let name: String = program
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .take(NAME)
        .collect();
    match name.is_empty() {
        true => "job".to_owned(),
        false => name,
    }
}
