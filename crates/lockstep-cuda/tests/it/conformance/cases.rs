//! What is trained: networks, optimizers, lanes and data.

use lockstep_base::random::Stream;
use lockstep_cuda::{LaneRows, WorkerBatch};
use lockstep_nn::{
    Capacity, Dims, LayerRates, LayerSpec, Model, NamedLayer, Optimizer, Threads, Update, layers,
    zoo,
};
use std::ops::Range;

/// A network, how it is trained, and on what.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) layers: Vec<NamedLayer>,
    pub(crate) rates: LayerRates,
    pub(crate) input: Dims,
    pub(crate) optimizer: Optimizer,
    pub(crate) seed: u64,
    /// All lanes of the run, and those that are computed here.
    all_lanes: usize,
    own_lanes: Range<usize>,
    pub(crate) batch: usize,
    /// Samples of an epoch; the data set has more.
    pub(crate) samples: usize,
    pub(crate) epochs: usize,
    /// Steps of the run that were done before.
    pub(crate) begin: u64,
    /// The state vector that training begins with.
    pub(crate) values: Vec<f32>,
    pub(crate) inputs: Vec<f32>,
    pub(crate) classes: Vec<u32>,
}

/// Samples that a data set has beyond those of an epoch.
const MORE_SAMPLES: usize = 7;

impl Case {
    /// A case with data of its own, which hangs on the name.
    fn new(name: impl Into<String>, layers: Vec<NamedLayer>, input: Dims, samples: usize) -> Self {
        let name = name.into();
        let add = |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte));
        let seed = name.bytes().fold(7, add);
        let mut numbers = Stream::new(seed, 0);
        let all = samples + MORE_SAMPLES;
        let mut case = Self {
            rates: LayerRates::default(),
            optimizer: sgd(0.9, false),
            seed,
            all_lanes: 1,
            own_lanes: 0..1,
            batch: samples,
            epochs: 1,
            begin: 0,
            inputs: (0..all * input.len())
                .map(|_| 2.0 * numbers.unit_f32() - 1.0)
                .collect(),
            classes: Vec::new(),
            values: Vec::new(),
            name,
            layers,
            input,
            samples,
        };
        let model = case.model(1);
        let outputs = model.outputs() as u32;
        case.values = model.initial_state(case.seed);
        case.classes = (0..all).map(|_| numbers.below(outputs)).collect();
        case
    }

    fn in_batches(self, batch: usize, lanes: usize) -> Self {
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
        let model = Model::with_rates(&self.rates, &threads, &self.layers, input, capacity);
        model.expect("a network that can be built")
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
        let sum = tree(0..own.len(), &place, &mut adds);
        WorkerBatch {
            samples,
            first,
            adds,
            partials: sum.into_iter().collect(),
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

fn linear(out: usize) -> LayerSpec {
    LayerSpec::Linear(layers::Linear { out })
}

fn dropout(p: f64) -> LayerSpec {
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
    all.push(rates());
    all.extend(large_tiles());
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
    vec![case(2..4), case(0..1)]
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

/// More rows and columns than small tiles are for: many rows, and many weights.
fn large_tiles() -> Vec<Case> {
    let case = |name, hidden: &[usize], rows| {
        let case = Case::new(
            name,
            zoo::mlp(hidden, 0.3, false, 7),
            Dims::vector(5),
            rows + 2,
        );
        case.in_batches(rows, 1)
    };
    vec![
        case("many rows", &[570], 515),
        case("many weights", &[570, 530], 3),
    ]
}
