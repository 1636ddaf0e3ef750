//! What every device must do: train networks to the processor's bits.
//!
//! A [`Case`] is trained for some epochs by lockstep-nn, as `lockstep-train` drives it, and by the device. All values and
//! vectors of the optimizer, all sums of the lanes and all scores must be the same in every bit; a NaN only has to be one.

mod cases;
mod encoders;
mod images;
mod layers;
mod networks;
mod processor;
mod targets;

use cases::cases;
pub(crate) use cases::{Case, example};
use lockstep_cuda::driver::Driver;
use lockstep_cuda::{
    Beginning, DataSet, Epoch, Exchange, Gpu, ImageValues, Images, InputPlace, LaneReport,
    ModelDescription, Predictor, SLOTS, Samples, SeenImage, Setup, Training,
};
use lockstep_nn::{LossSum, StateVector};
use processor::Processor;

/// Runs every case on the first device of a driver, but for those of images.
pub(crate) fn all(driver: &dyn Driver) {
    run_all(driver, cases());
}

/// Runs every case of images, and of whole networks but for large ones.
pub(crate) fn all_of_images(driver: &dyn Driver) {
    run_all(driver, images::cases());
    run_all(driver, networks::cases());
}

/// Runs these again with products in fixed point: all of them, or every third one and so on.
pub(crate) fn in_fixed16(driver: &dyn Driver, every: usize) {
    let cases = [cases(), images::cases(), networks::cases()];
    let cases = cases.into_iter().flatten().step_by(every);
    run_all(driver, cases.map(Case::in_fixed16).collect());
}

/// Runs small encoders.
pub(crate) fn all_encoders(driver: &dyn Driver) {
    encoders::small(&Gpu::of(driver, 0).expect("a GPU"));
}

/// Runs the encoders that are used.
pub(crate) fn whole_encoders(driver: &dyn Driver) {
    encoders::whole(&Gpu::of(driver, 0).expect("a GPU"));
}

/// Runs the large networks.
pub(crate) fn all_resnets(driver: &dyn Driver) {
    let resnets = networks::resnets();
    let fixed16 = networks::resnets().into_iter().map(Case::in_fixed16);
    let all = resnets.into_iter().chain(fixed16);
    run_all(driver, all.chain(networks::many_pixels()).collect());
}

fn run_all(driver: &dyn Driver, cases: Vec<Case>) {
    let gpu = Gpu::of(driver, 0).expect("a GPU");
    for case in cases.iter().filter(|case| is_wanted(&case.name)) {
        train(&gpu, case);
    }
}

/// Whether a case is to run: all are, unless words are given that names must have one of, for whoever looks for a mistake.
fn is_wanted(name: &str) -> bool {
    let words = std::env::var("LOCKSTEP_CASES").unwrap_or_default();
    words.split('|').any(|word| name.contains(word))
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
    pub(crate) average: Option<Vec<f32>>,
    /// The norm of the last step's gradient.
    pub(crate) norm: Option<f64>,
    /// Those of every step.
    pub(crate) marks: Vec<u32>,
}

/// Looks at the parameters that a device has room for.
const MARKS: usize = 3;

fn train(gpu: &Gpu, case: &Case) {
    let mut processor = Processor::new(case);
    let mut device = device(gpu, case);
    let mut host = Host::new(case);
    let first = score(&mut device, case);
    same(
        &format!("{}: scores", case.name),
        &first,
        processor.score(case),
    );
    let model = ModelDescription::of(&case.model(1));
    let predictor = Predictor::new(gpu, model, &case.values, case.scored_rows());
    let mut predictor = predictor.expect("a network that there are kernels for");
    let asked = predictor.scores(case.scored()).expect("scores");
    same(&format!("{}: asked", case.name), asked, &first);
    for epoch in 0..case.epochs {
        let expected = processor.epoch(case, epoch);
        // Other values to score with do not change what is trained.
        device.load(Some(&case.values)).expect("other values");
        device.load(None).expect("its own values");
        let found = run(&mut device, &mut host, case, epoch);
        compare(&format!("{}, epoch {epoch}", case.name), &found, &expected);
    }
    device.load(Some(&case.values)).expect("other values");
    let again = score(&mut device, case);
    same(&format!("{}: scores again", case.name), &again, &first);
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
        inputs: case.place,
        shape: case.targets.shape.clone(),
        clip_norm: case.clip_norm,
        average: case.average,
        marks: if case.is_alone() { MARKS } else { 0 },
        exchange: match case.is_alone() {
            true => Exchange::Alone,
            false => Exchange::Host,
        },
    }
}

/// The samples of a case.
pub(crate) fn samples(case: &Case) -> Samples<'_> {
    Samples {
        width: case.input.len(),
        inputs: &case.inputs,
        targets: case.targets.of_samples(case.model(1).outputs()),
        weights: &case.targets.weights,
    }
}

/// The same as images, which are seen as they are.
fn images(case: &Case) -> Images<'_> {
    let lockstep_nn::Dims {
        height,
        width,
        channels,
    } = case.input;
    Images {
        values: ImageValues::Numbers(&case.inputs),
        shape: [channels, height, width],
        scales: vec![(0.0, 1.0); channels],
        most: f32::MAX,
        has_contrast: false,
    }
}

/// The same network on the device.
pub(crate) fn device(gpu: &Gpu, case: &Case) -> Training {
    let set = match case.place {
        InputPlace::Host => None,
        InputPlace::Resident => {
            Some(DataSet::new(gpu, samples(case)).expect("memory for the data"))
        }
        InputPlace::Images => {
            Some(DataSet::of_images(gpu, &images(case)).expect("memory for the images"))
        }
    };
    let beginning = Beginning {
        values: &case.values,
        planes: &[],
        average: None,
    };
    Training::new(gpu, setup(case), set, None, beginning)
        .expect("a network that there are kernels for")
}

/// The host's part of a case: batches that it prepares, and updates by the sums of all workers, of which there is one.
struct Host {
    sent: usize,
    state: StateVector,
}

impl Host {
    fn new(case: &Case) -> Self {
        let model = case.model(1);
        Self {
            sent: 0,
            state: StateVector::new(model.layout(), &case.values, case.optimizer.planes()),
        }
    }

    /// Sends batches up to that of a step, and as many more as there is room for, as far as that.
    fn send(&mut self, training: &mut Training, case: &Case, order: &[u32], last: usize) {
        while self.sent < last {
            let batch = match self.sent + 1 == case.steps() {
                true => case.last(),
                false => case.full(),
            };
            let mut slot = training.slot().expect("room for a batch");
            let first = self.sent * case.batch + batch.first;
            slot.samples
                .copy_from_slice(&order[first..first + batch.rows()]);
            slot.seen.fill(SeenImage::part([0, 0], false));
            let width = case.input.len();
            let rows = slot.inputs.chunks_exact_mut(width);
            for (row, &sample) in rows.zip(&*slot.samples) {
                row.copy_from_slice(&case.inputs[sample as usize * width..][..width]);
            }
            case.targets.fill(&mut slot, self.sent);
            slot.send().expect("a batch that is sent");
            self.sent += 1;
        }
    }

    /// Updates the state by the partial sums, and brings the new values to the device.
    fn update(&mut self, training: &mut Training, case: &Case, (epoch, in_epoch): (usize, usize)) {
        let layout = case.model(1).layout().clone();
        let batch = match in_epoch + 1 == case.steps() {
            true => case.last(),
            false => case.full(),
        };
        let count = batch.partials.len();
        let partials = (0..count).map(|i| training.partial(i).expect("a sum").to_vec());
        let Some(gradient) = partials.reduce(|mut sum, more| {
            lockstep_nn::add(&mut sum, &more);
            sum
        }) else {
            return;
        };
        let update = case.update(epoch, in_epoch);
        for (chunk, range) in layout.chunks.iter().enumerate() {
            if !layout.is_frozen(chunk) {
                let update = update.at_part(layout.rates[chunk]);
                self.state
                    .update(range.clone(), &gradient[range.clone()], &update);
                let values = training.new_values().expect("room for values");
                values[range.clone()].copy_from_slice(&self.state.values()[range.clone()]);
                training.queue_values(range.clone()).expect("new values");
            }
        }
    }
}

/// An epoch on the device, which is handed over in two parts: as if it had been interrupted.
fn run(training: &mut Training, host: &mut Host, case: &Case, number: usize) -> Outcome {
    let steps = case.steps();
    let order = case.order(number);
    let factors = match case.place {
        InputPlace::Resident => case.targets.factors(steps),
        InputPlace::Images | InputPlace::Host => Vec::new(),
    };
    let updates: Vec<_> = (0..steps).map(|i| case.update(number, i)).collect();
    let mut sums = vec![LossSum::default(); case.lanes()];
    let mut windows = vec![LossSum::default(); case.lanes()];
    let mut diverged: Option<u64> = None;
    let mut marks = Vec::new();
    let middle = steps.div_ceil(2);
    for part in [0..middle, middle..steps] {
        let epoch = Epoch {
            step: case.step(number, part.start),
            in_epoch: part.start,
            order: match case.place {
                InputPlace::Resident => &order,
                InputPlace::Images | InputPlace::Host => &[],
            },
            updates: &updates,
            factors: &factors,
            sums: &sums,
        };
        training.begin_epoch(epoch).expect("an epoch that fits");
        host.sent = part.start;
        for i in part.clone() {
            if case.place != InputPlace::Resident {
                host.send(training, case, &order, (i + SLOTS).min(steps));
            }
            training.queue_step().expect("a step");
            match case.is_alone() {
                true => training.mark().expect("room for marks"),
                false => host.update(training, case, (number, i)),
            }
            if case.is_alone() && (i % 2 == 1 || i + 1 == part.end) {
                marks.extend(training.take_marks().expect("marks"));
            }
        }
        let reports: Vec<LaneReport> = training.report().expect("steps without errors");
        training.begin_window().expect("steps without errors");
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
    let planes = (0..case.optimizer.planes()).map(|plane| match case.is_alone() {
        true => {
            let mut numbers = vec![0.0; len];
            training.read_plane(plane, &mut numbers).expect("a plane");
            numbers
        }
        false => host.state.vectors()[1 + plane].to_vec(),
    });
    let planes = planes.collect();
    let average = case.average.map(|_| {
        let mut numbers = vec![0.0; len];
        training.read_average(&mut numbers).expect("an average");
        numbers
    });
    Outcome {
        average,
        norm: training.gradient_norm().expect("a norm"),
        marks,
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
    let average = |outcome: &Outcome| outcome.average.clone().unwrap_or_default();
    same(
        &format!("{name}: the average"),
        &average(found),
        &average(expected),
    );
    let norm = |outcome: &Outcome| {
        let norm = outcome.norm.filter(|norm| !norm.is_nan());
        norm.map(f64::to_bits)
    };
    assert_eq!(norm(found), norm(expected), "{name}: the norm");
    // Marks of what is no number are bits that may differ.
    let are_numbers = expected.values.iter().all(|x| !x.is_nan());
    if are_numbers && expected.diverged.is_none() && !found.marks.is_empty() {
        assert_eq!(found.marks, expected.marks, "{name}: marks");
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
