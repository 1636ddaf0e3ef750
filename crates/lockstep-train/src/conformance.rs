//! What every device promises, held against the definition of a step in plain loops.
//!
//! A job is trained for some steps on one worker, and each step is also done as it is defined: every lane's gradient by
//! the layers, the lanes added in their tree, the norm clipped, each chunk updated. All vectors, losses, marks and what
//! the network says then must have the same bits. So must those of a gang of two workers, on whatever devices.

use crate::batches::Batches;
use crate::copies;
use crate::cuda::CudaDevice;
use crate::device::{Device, DeviceReplica, EpochPlan, ReplicaSetup, StateVectors};
use crate::host::HostDevice;
use crate::lanes::LaneProgram;
use crate::peers;
use crate::prepare::{evaluation_rows, exchange_plan, largest_lane, model_on, working_model};
use crate::sets::Sets;
use crate::snapshot::{Position, Snapshot};
use lockstep_base::fs::CacheDir;
use lockstep_cuda::Gpu;
use lockstep_cuda::driver::emulated::EmulatedDriver;
use lockstep_gang::{
    AbortSwitch, CollectiveExt, Deadline, KeptShape, KeptState, KeptStep, Membership, Plan,
    Segment, SharingCollective, ShmCollective, ShmControl, Solo, tree,
};
use lockstep_job::Job;
use lockstep_nn::optimizer::square_sum;
use lockstep_nn::{
    Capacity, Collect, LossSum, MarkedPlaces, Model, StatePart, StateVector, Step, Threads, Update,
    add,
};
use lockstep_resolve::{ResolvedJob, TrainingSettings};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;

/// Numbers of a summed gradient whose squares are added at a time.
const BLOCK: usize = 2048;

/// A job on little data, with the folder that the data lies in.
pub(crate) struct Specimen {
    _folder: tempfile::TempDir,
    sets: Sets,
    settings: TrainingSettings,
}

impl Specimen {
    /// A job on 43 images of 12 x 10 pixels of four classes, or as many rows of nine numbers of three. It begins with the
    /// keys of [data].
    fn new(job: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (samples, len) = (43u32, 360u32);
        let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
        let mut images = vec![0, 0, 8, 4];
        images.extend(
            [samples, 12, 10, 3]
                .iter()
                .flat_map(|side| side.to_be_bytes()),
        );
        images.extend((0..samples * len).map(noise));
        let mut labels = vec![0, 0, 8, 1];
        labels.extend(samples.to_be_bytes());
        labels.extend((0..samples).map(|i| noise(i + 77) % 4));
        fs::write(path("images"), images).unwrap();
        fs::write(path("labels"), labels).unwrap();
        let row = |i: u32| {
            let number = |j: u32| format!("{}", f32::from(noise(90 * i + j)) / 64.0 - 1.7);
            let numbers: Vec<_> = (0..9).map(number).collect();
            format!(
                "{},{}\n",
                numbers.join(","),
                ["a", "b", "c"][(i % 3) as usize]
            )
        };
        let rows: String = (0..samples).map(row).collect();
        fs::write(path("rows.csv"), format!("a,b,c,d,e,f,g,h,i,label\n{rows}")).unwrap();
        let text = format!("name = 'specimen'\n[data]\n{job}");
        let job = Job::parse(Path::new(&path("job.toml")), &text, &[], None).unwrap();
        let cache = CacheDir::at(&path("cache")).unwrap();
        let network = job.network(Path::new("job.toml")).unwrap();
        let job = ResolvedJob::of(&job, network).unwrap();
        Self {
            sets: Sets::open(&job.training, &job.sets, &cache, &mut |_| {}).unwrap(),
            settings: job.training,
            _folder: folder,
        }
    }

    /// The job's network on the processor, and what it begins with.
    fn model(&self) -> (Model, Snapshot) {
        let (model, _) =
            working_model(&self.settings, &self.sets.facts(), &Threads::default()).unwrap();
        let beginning = Snapshot {
            position: Position {
                lane_sums: vec![LossSum::default(); self.settings.lanes],
                ..Position::default()
            },
            state: model.initial_state(self.settings.seed),
            ..Snapshot::default()
        };
        (model, beginning)
    }

    fn update(&self, number: u64) -> Update {
        let optimizer = self.settings.learner.optimizer;
        optimizer.at(number, 0.02 / (1.0 + number as f32))
    }
}

/// What some steps come to.
#[derive(PartialEq)]
struct Outcome {
    /// Values, the optimizer's vectors, the average, and what the network says.
    vectors: [Vec<u32>; 5],
    losses: Vec<(u64, u64, u64)>,
    recent: Vec<(u64, u64, u64)>,
    marks: Vec<u32>,
    norm: Option<u64>,
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn sums(sums: &[LossSum]) -> Vec<(u64, u64, u64)> {
    let of = |sum: &LossSum| (sum.loss.to_bits(), sum.correct, sum.rows);
    sums.iter().map(of).collect()
}

/// Rows that the network is asked about in the end.
fn questions(specimen: &Specimen, model: &Model) -> Vec<f32> {
    let mut rows = vec![0.0; 3 * specimen.sets.input_len()];
    specimen
        .sets
        .train
        .gather(&[2, 40, 7], &specimen.sets.normaliser, &mut rows);
    assert!(model.outputs() > 0);
    rows
}

/// Two epochs on a device, alone.
fn on_device(specimen: &Specimen, device: &mut dyn Device) -> Outcome {
    let solo = |plan| Solo::new(plan, AbortSwitch::default()).unwrap();
    let part = Part::all(specimen);
    trained(specimen, &part, device, 0, |plan| Box::new(solo(plan)))
}

/// An epoch on each of two devices: the second goes on with what the first has come to.
fn moved(specimen: &Specimen, first: &mut dyn Device, second: &mut dyn Device) -> Outcome {
    let solo = |plan: Plan| -> Box<dyn SharingCollective> {
        Box::new(Solo::new(plan, AbortSwitch::default()).unwrap())
    };
    let all = Part::all(specimen);
    let begun = Part {
        epochs: 0..1,
        ..all.clone()
    };
    let [values, first_plane, second_plane, average, _] =
        trained(specimen, &begun, first, 0, solo).vectors;
    let numbers = |bits: &[u32]| bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    let rest = Part {
        epochs: 1..2,
        beginning: Snapshot {
            state: numbers(&values),
            planes: [first_plane, second_plane].map(|plane| numbers(&plane)),
            average: Some(numbers(&average)).filter(|average: &Vec<f32>| !average.is_empty()),
            ..all.beginning.clone()
        },
        ..all
    };
    trained(specimen, &rest, second, 0, solo)
}

/// What a device trains.
#[derive(Clone)]
struct Part {
    settings: TrainingSettings,
    beginning: Snapshot,
    epochs: Range<u64>,
    /// Whether the devices of the gang exchange gradients themselves.
    has_peers: bool,
}

impl Part {
    /// Both epochs, from the beginning on.
    fn all(specimen: &Specimen) -> Self {
        Self {
            settings: specimen.settings.clone(),
            beginning: specimen.model().1,
            epochs: 0..2,
            has_peers: false,
        }
    }
}

/// Two epochs of a gang of these devices: what all ranks have, which must be the same.
fn in_gang(specimen: &Specimen, devices: Vec<Box<dyn Device>>) -> Outcome {
    exchanging(specimen, devices, false)
}

/// The same, which exchange gradients themselves or not.
fn exchanging(specimen: &Specimen, devices: Vec<Box<dyn Device>>, has_peers: bool) -> Outcome {
    let settings = TrainingSettings {
        workers: devices.len(),
        gradients_only: true,
        ..specimen.settings.clone()
    };
    let (model, beginning) = specimen.model();
    let facts = specimen.sets.facts();
    let plan = exchange_plan(&settings, &facts, model.layout())
        .unwrap()
        .plan;
    let part = Part {
        settings,
        beginning,
        epochs: 0..2,
        has_peers,
    };
    let segment = Segment::create(ShmCollective::bytes_needed(&plan)).unwrap();
    ShmControl::new(&segment, &plan, 0).unwrap();
    let join = |rank| -> Box<dyn SharingCollective> {
        let membership = Membership {
            rank,
            generation: 0,
            deadline: Deadline::default(),
            abort: AbortSwitch::default(),
        };
        Box::new(ShmCollective::join(&segment, plan.clone(), &membership).unwrap())
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let ranks = devices.into_iter().enumerate().map(|(rank, mut device)| {
            let (join, part) = (&join, &part);
            scope.spawn(move || trained(specimen, part, &mut *device, rank, |_| join(rank)))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let mut outcomes = outcomes.into_iter().enumerate();
    let (_, mut first) = outcomes.next().unwrap();
    for (rank, other) in outcomes {
        assert!(
            other.vectors == first.vectors,
            "rank {rank} has other vectors"
        );
        assert_eq!(other.norm, first.norm, "rank {rank}");
        for lane in plan.lanes_of(rank) {
            (first.losses[lane], first.recent[lane]) = (other.losses[lane], other.recent[lane]);
        }
    }
    first
}

/// What a rank copies of its state: each vector, zeros where others hold it.
fn copied(replica: &mut dyn DeviceReplica, shape: KeptShape) -> Vec<Vec<f32>> {
    let segment = Segment::create(shape.bytes()).unwrap();
    let kept = KeptState::create(&segment, 0, shape).unwrap();
    let writer = KeptState::open(&segment, 0).unwrap();
    let mut writer = writer.writer(0, 1, 1, None);
    writer.begin();
    replica.copy_state(&mut writer, true).unwrap();
    writer.complete(KeptStep {
        step: 1,
        facts: [0.0; 2],
    });
    let (version, kept) = (
        kept.newest().unwrap(),
        KeptState::open(&segment, 0).unwrap(),
    );
    let vectors = 0..shape.vectors;
    vectors.map(|vector| kept.vector(version, vector)).collect()
}

/// A copy has what the state comes to in these ranges.
fn check_copy(copied: &[Vec<f32>], whole: &StateVectors<'_>, held: &[Range<usize>]) {
    let [first, second] = whole.planes;
    let all = [
        whole.values,
        first,
        second,
        whole.average.unwrap_or_default(),
    ];
    let there: Vec<_> = all
        .into_iter()
        .filter(|vector| !vector.is_empty())
        .collect();
    assert_eq!(copied.len(), there.len());
    for (copied, whole) in copied.iter().zip(there) {
        for range in held {
            assert!(bits(&copied[range.clone()]) == bits(&whole[range.clone()]));
        }
    }
}

/// The epochs of a rank on a device.
fn trained(
    specimen: &Specimen,
    part: &Part,
    device: &mut dyn Device,
    rank: usize,
    join: impl FnOnce(Plan) -> Box<dyn SharingCollective>,
) -> Outcome {
    let (model, _) = specimen.model();
    let (sets, settings) = (&specimen.sets, &part.settings);
    let mut setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), rank).unwrap();
    let mut collective = join(setup.exchange.plan.clone());
    peers::agree(device, &mut setup, &mut *collective).unwrap();
    assert_eq!(setup.has_peers, part.has_peers);
    let steps = setup.steps_per_epoch;
    let replica = device.replica(sets, setup, &part.beginning, collective);
    let mut replica = replica.unwrap();
    for epoch in part.epochs.clone() {
        let first = epoch * steps;
        let plan = EpochPlan {
            epoch: epoch as u32 + 1,
            done: 0,
            first_step: first,
            updates: (first..first + steps)
                .map(|number| specimen.update(number))
                .collect(),
        };
        replica.begin_epoch(plan).unwrap();
        for _ in 0..steps {
            replica.compute().unwrap();
            assert_eq!(replica.finish(1).unwrap(), 1);
            replica.mark().unwrap();
        }
    }
    // Nobody has waited for the last step.
    let shape = copies::shape(settings, &sets.facts(), model.layout().len());
    let copied = copied(&mut *replica, shape);
    let collective = replica.collective();
    let chunks = 0..collective.plan().chunks();
    let held = chunks.filter(|&chunk| collective.holds(chunk));
    let held: Vec<_> = held.map(|chunk| collective.plan().chunk(chunk)).collect();
    replica.settle().unwrap();
    replica.gather_state().unwrap();
    replica.gather_planes().unwrap();
    replica.collective().barrier().unwrap();
    check_copy(&copied, &replica.vectors(), &held);
    let mut recent = vec![LossSum::default(); settings.lanes];
    replica.take_recent_losses(&mut recent).unwrap();
    let rows = questions(specimen, &model);
    let said = bits(replica.evaluation(None).unwrap().0.scores(&rows).unwrap());
    let losses = sums(replica.epoch_losses().unwrap());
    let (marks, norm) = (
        replica.take_marks().unwrap(),
        replica.gradient_norm().unwrap(),
    );
    let vectors = replica.vectors();
    let [first, second] = vectors.planes.map(bits);
    Outcome {
        vectors: [
            bits(vectors.values),
            first,
            second,
            bits(vectors.average.unwrap_or_default()),
            said,
        ],
        losses,
        recent: sums(&recent),
        marks,
        norm: norm.map(f64::to_bits),
    }
}

/// The sum of the lanes of a node of the tree, of those that there are.
fn in_tree(lanes: &[Option<Vec<f32>>], node: Range<usize>) -> Option<Vec<f32>> {
    let Some(middle) = tree::split(&node) else {
        return lanes[node.start].clone();
    };
    let left = in_tree(lanes, node.start..middle);
    let right = in_tree(lanes, middle..node.end);
    match (left, right) {
        (Some(mut left), Some(right)) => {
            add(&mut left, &right);
            Some(left)
        }
        (left, right) => left.or(right),
    }
}

/// The same by definition.
fn by_definition(specimen: &Specimen) -> Outcome {
    let (mut model, beginning) = specimen.model();
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let layout = model.layout().clone();
    let setup = ReplicaSetup::of(settings, &sets.facts(), &layout, 0).unwrap();
    let marked = MarkedPlaces::new(&layout);
    let mut state = StateVector::new(&layout, &beginning.state, 2);
    let mut average: Option<Vec<f32>> = None;
    let mut batches = Batches::new(sets, settings, false);
    let mut losses = vec![LossSum::default(); settings.lanes];
    let mut recent = losses.clone();
    let (mut marks, mut norm) = (Vec::new(), None);
    for number in 0..2 * setup.steps_per_epoch {
        let step = number % setup.steps_per_epoch;
        if step == 0 {
            batches.begin((number / setup.steps_per_epoch) as u32 + 1);
            losses.fill(LossSum::default());
        }
        let is_last = step + 1 == setup.steps_per_epoch;
        let program: &LaneProgram = &setup.programs[usize::from(is_last)];
        batches.prepare(sets, program, step);
        let mut lanes = vec![None; settings.lanes];
        let mut first_loss = 0.0;
        for (i, work) in program.work.iter().enumerate() {
            let (batch, samples) = batches.rows(batches.lanes()[i].clone());
            let mut collect = Collect::new(state.values(), &layout);
            let step = Step {
                seed: settings.seed,
                number,
                samples,
                batch: program.batch,
            };
            let sum = model.gradient(&mut collect, batch, step);
            losses[work.lane] += sum;
            recent[work.lane] += sum;
            if work.lane == 0 {
                first_loss = sum.loss;
            }
            lanes[work.lane] = Some(collect.gradient);
        }
        let gradient = in_tree(&lanes, 0..settings.lanes).unwrap();
        let mut update = specimen.update(number);
        if let Some(most) = settings.learner.clip_norm {
            let squares = |chunk: &Range<usize>| -> f64 {
                let blocks = gradient[chunk.clone()].chunks(BLOCK);
                blocks.fold(0.0, |sum, block| sum + square_sum(block))
            };
            let chunks = layout.chunks.iter().enumerate();
            let counted = chunks.filter(|(_, chunk)| chunk.start < layout.parameters);
            let trained = counted.filter(|(number, _)| !layout.is_frozen(*number));
            let length = trained.map(|(_, chunk)| squares(chunk)).sum::<f64>().sqrt();
            norm = Some(length.to_bits());
            let scale = if length > most {
                (most / length) as f32
            } else {
                1.0
            };
            update = update.scaled(scale);
        }
        for (number, chunk) in layout.chunks.iter().enumerate() {
            if !layout.is_frozen(number) {
                let update = update.at_part(layout.rates[number]);
                state.update(chunk.clone(), &gradient[chunk.clone()], &update);
            }
        }
        if let Some(kept) = settings.learner.average {
            let share = (1.0 - kept) as f32;
            match &mut average {
                None => average = Some(state.values().to_vec()),
                Some(average) => {
                    for range in layout.trained() {
                        let values = &state.values()[range.clone()];
                        lockstep_nn::optimizer::average(&mut average[range], values, share);
                    }
                }
            }
        }
        marks.push(MarkedPlaces::of_loss(first_loss));
        marked.look(number + 1, state.values(), &mut marks);
    }
    let rows = questions(specimen, &model);
    let kept = average.clone().unwrap_or(state.values().to_vec());
    let said = bits(model.scores(&kept, &rows));
    let planes = settings.learner.optimizer.planes();
    let plane = |number: usize, state: &mut StateVector| match number < planes {
        true => bits(state.part_mut(StatePart::Plane(number))),
        false => Vec::new(),
    };
    Outcome {
        vectors: [
            bits(state.values()),
            plane(0, &mut state),
            plane(1, &mut state),
            bits(&average.unwrap_or_default()),
            said,
        ],
        losses: sums(&losses),
        recent: sums(&recent),
        marks,
        norm,
    }
}

impl Outcome {
    /// Says where two differ.
    fn difference(&self, other: &Self) -> Option<String> {
        let names = ["values", "plane 0", "plane 1", "average", "scores"];
        for ((name, own), other) in names.iter().zip(&self.vectors).zip(&other.vectors) {
            let mut pairs = own.iter().zip(other);
            if own.len() != other.len() {
                return Some(format!("{name}: {} and {} numbers", own.len(), other.len()));
            }
            if let Some(at) = pairs.position(|(own, other)| own != other) {
                return Some(format!("{name} from number {at} on"));
            }
        }
        let rest = [
            ("losses", self.losses == other.losses),
            ("recent losses", self.recent == other.recent),
            ("marks", self.marks == other.marks),
            ("the norm", self.norm == other.norm),
        ];
        let first = rest.iter().find(|(_, same)| !same);
        first.map(|(name, _)| (*name).to_owned())
    }
}

/// Pictures, as an IDX file has them, and rows of a table.
const IMAGES: &str = "train = { images = 'images', labels = 'labels' }\n";
const ROWS: &str = "train = { csv = 'rows.csv', label = 'label' }\n";

/// The jobs that every device must train: dense and convolutional networks, each way of exchanging a layer, lanes that
/// end up without rows, clipping, averages, frozen layers, images that are varied in each way, mixed and smoothed targets.
fn jobs() -> Vec<String> {
    let mlp = "[model]\nkind = 'mlp'\nhidden = [512, 40]\nbatch_norm = true\ndropout = 0.3\n";
    let wide = "[model]\nkind = 'mlp'\nhidden = [640]\n";
    let cnn = "[model]\nkind = 'cnn'\nchannels = [16, 32]\ndropout = [0.2, 0.3]\ndense = 24\n";
    let crops = "normalise = { mean = [0.4, 0.5, 0.6], std = [0.2, 0.2, 0.3] }\n\
                 augment = { crop_padding = 2, flip = true, mixup = 0.4 }\n";
    let parts = "augment = { crop_padding = 2, flip = true }\n";
    let changes = "normalise = { mean = [0.4], std = [0.2] }\n\
                   augment = { crop_padding = 1, flip = true, resized_crop = [0.3, 1.0], rotation = 30, brightness = 0.4, \
                   contrast = 0.4, saturation = 0.4, erase = 0.5 }\n";
    let mixed = "augment = { cutmix = 1.0 }\n";
    let mixed_changes = "normalise = { mean = [0.4], std = [0.2] }\n\
                   augment = { rotation = 20, contrast = 0.4, mixup = 0.3, cutmix = 0.8 }\n";
    let sgd = "optimizer = { kind = 'sgd', lr = 0.1, momentum = 0.9 }";
    let ahead = "optimizer = { kind = 'sgd', lr = 0.1, momentum = 0.9, nesterov = true }";
    let train = |batch: usize, lanes: usize, keys: &str| {
        format!("[train]\nepochs = 2\nbatch = {batch}\nlanes = {lanes}\n{keys}\n")
    };
    vec![
        format!("{ROWS}{mlp}{}", train(10, 1, sgd)),
        format!(
            "{ROWS}{mlp}{}",
            train(11, 5, "clip_norm = 0.01\noptimizer = 'adam'")
        ),
        format!("{IMAGES}{wide}{}", train(10, 4, ahead)),
        format!(
            "{IMAGES}{changes}{wide}{}",
            train(10, 3, "average = 0.9\noptimizer = 'lion'")
        ),
        format!(
            "{IMAGES}{crops}{cnn}{}",
            train(14, 3, "label_smoothing = 0.1\noptimizer = 'adamw'")
        ),
        format!(
            "{IMAGES}{parts}{cnn}{}",
            train(20, 2, "freeze = ['layers.0']\noptimizer = 'rmsprop'")
        ),
        format!("{IMAGES}{mixed}{wide}{}", train(14, 1, sgd)),
        format!("{IMAGES}{mixed_changes}{wide}{}", train(10, 2, sgd)),
    ]
}

/// Trains every job on the devices that `open` opens, and compares.
pub(crate) fn check(open: impl Fn(&Specimen, Model) -> Box<dyn Device>) {
    for job in jobs() {
        let specimen = Specimen::new(&job);
        let (model, _) = specimen.model();
        let found = on_device(&specimen, &mut *open(&specimen, model));
        let expected = by_definition(&specimen);
        assert_eq!(found.difference(&expected), None, "{job}");
    }
}

/// A GPU, emulated, if that works here.
fn emulated_gpu() -> Option<Gpu> {
    let driver = EmulatedDriver::if_it_works(&lockstep_testkit::cache())?;
    Some(Gpu::of(&driver, 0).unwrap())
}

/// A network on a GPU.
fn on_gpu(gpu: &Gpu, specimen: &Specimen) -> Box<dyn Device> {
    let (settings, facts) = (&specimen.settings, specimen.sets.facts());
    let (model, _) = specimen.model();
    let rows = evaluation_rows(settings, &facts, &model);
    Box::new(CudaDevice::new(gpu.clone(), model, rows))
}

#[test]
fn a_gpu_trains_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check(|specimen, _| on_gpu(&gpu, specimen));
    }
}

#[test]
fn a_processor_and_a_gpu_in_one_gang_train_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check_mixed_gangs(&gpu);
    }
}

#[test]
fn gpus_that_read_each_others_sums_train_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        // Clipped, with an average, and with batches that leave workers without rows.
        let few = [1, 3, 4].map(|number| jobs().swap_remove(number));
        check_peers(&gpu, few.into());
    }
}

#[test]
fn gpus_that_cannot_read_each_others_memory_leave_the_exchange_to_the_host() {
    let Some(driver) = EmulatedDriver::if_it_works(&lockstep_testkit::cache()) else {
        return;
    };
    let driver = driver.with_gpus(2);
    let specimen = Specimen::new(&jobs()[1]);
    let device = |index| on_gpu(&Gpu::of(&driver, index).unwrap(), &specimen);
    let found = in_gang(&specimen, vec![device(0), device(1)]);
    assert_eq!(found.difference(&by_definition(&specimen)), None);
}

#[test]
fn a_run_goes_on_on_a_gpu_and_comes_back_with_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check_moves(&gpu);
    }
}

#[test]
fn rows_are_gathered_alike_on_any_threads() {
    // Varied images in lanes, mixed with others.
    let specimen = Specimen::new(&jobs()[4]);
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let (model, _) = specimen.model();
    let setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), 0).unwrap();
    let gathered = |threads: usize| {
        let threads = Threads::with_threads(threads).unwrap();
        let mut batches = Batches::new(sets, settings, false).on(threads);
        batches.begin(2);
        let mut all = Vec::new();
        for step in 0..setup.steps_per_epoch - 1 {
            batches.prepare(sets, &setup.programs[0], step);
            let rows = batches.prepared();
            all.extend(bits(rows.inputs));
            all.extend(rows.samples);
        }
        all
    };
    let (one, three) = (gathered(1), gathered(3));
    assert!(one.len() > 2 * 14 * 360 && one == three);
}

#[test]
fn a_gpu_that_computes_other_bits_is_refused_before_it_trains() {
    let Some(driver) = EmulatedDriver::if_it_works(&lockstep_testkit::cache()) else {
        return;
    };
    let gpu = Gpu::of(&driver.with_a_flipped_bit(), 0).unwrap();
    let specimen = Specimen::new(&jobs()[0]);
    let (model, beginning) = specimen.model();
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), 0).unwrap();
    let alone = Solo::new(setup.exchange.plan.clone(), AbortSwitch::default()).unwrap();
    let mut device = on_gpu(&gpu, &specimen);
    let refused = device.replica(sets, setup, &beginning, Box::new(alone));
    let refused = refused.err().expect("a refusal").to_string();
    let words = "GPU 0, an emulated GPU, says something else of a row than the processor";
    assert!(refused.starts_with(words), "{refused}");
}

/// The same on the GPU of this machine, for whoever has one: `make test-gpu`.
mod gpu {
    use super::*;

    fn real() -> Option<Gpu> {
        let gpu = Gpu::open(0);
        gpu.inspect_err(|error| println!("skipped: {error}")).ok()
    }

    #[test]
    fn a_gpu_trains_to_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check(|specimen, _| on_gpu(&gpu, specimen));
        }
    }

    #[test]
    fn a_gpu_in_a_gang_trains_to_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check_mixed_gangs(&gpu);
            check_peers(&gpu, jobs());
        }
    }

    #[test]
    fn a_run_goes_on_on_a_gpu_and_comes_back_with_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check_moves(&gpu);
        }
    }
}

/// Trains jobs that begin on one device and go on on the other, both ways.
fn check_moves(gpu: &Gpu) {
    // One of dense layers, clipped, in lanes; and one of images with an average.
    for job in [&jobs()[1], &jobs()[3]] {
        let specimen = Specimen::new(job);
        let expected = by_definition(&specimen);
        let mut on_host = HostDevice::new(specimen.model().0);
        let mut on_gpu = on_gpu(gpu, &specimen);
        for found in [
            moved(&specimen, &mut on_host, &mut *on_gpu),
            moved(&specimen, &mut *on_gpu, &mut on_host),
        ] {
            // Marks are of the second epoch alone.
            let found = Outcome {
                marks: expected.marks.clone(),
                recent: expected.recent.clone(),
                ..found
            };
            assert_eq!(found.difference(&expected), None, "{job}");
        }
    }
}

/// Trains jobs in gangs of workers that share a GPU, where each reads what the others have come to: as many as there are lanes,
/// of which some are without rows in short batches, and two.
fn check_peers(gpu: &Gpu, jobs: Vec<String>) {
    for job in jobs {
        let specimen = Specimen::new(&job);
        let expected = by_definition(&specimen);
        let lanes = specimen.settings.lanes;
        let counts = BTreeSet::from([2, lanes]).into_iter();
        for workers in counts.filter(|&workers| workers > 1 && workers <= lanes) {
            let devices = (0..workers).map(|_| on_gpu(gpu, &specimen)).collect();
            let found = exchanging(&specimen, devices, true);
            assert_eq!(
                found.difference(&expected),
                None,
                "{job}, {workers} workers"
            );
        }
    }
}

/// Trains jobs in gangs of a GPU and a processor.
fn check_mixed_gangs(gpu: &Gpu) {
    // Every other job: sums of several lanes, of one, averages and frozen layers.
    for (number, job) in jobs().into_iter().enumerate().skip(1).step_by(2) {
        let specimen = Specimen::new(&job);
        let on_host = || Box::new(HostDevice::new(specimen.model().0));
        let mut devices: Vec<Box<dyn Device>> = vec![on_gpu(gpu, &specimen), on_host()];
        if number % 4 == 1 {
            devices.reverse();
        }
        let found = in_gang(&specimen, devices);
        assert_eq!(found.difference(&by_definition(&specimen)), None, "{job}");
    }
}

#[test]
fn processors_train_fixed16_to_the_bits_of_the_definition_alone_and_in_gangs() {
    for job in jobs() {
        let job = job.replace("[train]\n", "[train]\nprecision = 'fixed16'\n");
        let specimen = Specimen::new(&job);
        let expected = by_definition(&specimen);
        let on_host = || -> Box<dyn Device> { Box::new(HostDevice::new(specimen.model().0)) };
        let found = on_device(&specimen, &mut *on_host());
        assert_eq!(found.difference(&expected), None, "{job}");
        if specimen.settings.lanes > 1 {
            let found = in_gang(&specimen, vec![on_host(), on_host()]);
            assert_eq!(found.difference(&expected), None, "{job}, in a gang");
        }
    }
}

#[test]
fn the_processor_trains_to_the_bits_of_the_definition_with_any_threads_and_lanes_in_a_pass() {
    for (threads, lanes) in [(1, 1), (2, 2), (3, 9)] {
        let threads = Threads::with_threads(threads).unwrap();
        check(|specimen, model| {
            let facts = specimen.sets.facts();
            let rows = lanes * largest_lane(&specimen.settings, &facts);
            let rows = rows.max(model.capacity().rows);
            let capacity = Capacity { rows, lanes };
            let model = model_on(&threads, &specimen.settings, &facts, capacity).unwrap();
            Box::new(HostDevice::new(model))
        });
    }
}
