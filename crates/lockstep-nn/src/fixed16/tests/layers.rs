//! Layers against their definition in plain integers: the output, and both gradients, to the bit.

use super::{exponent, output, slices};
use crate::dims::Dims;
use crate::fixed16::{Fixed16Conv2d, Fixed16Linear};
use crate::layers::window::Window;
use crate::layers::{Layer, Pass, Step};
use crate::layout::Layout;
use crate::replica::{LayerGradient, Replica};
use crate::threads::Threads;
use lockstep_base::random::Stream;
use std::ops::Range;

/// Rows of the lanes.
const LANES: [Range<usize>; 2] = [0..3, 3..5];
const ROWS: usize = 5;

/// Numbers of very different sizes.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut stream = Stream::new(seed, 3);
    let mut number = || (stream.unit_f32() - 0.5) * (8.0 * stream.unit_f32() - 4.0).exp();
    (0..count).map(|_| number()).collect()
}

/// Keeps the gradients of all lanes.
struct Lanes<'a> {
    state: &'a [f32],
    chunks: &'a [Range<usize>],
    gradients: Vec<Vec<f32>>,
}

impl Replica for Lanes<'_> {
    fn state(&self) -> &[f32] {
        self.state
    }

    fn gradient(&mut self, lanes: Range<usize>, chunks: Range<usize>, all: &dyn LayerGradient) {
        for lane in lanes {
            for chunk in chunks.clone() {
                let range = self.chunks[chunk].clone();
                all.write(lane, chunk, &mut self.gradients[lane][range]);
            }
        }
    }
}

/// What a layer computes: its output in training and in an evaluation, and its gradients.
struct Found {
    y: Vec<f32>,
    evaluated: Vec<f32>,
    dx: Vec<f32>,
    gradients: Vec<Vec<f32>>,
}

fn run(
    layer: &mut dyn Layer,
    layout: &Layout,
    state: &[f32],
    (x, dy): (&[f32], &[f32]),
    threads: usize,
) -> Found {
    let threads = Threads::with_threads(threads).unwrap();
    let samples = [0; ROWS];
    let training = Pass {
        threads: &threads,
        step: Some(Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: ROWS,
        }),
        lanes: &LANES,
    };
    let mut scratch = vec![f32::NAN; layer.scratch(&threads, ROWS) + 16];
    let aligned = scratch.as_ptr().align_offset(64);
    let scratch = &mut scratch[aligned..];
    let mut found = Found {
        y: vec![f32::NAN; dy.len()],
        evaluated: vec![f32::NAN; dy.len()],
        dx: vec![f32::NAN; x.len()],
        gradients: Vec::new(),
    };
    let evaluation = Pass::evaluation(&threads);
    layer.forward(evaluation, state, x, &mut found.evaluated, scratch);
    layer.forward(training, state, x, &mut found.y, scratch);
    scratch.fill(f32::NAN);
    let mut replica = Lanes {
        state,
        chunks: &layout.chunks,
        gradients: vec![vec![f32::NAN; layout.len()]; LANES.len()],
    };
    let dx = Some(&mut found.dx[..]);
    layer.backward(training, &mut replica, x, &mut dy.to_vec(), dx, scratch);
    found.gradients = replica.gradients;
    found
}

/// A convolution by its definition.
struct Reference {
    input: Dims,
    output: Dims,
    window: Window,
}

impl Reference {
    /// Calls `visit` with every pixel of an image of the output, the place of the kernel, and the pixel of the input
    /// that is there.
    fn visit(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [vertical, horizontal] = self.window.axes(self.input);
        for (y, x) in
            (0..self.output.pixels()).map(|i| (i / self.output.width, i % self.output.width))
        {
            for (down, right) in (0..self.window.area())
                .map(|i| (i / self.window.kernel[1], i % self.window.kernel[1]))
            {
                if let (Some(line), Some(column)) =
                    (vertical.pixel(y, down), horizontal.pixel(x, right))
                {
                    let place = down * self.window.kernel[1] + right;
                    visit(
                        y * self.output.width + x,
                        place,
                        line * self.input.width + column,
                    );
                }
            }
        }
    }

    /// Outputs as sums of products of which each has a number of both operands, by their places.
    fn sums(
        products: &[Vec<(usize, usize)>],
        (a, b): (&[f32], &[f32]),
        (ea, eb): (Option<i32>, Option<i32>),
    ) -> Vec<f32> {
        let (ea, eb) = (ea.unwrap(), eb.unwrap());
        let of_products = |places: &Vec<(usize, usize)>| {
            let of_a = places.iter().map(|&(at, _)| slices(a[at], ea));
            let of_b = places.iter().map(|&(_, at)| slices(b[at], eb));
            output(of_a, of_b, [ea, eb])
        };
        products.iter().map(of_products).collect()
    }

    /// The numbers that are multiplied for each output of an image, for each number of its input, and for each number of
    /// the kernels: places in the first operand and in the second.
    fn products(&self) -> [Vec<Vec<(usize, usize)>>; 3] {
        let (inputs, outputs) = (self.input.channels, self.output.channels);
        let mut all = [
            vec![vec![]; self.output.len()],
            vec![vec![]; self.input.len()],
            vec![vec![]; self.window.area() * inputs * outputs],
        ];
        self.visit(|to, place, from| {
            for i in 0..inputs {
                for o in 0..outputs {
                    let (x, y) = (from * inputs + i, to * outputs + o);
                    let w = (place * inputs + i) * outputs + o;
                    all[0][y].push((x, w));
                    all[1][x].push((y, w));
                    all[2][w].push((x, y));
                }
            }
        });
        all
    }

    fn check(&self, layer: &mut dyn Layer, layout: &Layout, weights: &[usize], name: &str) {
        let state = numbers(1, layout.len());
        let (input, output) = (self.input.len(), self.output.len());
        let (x, dy) = (numbers(2, ROWS * input), numbers(3, ROWS * output));
        // The kernels in the order of the definition.
        let kernels: Vec<f32> = weights.iter().map(|&at| state[at]).collect();
        let bias = &state[weights.len()..];
        let [forward, back, by_weights] = self.products();
        let ew = exponent(&kernels);
        let image =
            |x: &[f32], row: usize, length: usize| x[row * length..(row + 1) * length].to_vec();
        let with_bias = |sums: Vec<f32>| -> Vec<f32> {
            let channels = self.output.channels;
            sums.iter()
                .enumerate()
                .map(|(i, y)| y + bias[i % channels])
                .collect()
        };
        for threads in [1, 3] {
            let found = run(layer, layout, &state, (&x, &dy), threads);
            for (lane, rows) in LANES.iter().enumerate() {
                let of =
                    |x: &[f32], length: usize| x[rows.start * length..rows.end * length].to_vec();
                let (lane_x, lane_dy) = (of(&x, input), of(&dy, output));
                let (ex, edy) = (exponent(&lane_x), exponent(&lane_dy));
                for row in rows.clone() {
                    let (x, dy) = (image(&x, row, input), image(&dy, row, output));
                    let own = exponent(&x);
                    let same = |what: &str, found: &[f32], expected: Vec<f32>| {
                        let are_equal = found
                            .iter()
                            .zip(&expected)
                            .position(|(a, b)| a.to_bits() != b.to_bits());
                        assert_eq!(
                            are_equal, None,
                            "{name}: {what} of row {row} on {threads} threads"
                        );
                    };
                    let evaluated = Self::sums(&forward, (&x, &kernels), (own, ew));
                    same(
                        "evaluation",
                        &image(&found.evaluated, row, output),
                        with_bias(evaluated),
                    );
                    let y = Self::sums(&forward, (&x, &kernels), (ex, ew));
                    same("output", &image(&found.y, row, output), with_bias(y));
                    let dx = Self::sums(&back, (&dy, &kernels), (edy, ew));
                    same("input gradient", &image(&found.dx, row, input), dx);
                }
                // One sum over all images of the lane.
                let all: Vec<Vec<(usize, usize)>> = by_weights
                    .iter()
                    .map(|places| {
                        let images = 0..rows.len();
                        let of_image = |i: usize| {
                            places
                                .iter()
                                .map(move |&(x, y)| (i * input + x, i * output + y))
                        };
                        images.flat_map(of_image).collect()
                    })
                    .collect();
                let expected = Self::sums(&all, (&lane_x, &lane_dy), (ex, edy));
                for (&at, expected) in weights.iter().zip(expected) {
                    let found = found.gradients[lane][at];
                    assert_eq!(
                        found.to_bits(),
                        expected.to_bits(),
                        "{name}: weight {at} on {threads} threads"
                    );
                }
                // The bias is summed in single precision.
                for (channel, &found) in found.gradients[lane][weights.len()..].iter().enumerate() {
                    let sum: f64 = lane_dy
                        .iter()
                        .skip(channel)
                        .step_by(self.output.channels)
                        .map(|&x| f64::from(x))
                        .sum();
                    assert!(
                        (f64::from(found) - sum).abs() < 1e-3,
                        "{name}: bias {channel}"
                    );
                }
            }
        }
    }
}

#[test]
fn dense_layers_have_the_bits_of_plain_integers() {
    for (inputs, outputs) in [(1, 1), (5, 4), (70, 33), (130, 100), (2100, 20)] {
        let mut layout = Layout::default();
        let mut layer = Fixed16Linear::new("l", (inputs, outputs), (ROWS, 2), &mut layout);
        let [input, output] = [inputs, outputs].map(Dims::vector);
        let window = Window {
            kernel: [1; 2],
            stride: [1; 2],
            padding: [0; 2],
        };
        let reference = Reference {
            input,
            output,
            window,
        };
        // Weights lie in panels.
        let numbers: Vec<usize> = (0..inputs * outputs).collect();
        let theirs = layout.tensors[0].to_torch(&numbers);
        let place = |i: usize| theirs[i % outputs * inputs + i / outputs];
        let weights: Vec<usize> = numbers.iter().map(|&i| place(i)).collect();
        reference.check(
            &mut layer,
            &layout,
            &weights,
            &format!("{inputs} x {outputs}"),
        );
    }
}

#[test]
fn convolutions_have_the_bits_of_plain_integers() {
    for (height, width, inputs, outputs, kernel, stride, padding) in [
        (5, 4, 3, 4, [3, 3], [1, 1], [1, 1]),
        (6, 7, 16, 33, [3, 3], [1, 1], [0, 0]),
        (7, 5, 2, 40, [5, 4], [2, 3], [2, 1]),
        (9, 9, 3, 8, [7, 7], [2, 2], [3, 3]),
        (4, 4, 70, 65, [1, 1], [1, 1], [0, 0]),
        // Deeper than is multiplied at a time, and more rows.
        (4, 5, 70, 20, [3, 3], [1, 1], [1, 1]),
        (3, 3, 150, 3, [2, 2], [2, 1], [1, 1]),
        // The windows leave pixels out.
        (5, 6, 20, 9, [1, 1], [2, 2], [0, 0]),
        (7, 7, 4, 5, [2, 2], [3, 3], [0, 0]),
        (1, 20, 5, 6, [1, 3], [1, 2], [0, 1]),
        // A margin wider than the kernel.
        (2, 3, 3, 3, [2, 2], [1, 1], [3, 2]),
        // More pixels than are multiplied together.
        (11, 11, 3, 40, [2, 2], [1, 1], [1, 1]),
        (11, 11, 16, 40, [2, 2], [1, 1], [1, 1]),
    ] {
        let mut layout = Layout::default();
        let input = Dims::image(height, width, inputs);
        let window = Window {
            kernel,
            stride,
            padding,
        };
        let output = Dims {
            channels: outputs,
            ..window.output(input).unwrap()
        };
        let most = (ROWS, LANES.len());
        let mut layer = Fixed16Conv2d::new("c", (input, output), window, true, most, &mut layout);
        let reference = Reference {
            input,
            output,
            window,
        };
        let weights: Vec<usize> = (0..window.area() * inputs * outputs).collect();
        let name = format!("{input} to {output}, {window:?}");
        reference.check(&mut layer, &layout, &weights, &name);
    }
}
