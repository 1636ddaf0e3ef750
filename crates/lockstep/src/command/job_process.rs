//! `lockstep job-process`: looks after one job of a server's queue.

use lockstep_queue::JobProcess;
use std::process::ExitCode;

pub(crate) fn run(process: &JobProcess) -> anyhow::Result<ExitCode> {
    match lockstep_queue::keep(process) {
        Err(error) if error.is_passing() => {
            eprintln!("{error}");
            Ok(ExitCode::from(lockstep_queue::TRY_AGAIN))
        }
        done => done.map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}
