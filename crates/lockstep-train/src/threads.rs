//! How many threads a worker computes on.

use crate::prepare::full_batch;
use crate::sets::DataFacts;
use lockstep_events::event::WorkerThreads;
use lockstep_nn::Model;
use lockstep_resolve::TrainingSettings;

/// Multiply-adds of a step that are worth a thread. With fewer, threads wait for each other longer than they work.
const WORTH_A_THREAD: usize = 2_000_000;

/// The threads of a worker that has so many cores.
pub(crate) fn of_worker(
    settings: &TrainingSettings,
    data: &DataFacts,
    model: &Model,
    cores: usize,
) -> WorkerThreads {
    let rows = full_batch(settings, data).div_ceil(settings.workers);
    // Forwards once, and backwards twice as much.
    let work = 3 * rows * model.multiply_adds();
    WorkerThreads::choose(settings.threads, cores, work / WORTH_A_THREAD)
}
