//! How fast dense networks are trained on a GPU: steps a second, and what each kernel of a step takes. It needs a GPU, and
//! nothing else, and says so where there is none.
//!
//!     cargo run --release -p lockstep-cuda --example mlp_speed [seconds for each]

use lockstep_base::random::Stream;
use lockstep_cuda::{
    Beginning, CudaError, DataSet, Epoch, Exchange, Gpu, InputPlace, LaneRows, ModelDescription,
    SampleTargets, Samples, Setup, Training, WorkerBatch,
};
use lockstep_nn::{
    Capacity, Dims, LayerRates, LossSum, Model, NamedLayer, Optimizer, Precision, Threads, zoo,
};
use std::time::Instant;

/// A network and how it is trained.
struct Case {
    name: &'static str,
    precision: Precision,
    layers: Vec<NamedLayer>,
    inputs: usize,
    classes: usize,
    samples: usize,
    batch: usize,
    lanes: usize,
    optimizer: Optimizer,
}

fn cases() -> Vec<Case> {
    let mlp = |name, batch, lanes| Case {
        name,
        precision: Precision::F32,
        layers: zoo::mlp(&[512, 512], 0.25, false, 10),
        inputs: 784,
        classes: 10,
        samples: 60_000,
        batch,
        lanes,
        optimizer: Optimizer::Sgd {
            momentum: 0.9,
            nesterov: false,
            weight_decay: 0.0,
        },
    };
    let head = |name, inputs, classes, batch| Case {
        layers: zoo::head(256, 0.3, classes),
        inputs,
        classes,
        samples: 10_000,
        optimizer: Optimizer::Adam {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
        },
        ..mlp(name, batch, 1)
    };
    let fixed16 = |case| Case {
        precision: Precision::Fixed16,
        ..case
    };
    vec![
        mlp("MLP 784-512-512-10, batch 32", 32, 1),
        mlp("batch 128", 128, 1),
        mlp("batch 128 in 2 lanes", 128, 2),
        mlp("batch 1024", 1024, 1),
        fixed16(mlp("batch 128 in fixed16", 128, 1)),
        fixed16(mlp("batch 1024 in fixed16", 1024, 1)),
        head("head 512-256-36, batch 64", 512, 36, 64),
        head("head 1280-256-10, batch 64", 1280, 10, 64),
    ]
}

impl Case {
    fn whole(&self, samples: usize) -> WorkerBatch {
        let begin = |lane: usize| lane * samples / self.lanes;
        let lanes = (0..self.lanes).map(|lane| LaneRows {
            lane,
            rows: begin(lane + 1) - begin(lane),
        });
        WorkerBatch {
            samples,
            first: 0,
            lanes: lanes.collect(),
            adds: (1..self.lanes).map(|lane| (0, lane)).collect(),
            partials: vec![0],
        }
    }

    fn setup(&self, model: &Model) -> Setup {
        let last = match self.samples % self.batch {
            0 => self.batch,
            rest => rest,
        };
        Setup {
            model: ModelDescription::of(model),
            optimizer: self.optimizer,
            seed: 42,
            lanes: self.lanes,
            batches: [self.batch, last].map(|samples| self.whole(samples)),
            samples: self.samples,
            scored_rows: 10_000,
            inputs: InputPlace::Resident,
            shape: None,
            clip_norm: None,
            average: None,
            marks: 0,
            exchange: Exchange::Alone,
        }
    }

    /// Trains for some time, and prints what was found. Returns steps a second.
    fn run(&self, gpu: &Gpu, seconds: f64) -> Result<f64, CudaError> {
        let (rates, threads) = (LayerRates::default(), Threads::default());
        let capacity = Capacity { rows: 1, lanes: 1 };
        let (precision, input) = (self.precision, Dims::vector(self.inputs));
        let model = Model::in_precision(precision, &rates, &threads, &self.layers, input, capacity);
        let model = model.expect("a network");
        let mut numbers = Stream::new(1, 0);
        let inputs: Vec<f32> = (0..self.samples * self.inputs)
            .map(|_| numbers.unit_f32())
            .collect();
        let classes: Vec<u32> = (0..self.samples)
            .map(|_| numbers.below(self.classes as u32))
            .collect();
        let samples = Samples {
            width: self.inputs,
            inputs: &inputs,
            targets: SampleTargets::Classes(&classes),
            weights: &[],
        };
        let set = DataSet::new(gpu, samples)?;
        let setup = self.setup(&model);
        let (steps, values) = (setup.steps(), model.initial_state(42));
        let beginning = Beginning {
            values: &values,
            planes: &[],
            average: None,
        };
        let mut training = Training::new(gpu, setup, Some(set), None, beginning)?;
        let mut order: Vec<u32> = (0..self.samples as u32).collect();
        numbers.shuffle(&mut order);
        let mut done = 0;
        let mut epoch = |training: &mut Training| -> Result<(), CudaError> {
            let update = |i| self.optimizer.at(done + i as u64, 0.01);
            let updates: Vec<_> = (0..steps).map(update).collect();
            training.begin_epoch(Epoch {
                step: done,
                in_epoch: 0,
                order: &order,
                updates: &updates,
                factors: &[],
                sums: &vec![LossSum::default(); self.lanes],
            })?;
            for _ in 0..steps {
                training.queue_step()?;
            }
            done += steps as u64;
            training.report().map(drop)
        };
        epoch(&mut training)?;
        let (began, mut count) = (Instant::now(), 0);
        while began.elapsed().as_secs_f64() < seconds {
            epoch(&mut training)?;
            count += steps;
        }
        let rate = count as f64 / began.elapsed().as_secs_f64();
        println!(
            "{:<32} {rate:>9.0} steps/s  {:>8.2} us",
            self.name,
            1e6 / rate
        );
        let rows = 10_000.min(self.samples);
        training.scores(&inputs[..rows * self.inputs])?;
        let began = Instant::now();
        training.scores(&inputs[..rows * self.inputs])?;
        let scored = began.elapsed().as_secs_f64() * 1e3;
        let mut sum = 0.0;
        for timed in training.time_kernels()? {
            let us = timed.time.as_secs_f64() * 1e6;
            sum += us;
            let [x, y, z] = timed.blocks;
            let grid = format!("{x} x {y} x {z} of {}", timed.threads);
            println!("    {:<32} {grid:<24} {us:>8.2} us", timed.kernel);
        }
        println!("    all kernels by themselves {sum:.2} us; {rows} rows scored in {scored:.2} ms");
        Ok(rate)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|word| word.parse().ok());
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => return println!("skipped: {error}"),
    };
    let facts = gpu.facts();
    println!("{}, CUDA {}", facts.name, facts.driver);
    for case in cases() {
        if let Err(error) = case.run(&gpu, seconds.unwrap_or(1.0)) {
            println!("{:<32} {error}", case.name);
        }
    }
}
