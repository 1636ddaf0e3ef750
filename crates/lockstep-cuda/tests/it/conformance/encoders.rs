//! Encoders, whose vectors must have the bits of lockstep-nn's, however many pictures a bunch has.

use super::{is_wanted, same};
use lockstep_base::random::Stream;
use lockstep_cuda::{BUNCHES, Gpu, GpuEncoder};
use lockstep_nn::Threads;
use lockstep_nn::encoder::{
    Activation, ClipConfig, DenseParts, Encoder, EncoderError, EncoderParts, LITE_FEATURES,
    LITE_STEM, LiteBlock, LiteBlockParts, LiteConvolution, LiteParts, WindowParts, lite_blocks,
    lite_image_size,
};

/// An encoder, and how many pictures a bunch of it has at the most.
struct Case {
    name: String,
    parts: EncoderParts,
    rows: usize,
}

/// Those that are small enough for every run.
pub(super) fn small(gpu: &Gpu) {
    let clip = ClipConfig {
        hidden_size: 24,
        intermediate_size: 40,
        projection_dim: 12,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        image_size: 16,
        patch_size: 4,
        ..ClipConfig::default()
    };
    let odd = ClipConfig {
        hidden_size: 15,
        intermediate_size: 71,
        projection_dim: 5,
        num_hidden_layers: 1,
        num_attention_heads: 3,
        image_size: 19,
        patch_size: 2,
        hidden_act: Activation::Gelu,
        ..ClipConfig::default()
    };
    for case in [of_clip(clip, 3), of_clip(odd, 2), small_lite()] {
        run(gpu, &case);
    }
}

/// Those that are used.
pub(super) fn whole(gpu: &Gpu) {
    let mut numbers = Numbers(Stream::new(5, 0));
    let mut tensors = |name: &str, shape: &[usize]| Ok(numbers.tensor(name, shape));
    let lite = EncoderParts::efficientnet_lite(0, &mut tensors).expect("invented weights fit");
    let lite = Case {
        name: "EfficientNet-Lite0".to_owned(),
        parts: lite,
        rows: 2,
    };
    for case in [of_clip(ClipConfig::default(), 3), lite] {
        run(gpu, &case);
    }
}

/// Invented numbers.
struct Numbers(Stream);

impl Numbers {
    fn some(&mut self, count: usize, scale: f32) -> Vec<f32> {
        let number = |_| scale * (2.0 * self.0.unit_f32() - 1.0);
        (0..count).map(number).collect()
    }

    /// A tensor whose products stay about as large as what goes in.
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        let count = shape.iter().product();
        let inputs: usize = shape.iter().skip(1).product();
        match (shape.len(), name.ends_with(".running_var")) {
            (_, true) => self.some(count, 0.5).iter().map(|x| 1.0 + x).collect(),
            (1, _) if name.ends_with(".weight") => {
                self.some(count, 0.3).iter().map(|x| 1.0 + x).collect()
            }
            (1, _) => self.some(count, 0.3),
            _ => self.some(count, (3.0 / inputs as f32).sqrt()),
        }
    }
}

fn of_clip(config: ClipConfig, rows: usize) -> Case {
    let mut numbers = Numbers(Stream::new(3, 0));
    let mut tensors = |name: &str, shape: &[usize]| -> Result<Vec<f32>, EncoderError> {
        Ok(numbers.tensor(name, shape))
    };
    Case {
        name: format!("a CLIP with tokens of {} numbers", config.hidden_size),
        parts: EncoderParts::clip(&config, &mut tensors).expect("invented weights fit"),
        rows,
    }
}

/// A few blocks of an EfficientNet-Lite, with all kinds of windows, on little pictures.
fn small_lite() -> Case {
    let mut numbers = Numbers(Stream::new(4, 0));
    // What the blocks and the margins of the real one look like.
    let (_, shapes) = lite_blocks(0).expect("there is a Lite0");
    assert_eq!((shapes.len(), lite_image_size(0)), (16, Some(224)));
    let side = 21;
    let mut dense = |inputs, outputs| DenseParts {
        inputs,
        weight: numbers.tensor("", &[outputs, inputs]),
        bias: numbers.some(outputs, 0.3),
    };
    let mut channels = LITE_STEM;
    let mut block =
        |widening: usize, outputs: usize, [kernel, stride, before, after]: [usize; 4]| {
            let inner = channels * widening;
            let parts = LiteBlockParts {
                shape: LiteBlock {
                    widening,
                    inner,
                    outputs,
                    depthwise: LiteConvolution {
                        kernel,
                        stride,
                        margin: [before, after],
                    },
                    skip: stride == 1 && outputs == channels,
                },
                expand: (widening > 1).then(|| dense(channels, inner)),
                depthwise: WindowParts {
                    weight: dense(kernel * kernel, inner).weight,
                    bias: dense(1, inner).bias,
                },
                project: dense(inner, outputs),
            };
            channels = outputs;
            parts
        };
    // Of 11 pixels, and 6, and 3.
    let blocks = vec![
        block(1, 8, [3, 1, 1, 1]),
        block(3, 8, [5, 1, 2, 2]),
        block(2, 12, [3, 2, 1, 1]),
        block(2, 20, [5, 2, 1, 2]),
    ];
    let parts = LiteParts {
        side,
        stem_shape: LiteConvolution {
            kernel: 3,
            stride: 2,
            margin: [1, 1],
        },
        stem: WindowParts {
            weight: dense(27, LITE_STEM).weight,
            bias: dense(1, LITE_STEM).bias,
        },
        blocks,
        head: dense(20, LITE_FEATURES),
    };
    Case {
        name: "blocks of an EfficientNet-Lite".to_owned(),
        parts: EncoderParts::EfficientNetLite(parts),
        rows: 2,
    }
}

/// Full bunches and short ones, more than are under way at a time.
fn run(gpu: &Gpu, case: &Case) {
    let Case { name, parts, rows } = case;
    if !is_wanted(name) {
        return;
    }
    let (input, width) = (parts.input().len(), parts.width());
    let mut encoder = GpuEncoder::new(gpu, parts, *rows).expect("an encoder with kernels");
    let mut processor = Encoder::new(&Threads::default(), parts.clone(), *rows);
    let bunches = [*rows, 1, 0, *rows];
    let mut numbers = Numbers(Stream::new(6, 0));
    let mut images = numbers.some(bunches.iter().sum::<usize>() * input, 2.0);
    // A picture of zeros, and one with what is no number.
    images[..input].fill(0.0);
    images[rows * input + input / 2] = f32::NAN;
    let mut expected = vec![0.0; images.len() / input * width];
    processor.encode(images.len() / input, &images, &mut expected);
    let (mut found, mut first) = (Vec::new(), 0);
    for pictures in bunches {
        let numbers = pictures * input;
        let room = encoder.pictures().expect("room for a bunch");
        room[..numbers].copy_from_slice(&images[first..first + numbers]);
        first += numbers;
        encoder.queue(pictures).expect("a bunch");
        if encoder.under_way() == BUNCHES {
            assert!(encoder.pictures().is_err(), "{name}: a bunch is in the way");
            found.extend_from_slice(encoder.take().expect("vectors"));
        }
    }
    while encoder.under_way() > 0 {
        found.extend_from_slice(encoder.take().expect("vectors"));
    }
    assert!(encoder.take().is_err() && encoder.queue(rows + 1).is_err());
    same(name, &found, &expected);
    let no_number = found.iter().filter(|x| x.is_nan()).count();
    assert!(
        no_number > 0 && no_number <= width,
        "{name}: of one picture"
    );
}
