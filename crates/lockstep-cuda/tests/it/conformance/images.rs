//! Networks of images: convolutions by all methods, and pools.

use super::cases::Case;
use lockstep_base::random::Stream;
use lockstep_cuda::InputPlace;
use lockstep_nn::{Dims, LayerSpec, NamedLayer, Window, layers};

/// Networks that are drawn.
const RANDOM: u64 = 8;

/// A convolution of windows of `kernel`, `stride` and `padding`.
pub(super) fn convolution(
    out: usize,
    window: [[usize; 2]; 3],
    groups: usize,
    bias: bool,
) -> LayerSpec {
    let [kernel, stride, padding] = window;
    LayerSpec::Conv2d(layers::Conv2d {
        out,
        kernel,
        stride,
        padding,
        groups,
        bias,
    })
}

/// 3 x 3 windows that move by one pixel.
pub(super) fn winograd(out: usize, padding: [usize; 2], bias: bool) -> LayerSpec {
    convolution(out, [[3, 3], [1, 1], padding], 1, bias)
}

/// A case of images that ends with a mean of the image, and a dense layer.
fn case(
    name: &str,
    input: [usize; 3],
    rows: usize,
    specs: impl IntoIterator<Item = LayerSpec>,
) -> Case {
    let linear = LayerSpec::Linear(layers::Linear { out: 3 });
    let layers = specs.into_iter().chain([LayerSpec::GlobalPool, linear]);
    let [height, width, channels] = input;
    let input = Dims::image(height, width, channels);
    Case::new(name, NamedLayer::stack(layers), input, rows)
}

/// All cases.
pub(super) fn cases() -> Vec<Case> {
    let mut all = by_winograd();
    all.extend(direct());
    all.push(left_out());
    all.extend(grouped());
    all.extend(pools());
    all.extend(special_numbers());
    all.push(seen_there());
    all.extend((0..RANDOM).map(random));
    all
}

/// Images that lie on the device as they are stored.
fn seen_there() -> Case {
    let layers = [winograd(4, [1, 1], true), LayerSpec::Flatten];
    Case {
        place: InputPlace::Images,
        ..case("images that lie there", [7, 5, 3], 6, layers)
    }
}

/// Winograd's method: tiles that are whole, cut and mostly outside; margins of all widths; tiles of products of all sizes.
fn by_winograd() -> Vec<Case> {
    let relu = LayerSpec::Relu;
    vec![
        case(
            "whole tiles",
            [16, 16, 16],
            7,
            [
                winograd(32, [1, 1], true),
                relu.clone(),
                winograd(16, [1, 1], false),
            ],
        )
        .in_batches(3, 2),
        case(
            "cut tiles and all margins",
            [6, 5, 16],
            6,
            [
                winograd(48, [2, 0], true),
                relu.clone(),
                winograd(16, [0, 2], true),
                relu.clone(),
                winograd(16, [1, 1], false),
            ],
        )
        .in_batches(5, 3),
        case(
            "an image of one pixel",
            [1, 1, 16],
            3,
            [winograd(16, [1, 1], true), winograd(16, [1, 1], true)],
        ),
        // Enough products for the largest tiles.
        case(
            "lanes of one row",
            [16, 17, 64],
            16,
            [winograd(64, [1, 1], true)],
        )
        .in_batches(16, 16),
        case(
            "many channels",
            [8, 17, 64],
            4,
            [
                winograd(64, [1, 1], true),
                relu,
                winograd(128, [1, 1], true),
            ],
        ),
    ]
}

/// Window by window: kernels, strides and margins of all sizes, channels that come in fours and others.
fn direct() -> Vec<Case> {
    let relu = LayerSpec::Relu;
    vec![
        case(
            "a stem and steps of two",
            [17, 15, 3],
            7,
            [
                convolution(20, [[7, 7], [2, 2], [3, 3]], 1, false),
                relu.clone(),
                convolution(36, [[3, 3], [2, 2], [1, 1]], 1, true),
                relu.clone(),
                convolution(40, [[1, 1], [2, 2], [0, 0]], 1, false),
            ],
        )
        .in_batches(5, 2),
        case(
            "odd channels and windows",
            [9, 8, 5],
            5,
            [
                convolution(7, [[3, 2], [1, 2], [0, 1]], 1, true),
                relu.clone(),
                convolution(6, [[2, 5], [3, 1], [1, 2]], 1, true),
                convolution(70, [[1, 1], [1, 1], [0, 0]], 1, true),
                convolution(9, [[1, 1], [1, 1], [1, 1]], 1, false),
            ],
        )
        .in_batches(3, 3),
        case(
            "steps over pixels that no window has",
            [8, 9, 4],
            4,
            [
                convolution(8, [[2, 3], [3, 4], [0, 0]], 1, true),
                convolution(33, [[1, 2], [2, 1], [0, 1]], 1, false),
            ],
        ),
        case(
            "a large kernel",
            [1, 1, 700],
            41,
            [convolution(800, [[1, 1], [1, 1], [0, 0]], 1, false)],
        )
        .in_batches(41, 2),
        case(
            "groups of images",
            [20, 20, 3],
            11,
            [
                convolution(5, [[3, 3], [1, 1], [1, 1]], 1, true),
                relu,
                convolution(6, [[4, 4], [1, 1], [0, 0]], 1, true),
            ],
        )
        .in_batches(11, 2),
    ]
}

/// A kernel that is infinite at its first place. There is no window over the last lines and columns of an image in which
/// they are at that place: so the gradient by them is finite, since what is left out is not multiplied by 0.
fn left_out() -> Case {
    let linear = |out| LayerSpec::Linear(layers::Linear { out });
    let shape = Dims::image(5, 6, 1);
    let layers = NamedLayer::stack([
        linear(shape.len()),
        LayerSpec::Relu,
        LayerSpec::Unflatten(layers::Unflatten { shape }),
        convolution(20, [[3, 3], [1, 1], [0, 0]], 1, true),
        LayerSpec::Relu,
        LayerSpec::GlobalPool,
        linear(3),
    ]);
    let mut case = Case::new("places without a window", layers, Dims::vector(4), 3);
    let model = case.model(1);
    let range = |name: &str| {
        let mut tensors = model.layout().tensors.iter();
        let tensor = tensors.find(|tensor| tensor.name == name);
        tensor.expect("a tensor of this name").range.clone()
    };
    // All pixels are positive, so that the outputs of the infinite weights are 0 after the ReLU.
    case.values[range("layers.0.bias")].fill(5.0);
    let kernels = range("layers.3.weight");
    for output in [2, 17] {
        case.values[kernels.start + output] = f32::NEG_INFINITY;
    }
    case
}

/// Groups of one channel and of several, and sequences.
fn grouped() -> Vec<Case> {
    let relu = LayerSpec::Relu;
    let sequence = |out, kernel, stride, padding, groups| {
        LayerSpec::Conv1d(layers::Conv1d {
            out,
            kernel,
            stride,
            padding,
            groups,
            bias: true,
        })
    };
    vec![
        case(
            "depthwise and grouped windows",
            [7, 6, 8],
            7,
            [
                convolution(8, [[3, 3], [1, 1], [1, 1]], 8, true),
                relu.clone(),
                convolution(12, [[3, 2], [2, 1], [1, 0]], 4, true),
                relu.clone(),
                convolution(6, [[1, 2], [1, 2], [0, 1]], 3, false),
                convolution(6, [[3, 3], [2, 2], [1, 1]], 6, false),
            ],
        )
        .in_batches(5, 3),
        // The gradients of few images are kept at a time.
        case(
            "large groups",
            [1, 2, 512],
            5,
            [convolution(1536, [[1, 2], [1, 1], [0, 0]], 2, true)],
        )
        .in_batches(5, 2),
        case(
            "sequences",
            [1, 19, 4],
            5,
            [
                sequence(6, 5, 2, 2, 1),
                relu,
                sequence(6, 3, 1, 1, 3),
                LayerSpec::MaxPool1d(layers::MaxPool1d {
                    kernel: 3,
                    stride: 2,
                }),
                LayerSpec::AvgPool1d(layers::AvgPool1d {
                    kernel: 2,
                    stride: 1,
                }),
            ],
        )
        .in_batches(4, 2),
    ]
}

/// Pools of windows that overlap, leave gaps and go beyond the image; ties, NaN and what is pointwise after them.
fn pools() -> Vec<Case> {
    let dropout = || LayerSpec::Dropout(layers::Dropout { p: 0.3 });
    let max = |kernel, stride, padding| {
        LayerSpec::MaxPool(layers::MaxPool {
            kernel,
            stride,
            padding,
        })
    };
    let mean = |kernel, stride, padding| {
        LayerSpec::AvgPool(layers::AvgPool {
            kernel,
            stride,
            padding,
        })
    };
    let network = |channels| {
        vec![
            convolution(channels, [[1, 1], [1, 1], [0, 0]], 1, true),
            LayerSpec::Relu,
            max([3, 3], [2, 2], [1, 1]),
            dropout(),
            mean([2, 3], [1, 2], [1, 1]),
            LayerSpec::Relu,
            max([1, 2], [2, 2], [0, 1]),
            mean([2, 1], [2, 1], [0, 0]),
            dropout(),
        ]
    };
    vec![
        case("pools of fours", [13, 11, 3], 5, network(8)).in_batches(3, 2),
        case("pools of ones", [12, 14, 2], 5, network(7)).in_batches(4, 3),
        with(
            &[f32::NAN, 1.0],
            case("pools of NaN", [6, 7, 3], 4, network(4)),
        ),
        with(
            &[f32::NEG_INFINITY, 0.5],
            case("pools of infinities", [6, 7, 3], 4, network(4)),
        ),
    ]
}

/// The case with some of its inputs replaced by these.
fn with(special: &[f32], mut case: Case) -> Case {
    for (i, x) in case.inputs.iter_mut().enumerate() {
        if i % 31 == 0 {
            *x = special[i / 31 % special.len()];
        }
    }
    case
}

/// Inputs that are not normal numbers, by every method.
fn special_numbers() -> Vec<Case> {
    let methods = [
        (
            "winograd",
            vec![winograd(16, [1, 1], true), winograd(16, [1, 1], false)],
        ),
        (
            "direct",
            vec![
                convolution(18, [[3, 3], [2, 1], [1, 1]], 1, true),
                convolution(5, [[2, 2], [1, 1], [0, 0]], 1, false),
            ],
        ),
        (
            "grouped",
            vec![
                convolution(16, [[3, 3], [1, 2], [1, 1]], 16, true),
                convolution(8, [[2, 2], [1, 1], [0, 1]], 4, false),
            ],
        ),
    ];
    let numbers: [(&str, &[f32]); 4] = [
        ("subnormal", &[1e-40, -1e-45, f32::MIN_POSITIVE, -0.0]),
        ("large", &[1e30, -3e37, 1.0]),
        ("no", &[f32::NAN, 1.0]),
        ("infinite", &[f32::INFINITY, -1.0, f32::NEG_INFINITY]),
    ];
    let pairs = methods
        .iter()
        .flat_map(|method| numbers.map(|numbers| (method, numbers)));
    let cases = pairs.map(|((method, layers), (kind, numbers))| {
        let name = format!("{kind} numbers, {method}");
        with(
            numbers,
            case(&name, [6, 5, 16], 4, layers.clone()).in_batches(3, 2),
        )
    });
    cases.collect()
}

/// A network of a few layers that are drawn, with batches and lanes that are drawn.
fn random(number: u64) -> Case {
    let mut draw = Stream::new(23, number);
    let mut below = |limit: u32| draw.below(limit) as usize;
    let mut dims = Dims::image(1 + below(14), 1 + below(14), [3, 16, 5, 8][below(4)]);
    let input = [dims.height, dims.width, dims.channels];
    let mut specs = Vec::new();
    for _ in 0..1 + below(4) {
        let kernel = [1 + below(5), 1 + below(5)];
        let window = Window {
            kernel,
            stride: [1 + below(3), 1 + below(3)],
            padding: [below(kernel[0] as u32), below(kernel[1] as u32)],
        };
        let channels = dims.channels;
        let kind = below(6);
        let (window, spec) = match kind {
            0 | 1 => {
                let padding = [below(3), below(3)];
                let window = Window {
                    kernel: [3, 3],
                    stride: [1, 1],
                    padding,
                };
                let out = if below(3) == 0 {
                    1 + below(70)
                } else {
                    16 * (1 + below(5))
                };
                (window, winograd(out, padding, below(2) == 0))
            }
            2 | 3 => {
                let out = 1 + below(80);
                let window_of = [window.kernel, window.stride, window.padding];
                (window, convolution(out, window_of, 1, below(2) == 0))
            }
            4 => {
                let groups = if below(2) == 0 { channels } else { 1 };
                let out = groups * (1 + below(2));
                let window_of = [window.kernel, window.stride, window.padding];
                (window, convolution(out, window_of, groups, below(2) == 0))
            }
            _ => {
                let padding = window.kernel.map(|kernel| kernel / 2);
                let window = Window { padding, ..window };
                let Window { kernel, stride, .. } = window;
                let spec = match below(2) {
                    0 => LayerSpec::MaxPool(layers::MaxPool {
                        kernel,
                        stride,
                        padding,
                    }),
                    _ => LayerSpec::AvgPool(layers::AvgPool {
                        kernel,
                        stride,
                        padding,
                    }),
                };
                (window, spec)
            }
        };
        let Some(output) = window.output(dims) else {
            continue;
        };
        if let LayerSpec::Conv2d(convolution) = &spec {
            dims.channels = convolution.out;
        }
        dims = Dims {
            channels: dims.channels,
            ..output
        };
        specs.push(spec);
        if below(2) == 0 {
            specs.push(LayerSpec::Relu);
        }
        if below(4) == 0 {
            specs.push(LayerSpec::Dropout(layers::Dropout { p: 0.3 }));
        }
    }
    let batch = 1 + below(12);
    let lanes = 1 + below(batch.min(4) as u32);
    let samples = batch + below(batch as u32 + 1);
    case(&format!("random {number}"), input, samples, specs).in_batches(batch, lanes)
}
