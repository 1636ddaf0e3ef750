//! What is trained: networks, optimizers, lanes and data.

use super::targets::CaseTargets;
use lockstep_base::random::Stream;
use lockstep_cuda::{InputPlace, LaneRows, WorkerBatch};
use lockstep_nn::{
    Capacity, Dims, LayerRates, LayerSpec, Model, NamedLayer, Optimizer, Precision, Threads,
    Update, layers, zoo,
};
use std::ops::Range;

/// A network, how it is trained, and on what.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) layers: Vec<NamedLayer>,
    pub(crate) rates: LayerRates,
    pub(crate) precision: Precision,
    pub(crate) input: Dims,
    pub(crate) optimizer: Optimizer,
    pub(crate) seed: u64,
    /// All lanes of the run, and those that are computed here.
    pub(super) all_lanes: usize,
    pub(super) own_lanes: Range<usize>,
    /// Where the own lanes are parted into two sums that the host adds and updates by; 0 if the device does all.
    pub(super) parted_at: usize,
    pub(crate) place: InputPlace,
    pub(crate) batch: usize,
    /// Samples of an epoch; the data set has more.
    pub(crate) samples: usize,
    pub(crate) epochs: usize,
    /// Steps of the run that were done before.
    pub(crate) begin: u64,
    /// The state vector that training begins with.
    pub(crate) values: Vec<f32>,
    pub(crate) inputs: Vec<f32>,
    pub(crate) targets: CaseTargets,
    /// The longest that the gradient may be.
    pub(crate) clip_norm: Option<f64>,
    /// How much of an average of the weights a step keeps.
    pub(crate) average: Option<f64>,
}

/// Samples that a data set has beyond those of an epoch.
const MORE_SAMPLES: usize = 7;

impl Case {
    /// A case with data of its own, which hangs on the name.
    pub(super) fn new(
        name: impl Into<String>,
        layers: Vec<NamedLayer>,
        input: Dims,
        samples: usize,
    ) -> Self {
        let name = name.into();
        let add = |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte));
        let seed = name.bytes().fold(7, add);
        let mut numbers = Stream::new(seed, 0);
        let all = samples + MORE_SAMPLES;
        let mut case = Self {
            rates: LayerRates::default(),
            precision: Precision::F32,
            optimizer: sgd(0.9, false),
            seed,
            all_lanes: 1,
            own_lanes: 0..1,
            parted_at: 0,
            place: InputPlace::Resident,
            batch: samples,
            epochs: 1,
            begin: 0,
            inputs: (0..all * input.len())
                .map(|_| 2.0 * numbers.unit_f32() - 1.0)
                .collect(),
            targets: CaseTargets::default(),
            clip_norm: None,
            average: None,
            values: Vec::new(),
            name,
            layers,
            input,
            samples,
        };
        let model = case.model(1);
        let outputs = model.outputs() as u32;
        case.values = model.initial_state(case.seed);
        case.targets.classes = (0..all).map(|_| numbers.below(outputs)).collect();
        case
    }

    /// The same without biases, so that inputs of zeros come to zeros.
    pub(super) fn without_biases(mut self) -> Self {
        let model = self.model(1);
        let tensors = model.layout().tensors.iter();
        for bias in tensors.filter(|tensor| tensor.name.ends_with(".bias")) {
            self.values[bias.range.clone()].fill(0.0);
        }
        self
    }

    /// The same with products in fixed point.
    pub(super) fn in_fixed16(self) -> Self {
        Self {
            name: format!("{} in fixed16", self.name),
            precision: Precision::Fixed16,
            ..self
        }
    }

    pub(super) fn with_rates(self, rates: LayerRates) -> Self {
        Self { rates, ..self }
    }

    pub(super) fn in_batches(self, batch: usize, lanes: usize) -> Self {
        Self {
            batch,
            all_lanes: lanes,
            own_lanes: 0..lanes,
            ..self
        }
    }

    /// The model on the processor, for so many rows.
    pub(crate) fn model(&self, rows: usize) -> Model {
        let (threads, input) = (Threads::default(), self.input);
        let capacity = Capacity { rows, lanes: 1 };
        let (precision, rates, layers) = (self.precision, &self.rates, &self.layers);
        let model = Model::in_precision(precision, rates, &threads, layers, input, capacity);
        let model = model.expect("a network that can be built");
        model.minimising(self.targets.loss)
    }

    /// Whether the device does all.
    pub(crate) fn is_alone(&self) -> bool {
        self.parted_at == 0
    }

    /// How many lanes are computed here.
    pub(crate) fn lanes(&self) -> usize {
        self.own_lanes.len()
    }

    pub(crate) fn steps(&self) -> usize {
        self.samples.div_ceil(self.batch)
    }

    pub(crate) fn scored_rows(&self) -> usize {
        self.samples.min(5)
    }

    /// The inputs of those rows.
    pub(crate) fn scored(&self) -> &[f32] {
        &self.inputs[..self.scored_rows() * self.input.len()]
    }

    /// The number of a step.
    pub(crate) fn step(&self, epoch: usize, in_epoch: usize) -> u64 {
        self.begin + (epoch * self.steps() + in_epoch) as u64
    }

    pub(crate) fn update(&self, epoch: usize, in_epoch: usize) -> Update {
        let number = self.step(epoch, in_epoch);
        self.optimizer
            .at(number, 0.05 / (1.0 + (number % 7) as f32))
    }

    /// The samples of an epoch, in its order.
    pub(crate) fn order(&self, epoch: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..(self.samples + MORE_SAMPLES) as u32).collect();
        Stream::new(self.seed, 1 + epoch as u64).shuffle(&mut order);
        order.truncate(self.samples);
        order
    }

    /// The lanes of a full batch.
    pub(crate) fn full(&self) -> WorkerBatch {
        self.lanes_of(self.batch)
    }

    /// The lanes of the last batch of an epoch.
    pub(crate) fn last(&self) -> WorkerBatch {
        match self.samples % self.batch {
            0 => self.full(),
            rest => self.lanes_of(rest),
        }
    }

    /// The lanes of a batch of some samples: those of here that have rows, added in the lanes' tree.
    fn lanes_of(&self, samples: usize) -> WorkerBatch {
        let begin = |lane: usize| lane * samples / self.all_lanes;
        let (own, first) = (self.own_lanes.clone(), begin(self.own_lanes.start));
        let rows = |lane: usize| begin(own.start + lane + 1) - begin(own.start + lane);
        let lanes = (0..own.len()).filter(|&lane| rows(lane) > 0);
        let lanes: Vec<LaneRows> = lanes
            .map(|lane| LaneRows {
                lane,
                rows: rows(lane),
            })
            .collect();
        let mut adds = Vec::new();
        let place = |lane: usize| lanes.iter().position(|own| own.lane == lane);
        let parts = [0..self.parted_at, self.parted_at..own.len()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let partials = parts.filter_map(|part| tree(part, &place, &mut adds));
        WorkerBatch {
            samples,
            first,
            partials: partials.collect(),
            adds,
            lanes,
        }
    }
}

/// Appends the additions of a node of the lanes' tree, and returns the place that has its sum: none if no lane has rows.
fn tree(
    lanes: Range<usize>,
    place: &impl Fn(usize) -> Option<usize>,
    adds: &mut Vec<(usize, usize)>,
) -> Option<usize> {
    if lanes.len() == 1 {
        return place(lanes.start);
    }
    let middle = lanes.start + lanes.len().next_power_of_two() / 2;
    let left = tree(lanes.start..middle, place, adds);
    let right = tree(middle..lanes.end, place, adds);
    if let (Some(left), Some(right)) = (left, right) {
        adds.push((left, right));
    }
    left.or(right)
}

fn sgd(momentum: f32, nesterov: bool) -> Optimizer {
    Optimizer::Sgd {
        momentum,
        nesterov,
        weight_decay: 0.01,
    }
}

/// Every optimizer, with each of its ways.
fn optimizers() -> Vec<Optimizer> {
    let adam = |decoupled| Optimizer::Adam {
        betas: [0.9, 0.99],
        epsilon: 1e-8,
        weight_decay: 0.02,
        decoupled,
    };
    let rms_prop = |momentum| Optimizer::RmsProp {
        alpha: 0.95,
        epsilon: 1e-8,
        momentum,
        weight_decay: 0.02,
    };
    vec![
        sgd(0.0, false),
        sgd(0.9, false),
        sgd(0.9, true),
        adam(false),
        adam(true),
        rms_prop(0.0),
        rms_prop(0.9),
        Optimizer::Lion {
            betas: [0.9, 0.99],
            weight_decay: 0.02,
        },
    ]
}

pub(super) fn linear(out: usize) -> LayerSpec {
    LayerSpec::Linear(layers::Linear { out })
}

pub(super) fn dropout(p: f64) -> LayerSpec {
    LayerSpec::Dropout(layers::Dropout { p })
}

/// A small case.
pub(crate) fn example() -> Case {
    let layers = NamedLayer::stack([linear(9), LayerSpec::Relu, dropout(0.5), linear(5)]);
    Case::new("an example", layers, Dims::vector(6), 14).in_batches(5, 2)
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = fashion_mnist();
    all.extend(small_networks());
    all.extend(special_numbers());
    all.extend(small_numbers());
    all.extend(workers_of_a_gang());
    all.push(host_batches());
    all.push(rates());
    all.extend(large_tiles());
    all.extend(super::layers::cases());
    all.extend(super::targets::cases());
    all.extend(clipped());
    all.extend(averaged());
    all
}

/// The network of `examples/fashion-mnist.toml`, with one lane and with three.
fn fashion_mnist() -> Vec<Case> {
    let case = |lanes| {
        let layers = zoo::mlp(&[512, 512], 0.25, false, 10);
        let name = format!("784-512-512-10 in {lanes} lanes");
        Case::new(name, layers, Dims::image(28, 28, 1), 83).in_batches(32, lanes)
    };
    vec![case(1), case(3)]
}

/// Networks of odd sizes, each with another optimizer; what is pointwise at every place.
fn small_networks() -> Vec<Case> {
    let mut all = Vec::new();
    for (number, optimizer) in optimizers().into_iter().enumerate() {
        let mut draw = Stream::new(11, number as u64);
        let mut size = |most: u32| 1 + draw.below(most) as usize;
        let mut specs = Vec::new();
        if number % 4 == 1 {
            specs.extend([LayerSpec::Relu, dropout(0.4)]);
        }
        for layer in 0..number % 3 {
            specs.push(linear(size(70)));
            match (number + layer) % 4 {
                0 => specs.push(LayerSpec::Relu),
                1 => specs.push(dropout(0.3)),
                2 => specs.extend([dropout(0.2), LayerSpec::Relu]),
                // More than one kernel does.
                _ => specs.extend([
                    LayerSpec::Relu,
                    dropout(0.1),
                    LayerSpec::Relu,
                    dropout(0.1),
                    dropout(0.1),
                ]),
            }
        }
        specs.push(linear(size(40)));
        let (input, batch, lanes) = (size(50), size(19), size(6));
        let case = Case::new(
            format!("{optimizer:?}"),
            NamedLayer::stack(specs),
            Dims::vector(input),
            3 * batch + 1,
        );
        all.push(Case {
            optimizer,
            epochs: 2,
            // Draws depend on all bits of a step's number.
            begin: if number % 2 == 0 { 0 } else { (1 << 33) + 5 },
            ..case.in_batches(batch, lanes.min(batch))
        });
    }
    all
}

/// Inputs and values that are not normal numbers.
fn special_numbers() -> Vec<Case> {
    let case = |name: &str, special: &[f32]| {
        let case = Case {
            name: name.to_owned(),
            ..example()
        };
        let mut inputs = case.inputs.clone();
        for (i, x) in inputs.iter_mut().enumerate() {
            if i % 5 == 0 {
                *x = special[i / 5 % special.len()];
            }
        }
        Case { inputs, ..case }
    };
    vec![
        case(
            "subnormal inputs",
            &[1e-40, -1e-45, f32::MIN_POSITIVE, 0.0, -0.0],
        ),
        case("large inputs", &[1e18, -3e19, 1.0]),
        case("a NaN", &[f32::NAN, 1.0, -1.0]),
        case("infinities", &[f32::INFINITY, 1.0, f32::NEG_INFINITY]),
    ]
}

/// Values so small that what becomes of them, or of their squares, is not normal any more, for every optimizer; and zeros
/// of both signs. After the first step they are larger, so every step is looked at.
fn small_numbers() -> Vec<Case> {
    let mut all = Vec::new();
    for (optimizer, scale) in optimizers()
        .into_iter()
        .flat_map(|optimizer| [(optimizer, 3e-38), (optimizer, 3e-18)])
    {
        let layers = NamedLayer::stack([linear(4), linear(3)]);
        let name = format!("values of {scale:e} and {optimizer:?}");
        let case = Case::new(name, layers, Dims::vector(6), 9);
        all.push(Case {
            optimizer,
            values: case.values.iter().map(|x| scale * x).collect(),
            epochs: 2,
            ..case
        });
    }
    let layers = NamedLayer::stack([linear(9)]);
    let zeros = Case::new("zeros of both signs", layers, Dims::vector(2), 9);
    let signs = |numbers: &[f32]| numbers.iter().map(|x| 0.0 * x).collect();
    all.push(Case {
        inputs: signs(&zeros.inputs),
        values: signs(&zeros.values),
        ..zeros
    });
    all
}

/// The lanes of a worker whose rows do not begin with the batch, and of one that has none of the last batch.
fn workers_of_a_gang() -> Vec<Case> {
    let case = |own_lanes: Range<usize>| {
        let name = format!("lanes {own_lanes:?} of 6");
        let layers = zoo::mlp(&[8], 0.2, false, 3);
        let case = Case::new(name, layers, Dims::vector(6), 21).in_batches(8, 6);
        Case { own_lanes, ..case }
    };
    let of_gang = |parted_at, place, samples| {
        let name = format!("5 lanes parted at {parted_at}, {place:?}");
        let layers = zoo::mlp(&[8], 0.2, false, 3);
        let case = Case::new(name, layers, Dims::vector(6), samples).in_batches(8, 5);
        Case {
            parted_at,
            place,
            rates: LayerRates::new([("fc1".to_owned(), 0.5)]),
            ..case
        }
    };
    vec![
        case(2..4),
        case(0..1),
        of_gang(3, InputPlace::Resident, 29),
        of_gang(4, InputPlace::Host, 34),
    ]
}

/// Batches that the host prepares: more than there are slots for.
fn host_batches() -> Case {
    let layers = zoo::mlp(&[8], 0.2, false, 3);
    let case = Case::new("batches of the host", layers, Dims::vector(7), 47);
    Case {
        place: InputPlace::Host,
        begin: 5,
        epochs: 2,
        ..case.in_batches(6, 2)
    }
}

/// Layers that learn slower than others, or not at all.
fn rates() -> Case {
    let layers = NamedLayer::stack([
        linear(6),
        LayerSpec::Relu,
        linear(33),
        LayerSpec::Relu,
        linear(34),
        LayerSpec::Relu,
        linear(3),
    ]);
    let rates = [("layers.0", 0.0), ("layers.2", 0.1), ("layers.4", 0.0)];
    Case {
        rates: LayerRates::new(rates.map(|(name, rate)| (name.to_owned(), rate))),
        ..Case::new("slow and frozen layers", layers, Dims::vector(5), 11).in_batches(4, 2)
    }
}

/// Gradients that are clipped, or could be.
fn clipped() -> Vec<Case> {
    let case = |name: &str, longest: f64, lanes| {
        // Chunks of more than a block, a block that is not full, and running statistics.
        let specs = [
            linear(37),
            LayerSpec::BatchNorm,
            LayerSpec::Relu,
            linear(130),
            LayerSpec::Relu,
            linear(150),
            linear(3),
        ];
        let layers = NamedLayer::stack(specs);
        let case = Case::new(name, layers, Dims::vector(60), 29).in_batches(9, lanes);
        Case {
            clip_norm: Some(longest),
            ..case
        }
    };
    let rates = [("layers.0", 0.0), ("layers.5", 0.5)];
    let rates = LayerRates::new(rates.map(|(name, rate)| (name.to_owned(), rate)));
    let mut all = vec![
        case("clipped", 0.3, 1),
        case("clipped in lanes", 0.3, 3),
        case("not clipped", 1e9, 2),
        case("partly frozen and clipped", 0.2, 3).with_rates(rates),
    ];
    for (i, optimizer) in optimizers().into_iter().enumerate() {
        all.push(Case {
            optimizer,
            ..case(&format!("clipped {i}"), 0.1, 2)
        });
    }
    let mut lost = case("clipped and diverged", 0.3, 2);
    lost.inputs[70] = f32::NAN;
    all.push(lost);
    all
}

/// Weights that are averaged.
fn averaged() -> Vec<Case> {
    let case = |name: &str, kept, rates: &[&str]| {
        let specs = [
            linear(7),
            LayerSpec::BatchNorm,
            LayerSpec::Relu,
            linear(9),
            LayerSpec::Relu,
            linear(3),
        ];
        let rates = rates.iter().map(|&name| (name.to_owned(), 0.0));
        let layers = NamedLayer::stack(specs);
        let case = Case::new(name, layers, Dims::vector(5), 29).in_batches(6, 2);
        let mut case = case.with_rates(LayerRates::new(rates));
        // A frozen number that would not stay what it is by arithmetic.
        case.values[0] = -0.0;
        Case {
            average: Some(kept),
            epochs: 2,
            begin: 100,
            ..case
        }
    };
    vec![
        case("averaged", 0.9, &[]),
        case("averaged and partly frozen", 0.5, &["layers.0", "layers.3"]),
    ]
}

/// More rows and columns than small tiles are for: many rows, and many weights; and the products for which each size of tiles
/// is the best, on the way there and back, as `product.rs` says in a test.
fn large_tiles() -> Vec<Case> {
    let case = |name, hidden: &[usize], inputs, rows| {
        let layers = zoo::mlp(hidden, 0.3, false, 7);
        let case = Case::new(name, layers, Dims::vector(inputs), rows + 2);
        case.in_batches(rows, 1)
    };
    vec![
        case("many rows", &[570], 5, 515),
        case("many weights", &[570, 530], 5, 3),
        case("medium tiles", &[500, 36], 8, 125),
        case("large tiles", &[620, 36], 8, 1000),
        case("the largest tiles", &[508, 36], 8, 1001),
    ]
}
