//! What `evaluate` and `predict` have in common: they open a model and a set, and show how far the work is.

use crate::args::{Engine, ModelArgs};
use crate::learners::{self, LEARNERS};
use crate::signals;
use crate::view::{count, summary};
use lockstep_base::fs::CacheDir;
use lockstep_engine::infer::{self, Inference, NamedModel, NamedSamples, OpenRequest, Samples};
use lockstep_engine::{EngineError, StopFlag};
use lockstep_events::event::Event;
use lockstep_job::Job;
use lockstep_launch::Launcher;
use lockstep_model::Block;
use lockstep_runs::RunDir;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it is said how far the work is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// What starts workers with an engine.
type Launch = Box<dyn Fn(&Job, usize, &CacheDir) -> Result<Box<dyn Launcher>, EngineError>>;

/// What starts workers where the arguments say.
pub(super) fn launch(args: &ModelArgs) -> Launch {
    let engine: Engine = args.engine.engine;
    Box::new(move |job, workers, cache| super::launcher(engine, job, workers, cache))
}

/// Opens the model and the samples that were named. Nothing after Ctrl-C.
pub(super) fn open<'a>(
    args: &'a ModelArgs,
    samples: &'a [NamedSamples],
    launcher: &'a Launch,
) -> anyhow::Result<Option<Inference<'a>>> {
    let mut last = Instant::now();
    let mut show = |event| match event {
        Event::Embedding(embedding) if last.elapsed() > TELL_EVERY => {
            last = Instant::now();
            super::tell(format_args!(
                "embedding: {}",
                summary::embedding(&embedding)
            ));
        }
        event => show(event),
    };
    let model = NamedModel {
        store: &args.store,
        model: args.model.as_deref(),
        run: args.run.as_deref().unwrap_or(Path::new(".")),
        set: &args.set,
    };
    let run = model.open(learners::of, &mut show)?;
    let stop = StopFlag::new();
    signals::obey(stop.clone())?;
    let request = OpenRequest {
        run,
        samples,
        set: &args.set,
        workers: args.workers,
        device: args.device,
        precision: args.precision(),
        is_on_cluster: args.engine.engine == Engine::Ray,
        learners: LEARNERS,
        test_source: learners::test_source,
        launcher,
        stop,
    };
    Ok(Inference::open(request, &mut show)?)
}

/// Hands what the model says of a set to `each`, in the order of the set. False if that was not all,
/// because of Ctrl-C.
pub(super) fn go(
    inference: &Inference<'_>,
    samples: &Samples,
    probabilities: bool,
    each: &mut dyn FnMut(Block) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut last = Instant::now();
    let mut each = |block: Block| {
        if last.elapsed() > TELL_EVERY {
            last = Instant::now();
            let done = count((block.first + block.predictions.len()) as u64);
            let all = count(samples.set.len() as u64);
            super::tell(format_args!("{done} of {all} samples"));
        }
        each(block)
    };
    let mut events = |event| match event {
        Event::Log(log) => eprintln!("[worker {} · pid {}] {}", log.rank, log.pid, log.line),
        // What the machine is waited for with is not worth a line here.
        Event::Preparing { .. } => {}
        event => show(event),
    };
    inference.go(samples, probabilities, &mut events, &mut each)
}

/// Opens a run whose model is to be used.
pub(super) fn open_trained(run: &Path, set: &[String]) -> anyhow::Result<RunDir> {
    Ok(infer::open_trained(run, set, learners::of, &mut show)?)
}

/// Says on standard error what happens before the work begins.
pub(super) fn show(event: Event) {
    match event {
        Event::Preparing { message } => super::tell(message),
        Event::Note { message } => super::tell(format_args!("note: {message}")),
        Event::Warning { message } => eprintln!("warning: {message}"),
        _ => {}
    }
}

/// What is said after Ctrl-C: files are written at the end, all at once.
pub(super) fn interrupted() -> ExitCode {
    eprintln!("interrupted; nothing was written");
    ExitCode::from(signals::INTERRUPTED)
}
