//! Any number of threads, and of lanes in a pass, computes the same bits, and no thread allocates.

use crate::pytorch::MARK;
use crate::reference::narrower;
use lockstep_nn::layers::{self, AvgPool, Conv2d, Embedding, GroupNorm, Linear};
use lockstep_nn::{
    Batch, Capacity, Collect, Dims, EmbeddingTable, LayerGradient, LayerRates, LayerSpec, LossSum,
    Model, NamedLayer, Precision, Replica, Step, Targets, Threads, zoo,
};
use lockstep_testkit::{allocations_of_all_threads, child, succeed};
use std::ops::Range;

/// Rows of each lane.
const LANES: [Range<usize>; 3] = [0..3, 3..4, 4..8];

/// Rows of all lanes.
const ROWS: usize = 8;

/// What a network is asked: rows that are all different, and a class for each.
struct Question {
    inputs: Vec<f32>,
    labels: Vec<u32>,
    samples: Vec<u32>,
}

impl Question {
    fn new(input: Dims) -> Self {
        let number = |i: usize| (i * 7919 % 1009) as f32 / 500.0 - 1.0;
        Self {
            inputs: (0..ROWS * input.len()).map(number).collect(),
            labels: (0..ROWS as u32).map(|row| row % 5).collect(),
            samples: (0..ROWS as u32).map(|row| 3 * row).collect(),
        }
    }

    fn rows(&self, rows: Range<usize>) -> (Batch<'_>, Step<'_>) {
        let width = self.inputs.len() / ROWS;
        let batch = Batch {
            inputs: &self.inputs[rows.start * width..rows.end * width],
            targets: Targets::Classes(&self.labels[rows.clone()]),
        };
        let step = Step {
            seed: 1,
            number: 2,
            samples: &self.samples[rows],
            batch: ROWS,
        };
        (batch, step)
    }
}

/// A network's answer: each lane's gradient and loss, and the scores of an evaluation, as bits.
#[derive(PartialEq, Default)]
struct Answer(Vec<u64>);

impl Answer {
    fn add(&mut self, numbers: &[f32]) {
        self.0
            .extend(numbers.iter().map(|x| u64::from(x.to_bits())));
    }

    fn add_loss(&mut self, sum: LossSum) {
        self.0.extend([sum.loss.to_bits(), sum.correct, sum.rows]);
    }

    /// FNV-1a over all bits.
    fn hash(&self) -> u64 {
        let step = |hash: u64, &bits: &u64| (hash ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
        self.0.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// Keeps the gradients of all lanes.
struct Lanes<'a> {
    state: &'a [f32],
    chunks: &'a [Range<usize>],
    gradients: &'a mut [Vec<f32>],
}

impl Replica for Lanes<'_> {
    fn state(&self) -> &[f32] {
        self.state
    }

    fn gradient(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        for lane in lanes {
            for chunk in chunks.clone() {
                let range = self.chunks[chunk].clone();
                gradient.write(lane, chunk, &mut self.gradients[lane][range]);
            }
        }
    }
}

/// A network, and how its products are computed.
struct Network {
    name: String,
    layers: Vec<NamedLayer>,
    input: Dims,
    precision: Precision,
}

impl Network {
    fn model(&self, threads: usize, lanes: usize) -> Model {
        let (rates, threads) = (
            LayerRates::default(),
            Threads::with_threads(threads).unwrap(),
        );
        let (layers, input) = (&self.layers, self.input);
        let capacity = Capacity { rows: ROWS, lanes };
        Model::in_precision(self.precision, &rates, &threads, layers, input, capacity).unwrap()
    }
}

/// Lane by lane on one thread.
fn alone(network: &Network) -> Answer {
    let (mut model, question) = (network.model(1, 1), Question::new(network.input));
    let (layout, state) = (model.layout().clone(), model.initial_state(4));
    let mut answer = Answer::default();
    for rows in LANES {
        let (batch, step) = question.rows(rows);
        let mut collect = Collect::new(&state, &layout);
        let loss = model.gradient(&mut collect, batch, step);
        answer.add(&collect.gradient);
        answer.add_loss(loss);
    }
    answer.add(model.scores(&state, &question.inputs));
    answer
}

/// A model on some threads, and what it is given.
struct Together {
    model: Model,
    question: Question,
    state: Vec<f32>,
    chunks: Vec<Range<usize>>,
    gradients: [Vec<f32>; LANES.len()],
    losses: [LossSum; LANES.len()],
}

impl Together {
    fn new(network: &Network, threads: usize) -> Self {
        let (model, input) = (network.model(threads, LANES.len()), network.input);
        let layout = model.layout();
        Self {
            question: Question::new(input),
            state: model.initial_state(4),
            chunks: layout.chunks.clone(),
            gradients: [(); LANES.len()].map(|()| vec![f32::NAN; layout.len()]),
            losses: [LossSum::default(); LANES.len()],
            model,
        }
    }

    /// All lanes in a pass, and an evaluation, whose scores it returns.
    fn compute(&mut self) -> &[f32] {
        let (batch, step) = self.question.rows(0..ROWS);
        let mut replica = Lanes {
            state: &self.state,
            chunks: &self.chunks,
            gradients: &mut self.gradients,
        };
        let lanes = (&LANES[..], &mut self.losses[..]);
        self.model.gradients(&mut replica, batch, step, lanes);
        self.model.scores(&self.state, &self.question.inputs)
    }

    fn answer(mut self) -> Answer {
        let scores = self.compute().to_vec();
        let mut answer = Answer::default();
        for (gradient, loss) in self.gradients.iter().zip(self.losses) {
            answer.add(gradient);
            answer.add_loss(loss);
        }
        answer.add(&scores);
        answer
    }
}

/// A network for a table with categories.
fn table() -> Vec<NamedLayer> {
    let tables = vec![EmbeddingTable { rows: 9, width: 40 }; 3];
    let mut layers = zoo::mlp(&[600, 300], 0.2, true, 5);
    let embedding = LayerSpec::Embedding(Embedding { tables });
    layers.insert(0, NamedLayer::new("tables", embedding));
    layers
}

/// Layers that none of the named networks has.
fn others() -> Vec<NamedLayer> {
    let convolution = |out, groups, stride| {
        LayerSpec::Conv2d(Conv2d {
            out,
            kernel: [3, 3],
            stride: [stride; 2],
            padding: [1, 1],
            groups,
            bias: true,
        })
    };
    let pool = AvgPool {
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 0],
    };
    NamedLayer::stack([
        convolution(40, 1, 2),
        LayerSpec::Gelu,
        LayerSpec::GroupNorm(GroupNorm { groups: 4 }),
        convolution(40, 40, 1),
        LayerSpec::LeakyRelu(layers::LeakyRelu { slope: 0.1 }),
        convolution(60, 4, 1),
        LayerSpec::LayerNorm,
        LayerSpec::AvgPool(pool),
        LayerSpec::Tanh,
        LayerSpec::Linear(Linear { out: 5 }),
    ])
}

fn networks() -> Vec<Network> {
    let image = Dims::image(20, 21, 3);
    let cnn = zoo::cnn(&[(32, 0.1), (48, 0.0)], 64, 0.5, 5);
    let all = [
        (
            "mlp",
            zoo::mlp(&[700, 300], 0.2, false, 5),
            Dims::vector(500),
        ),
        ("head", zoo::head(512, 0.3, 5), Dims::vector(400)),
        ("table", table(), Dims::vector(30)),
        ("cnn", cnn, image),
        ("resnet18", narrower(zoo::resnet18(5, true), 4), image),
        ("others", others(), image),
    ];
    let in_precision = |precision: Precision| {
        let network = move |(name, layers, input): &(&str, Vec<NamedLayer>, Dims)| Network {
            name: format!("{name} in {}", precision.name()),
            layers: layers.clone(),
            input: *input,
            precision,
        };
        all.iter().map(network)
    };
    let plain = in_precision(Precision::F32);
    plain.chain(in_precision(Precision::Fixed16)).collect()
}

#[test]
fn lanes_together_on_any_threads_have_the_bits_of_each_alone_on_one() {
    for network in networks() {
        let (name, expected) = (&network.name, alone(&network));
        let threads: &[usize] = match network.precision {
            Precision::F32 => &[1, 2, 3, 4, 8],
            // Plain integers take their time.
            Precision::Fixed16 => &[1, 3],
        };
        for &threads in threads {
            let found = Together::new(&network, threads).answer();
            assert!(found == expected, "{name} on {threads} threads");
        }
        // For the test of all levels of instructions.
        println!("{MARK}{name}: {:016x}", expected.hash());
    }
}

/// Says to a test that it is a process of its own, in which nobody else allocates.
const CHILD: &str = "LOCKSTEP_TEST_CHILD";

#[test]
fn no_thread_allocates_in_a_step() {
    succeed(child!(count_allocations).env(CHILD, "1"));
}

#[test]
fn count_allocations() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for network in networks() {
        let mut together = Together::new(&network, 3);
        together.compute();
        // A thread that starts late allocates what belongs to it; a step that allocates does so every time.
        let mut counts = (0..5).map(|_| {
            let before = allocations_of_all_threads();
            together.compute();
            allocations_of_all_threads() - before
        });
        assert!(counts.any(|count| count == 0), "{}", network.name);
    }
}
