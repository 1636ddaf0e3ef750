//! What every device must do: train networks to the processor's bits.
//!
//! A [`Case`] is trained for some epochs by lockstep-nn, as `lockstep-train` drives it, and by the device. All values and
//! vectors of the optimizer, all sums of the lanes and all scores must be the same in every bit; a NaN only has to be one.

mod cases;
mod processor;

use cases::cases;
pub(crate) use cases::{Case, example};
use lockstep_cuda::driver::Driver;
use lockstep_cuda::{DataSet, Epoch, Gpu, LaneReport, ModelDescription, Setup, Training};
use lockstep_nn::LossSum;
use processor::Processor;

/// Runs every case on the first device of a driver.
pub(crate) fn all(driver: &dyn Driver) {
    let gpu = Gpu::of(driver, 0).expect("a GPU");
    for case in cases() {
        train(&gpu, &case);
    }
}

/// What training has come to after an epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) values: Vec<f32>,
    pub(crate) planes: Vec<Vec<f32>>,
    pub(crate) sums: Vec<LossSum>,
    /// The first step of the epoch whose loss was not finite, of any lane.
    pub(crate) diverged: Option<u64>,
    pub(crate) scores: Vec<f32>,
}

fn train(gpu: &Gpu, case: &Case) {
    let mut processor = Processor::new(case);
    let mut device = device(gpu, case);
    let scores = score(&mut device, case);
    same(
        &format!("{}: scores", case.name),
        &scores,
        processor.score(case),
    );
    for epoch in 0..case.epochs {
        let expected = processor.epoch(case, epoch);
        let found = run(&mut device, case, epoch);
        compare(&format!("{}, epoch {epoch}", case.name), &found, &expected);
    }
}

/// What a device is told of a case.
pub(crate) fn setup(case: &Case) -> Setup {
    Setup {
        model: ModelDescription::of(&case.model(1)),
        optimizer: case.optimizer,
        seed: case.seed,
        lanes: case.lanes(),
        batches: [case.full(), case.last()],
        samples: case.samples,
        scored_rows: case.scored_rows(),
    }
}

/// The same network on the device.
pub(crate) fn device(gpu: &Gpu, case: &Case) -> Training {
    let set = DataSet::new(gpu, &case.inputs, case.input.len(), &case.classes);
    let set = set.expect("memory for the data");
    Training::new(gpu, setup(case), set, &case.values)
        .expect("a network that there are kernels for")
}

/// An epoch on the device, which is handed over in two parts: as if it had been interrupted.
fn run(training: &mut Training, case: &Case, epoch: usize) -> Outcome {
    let steps = case.steps();
    let order = case.order(epoch);
    let updates: Vec<_> = (0..steps).map(|i| case.update(epoch, i)).collect();
    let mut sums = vec![LossSum::default(); case.lanes()];
    let mut windows = vec![LossSum::default(); case.lanes()];
    let mut diverged: Option<u64> = None;
    let middle = steps.div_ceil(2);
    for part in [0..middle, middle..steps] {
        let epoch = Epoch {
            step: case.step(epoch, part.start),
            in_epoch: part.start,
            order: &order,
            updates: &updates,
            sums: &sums,
        };
        training.begin_epoch(epoch).expect("an epoch that fits");
        for _ in part {
            training.queue_step().expect("a step");
        }
        let reports: Vec<LaneReport> = training.report().expect("steps without errors");
        for (lane, report) in reports.iter().enumerate() {
            sums[lane] = report.epoch;
            windows[lane].correct += report.window.correct;
            windows[lane].rows += report.window.rows;
        }
        let first = reports.iter().filter_map(|report| report.diverged);
        let first = first.map(|(step, _)| step).min();
        diverged = diverged.or(first);
    }
    for (sum, window) in sums.iter().zip(&windows) {
        assert_eq!((sum.correct, sum.rows), (window.correct, window.rows));
    }
    let len = case.model(1).layout().len();
    let mut values = vec![0.0; len];
    training.read_values(&mut values).expect("values");
    let planes = (0..case.optimizer.planes()).map(|plane| {
        let mut numbers = vec![0.0; len];
        training.read_plane(plane, &mut numbers).expect("a plane");
        numbers
    });
    let planes = planes.collect();
    Outcome {
        values,
        planes,
        sums,
        diverged,
        scores: score(training, case),
    }
}

/// What the network says of some samples.
fn score(training: &mut Training, case: &Case) -> Vec<f32> {
    let scores = training.scores(case.scored());
    scores.expect("scores").to_vec()
}

/// Fails unless both are the same to the bit.
fn compare(name: &str, found: &Outcome, expected: &Outcome) {
    same(&format!("{name}: scores"), &found.scores, &expected.scores);
    same(&format!("{name}: values"), &found.values, &expected.values);
    for (found, expected) in found.planes.iter().zip(&expected.planes) {
        same(&format!("{name}: a plane"), found, expected);
    }
    assert_eq!(found.diverged, expected.diverged, "{name}: divergence");
    for (lane, (found, expected)) in found.sums.iter().zip(&expected.sums).enumerate() {
        let counts = |sum: &LossSum| (sum.correct, sum.rows);
        assert_eq!(counts(found), counts(expected), "{name}: lane {lane}");
        let is_same = found.loss.to_bits() == expected.loss.to_bits()
            || (found.loss.is_nan() && expected.loss.is_nan());
        let (found, expected) = (found.loss, expected.loss);
        assert!(is_same, "{name}: lane {lane}: {found:e} not {expected:e}");
    }
}

fn same(name: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let differ = |(_, (a, b)): &(usize, (&f32, &f32))| {
        a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())
    };
    let pairs = found.iter().zip(expected).enumerate();
    let different: Vec<_> = pairs.filter(differ).collect();
    if let Some((at, (found, right))) = different.first() {
        let (count, all) = (different.len(), expected.len());
        panic!(
            "{name}: {count} of {all} numbers differ, the first at {at}: {found:e} not {right:e}"
        );
    }
}
