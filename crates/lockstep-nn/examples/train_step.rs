//! Times training steps of the named networks on synthetic numbers, with a batch, so many steps and threads, and so many
//! lanes: `cargo run --release -p lockstep-nn --example train_step -- cnn 64 20 2 1`. With `both` behind them, steps in
//! single precision and in fixed16 take turns.

use lockstep_nn::threads::{VectorRange, VectorSet};
use lockstep_nn::{
    Batch, Buffer, Capacity, Dims, LayerGradient, Layout, LossSum, Model, Optimizer, Precision,
    Replica, StateVector, Step, Targets, Threads, Update, UpdateChunk, zoo,
};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The state of a worker that trains alone: gradients are used as they are handed out.
struct Solo {
    state: StateVector,
    layout: Layout,
    threads: Threads,
    room: Buffer,
    /// The sum of the lanes so far.
    sum: VectorSet,
    longest: usize,
    lanes: usize,
    update: Update,
}

impl Replica for Solo {
    fn state(&self) -> &[f32] {
        self.state.values()
    }

    fn gradient(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        let ranges = &self.layout.chunks[chunks.clone()];
        let (update, count) = (self.update, self.lanes);
        let (room, longest) = (&mut self.room, self.longest);
        let sums = self.sum.ranges_mut(ranges);
        let each = |number, mut sum: VectorRange<'_>, room: &mut [f32], apply: UpdateChunk<'_>| {
            let chunk = chunks.start + number;
            for lane in lanes.clone() {
                match lane {
                    0 => gradient.write(lane, chunk, sum.part_mut(0)),
                    _ => gradient.add(lane, chunk, sum.part_mut(0), room),
                }
            }
            if lanes.end == count {
                apply(sum.part_mut(0), &update);
            }
        };
        (self.state).each_chunk(&self.threads, (room, longest), ranges, sums, each);
    }
}

/// A network in training, on numbers that mean nothing.
struct Training {
    model: Model,
    replica: Solo,
    pixels: Vec<f32>,
    labels: Vec<u32>,
    samples: Vec<u32>,
    lane_rows: Vec<Range<usize>>,
    sums: Vec<LossSum>,
    times: Vec<f64>,
}

impl Training {
    fn new(kind: &str, precision: Precision, [rows, threads, lanes]: [usize; 3]) -> Self {
        let (layers, input, classes) = match kind {
            "mlp" => (zoo::mlp(&[512, 512], 0.0, false, 10), Dims::vector(784), 10),
            "cnn" => (zoo::cifar_cnn(10), Dims::image(32, 32, 3), 10),
            "resnet18" => (zoo::resnet18(1000, false), Dims::image(224, 224, 3), 1000),
            "resnet18-small" => (zoo::resnet18(10, true), Dims::image(32, 32, 3), 10),
            other => panic!("{other} is none of mlp, cnn, resnet18, resnet18-small"),
        };
        let threads = Threads::with_threads(threads).expect("threads");
        let (capacity, rates) = (Capacity { rows, lanes }, Default::default());
        let model = Model::in_precision(precision, &rates, &threads, &layers, input, capacity)
            .expect("the network can be built");
        let layout = model.layout().clone();
        let longest = layout.chunks.iter().map(|chunk| chunk.len()).max();
        let longest = longest.unwrap_or(0);
        let sgd = Optimizer::Sgd {
            momentum: 0.9,
            nesterov: false,
            weight_decay: 0.0,
        };
        let pixel = |i: usize| (i * 7919 % 1009) as f32 / 1009.0;
        Self {
            pixels: (0..rows * input.len()).map(pixel).collect(),
            labels: (0..rows as u32).map(|i| i * 7 % classes).collect(),
            samples: (0..rows as u32).collect(),
            lane_rows: (0..lanes)
                .map(|lane| lane * rows / lanes..(lane + 1) * rows / lanes)
                .collect(),
            sums: vec![LossSum::default(); lanes],
            times: Vec::new(),
            replica: Solo {
                state: StateVector::new(&layout, &model.initial_state(0), 1),
                room: Buffer::zeros(threads.rooms(longest, layout.chunks.len())),
                sum: VectorSet::zeros(1, layout.len()),
                longest,
                update: sgd.at(0, 0.01),
                threads,
                layout,
                lanes,
            },
            model,
        }
    }

    fn step(&mut self) -> Duration {
        let start = Instant::now();
        let step = Step {
            seed: 0,
            number: self.times.len() as u64,
            samples: &self.samples,
            batch: self.samples.len(),
        };
        let batch = Batch {
            inputs: &self.pixels,
            targets: Targets::Classes(&self.labels),
        };
        let lanes = (&self.lane_rows[..], &mut self.sums[..]);
        self.model.gradients(&mut self.replica, batch, step, lanes);
        self.times.push(start.elapsed().as_secs_f64() * 1e3);
        start.elapsed()
    }

    /// Median and best time of a step in milliseconds, without the first two.
    fn times(&self) -> [f64; 2] {
        let mut times = self.times[2..].to_vec();
        times.sort_by(f64::total_cmp);
        [times[times.len() / 2], times[0]]
    }

    fn print(&self, kind: &str) {
        let values = self.replica.state.values().iter();
        let bits = values.fold(0u64, |hash, x| {
            hash.wrapping_mul(31).wrapping_add(x.to_bits().into())
        });
        let [median, best] = self.times();
        println!(
            "{kind} {} batch {}, {} threads, {} lanes: median {median:.2} ms best {best:.2} ms, workspace {} MiB, bits \
             {bits:016x}",
            self.model.precision().name(),
            self.samples.len(),
            self.replica.threads.count(),
            self.lane_rows.len(),
            self.model.workspace_bytes() >> 20,
        );
    }
}

/// Steps of each in a turn take at least so long.
const TURN: Duration = Duration::from_millis(500);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "cnn".to_owned());
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (rows, steps, threads, lanes) = (number(64), number(10), number(1), number(1));
    let precisions: &[Precision] = match arguments.next().as_deref() {
        Some("both") => &[Precision::F32, Precision::Fixed16],
        Some("fixed16") => &[Precision::Fixed16],
        _ => &[Precision::F32],
    };
    let new = |&precision| Training::new(&kind, precision, [rows, threads, lanes]);
    let mut trainings: Vec<Training> = precisions.iter().map(new).collect();
    let mut ratios = Vec::new();
    while trainings[0].times.len() < steps + 2 {
        let rates: Vec<f64> = trainings
            .iter_mut()
            .map(|training| {
                let (mut took, mut count) = (Duration::ZERO, 0);
                while took < TURN {
                    took += training.step();
                    count += 1;
                }
                f64::from(count) / took.as_secs_f64()
            })
            .collect();
        if let [f32, fixed16] = rates[..] {
            ratios.push(fixed16 / f32);
        }
    }
    trainings.iter().for_each(|training| training.print(&kind));
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!(
            "{kind} batch {rows}: fixed16 takes {median:.2} times as many steps, the median of {} turns",
            ratios.len()
        );
    }
}
