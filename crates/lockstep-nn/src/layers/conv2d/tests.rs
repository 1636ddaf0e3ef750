//! Convolutions of odd shapes against their definition.

use super::super::check::check_layer;
use super::*;

/// A convolution by its definition, for the state `[weight, bias]`.
fn definition(input: Dims, output: Dims, window: Window, state: &[f64], x: &[f64]) -> Vec<f64> {
    let [height, width] = window.kernel;
    let weights = height * width * input.channels * output.channels;
    let pixel = |image: &[f64], row: usize, column: usize, channel: usize| {
        let row = row.checked_sub(window.padding[0]);
        let column = column.checked_sub(window.padding[1]);
        match (row, column) {
            (Some(row), Some(column)) if row < input.height && column < input.width => {
                image[(row * input.width + column) * input.channels + channel]
            }
            _ => 0.0,
        }
    };
    let mut y = Vec::new();
    for image in x.chunks(input.len()) {
        for at in 0..output.len() {
            let out = at % output.channels;
            let place = at / output.channels;
            let [top, left] = [
                place / output.width * window.stride[0],
                place % output.width * window.stride[1],
            ];
            let mut sum = state.get(weights + out).copied().unwrap_or(0.0);
            for i in 0..height * width * input.channels {
                let (row, rest) = (i / (width * input.channels), i % (width * input.channels));
                let (column, channel) = (rest / input.channels, rest % input.channels);
                let x = pixel(image, top + row, left + column, channel);
                sum += x * state[i * output.channels + out];
            }
            y.push(sum);
        }
    }
    y
}

fn check(rows: usize, input: [usize; 3], out: usize, window: [[usize; 2]; 3], bias: bool) {
    let [height, width, channels] = input;
    let input = Dims {
        height,
        width,
        channels,
    };
    let [kernel, stride, padding] = window;
    let window = Window {
        kernel,
        stride,
        padding,
    };
    let output = Dims {
        channels: out,
        ..window.output(input).unwrap()
    };
    let mut layout = Layout::default();
    let mut layer = Conv2dLayer::new("c", (input, output), window, bias, &mut layout);
    check_layer(
        &mut layer,
        &layout,
        rows,
        input.len(),
        output.len(),
        &|state, x| definition(input, output, window, state, x),
    );
}

#[test]
fn it_agrees_with_finite_differences() {
    // One row, one pixel, one channel.
    check(1, [1, 1, 1], 1, [[1, 1], [1, 1], [0, 0]], true);
    // One pixel and a margin around it.
    check(2, [1, 1, 3], 2, [[3, 3], [1, 1], [1, 1]], true);
    // A stride that does not divide, and skips pixels at the end.
    check(2, [8, 7, 2], 3, [[3, 2], [2, 3], [0, 1]], false);
    // More channels than pixels.
    check(3, [2, 2, 9], 11, [[2, 2], [1, 1], [1, 1]], true);
    // A kernel that is wide and not high.
    check(2, [3, 9, 2], 2, [[1, 5], [1, 2], [0, 2]], true);
    // A stride larger than the kernel.
    check(2, [5, 5, 3], 4, [[1, 1], [2, 2], [0, 0]], false);
    // Tiles that are whole, cut and mostly outside; margins of all widths.
    check(2, [6, 5, 16], 16, [[3, 3], [1, 1], [1, 1]], true);
    check(1, [4, 8, 16], 16, [[3, 3], [1, 1], [0, 2]], false);
    check(1, [1, 1, 16], 32, [[3, 3], [1, 1], [1, 1]], true);
    check(3, [3, 4, 16], 16, [[3, 3], [1, 1], [2, 0]], true);
    // A margin on one axis only.
    check(2, [4, 6, 2], 5, [[3, 3], [1, 1], [1, 0]], true);
}

#[test]
fn a_large_kernel_is_cut_into_chunks_of_whole_rows() {
    let input = Dims {
        height: 1,
        width: 1,
        channels: 20,
    };
    let window = Window {
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
    };
    let output = Dims {
        channels: 1000,
        ..input
    };
    let mut layout = Layout::default();
    Conv2dLayer::new("c", (input, output), window, true, &mut layout);
    assert_eq!(layout.len(), 181_000);
    assert_eq!(layout.chunks.len(), 180usize.div_ceil(16));
    assert_eq!(layout.chunks.last().unwrap().len(), 4 * 1000 + 1000);
}

/// The largest difference, measured by the largest number.
fn error(ours: &[f32], theirs: &[f32]) -> f32 {
    let largest = |x: &mut dyn Iterator<Item = f32>| x.map(f32::abs).fold(0.0, f32::max);
    let differences = ours.iter().zip(theirs).map(|(a, b)| a - b);
    largest(&mut differences.into_iter()) / largest(&mut theirs.iter().copied())
}

#[test]
fn winograds_method_loses_little_against_the_direct_one() {
    /// Single precision itself is 6e-8.
    const ALLOWED: f32 = 2e-5;
    let input = Dims {
        height: 14,
        width: 13,
        channels: 64,
    };
    let output = Dims {
        channels: 48,
        ..input
    };
    let window = Window {
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
    };
    let images = 4;
    let numbers = |seed, len| {
        let mut stream = lockstep_base::random::Stream::new(seed, 0);
        (0..len)
            .map(|_| stream.unit_f32() - 0.5)
            .collect::<Vec<f32>>()
    };
    let weight = numbers(1, 9 * 64 * 48);
    let (x, dy) = (
        numbers(2, images * input.len()),
        numbers(3, images * output.len()),
    );
    let mut layout = Layout::default();
    let layer = Conv2dLayer::new("c", (input, output), window, false, &mut layout);
    let Method::Winograd(winograd) = &layer.method else {
        panic!("Winograd's method suits {window:?}");
    };
    let direct = Direct::new(input, output, window);
    let threads = &Threads::default();
    let room = winograd.scratch(threads, images);
    let room = room.max(direct.scratch(threads, images));
    let mut scratch = vec![f32::NAN; room];

    let (mut ours, mut theirs) = (dy.clone(), dy.clone());
    winograd.forward(threads, &weight, None, &x, &mut ours, &mut scratch);
    direct.forward(threads, &weight, None, &x, &mut theirs, &mut scratch);
    let forward = error(&ours, &theirs);

    let (mut ours, mut theirs) = (x.clone(), x.clone());
    winograd.input_gradient(threads, &weight, &dy, &mut ours, &mut scratch);
    direct.input_gradient(threads, &weight, &dy, &mut theirs, &mut scratch);
    let input_gradient = error(&ours, &theirs);

    let ours = winograd.weight_gradient(threads, &x, &dy, &mut scratch);
    let ours = ours.to_vec();
    let theirs = direct.weight_gradient(threads, &x, &dy, &mut scratch);
    let weight_gradient = error(&ours, theirs);

    let found = [forward, input_gradient, weight_gradient];
    println!("errors {found:?}");
    assert!(found.iter().all(|&error| error < ALLOWED), "{found:?}");
}

#[test]
fn a_weight_gradient_is_chains_over_groups_of_images_added_in_order() {
    // 20 x 20 pixels: two images a group, and one that is left. More rows and columns than a block has.
    let (images, group) = (5, 2);
    let (input, output) = (Dims::image(22, 22, 17), Dims::image(20, 20, 35));
    let window = Window {
        kernel: [3, 3],
        stride: [1, 1],
        padding: [0, 0],
    };
    let numbers = |seed, len| {
        let mut stream = lockstep_base::random::Stream::new(seed, 0);
        let drawn = std::iter::repeat_with(|| stream.unit_f32() - 0.5);
        drawn.take(len).collect::<Vec<f32>>()
    };
    let (x, dy) = (
        numbers(1, images * input.len()),
        numbers(2, images * output.len()),
    );
    let direct = Direct::new(input, output, window);
    let threads = &Threads::default();
    let mut scratch = vec![f32::NAN; direct.scratch(threads, images)];
    let found = direct.weight_gradient(threads, &x, &dy, &mut scratch);
    for (at, found) in found.iter().enumerate() {
        let (row, out) = (at / 35, at % 35);
        let (top, left, channel) = (row / 17 / 3, row / 17 % 3, row % 17);
        let chain = |group: std::ops::Range<usize>| {
            let pixels = group.flat_map(|image| (0..400).map(move |pixel| (image, pixel)));
            pixels.fold(0.0f32, |sum, (image, pixel)| {
                let (row, column) = (top + pixel / 20, left + pixel % 20);
                let x = x[((image * 22 + row) * 22 + column) * 17 + channel];
                x.mul_add(dy[(image * 400 + pixel) * 35 + out], sum)
            })
        };
        let groups = (0..images).step_by(group);
        let groups = groups.map(|first| chain(first..images.min(first + group)));
        let expected = groups.reduce(|sum, part| sum + part).unwrap();
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "row {row}, column {out}"
        );
    }
}
