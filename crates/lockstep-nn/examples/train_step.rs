//! Times training steps of the named networks on synthetic numbers, with a batch, so many steps and threads, and so many
//! lanes: `cargo run --release -p lockstep-nn --example train_step -- cnn 64 20 2 1`.

use lockstep_nn::threads::{VectorRange, VectorSet};
use lockstep_nn::{
    Batch, Buffer, Capacity, Dims, LayerGradient, Layout, LossSum, Model, Optimizer, Replica,
    StateVector, Step, Targets, Threads, Update, UpdateChunk, zoo,
};
use std::ops::Range;
use std::time::Instant;

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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "cnn".to_owned());
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (rows, steps, threads, lanes) = (number(64), number(10), number(1), number(1));
    let (layers, input, classes) = match kind.as_str() {
        "mlp" => (zoo::mlp(&[512, 512], 0.0, false, 10), Dims::vector(784), 10),
        "cnn" => (zoo::cifar_cnn(10), Dims::image(32, 32, 3), 10),
        "resnet18" => (zoo::resnet18(1000, false), Dims::image(224, 224, 3), 1000),
        "resnet18-small" => (zoo::resnet18(10, true), Dims::image(32, 32, 3), 10),
        other => panic!("{other} is none of mlp, cnn, resnet18, resnet18-small"),
    };
    let threads = Threads::with_threads(threads).expect("threads");
    let capacity = Capacity { rows, lanes };
    let mut model = Model::with_rates(&Default::default(), &threads, &layers, input, capacity)
        .expect("the network can be built");
    let layout = model.layout().clone();
    let pixels: Vec<f32> = (0..rows * input.len())
        .map(|i| (i * 7919 % 1009) as f32 / 1009.0)
        .collect();
    let labels: Vec<u32> = (0..rows as u32).map(|i| i * 7 % classes).collect();
    let samples: Vec<u32> = (0..rows as u32).collect();
    let lane_rows: Vec<Range<usize>> = (0..lanes)
        .map(|lane| lane * rows / lanes..(lane + 1) * rows / lanes)
        .collect();
    let sgd = Optimizer::Sgd {
        momentum: 0.9,
        nesterov: false,
        weight_decay: 0.0,
    };
    let longest = layout.chunks.iter().map(|chunk| chunk.len()).max();
    let longest = longest.unwrap_or(0);
    let mut replica = Solo {
        state: StateVector::new(&layout, &model.initial_state(0), 1),
        room: Buffer::zeros(threads.rooms(longest, layout.chunks.len())),
        sum: VectorSet::zeros(1, layout.len()),
        longest,
        update: sgd.at(0, 0.01),
        threads,
        layout,
        lanes,
    };
    let mut sums = vec![LossSum::default(); lanes];
    let mut times: Vec<f64> = (0..steps as u64 + 2)
        .map(|number| {
            let start = Instant::now();
            let step = Step {
                seed: 0,
                number,
                samples: &samples,
                batch: rows,
            };
            let batch = Batch {
                inputs: &pixels,
                targets: Targets::Classes(&labels),
            };
            model.gradients(&mut replica, batch, step, (&lane_rows, &mut sums));
            start.elapsed().as_secs_f64() * 1e3
        })
        .skip(2)
        .collect();
    times.sort_by(f64::total_cmp);
    let values = replica.state.values().iter();
    let bits = values.fold(0u64, |hash, x| {
        hash.wrapping_mul(31).wrapping_add(x.to_bits().into())
    });
    println!(
        "{kind} batch {rows}, {} threads, {lanes} lanes: median {:.2} ms best {:.2} ms, workspace {} MiB, bits {bits:016x}",
        replica.threads.count(),
        times[times.len() / 2],
        times[0],
        model.workspace_bytes() >> 20,
    );
}
