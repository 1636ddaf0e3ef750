//! `lockstep task-worker`: the process that does numbered tasks, whatever they are.

use crate::learners::LEARNERS;
use lockstep_engine::embed;
use lockstep_engine::infer;
use lockstep_engine::tasks::{self, TaskFailure, Work};
use lockstep_engine::worker::WorkerError;
use serde_json::Value;
use std::process::ExitCode;

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match tasks::serve(open) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The coordinator was told, and says it.
        Err(WorkerError::Task(_)) => Ok(ExitCode::FAILURE),
        Err(error) => Err(error.into()),
    }
}

/// What does tasks of this kind, in the worker of this number.
fn open(worker: usize, kind: &str, setup: Value) -> Result<Work, TaskFailure> {
    match kind {
        embed::KIND => embed::work(worker, setup),
        infer::KIND => infer::work(worker, setup, LEARNERS),
        _ => Err(format!("this program does not know how to {kind}").into()),
    }
}
