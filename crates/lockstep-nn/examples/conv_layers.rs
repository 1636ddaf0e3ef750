//! Times every layer of a named network alone, forward and backward, on synthetic pixels:
//! `cargo run --release -p lockstep-nn --example conv_layers -- resnet18 16`.

use lockstep_nn::{Batch, Collect, Dims, LayerSpec, Model, NamedLayer, Step, Targets, layers, zoo};
use std::time::Instant;

/// Times a layer between a ReLU, so that its input has a gradient too, and a pool. Returns milliseconds
/// and the shape of its output.
fn time(layer: &NamedLayer, input: Dims, rows: usize) -> (f64, Dims) {
    let layers = [
        NamedLayer::new("before", LayerSpec::Relu),
        layer.clone(),
        NamedLayer::new("pool", LayerSpec::GlobalPool),
        NamedLayer::new("last", LayerSpec::Linear(layers::Linear { out: 2 })),
    ];
    let mut model = Model::new(&layers, input, rows).expect("a layer that can be built");
    let layout = model.layout().clone();
    let state = model.initial_state(0);
    let pixels: Vec<f32> = (0..rows * input.len())
        .map(|i| (i * 7919 % 1009) as f32 / 1009.0)
        .collect();
    let labels = vec![1; rows];
    let samples: Vec<u32> = (0..rows as u32).collect();
    let mut collect = Collect::new(&state, &layout);
    let mut step = || {
        let start = Instant::now();
        let batch = Batch {
            inputs: &pixels,
            targets: Targets::Classes(&labels),
        };
        let step = Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: rows,
        };
        model.gradient(&mut collect, batch, step);
        start.elapsed().as_secs_f64() * 1e3
    };
    let best = (0..5).map(|_| step()).fold(f64::MAX, f64::min);
    (best, model.summary()[1].output)
}

/// Times layers in a row and returns the shape of the last one's output.
fn walk(layers: &[NamedLayer], mut input: Dims, rows: usize) -> Dims {
    for layer in layers {
        if let LayerSpec::Residual(layers::Residual { body, shortcut }) = &layer.spec {
            let output = walk(body, input, rows);
            walk(shortcut, input, rows);
            input = output;
            continue;
        }
        let (time, output) = time(layer, input, rows);
        let gigaflops = match layer.spec {
            LayerSpec::Conv2d(layers::Conv2d { kernel, .. }) => {
                let window = kernel[0] * kernel[1] * input.channels;
                6.0 * (rows * output.len() * window) as f64 / 1e6 / time
            }
            _ => 0.0,
        };
        println!(
            "{:22} {:>14} -> {:14} {time:8.2} ms {gigaflops:6.0} GFLOP/s",
            layer.name,
            input.to_string(),
            output.to_string()
        );
        input = output;
    }
    input
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "cnn".to_owned());
    let rows = arguments
        .next()
        .map_or(64, |text| text.parse().expect("rows"));
    let (layers, side) = match kind.as_str() {
        "cnn" => (zoo::cifar_cnn(10), 32),
        "resnet18" => (zoo::resnet18(1000, false), 224),
        other => panic!("{other} is none of cnn, resnet18"),
    };
    let input = Dims {
        height: side,
        width: side,
        channels: 3,
    };
    walk(&layers, input, rows);
}
