//! How long the convolutions and pools of two networks take on the GPU of this machine, kernel by kernel:
//!
//!     cargo run --release -p lockstep-cuda --example conv_speed [-- NAME [fixed16]]
//!
//! A NAME (`cifar` or `resnet`) leaves out the other network; `all` has both. `docs/decisions/0056-convolutions-on-a-gpu.md` says what each
//! of them may take.

use lockstep_cuda::{CudaError, Gpu, PassTime, TimedLayers, TimedPass};
use lockstep_nn::{
    BuiltLayer, Capacity, ConvolutionMethod, Dims, LayerRates, Layout, Model, NamedLayer,
    Operation, OperationChain, Precision, Threads, zoo,
};
use std::time::Duration;

fn main() {
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => return println!("nothing can be timed: {error}"),
    };
    println!("{}", gpu.facts().name);
    let only = std::env::args().nth(1).filter(|name| name != "all");
    let precision = match std::env::args().nth(2) {
        Some(_) => Precision::Fixed16,
        None => Precision::F32,
    };
    let networks = [
        (
            "cifar",
            zoo::cifar_cnn(10),
            Dims::image(32, 32, 3),
            [128, 512],
        ),
        (
            "resnet",
            zoo::resnet18(1000, false),
            Dims::image(224, 224, 3),
            [64, 256],
        ),
    ];
    for (name, layers, input, batches) in networks {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for batch in batches {
            println!(
                "\n{name}, a batch of {batch}, {}; microseconds",
                precision.name()
            );
            if let Err(error) = network(&gpu, (precision, &layers), input, batch) {
                println!("{error}");
            }
        }
    }
}

/// A layer of a network, and how often it has one of these shapes.
struct Shape {
    input: Dims,
    layer: BuiltLayer,
    count: usize,
    /// Whether nothing that learns is below.
    is_first: bool,
}

/// Times the layers of a network.
fn network(
    gpu: &Gpu,
    (precision, layers): (Precision, &[NamedLayer]),
    input: Dims,
    batch: usize,
) -> Result<(), CudaError> {
    let (rates, threads) = (LayerRates::default(), Threads::default());
    let capacity = Capacity { rows: 1, lanes: 1 };
    let model = Model::in_precision(precision, &rates, &threads, layers, input, capacity);
    let model = model.expect("a network that can be built");
    let mut shapes = Vec::new();
    collect(&model.operations(), true, &mut shapes);
    println!(
        "{:<34} {:>2} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7}",
        "layer", "", "forward", "dx", "dw", "both", "all", "floor"
    );
    let mut sums = [0.0; 2];
    for shape in &shapes {
        let times = shape.time(gpu, model.layout(), batch)?;
        let all = shape.count as f64 * (times.forward + times.both);
        let floor = shape.count as f64 * shape.floor(batch);
        println!(
            "{:<34} {:>2} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {all:>9.1} {floor:>7.1}",
            shape.name(),
            shape.count,
            times.forward,
            times.dx,
            times.dw,
            times.both,
        );
        for line in times.kernels {
            println!("    {line}");
        }
        sums = [sums[0] + all, sums[1] + floor];
    }
    println!("{:>80.1} {:>7.1}", sums[0], sums[1]);
    Ok(())
}

/// Finds convolutions and pools, those inside of other layers too.
fn collect(chain: &OperationChain, is_bottom: bool, shapes: &mut Vec<Shape>) {
    let mut input = chain.input;
    for (i, layer) in chain.layers.iter().enumerate() {
        let is_first = is_bottom && i == 0;
        match &layer.operation {
            Operation::Convolution { .. } | Operation::MaxPool { .. } => {
                let known = shapes.iter_mut().find(|known| {
                    known.input == input && known.is_first == is_first && known.is_alike(layer)
                });
                match known {
                    Some(known) => known.count += 1,
                    None => shapes.push(Shape {
                        input,
                        layer: layer.clone(),
                        count: 1,
                        is_first,
                    }),
                }
            }
            Operation::Residual { body, shortcut } => {
                collect(body, is_first, shapes);
                shortcut
                    .iter()
                    .for_each(|chain| collect(chain, is_first, shapes));
            }
            _ => {}
        }
        input = layer.output;
    }
}

/// Microseconds of a layer.
struct Times {
    forward: f64,
    dx: f64,
    dw: f64,
    both: f64,
    kernels: Vec<String>,
}

fn microseconds(time: Duration) -> f64 {
    1e6 * time.as_secs_f64()
}

impl Shape {
    /// Whether another layer does the same, with other parameters.
    fn is_alike(&self, other: &BuiltLayer) -> bool {
        let alike = |layer: &BuiltLayer| match &layer.operation {
            Operation::Convolution {
                method,
                window,
                input,
                output,
                bias,
                ..
            } => Some((Some((*method, *output, bias.is_some())), *window, *input)),
            Operation::MaxPool { window, input } => Some((None, *window, *input)),
            _ => None,
        };
        alike(&self.layer) == alike(other)
    }

    fn name(&self) -> String {
        let input = self.input;
        match &self.layer.operation {
            Operation::Convolution {
                method,
                window,
                output,
                ..
            } => {
                let [height, width] = window.kernel;
                format!(
                    "{input} -> {}, {height} x {width} / {}, {}",
                    output.channels,
                    window.stride[0],
                    format!("{method:?}").to_lowercase(),
                )
            }
            _ => format!("{input}, pool"),
        }
    }

    fn time(&self, gpu: &Gpu, layout: &Layout, batch: usize) -> Result<Times, CudaError> {
        let chain = OperationChain {
            input: self.input,
            layers: vec![self.layer.clone()],
            first_trained: Some(0),
        };
        let timed = TimedLayers::new(gpu, &chain, layout, &[batch])?;
        let forward = timed.time(TimedPass::Forward)?;
        let weights = timed.time(TimedPass::WeightGradient)?;
        let both = match self.is_first {
            true => weights.clone(),
            false => timed.time(TimedPass::Backward)?,
        };
        let dx = match self.is_first {
            true => 0.0,
            false => microseconds(timed.time(TimedPass::InputGradient)?.whole),
        };
        Ok(Times {
            forward: microseconds(forward.whole),
            dx,
            dw: microseconds(weights.whole),
            both: microseconds(both.whole),
            kernels: [&forward, &both].map(kernels).into_iter().collect(),
        })
    }

    /// Microseconds that forward and both gradients take at the least: for the arithmetic on an H200 or, if that is more,
    /// for what goes through its memory.
    fn floor(&self, batch: usize) -> f64 {
        /// Multiplications and additions a microsecond, and bytes a microsecond: what can be reached.
        const FLOPS: f64 = 60e6;
        const FIXED16_FLOPS: f64 = 330e6;
        const BYTES: f64 = 4.0e6;
        let Operation::Convolution {
            method,
            window,
            output,
            ..
        } = &self.layer.operation
        else {
            let numbers = self.input.len() + self.layer.output.len();
            return 2.0 * 4.0 * (batch * numbers) as f64 / BYTES;
        };
        let numbers = |dims: Dims| (batch * dims.len()) as f64;
        let (x, y) = (numbers(self.input), numbers(*output));
        let channels = (self.input.channels * output.channels) as f64;
        let passes = if self.is_first { 2.0 } else { 3.0 };
        let (products, planes) = match method {
            ConvolutionMethod::Winograd => {
                let tiles = output.height.div_ceil(4) * output.width.div_ceil(4);
                let tiles = (36 * batch * tiles) as f64;
                let planes = |dims: Dims| tiles * dims.channels as f64;
                (tiles * channels, planes(self.input) + planes(*output))
            }
            ConvolutionMethod::Direct
            | ConvolutionMethod::Fixed16
            | ConvolutionMethod::Grouped { .. } => {
                let area = (window.kernel[0] * window.kernel[1]) as f64;
                (y / output.channels as f64 * area * channels, 0.0)
            }
        };
        let flops = passes * 2.0 * products;
        // What comes in and goes out of every pass, and planes that are written and read.
        let bytes = 4.0 * passes * (x + y + 2.0 * planes);
        let rate = match method {
            ConvolutionMethod::Fixed16 => FIXED16_FLOPS,
            _ => FLOPS,
        };
        f64::max(flops / rate, bytes / BYTES)
    }
}

/// The kernels of a pass, in a line.
fn kernels(pass: &PassTime) -> String {
    let kernels = pass.kernels.iter().map(|kernel| {
        let time = microseconds(kernel.time);
        let blocks = kernel.blocks.map(u64::from).iter().product::<u64>();
        format!("{} {time:.1} ({blocks} blocks)", kernel.kernel)
    });
    kernels.collect::<Vec<_>>().join(", ")
}
