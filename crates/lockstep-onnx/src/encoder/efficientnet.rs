//! EfficientNet-Lite without its classifier: blocks widen the channels, convolve each by itself, and narrow them again.

use super::tensor;
use crate::OnnxError;
use crate::graph::{Graph, GraphWriter, Value, float, int, ints};
use lockstep_embed::EncoderModel;
use lockstep_nn::encoder::{LITE_EPSILON, LITE_FEATURES, LITE_STEM, LiteConvolution, lite_blocks};

/// The features of normalised pictures, and how many a picture has.
pub(super) fn lite(
    graph: &mut Graph,
    encoder: &EncoderModel,
    variant: u32,
    pictures: Value,
) -> Result<(Value, usize), OnnxError> {
    let (stem, blocks) =
        lite_blocks(variant).map_err(|source| lockstep_embed::EmbedError::Encoder {
            path: encoder.path.clone(),
            source,
        })?;
    let mut lite = Lite { graph, encoder };
    lite.graph.numbers("low", &[], &[0.0]);
    lite.graph.numbers("high", &[], &[6.0]);
    let mut flow = lite.convolution("_conv_stem", "_bn0", &pictures, [LITE_STEM, 3], 1, &stem)?;
    flow = lite.relu6("_relu0", &flow);
    let mut channels = LITE_STEM;
    for (i, block) in blocks.iter().enumerate() {
        let name = format!("_blocks.{i}");
        let part = |part: &str| format!("{name}.{part}");
        let mut inner = flow.clone();
        if block.widening != 1 {
            let shape = [block.inner, channels];
            let own = (part("_expand_conv"), part("_bn0"));
            inner = lite.pointwise(&own.0, &own.1, &inner, shape)?;
            inner = lite.relu6(&part("_relu0"), &inner);
        }
        let own = (part("_depthwise_conv"), part("_bn1"));
        let (shape, groups) = ([block.inner, 1], block.inner);
        inner = lite.convolution(&own.0, &own.1, &inner, shape, groups, &block.depthwise)?;
        inner = lite.relu6(&part("_relu1"), &inner);
        let own = (part("_project_conv"), part("_bn2"));
        inner = lite.pointwise(&own.0, &own.1, &inner, [block.outputs, block.inner])?;
        flow = match block.skip {
            true => lite.graph.node("Add", &name, &[&inner, &flow], &[]),
            false => inner,
        };
        channels = block.outputs;
    }
    flow = lite.pointwise("_conv_head", "_bn1", &flow, [LITE_FEATURES, channels])?;
    flow = lite.relu6("_relu1", &flow);
    flow = lite
        .graph
        .node("GlobalAveragePool", "_avg_pooling", &[&flow], &[]);
    flow = lite
        .graph
        .node("Flatten", "features", &[&flow], &[int("axis", 1)]);
    Ok((flow, LITE_FEATURES))
}

struct Lite<'a> {
    graph: &'a mut Graph,
    encoder: &'a EncoderModel,
}

impl Lite<'_> {
    /// A convolution without bias, and the batch normalisation after it.
    fn convolution(
        &mut self,
        conv: &str,
        norm: &str,
        value: &str,
        [outputs, inputs]: [usize; 2],
        groups: usize,
        window: &LiteConvolution,
    ) -> Result<Value, OnnxError> {
        let side = window.kernel;
        let weight = format!("{conv}.weight");
        let weight = tensor(
            self.graph,
            self.encoder,
            &weight,
            &[outputs, inputs, side, side],
        )?;
        let [before, after] = window.margin;
        let settings = [
            ints("kernel_shape", &[side; 2]),
            ints("strides", &[window.stride; 2]),
            ints("pads", &[before, before, after, after]),
            int("group", groups as i64),
        ];
        let value = self.graph.node("Conv", conv, &[value, &weight], &settings);
        let mut part = |part: &str| {
            let name = format!("{norm}.{part}");
            tensor(self.graph, self.encoder, &name, &[outputs])
        };
        let (scale, shift) = (part("weight")?, part("bias")?);
        let (mean, variance) = (part("running_mean")?, part("running_var")?);
        let inputs = [&value[..], &scale, &shift, &mean, &variance];
        let epsilon = [float("epsilon", LITE_EPSILON as f32)];
        Ok(self
            .graph
            .node("BatchNormalization", norm, &inputs, &epsilon))
    }

    /// A convolution of single pixels.
    fn pointwise(
        &mut self,
        conv: &str,
        norm: &str,
        value: &str,
        shape: [usize; 2],
    ) -> Result<Value, OnnxError> {
        let pixel = LiteConvolution {
            kernel: 1,
            stride: 1,
            margin: [0, 0],
        };
        self.convolution(conv, norm, value, shape, 1, &pixel)
    }

    /// At least 0 and at most 6.
    fn relu6(&mut self, name: &str, value: &str) -> Value {
        self.graph.node("Clip", name, &[value, "low", "high"], &[])
    }
}
