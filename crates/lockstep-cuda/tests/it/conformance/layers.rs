//! Networks with the layers that are not dense: each alone and with what changes activations before and behind it, in
//! odd sizes.

use super::cases::{Case, dropout, linear};
use lockstep_nn::{Dims, EmbeddingTable, LayerRates, LayerSpec, NamedLayer, layers};

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = activations();
    all.extend(batch_norms());
    all.extend(group_norms());
    all.extend(embeddings());
    all.extend(images());
    all.extend(residuals());
    all
}

fn image(height: usize, width: usize, channels: usize) -> Dims {
    Dims {
        height,
        width,
        channels,
    }
}

fn leaky_relu(slope: f64) -> LayerSpec {
    LayerSpec::LeakyRelu(layers::LeakyRelu { slope })
}

fn group_norm(groups: usize) -> LayerSpec {
    LayerSpec::GroupNorm(layers::GroupNorm { groups })
}

pub(super) fn residual(body: Vec<LayerSpec>, shortcut: Vec<LayerSpec>) -> LayerSpec {
    LayerSpec::Residual(layers::Residual {
        body: NamedLayer::stack(body),
        shortcut: NamedLayer::stack(shortcut),
    })
}

/// A case with numbers in its inputs that are not normal.
fn special(case: Case) -> Case {
    let special = [
        f32::NAN,
        f32::INFINITY,
        -f32::INFINITY,
        -0.0,
        1e-40,
        -3e38,
        88.0,
        -200.0,
    ];
    let mut inputs = case.inputs.clone();
    for (i, x) in inputs.iter_mut().enumerate() {
        // Not in every row: what is not normal spreads.
        if i % 97 == 0 {
            *x = special[i / 97 % special.len()];
        }
    }
    Case {
        name: format!("{} of special numbers", case.name),
        inputs,
        ..case
    }
}

fn activations() -> Vec<Case> {
    let all = [
        ("gelu", LayerSpec::Gelu),
        ("silu", LayerSpec::Silu),
        ("sigmoid", LayerSpec::Sigmoid),
        ("tanh", LayerSpec::Tanh),
        ("leaky-relu", leaky_relu(0.3)),
    ];
    let mut cases = Vec::new();
    for (name, spec) in all {
        let case = |what: &str, layers: Vec<LayerSpec>, inputs| {
            let layers = NamedLayer::stack(layers);
            Case::new(format!("{name} {what}"), layers, Dims::vector(inputs), 11)
        };
        let plain = vec![linear(12), spec.clone(), linear(3)];
        cases.push(case("between", plain, 5).in_batches(4, 2));
        let changed = vec![
            linear(7),
            dropout(0.3),
            spec.clone(),
            dropout(0.2),
            linear(8),
            LayerSpec::Relu,
            spec.clone(),
            LayerSpec::Relu,
            linear(3),
        ];
        cases.push(case("between others", changed, 3).in_batches(4, 3));
        let mut first = case("first", vec![spec.clone(), linear(3)], 29);
        for (i, x) in first.inputs.iter_mut().enumerate() {
            // Far out, where exponentials end.
            *x *= [1.0, 10.0, 100.0, 1e-30, 0.0][i % 5];
        }
        cases.push(first);
        cases.push(number_by_number(name, spec));
    }
    cases
}

/// An activation of which every number shows, and every slope: between layers that leave numbers as they are. A weight
/// that is 0 has for momentum just what a number times a slope is.
fn number_by_number(name: &str, spec: LayerSpec) -> Case {
    const WIDTH: usize = 24;
    let layers = NamedLayer::stack([linear(WIDTH), spec, linear(WIDTH)]);
    let case = Case::new(format!("{name} of each"), layers, Dims::vector(WIDTH), 4);
    let mut case = case.in_batches(1, 1).without_biases();
    let layer = WIDTH * WIDTH + WIDTH;
    for first in [0, layer] {
        let weights = &mut case.values[first..first + WIDTH * WIDTH];
        for (i, weight) in weights.iter_mut().enumerate() {
            *weight = if i % (WIDTH + 1) == 0 { 1.0 } else { 0.0 };
        }
    }
    let far = [
        0.0, -0.0, 86.5, -86.5, 87.5, -87.5, 43.3, -43.3, 1e-40, -14.5,
    ];
    for (i, x) in case.inputs.iter_mut().enumerate() {
        *x = match i % 3 {
            0 => far[i / 3 % far.len()],
            1 => *x,
            _ => 10.0 * *x,
        };
    }
    case
}

fn batch_norms() -> Vec<Case> {
    let norm = LayerSpec::BatchNorm;
    let case = |name: &str, layers: Vec<LayerSpec>, input, samples| {
        let name = format!("batch-norm {name}");
        Case::new(name, NamedLayer::stack(layers), input, samples)
    };
    let vectors = vec![
        linear(12),
        norm.clone(),
        LayerSpec::Relu,
        linear(7),
        norm.clone(),
        dropout(0.4),
        linear(9),
        LayerSpec::Relu,
        dropout(0.2),
        norm.clone(),
        linear(8),
        LayerSpec::Relu,
        norm.clone(),
        linear(3),
    ];
    // 7 x 5 pixels: blocks that begin and end within images, and lanes whose last block is short.
    let images = |channels| {
        let layers = vec![norm.clone(), LayerSpec::Relu, norm.clone(), linear(3)];
        case("of images", layers, image(7, 5, channels), 17)
    };
    let mut all = vec![
        case("of vectors", vectors, Dims::vector(5), 29).in_batches(13, 3),
        images(3).in_batches(8, 3),
        images(4).in_batches(8, 1),
        images(36).in_batches(5, 2),
        // A lane of one row, and blocks that are all full.
        case(
            "of large images",
            vec![norm.clone(), linear(2)],
            image(16, 8, 8),
            3,
        )
        .in_batches(3, 2),
        // More blocks than are brought at a time.
        case(
            "of many blocks",
            vec![norm.clone(), linear(2)],
            image(128, 150, 1),
            3,
        )
        .in_batches(2, 1),
        special(images(4).in_batches(9, 3)),
        case(
            "of many columns",
            vec![linear(1100), norm.clone(), linear(3)],
            Dims::vector(3),
            7,
        ),
    ];
    let mut large = images(5).in_batches(17, 1);
    for x in &mut large.inputs {
        *x = 1000.0 + 3.0 * *x;
    }
    all.push(large);
    for frozen in [&["layers.0"][..], &["layers.0", "layers.2"], &["layers.2"]] {
        let rates = frozen.iter().map(|&name| (name.to_owned(), 0.0));
        let rates = LayerRates::new(rates.chain([("layers.3".to_owned(), 0.5)]));
        // Running statistics are not 0 and 1 any more.
        let mut case = images(4).in_batches(6, 2).with_rates(rates);
        for (i, x) in case.values.iter_mut().enumerate() {
            *x += 0.01 * (i % 13) as f32;
        }
        all.push(case);
    }
    all
}

fn group_norms() -> Vec<Case> {
    let case = |name: &str, layers: Vec<LayerSpec>, input| {
        let layers = NamedLayer::stack(layers);
        Case::new(format!("group-norm {name}"), layers, input, 11)
    };
    let layer_norm = || LayerSpec::LayerNorm;
    let between = vec![
        linear(37),
        LayerSpec::Relu,
        layer_norm(),
        dropout(0.3),
        linear(6),
        layer_norm(),
        LayerSpec::Relu,
        linear(4),
        dropout(0.3),
        layer_norm(),
        linear(3),
    ];
    let mut all = vec![
        case("of vectors", between, Dims::vector(5)).in_batches(5, 2),
        case(
            "of pixels",
            vec![layer_norm(), LayerSpec::Relu, linear(3)],
            image(3, 4, 9),
        )
        .in_batches(4, 3),
        // Groups narrower and wider than what is added side by side, and more than a warp has at a time.
        case(
            "of groups",
            vec![group_norm(3), LayerSpec::Relu, group_norm(6), linear(3)],
            image(3, 3, 6),
        )
        .in_batches(5, 2),
        case(
            "of wide groups",
            vec![group_norm(2), linear(3)],
            image(5, 3, 40),
        )
        .in_batches(3, 2),
        case("of one", vec![group_norm(1), linear(3)], image(2, 5, 1)),
        case(
            "of many columns",
            vec![linear(300), layer_norm(), linear(3)],
            Dims::vector(3),
        ),
    ];
    let norm = case("of groups", vec![group_norm(2), linear(3)], image(3, 3, 10));
    let frozen = LayerRates::new([("layers.0".to_owned(), 0.0)]);
    all.push(special(norm.in_batches(6, 2)).with_rates(frozen));
    all
}

fn embeddings() -> Vec<Case> {
    let embedding = || {
        let table = |rows, width| EmbeddingTable { rows, width };
        let tables = vec![table(3, 2), table(40, 130), table(7, 1)];
        LayerSpec::Embedding(layers::Embedding { tables })
    };
    // The last three inputs are places; some that no table has.
    let case = |name: &str, layers: Vec<LayerSpec>, inputs: usize| {
        let layers = NamedLayer::stack(layers);
        let name = format!("embedding {name}");
        let mut case = Case::new(name, layers, Dims::vector(inputs), 23);
        for row in case.inputs.chunks_mut(inputs) {
            for (x, rows) in row[inputs - 3..].iter_mut().zip([3.0f32, 40.0, 7.0]) {
                *x = (0.5 * rows * (*x + 1.0)).floor();
            }
        }
        let odd = [f32::NAN, -4.0, 1e30, 39.9, 4.3e9, f32::INFINITY, 40.0];
        for (row, odd) in case.inputs.chunks_mut(inputs).zip(odd) {
            row[inputs - 2] = odd;
        }
        case
    };
    let only = vec![embedding(), LayerSpec::Relu, dropout(0.2), linear(3)];
    let mut all = vec![
        case("first", vec![embedding(), linear(3)], 5).in_batches(11, 3),
        case("only", only, 3).in_batches(8, 2),
        // Not first, so that a gradient goes through it.
        case(
            "behind another",
            vec![
                LayerSpec::BatchNorm,
                LayerSpec::Relu,
                embedding(),
                linear(3),
            ],
            6,
        )
        .in_batches(9, 2),
    ];
    for frozen in [&["layers.0.1"][..], &["layers.0"]] {
        let rates = frozen.iter().map(|&name| (name.to_owned(), 0.0));
        let case = case("partly frozen", vec![embedding(), linear(3)], 4);
        all.push(case.in_batches(8, 2).with_rates(LayerRates::new(rates)));
    }
    all
}

/// Images that become vectors and the other way round.
fn images() -> Vec<Case> {
    let unflatten = |height, width, channels| {
        LayerSpec::Unflatten(layers::Unflatten {
            shape: image(height, width, channels),
        })
    };
    let case = |name: &str, layers: Vec<LayerSpec>, input| {
        let layers = NamedLayer::stack(layers);
        Case::new(format!("an image {name}"), layers, input, 9).in_batches(4, 2)
    };
    vec![
        case("flattened", vec![linear(3)], image(3, 4, 5)),
        case(
            "flattened between others",
            vec![
                LayerSpec::Relu,
                dropout(0.2),
                LayerSpec::Flatten,
                LayerSpec::Relu,
                dropout(0.3),
                linear(3),
            ],
            image(6, 7, 33),
        ),
        case(
            "made of a vector",
            vec![
                linear(5 * 7 * 3),
                LayerSpec::Relu,
                unflatten(5, 7, 3),
                LayerSpec::BatchNorm,
                linear(3),
            ],
            Dims::vector(4),
        ),
    ]
}

fn residuals() -> Vec<Case> {
    let relu = || LayerSpec::Relu;
    let case = |name: &str, layers: Vec<LayerSpec>| {
        let layers = NamedLayer::stack(layers);
        Case::new(format!("residual {name}"), layers, Dims::vector(5), 13).in_batches(6, 2)
    };
    let block = |out| {
        residual(
            vec![
                linear(out),
                LayerSpec::BatchNorm,
                relu(),
                linear(out),
                LayerSpec::BatchNorm,
            ],
            vec![linear(out), LayerSpec::BatchNorm],
        )
    };
    let plain = |out| residual(vec![linear(6), relu(), dropout(0.3), linear(out)], vec![]);
    // Paths that begin and end with what changes an activation where it lies.
    let edges = residual(
        vec![dropout(0.2), linear(4), LayerSpec::Gelu, relu()],
        vec![relu(), linear(4), dropout(0.4)],
    );
    let inner = residual(vec![plain(7), block(7), relu()], vec![linear(7)]);
    let mut all = vec![
        case("of an input", vec![plain(5), relu(), linear(3)]),
        case(
            "blocks",
            vec![
                linear(8),
                relu(),
                block(8),
                relu(),
                block(9),
                relu(),
                linear(3),
            ],
        ),
        case(
            "of edges",
            vec![linear(7), dropout(0.1), edges, dropout(0.3), linear(3)],
        ),
        case("within another", vec![linear(7), inner, relu(), linear(3)]),
    ];
    for frozen in [
        &["layers.0", "layers.2"][..],
        &["layers.0", "layers.2.shortcut"],
        &["layers.0", "layers.2.body"],
        &["layers.2", "layers.4"],
    ] {
        let rates = frozen.iter().map(|&name| (name.to_owned(), 0.0));
        let named = |prefix: &str, specs: Vec<LayerSpec>| -> Vec<NamedLayer> {
            let named = |(i, spec)| NamedLayer::new(format!("layers.2.{prefix}.{i}"), spec);
            specs.into_iter().enumerate().map(named).collect()
        };
        let both = LayerSpec::Residual(layers::Residual {
            body: named("body", vec![linear(7), relu(), linear(4)]),
            shortcut: named("shortcut", vec![linear(4)]),
        });
        let layers = vec![linear(6), relu(), both, relu(), linear(3)];
        let case = case(&format!("with {frozen:?} frozen"), layers);
        all.push(case.with_rates(LayerRates::new(rates)));
    }
    all
}
