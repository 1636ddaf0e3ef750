//! `lockstep embed`: pictures become vectors, and nothing is trained.

use super::BROKEN_PIPE;
use super::run::view_as;
use crate::args::EmbedArgs;
use crate::signals::{self, INTERRUPTED};
use crate::view::Options;
use anyhow::Context;
use lockstep_engine::local::embed::{EmbedRequest, embed};
use lockstep_engine::{Stop, StopFlag};
use std::io;
use std::process::ExitCode;

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<ExitCode> {
    let job = args.job.load()?;
    if job.embed.is_none() {
        anyhow::bail!(
            "{} has no [embed] section, which says what encodes the pictures and where their vectors go",
            args.job.path.display()
        );
    }
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let mut view = view_as(
        args.json,
        Options {
            quiet: args.quiet,
            verbose: false,
            resume_command: String::new(),
        },
    );
    let mut unseen = None;
    let request = EmbedRequest {
        job: &job,
        only: None,
        worker_exe: std::env::current_exe().context("cannot find this program's own file")?,
        stop: stop.clone(),
    };
    let done = embed(request, &mut |event| {
        if let Err(error) = view.show(&event) {
            // Nobody sees this any more: it ends, as a command in a pipe does.
            stop.raise(Stop::Now);
            unseen.get_or_insert(error);
        }
    });
    drop(view);
    match unseen {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(ExitCode::from(BROKEN_PIPE));
        }
        Some(error) => return Err(error).context("cannot write to standard output"),
        None => (),
    }
    match done? {
        true => Ok(ExitCode::SUCCESS),
        false => {
            eprintln!("interrupted; the same command goes on where this was");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
