//! The families of networks: what a name and a few numbers stand for, layer by layer.
//!
//! Layers are called as PyTorch would call them. A network of torchvision has torchvision's names, so that
//! weights go both ways, and a head those of the module that it is known from; others are numbered.

use crate::layers;
use crate::spec::{FirstWeights, LayerSpec, NamedLayer};

/// Dense layers: each is linear, batch-norm if asked for, ReLU, dropout if there is any; and a last linear
/// one to the classes.
pub fn mlp(hidden: &[usize], dropout: f64, batch_norm: bool, classes: usize) -> Vec<NamedLayer> {
    let mut layers = Vec::new();
    for &out in hidden {
        layers.push(LayerSpec::Linear(layers::Linear { out }));
        layers.extend(batch_norm.then_some(LayerSpec::BatchNorm));
        layers.push(LayerSpec::Relu);
        layers.extend(dropout_of(dropout));
    }
    layers.push(LayerSpec::Linear(layers::Linear { out: classes }));
    NamedLayer::stack(layers)
}

/// A classifier of vectors: an [`mlp`] of one hidden layer with batch-norm, under the names `fc1`,
/// `batch_norm`, `relu`, `dropout` and `fc2`.
pub fn head(hidden: usize, dropout: f64, classes: usize) -> Vec<NamedLayer> {
    let mut layers = mlp(&[hidden], dropout, true, classes);
    let last = layers.len() - 1;
    for (i, layer) in layers.iter_mut().enumerate() {
        layer.name = match layer.spec {
            LayerSpec::BatchNorm => "batch_norm",
            LayerSpec::Relu => "relu",
            LayerSpec::Dropout(_) => "dropout",
            _ if i == last => "fc2",
            _ => "fc1",
        }
        .to_owned();
    }
    layers
}

/// A network for small images. Each block is twice (convolution, batch-norm, ReLU), max-pool, and dropout if
/// there is any; `blocks` has its channels and its dropout. A dense layer and a last one to the classes follow.
pub fn cnn(
    blocks: &[(usize, f64)],
    dense: usize,
    dense_dropout: f64,
    classes: usize,
) -> Vec<NamedLayer> {
    let mut layers = Vec::new();
    for &(out, dropout) in blocks {
        for _ in 0..2 {
            let convolution = LayerSpec::Conv2d(layers::Conv2d {
                out,
                kernel: [3, 3],
                stride: [1, 1],
                padding: [1, 1],
                groups: 1,
                bias: true,
            });
            layers.extend([convolution, LayerSpec::BatchNorm, LayerSpec::Relu]);
        }
        layers.push(LayerSpec::MaxPool(layers::MaxPool {
            kernel: [2, 2],
            stride: [2, 2],
            padding: [0, 0],
        }));
        layers.extend(dropout_of(dropout));
    }
    layers.extend([
        LayerSpec::Flatten,
        LayerSpec::Linear(layers::Linear { out: dense }),
        LayerSpec::Relu,
    ]);
    layers.extend(dropout_of(dense_dropout));
    layers.push(LayerSpec::Linear(layers::Linear { out: classes }));
    NamedLayer::stack(layers)
}

/// The [`cnn`] for CIFAR-10: three blocks, 32, 64 and 128 channels wide, and a dense layer of 128.
pub fn cifar_cnn(classes: usize) -> Vec<NamedLayer> {
    cnn(&[(32, 0.2), (64, 0.3), (128, 0.4)], 128, 0.5, classes)
}

fn dropout_of(p: f64) -> Option<LayerSpec> {
    (p > 0.0).then_some(LayerSpec::Dropout(layers::Dropout { p }))
}

/// ResNet-18 under torchvision's names, with weights drawn as torchvision draws them. With a small stem, for images of
/// 32 x 32 or so, it begins with a convolution of 3 x 3 pixels and without a pool.
pub fn resnet18(classes: usize, small_stem: bool) -> Vec<NamedLayer> {
    let (kernel, stride) = if small_stem { (3, 1) } else { (7, 2) };
    let mut layers = vec![convolution("conv1".to_owned(), 64, kernel, stride)];
    layers.push(NamedLayer::new("bn1", LayerSpec::BatchNorm));
    layers.push(NamedLayer::new("relu", LayerSpec::Relu));
    if !small_stem {
        let pool = LayerSpec::MaxPool(layers::MaxPool {
            kernel: [3, 3],
            stride: [2, 2],
            padding: [1, 1],
        });
        layers.push(NamedLayer::new("maxpool", pool));
    }
    let mut inputs = 64;
    for (stage, out) in [64, 128, 256, 512].into_iter().enumerate() {
        for block in 0..2 {
            let name = format!("layer{}.{block}", stage + 1);
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            layers.push(residual(&name, inputs, out, stride));
            layers.push(NamedLayer::new(format!("{name}.relu"), LayerSpec::Relu));
            inputs = out;
        }
    }
    layers.push(NamedLayer::new("avgpool", LayerSpec::GlobalPool));
    layers.push(NamedLayer::new(
        "fc",
        LayerSpec::Linear(layers::Linear { out: classes }),
    ));
    layers
}

/// Two convolutions, and a shortcut past them.
fn residual(name: &str, inputs: usize, out: usize, stride: usize) -> NamedLayer {
    let name_of = |part: &str| format!("{name}.{part}");
    let part = |part: &str, spec| NamedLayer::new(name_of(part), spec);
    let body = vec![
        convolution(name_of("conv1"), out, 3, stride),
        part("bn1", LayerSpec::BatchNorm),
        part("relu", LayerSpec::Relu),
        convolution(name_of("conv2"), out, 3, 1),
        part("bn2", LayerSpec::BatchNorm),
    ];
    let shortcut = if stride == 1 && inputs == out {
        Vec::new()
    } else {
        vec![
            convolution(name_of("downsample.0"), out, 1, stride),
            part("downsample.1", LayerSpec::BatchNorm),
        ]
    };
    NamedLayer::new(
        name,
        LayerSpec::Residual(layers::Residual { body, shortcut }),
    )
}

/// A convolution without bias whose windows are centred on pixels.
fn convolution(name: String, out: usize, kernel: usize, stride: usize) -> NamedLayer {
    let convolution = LayerSpec::Conv2d(layers::Conv2d {
        out,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [kernel / 2; 2],
        groups: 1,
        bias: false,
    });
    NamedLayer {
        weights: FirstWeights::KaimingNormal,
        ..NamedLayer::new(name, convolution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dims, Model};

    fn image(side: usize) -> Dims {
        Dims {
            height: side,
            width: side,
            channels: 3,
        }
    }

    #[test]
    fn resnet18_has_torchvisions_names_and_as_many_parameters() {
        let model = Model::new(&resnet18(1000, false), image(224), 1).unwrap();
        assert_eq!(model.layout().parameters, 11_689_512);
        let names: Vec<&str> = model
            .layout()
            .tensors
            .iter()
            .map(|tensor| tensor.name.as_str())
            .collect();
        for name in [
            "conv1.weight",
            "bn1.running_mean",
            "layer1.0.conv1.weight",
            "layer2.0.downsample.0.weight",
            "layer2.0.downsample.1.running_var",
            "layer4.1.bn2.bias",
            "fc.bias",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let last = model
            .summary()
            .iter()
            .rev()
            .find(|layer| layer.name == "layer4.1");
        assert_eq!(last.unwrap().output.to_string(), "7 x 7 x 512");
    }

    #[test]
    fn a_small_stem_keeps_the_image_as_large_as_it_is() {
        let model = Model::new(&resnet18(10, true), image(32), 1).unwrap();
        let first = &model.summary()[0];
        assert_eq!(first.output.to_string(), "32 x 32 x 64");
        assert_eq!(model.layout().parameters, 11_173_962);
    }

    #[test]
    fn resnet18_begins_with_weights_as_torchvision_draws_them() {
        let model = Model::new(&resnet18(10, true), image(32), 1).unwrap();
        let state = model.initial_state(5);
        for tensor in &model.layout().tensors {
            let numbers = &state[tensor.range.clone()];
            let mean_of = |each: &dyn Fn(f64) -> f64| {
                let sum: f64 = numbers.iter().map(|&x| each(f64::from(x))).sum();
                sum / numbers.len() as f64
            };
            let name = &tensor.name;
            match tensor.shape[..] {
                [outputs, _, height, width] => {
                    let variance = 2.0 / (outputs * height * width) as f64;
                    // Normal numbers have three times the square of the variance; even ones have less than twice.
                    let [second, fourth] = [2, 4].map(|power| mean_of(&|x| x.powi(power)));
                    assert!((second / variance - 1.0).abs() < 0.1, "{name}: {second}");
                    let fourth = fourth / (variance * variance);
                    assert!((fourth - 3.0).abs() < 0.5, "{name}: {fourth}");
                }
                _ if name.starts_with("fc.") => {
                    let bound = 1.0 / 512.0f32.sqrt();
                    assert!(numbers.iter().all(|x| x.abs() <= bound), "{name}");
                    assert!(mean_of(&f64::abs) > 0.2 * f64::from(bound), "{name}");
                }
                _ => {
                    let ones = name.ends_with("weight") || name.ends_with("var");
                    let expected = f32::from(u8::from(ones));
                    assert!(numbers.iter().all(|&x| x == expected), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_cnn_ends_in_its_classes() {
        let model = Model::new(&cifar_cnn(10), image(32), 1).unwrap();
        assert_eq!(model.outputs(), 10);
        assert_eq!(model.layout().parameters, 551_466);
    }

    #[test]
    fn the_head_has_the_names_of_the_tutorials_module() {
        let layers = head(256, 0.3, 120);
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["fc1", "batch_norm", "relu", "dropout", "fc2"]);
        assert_eq!(
            layers[0].spec,
            LayerSpec::Linear(layers::Linear { out: 256 })
        );
        assert_eq!(
            layers[4].spec,
            LayerSpec::Linear(layers::Linear { out: 120 })
        );
    }

    #[test]
    fn a_dropout_of_nothing_is_no_layer() {
        let kinds = |layers: Vec<NamedLayer>| layers.len();
        assert_eq!(kinds(mlp(&[4, 4], 0.0, false, 2)), 5);
        assert_eq!(kinds(mlp(&[4, 4], 0.5, true, 2)), 9);
    }
}
