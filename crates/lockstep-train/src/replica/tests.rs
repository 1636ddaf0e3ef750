//! The exchange does not care which device computes: one with a memory of its own trains to the bits of the
//! processor, whatever the strategies.

use super::*;
use crate::exchange::{Strategy, Workload};
use lockstep_gang::{AbortSwitch, Solo};
use lockstep_nn::{
    Dims, HostState, LayerSpec, Loss, Model, NamedLayer, Optimizer, Replica, Targets, layers,
};

const ROWS: usize = 12;
const INPUTS: usize = 784;

/// Values that only a [`Far`] network can read.
struct FarMemory(Vec<u32>);

impl FarMemory {
    fn bring(&self) -> Vec<f32> {
        self.0.iter().map(|&bits| f32::from_bits(!bits)).collect()
    }
}

/// A state in far memory; `near` only computes.
struct FarState {
    far: FarMemory,
    near: HostState,
    length: usize,
}

impl FarState {
    fn send(&mut self) {
        let values = self.near.read(0..self.length).iter();
        self.far.0 = values.map(|x| !x.to_bits()).collect();
    }
}

impl DeviceState for FarState {
    type Values = FarMemory;

    fn values(&self) -> &FarMemory {
        &self.far
    }

    fn update(&mut self, range: Range<usize>, gradient: &[f32], update: &Update) {
        self.near.update(range, gradient, update);
        self.send();
    }

    fn update_at_once(
        &mut self,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [f32]),
        update: &Update,
    ) {
        self.near.update_at_once(range, fill, update);
        self.send();
    }

    fn read(&mut self, range: Range<usize>) -> &[f32] {
        self.near.read(range)
    }

    fn read_all(&mut self) -> [&[f32]; 3] {
        self.near.read_all()
    }

    fn write(&mut self, part: StatePart, range: Range<usize>, change: &mut dyn FnMut(&mut [f32])) {
        self.near.write(part, range, change);
        self.send();
    }
}

/// A network on the device with far memory.
struct Far(Model);

/// Brings the values near for one pass: a layer reads its own before it hands out their gradient.
struct Near<'a> {
    values: Vec<f32>,
    replica: &'a mut dyn Replica<FarMemory>,
}

impl Replica for Near<'_> {
    fn state(&self) -> &[f32] {
        &self.values
    }

    fn output(&mut self, number: usize, y: &mut [f32]) -> bool {
        self.replica.output(number, y)
    }

    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
        self.replica.gradient(chunk, fill);
    }

    fn factors(&mut self, number: usize, x: &[f32], dy: &[f32]) -> bool {
        self.replica.factors(number, x, dy)
    }

    fn factors_used(&mut self, number: usize) {
        self.replica.factors_used(number);
    }
}

impl Network for Far {
    type Values = FarMemory;
    type State = FarState;

    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn loss(&self) -> Loss {
        self.0.loss()
    }

    fn load_state(&self, values: &[f32], planes: usize) -> FarState {
        let mut state = FarState {
            far: FarMemory(Vec::new()),
            near: self.0.load_state(values, planes),
            length: values.len(),
        };
        state.send();
        state
    }

    fn gradient(
        &mut self,
        replica: &mut dyn Replica<FarMemory>,
        batch: Batch<'_>,
        step: Step<'_>,
    ) -> LossSum {
        let values = replica.state().bring();
        self.0.gradient(&mut Near { values, replica }, batch, step)
    }

    fn scores(&mut self, values: &FarMemory, inputs: &[f32]) -> &[f32] {
        self.0.scores(&values.bring(), inputs)
    }
}

fn model() -> Model {
    let layers = [
        LayerSpec::Linear(layers::Linear { out: 512 }),
        LayerSpec::BatchNorm,
        LayerSpec::Relu,
        LayerSpec::Linear(layers::Linear { out: 64 }),
        LayerSpec::Linear(layers::Linear { out: 10 }),
    ];
    Model::new(&NamedLayer::stack(layers), Dims::vector(INPUTS), ROWS).unwrap()
}

/// Trains a few steps, and returns the bits of all vectors and of what the network says then.
fn train<N: Network>(network: &mut N, workload: Workload) -> Vec<u32> {
    let adam = Optimizer::Adam {
        betas: [0.9, 0.999],
        epsilon: 1e-8,
        weight_decay: 0.01,
        decoupled: true,
    };
    let inputs: Vec<f32> = (0..ROWS * INPUTS)
        .map(|i| (i * 7919 % 1009) as f32 / 1009.0)
        .collect();
    let labels: Vec<u32> = (0..ROWS as u32).map(|row| row % 10).collect();
    let exchange = ExchangePlan::new(network.layout(), workload).unwrap();
    let program = LaneProgram::new(&exchange.plan, 0, ROWS);
    let solo = Solo::new(exchange.plan.clone(), AbortSwitch::default()).unwrap();
    let state = network.load_state(&model().initial_state(3), adam.planes());
    let setup = ReplicaSetup {
        layout: network.layout(),
        exchange: &exchange,
        compute: Threads::default(),
        planes: adam.planes(),
        clip_norm: workload.clips.then_some(0.5),
        aside: program.aside,
    };
    let mut replica = GangReplica::new(Box::new(solo), state, setup).unwrap();
    for number in 0..3 {
        let plan = StepPlan {
            program: &program,
            update: adam.at(number, 0.01),
            inputs: &inputs,
        };
        replica.begin(&plan).unwrap();
        for (i, work) in program.work.iter().enumerate() {
            let rows = work.rows.clone();
            let batch = Batch {
                inputs: &inputs[rows.start * INPUTS..rows.end * INPUTS],
                targets: Targets::Classes(&labels[rows.clone()]),
            };
            let step = Step {
                seed: 1,
                number,
                samples: &labels[rows],
                batch: ROWS,
            };
            let lane = replica.gradient(network, &plan, i, batch, step);
            assert!(lane.unwrap().loss.is_finite());
        }
        replica.computed(&plan).unwrap();
        replica.finish(&plan, 0).unwrap();
    }
    replica.gather_state().unwrap();
    replica.gather_planes().unwrap();
    let scores = network.scores(replica.state.values(), &inputs).to_vec();
    let vectors = replica.state.read_all().concat();
    vectors.iter().chain(&scores).map(|x| x.to_bits()).collect()
}

#[test]
fn a_device_with_its_own_memory_trains_to_the_same_bits() {
    let workload = |lanes, clips| Workload {
        lanes,
        workers: 1,
        batch: ROWS,
        planes: 2,
        clips,
        averages: false,
    };
    let exchange = ExchangePlan::new(model().layout(), workload(4, false)).unwrap();
    let expected = [Strategy::Columns, Strategy::Factors, Strategy::Gradient];
    assert_eq!(exchange.strategies, expected, "every strategy is tried");
    for (lanes, clips) in [(1, false), (1, true), (4, false), (4, true)] {
        let near = train(&mut model(), workload(lanes, clips));
        let far = train(&mut Far(model()), workload(lanes, clips));
        assert!(near == far, "{lanes} lanes, clipped: {clips}");
    }
}
