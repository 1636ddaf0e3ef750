//! Lockstep's command line: arguments in, words and pictures out.
//!
//! Exit codes: 0 when all went well, 1 for a failure, 2 for wrong usage or a wrong job file, 130 when
//! interrupted, 141 when the reader of the output went away.

mod args;
mod command;
mod index_sink;
mod learners;
mod signals;
mod tracking;
mod view;

use args::{Cli, Command};
use lockstep_bench::BenchError;
use lockstep_engine::EngineError;
use lockstep_engine::infer::InferError;
use lockstep_index::filter::FilterError;
use lockstep_job::JobError;
use lockstep_queue::JobProcess;
use lockstep_tune::{SearchError, TuneError};
use std::process::ExitCode;
use std::time::Instant;

/// The exit code for wrong usage, the same that clap uses.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let started_at = Instant::now();
    let done = match Cli::read().command {
        Command::Run(args) => command::run::run(&args, started_at),
        Command::Launch(args) => command::launch::run(&args, started_at),
        Command::Submit(args) => command::submit::run(&args, started_at),
        Command::Jobs(jobs) => command::jobs::run(&jobs, started_at),
        Command::Serve(args) => command::serve::run(&args),
        Command::ServeModel(args) => command::serve_model::run(&args),
        Command::Kube(kube) => command::kube::run(&kube, started_at),
        Command::Cluster(cluster) => command::cluster::run(&cluster),
        Command::Embed(args) => command::embed::run(&args),
        Command::Evaluate(args) => command::evaluate::run(&args),
        Command::Predict(args) => command::predict::run(&args),
        Command::Replay(args) => command::replay::run(&args, started_at),
        Command::Bench(args) => command::bench::run(&args),
        Command::Simulate(args) => command::simulate::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Tune(args) => command::tune::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Models(models) => command::models::run(&models),
        Command::Runs(runs) => command::runs::run(&runs),
        Command::Job(job) => command::job::run(&job),
        Command::Init(args) => command::init::run(&args),
        Command::Data(data) => command::data::run(&data),
        Command::Cache(cache) => command::cache::run(&cache),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { out } => command::manual::run(&out),
        Command::Worker => command::worker::run(),
        Command::ScriptProcess { command } => command::script_process::run(&command),
        Command::NodeCheck => command::node_check::run(),
        Command::TaskWorker => command::task_worker::run(),
        Command::JobProcess {
            folder,
            attempt,
            gpus,
            user,
        } => command::job_process::run(&JobProcess {
            folder,
            attempt,
            gpus,
            user,
        }),
        Command::Pod(args) => command::pod::run(&args, started_at),
    };
    done.unwrap_or_else(|error| report(&error))
}

/// Prints an error with its causes, and finds the exit code for it.
fn report(error: &anyhow::Error) -> ExitCode {
    if command::is_broken_pipe(error) {
        return ExitCode::from(command::BROKEN_PIPE);
    }
    print_error(&lockstep_engine::describe(error.as_ref()));
    let refused = matches!(error.downcast_ref(), Some(EngineError::Resume(_)));
    let of_command =
        error.is::<FilterError>() || error.is::<BenchError>() || error.is::<TuneError>();
    let of_search = matches!(error.downcast_ref(), Some(SearchError::Tune(_)));
    let of_job = error.is::<JobError>() || matches!(error.downcast_ref(), Some(InferError::Job(_)));
    if refused || of_job || of_command || of_search {
        ExitCode::from(USAGE)
    } else {
        ExitCode::FAILURE
    }
}

/// Says on standard error what went wrong.
pub(crate) fn print_error(what: &str) {
    let word = console::style("error:").for_stderr().red().bold();
    eprintln!("{word} {what}");
}
