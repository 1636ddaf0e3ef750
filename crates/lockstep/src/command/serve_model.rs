//! `lockstep serve-model`: the predictions of one model, over HTTP.

use super::inference::show;
use super::serve::{door, place, ready, stopped};
use crate::args::ServeModelArgs;
use crate::learners::{self, LEARNERS};
use anyhow::Context;
use lockstep_engine::infer::NamedModel;
use lockstep_runs::registry::{Reference, Registry};
use lockstep_server::{ModelServer, serve_model};
use lockstep_serving::{HeldModels, ModelSource, NamedVersion, ServingSettings};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How many long requests are read at a time, or wait for a disk.
const MOST_BLOCKING: usize = 16;

pub(crate) fn run(args: &ServeModelArgs) -> anyhow::Result<ExitCode> {
    let (store, folder) = place(&args.place)?;
    let registry = Registry::of(&store)?;
    let named = named(args, &registry)?;
    let source = ModelSource {
        registry,
        learners: LEARNERS,
    };
    let models = HeldModels::new(source, settings(args));
    models.open(&args.model, named)?;
    if let Some(title) = models.title(&args.model) {
        eprintln!("{} is {title}", args.model);
    }
    let server = ModelServer {
        listen: SocketAddr::new(args.host, args.port),
        folder,
        guard: door(&args.door),
        models,
        name: args.model.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MOST_BLOCKING)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(serve_model(server, ready, stopped()))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ServeModelArgs) -> ServingSettings {
    let requests = &args.requests;
    ServingSettings {
        max_batch: requests.max_batch,
        batch_wait: Duration::from_millis(requests.batch_wait),
        queue: requests.queue,
        timeout: requests.timeout,
        max_body: requests.max_body,
        max_rows: requests.max_rows,
        max_pixels: requests.max_pixels,
        threads: requests.threads,
        idle: None,
        max_models: 1,
    }
}

/// The model that is meant: of the registry, if it is named as such, and else of a run.
fn named(args: &ServeModelArgs, registry: &Registry) -> anyhow::Result<NamedVersion> {
    let given = args.model.as_str();
    if let Some(reference) = reference(given) {
        let reference: Reference = reference.parse()?;
        return Ok(NamedVersion::Registered(reference));
    }
    if let Ok(reference) = given.parse()
        && registry.find(&reference).is_ok()
    {
        return Ok(NamedVersion::Registered(reference));
    }
    let model = NamedModel {
        store: &args.place.store.store,
        model: None,
        run: Path::new(given),
        set: &args.place.store.set,
    };
    let run = model.open(learners::of, &mut show)?;
    Ok(NamedVersion::Run(run))
}

/// What is given as the registry writes it, if it can only be a version of it: `NAME@ALIAS`, or `NAME/3`.
fn reference(given: &str) -> Option<String> {
    if Path::new(given).exists() || given.contains("://") {
        return None;
    }
    match given.rsplit_once('/') {
        Some((name, version)) => {
            let is_number = version.parse::<u64>().is_ok();
            (is_number && !name.contains('/')).then(|| format!("{name}@{version}"))
        }
        None => given.contains('@').then(|| given.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_runs_are_told_apart_by_how_they_are_named() {
        let found = |given| reference(given);
        assert_eq!(found("digits@champion").as_deref(), Some("digits@champion"));
        assert_eq!(found("digits/3").as_deref(), Some("digits@3"));
        for run in [
            "digits-20261116-101500-ab27",
            "runs/digits",
            "/tmp/a/3",
            "s3://b/digits@1",
        ] {
            assert_eq!(found(run), None, "{run}");
        }
    }
}
