//! A step allocates nothing: every buffer is planned when a model is built.

use lockstep_nn::encoder::{ClipConfig, Encoder, EncoderParts};
use lockstep_nn::layers::{Dropout, Linear};
use lockstep_nn::{
    Batch, Collect, Dims, LayerSpec, Loss, LossTargets, Model, NamedLayer, Optimizer, Precision,
    Step, Targets, Threads, optimizer, zoo,
};
use lockstep_testkit::allocations;

#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_step_and_an_evaluation_of_dense_layers_allocate_nothing() {
    use LayerSpec::{BatchNorm, Relu};
    let linear = |out| LayerSpec::Linear(Linear { out });
    let dropout = || LayerSpec::Dropout(Dropout { p: 0.25 });
    // The first weights are more than one chunk.
    let layers = [
        linear(300),
        BatchNorm,
        Relu,
        dropout(),
        linear(70),
        Relu,
        dropout(),
        linear(10),
    ];
    let layers = NamedLayer::stack(layers);
    check(&layers, Dims::vector(100), 24);
    for loss in [
        Loss::SquaredError,
        Loss::BinaryCrossEntropy,
        Loss::AbsoluteError,
        Loss::Huber { delta: 1.0 },
        Loss::Quantile { share: 0.9 },
        Loss::Focal { gamma: 2.0 },
    ] {
        check_with(loss, &layers, Dims::vector(100), 24);
    }
}

#[test]
fn a_step_and_an_evaluation_of_images_allocate_nothing() {
    let input = Dims {
        height: 12,
        width: 9,
        channels: 3,
    };
    check(&zoo::cifar_cnn(10), input, 9);
    check(&zoo::resnet18(10, true), input, 9);
}

/// Trains and evaluates on a full batch and on a short one, and counts.
fn check(layers: &[NamedLayer], input: Dims, rows: usize) {
    check_with(Loss::CrossEntropy, layers, input, rows);
}

/// As [`check`], of a model with 10 outputs that minimises `loss`.
fn check_with(loss: Loss, layers: &[NamedLayer], input: Dims, rows: usize) {
    let mut model = Model::new(layers, input, rows).unwrap().minimising(loss);
    let layout = model.layout().clone();
    let state = model.initial_state(0);
    let mut collect = Collect::new(&state, &layout);
    let inputs: Vec<f32> = (0..rows * input.len())
        .map(|i| (i % 17) as f32 - 8.0)
        .collect();
    let labels: Vec<u32> = (0..rows as u32).map(|i| i % 10).collect();
    let numbers: Vec<f32> = (0..rows * 10).map(|i| (i % 2) as f32).collect();
    let samples: Vec<u32> = (0..rows as u32).collect();
    let adam = Optimizer::Adam {
        betas: [0.9, 0.999],
        epsilon: 1e-8,
        weight_decay: 0.01,
        decoupled: true,
    };
    let mut trained = state.clone();
    let mut planes = [vec![0.0; layout.parameters], vec![0.0; layout.parameters]];

    let mut step = |number: u64, rows: usize| {
        let batch = Batch {
            inputs: &inputs[..rows * input.len()],
            targets: match loss.targets() {
                LossTargets::Classes => Targets::Classes(&labels[..rows]),
                _ => Targets::Numbers(&numbers[..rows * 10]),
            },
        };
        let step = Step {
            seed: 0,
            number,
            samples: &samples[..rows],
            batch: rows,
        };
        let sum = model.gradient(&mut collect, batch, step);
        assert_eq!(sum.rows, rows as u64);
        let (parameters, statistics) = trained.split_at_mut(layout.parameters);
        let (gradient, observed) = collect.gradient.split_at(layout.parameters);
        let [first, second] = &mut planes;
        adam.at(number, 1e-3)
            .apply(parameters, gradient, [first, second]);
        optimizer::blend(statistics, observed, 0.1);
        let scores = model.scores(&trained, batch.inputs);
        assert!(scores.iter().all(|score| score.is_finite()));
    };
    step(0, rows);
    for (number, rows) in [(1, rows), (2, 7)] {
        assert_eq!(allocations(|| step(number, rows)), 0, "with {rows} rows");
    }
}

#[test]
fn encoding_pictures_allocates_nothing() {
    let config = ClipConfig {
        hidden_size: 48,
        intermediate_size: 1000,
        num_hidden_layers: 2,
        num_attention_heads: 3,
        image_size: 40,
        patch_size: 8,
        ..ClipConfig::default()
    };
    let mut tensors = |_: &str, shape: &[usize]| Ok(vec![0.01; shape.iter().product()]);
    let parts = [
        EncoderParts::clip(&config, &mut tensors).unwrap(),
        EncoderParts::efficientnet_lite(0, &mut tensors).unwrap(),
    ];
    let precisions = [Precision::F32, Precision::Fixed16];
    let encoders = parts.into_iter().flat_map(|parts| {
        let new = move |precision| {
            Encoder::in_precision(precision, &Threads::default(), parts.clone(), 2)
        };
        precisions.map(new)
    });
    for mut encoder in encoders {
        let images = vec![0.5; 3 * encoder.input().len()];
        let mut out = vec![0.0; 3 * encoder.width()];
        // Once before: the instruction set is looked up the first time.
        encoder.encode(3, &images, &mut out);
        assert_eq!(allocations(|| encoder.encode(3, &images, &mut out)), 0);
    }
}
