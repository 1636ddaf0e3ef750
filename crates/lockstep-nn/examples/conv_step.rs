//! Times training steps of the named networks on synthetic pixels:
//! `cargo run --release -p lockstep-nn --example conv_step -- cnn 64 20`.

use lockstep_nn::{Batch, Buffer, Collect, Dims, Model, Optimizer, Step, Targets, zoo};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "cnn".to_owned());
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (rows, steps) = (number(64), number(10));
    let (layers, side, classes) = match kind.as_str() {
        "cnn" => (zoo::cifar_cnn(10), 32, 10),
        "resnet18" => (zoo::resnet18(1000, false), 224, 1000),
        "resnet18-small" => (zoo::resnet18(10, true), 32, 10),
        other => panic!("{other} is none of cnn, resnet18, resnet18-small"),
    };
    let input = Dims {
        height: side,
        width: side,
        channels: 3,
    };
    let mut model = Model::new(&layers, input, rows).expect("the network can be built");
    let layout = model.layout().clone();
    let mut state = Buffer::from(&model.initial_state(0)[..]);
    let mut velocity = Buffer::zeros(layout.parameters);
    let pixels: Vec<f32> = (0..rows * input.len())
        .map(|i| (i * 7919 % 1009) as f32 / 1009.0)
        .collect();
    let labels: Vec<u32> = (0..rows as u32).map(|i| i * 7 % classes).collect();
    let samples: Vec<u32> = (0..rows as u32).collect();
    let sgd = Optimizer::Sgd {
        momentum: 0.9,
        nesterov: false,
        weight_decay: 0.0,
    };
    let mut gradient = Vec::new();
    let mut times: Vec<f64> = (0..steps as u64 + 2)
        .map(|number| {
            let start = Instant::now();
            let mut collect = Collect::reusing(&state, &layout, std::mem::take(&mut gradient));
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
            model.gradient(&mut collect, batch, step);
            gradient = collect.gradient;
            let parameters = &mut state[..layout.parameters];
            let update = sgd.at(number, 0.01);
            update.apply(
                parameters,
                &gradient[..layout.parameters],
                [&mut velocity, &mut []],
            );
            start.elapsed().as_secs_f64() * 1e3
        })
        .skip(2)
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "ours  {kind} batch {rows}: median {:.1} ms best {:.1} ms, workspace {} MiB",
        times[times.len() / 2],
        times[0],
        model.workspace_bytes() >> 20,
    );
}
