//! `lockstep embed`: pictures become vectors, and nothing is trained.

use super::run::view_as;
use super::watched::StoppableView;
use crate::args::{EmbedArgs, Engine};
use crate::signals::{self, INTERRUPTED};
use crate::view::Options;
use lockstep_base::fs::CacheDir;
use lockstep_engine::StopFlag;
use lockstep_engine::embed::{EmbedRequest, embed};
use lockstep_engine::tasks::CrewSettings;
use lockstep_model::SampleUse;
use lockstep_resolve::ResolvedJob;
use std::process::ExitCode;

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<ExitCode> {
    let job = args.job.load()?;
    let resolved = ResolvedJob::of(&job, job.network(&args.job.path)?)?;
    let Some(mut embedding) = resolved.embedding else {
        anyhow::bail!(
            "{} has no [embed] section, which says what encodes the pictures and where their vectors go",
            args.job.path.display()
        );
    };
    // On this machine nobody keeps GPUs for the workers.
    embedding.asks_gpus &= args.engine.engine == Engine::Ray;
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let view = view_as(
        args.json,
        Options {
            quiet: args.quiet,
            ..Options::default()
        },
    );
    let mut watched = StoppableView::new(view, stop.clone());
    let cache = CacheDir::locate()?;
    let mut launcher = super::launcher(args.engine.engine, &job, job.workers().max, &cache)?;
    let request = EmbedRequest {
        embedding: &embedding,
        access: &resolved.access,
        samples: SampleUse::Measure,
        crew: CrewSettings::of(&job),
        launcher: &mut *launcher,
        stop,
    };
    let done = embed(request, &mut |event| watched.show(&event));
    if let Some(code) = watched.end()? {
        return Ok(code);
    }
    match done? {
        Some(_) => Ok(ExitCode::SUCCESS),
        None => {
            eprintln!("interrupted; the same command goes on where this was");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
