//! Runs that are measured, as the engine trains them.

use crate::args::Engine;
use crate::command::run_request;
use lockstep_base::fs::CacheDir;
use lockstep_bench::{Purpose, RunTrainer};
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::{Event, RunResult};
use lockstep_job::Job;
use std::error::Error;
use std::path::PathBuf;

/// Trains runs with the engine, on this machine.
pub(super) struct EngineTrainer {
    /// The job file's folder, in which scripts start.
    pub(super) folder: PathBuf,
    pub(super) cache: CacheDir,
    pub(super) stop: StopFlag,
}

impl RunTrainer for EngineTrainer {
    fn train(
        &self,
        job: &Job,
        purpose: Purpose,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<RunResult, Box<dyn Error + Send + Sync>> {
        let (folder, cache) = (self.folder.clone(), self.cache.clone());
        let stop = self.stop.clone();
        let request = RunRequest {
            max_steps: purpose.max_steps,
            step_times: purpose.step_times,
            ..run_request(job.clone(), folder, Engine::Local, cache, stop)?
        };
        Ok(lockstep_engine::run(request, on_event)?)
    }

    fn is_stopped(&self) -> bool {
        self.stop.get() != Stop::No
    }

    fn say(&self, message: &str) {
        crate::command::tell(message);
    }
}
