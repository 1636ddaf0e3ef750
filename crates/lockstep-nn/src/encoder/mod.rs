//! Pretrained networks that turn pictures into vectors: CLIP's image encoder and EfficientNet-Lite.
//!
//! An [`Encoder`] only computes forwards. It is built from named tensors, which it lays out once as the
//! products want them, and from then on allocates nothing. A picture's vector has the same bits however
//! many pictures are computed in one call, on any number of threads and every instruction set: every product is a chain in the
//! order of its depth, every other sum has an order that its length alone decides.

mod activation;
mod attention;
mod clip;
mod clip_parts;
mod config;
mod dense;
mod depthwise;
mod efficientnet;
mod error;
mod lite;
mod lite_parts;
mod norm;
mod parts;
mod weights;

pub use clip_parts::{ClipBlockParts, ClipParts};
pub use config::{Activation, ClipConfig};
pub use error::EncoderError;
pub use lite::{
    EPSILON as LITE_EPSILON, FEATURES as LITE_FEATURES, LITE_MEAN, LITE_STD, LiteBlock,
    LiteConvolution, STEM as LITE_STEM, lite_blocks, lite_image_size,
};
pub use lite_parts::{LiteBlockParts, LiteParts};
pub use parts::{DenseParts, EncoderParts, NormParts, WindowParts};

use crate::dims::Dims;
use crate::fixed16::Precision;
use crate::threads::Threads;
use clip::Clip;
use efficientnet::EfficientNet;

/// The mean of CLIP's training pictures, a channel, with pixels from 0 to 1.
pub const CLIP_MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];

/// Their standard deviation.
pub const CLIP_STD: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];

/// Where an encoder's weights come from: the numbers of a tensor by its name and the shape that it
/// should have, the last index running fastest.
pub type Tensors<'a> = &'a mut dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, EncoderError>;

/// A network that turns pictures into vectors.
pub struct Encoder {
    input: Dims,
    width: usize,
    /// The most pictures that its buffers hold.
    rows: usize,
    threads: Threads,
    network: EncoderNetwork,
}

enum EncoderNetwork {
    Clip(Box<Clip>),
    EfficientNet(Box<EfficientNet>),
}

impl Encoder {
    /// An encoder of these parts in single precision, for up to `rows` pictures at a time on these threads.
    pub fn new(threads: &Threads, parts: EncoderParts, rows: usize) -> Self {
        Self::in_precision(Precision::F32, threads, parts, rows)
    }

    /// The same in a precision: that of its dense layers, and of convolutions of single pixels.
    pub fn in_precision(
        precision: Precision,
        threads: &Threads,
        parts: EncoderParts,
        rows: usize,
    ) -> Self {
        let rows = rows.max(1);
        Self {
            input: parts.input(),
            width: parts.width(),
            rows,
            threads: threads.clone(),
            network: match parts {
                EncoderParts::Clip(parts) => {
                    EncoderNetwork::Clip(Box::new(Clip::new(precision, threads, parts, rows)))
                }
                EncoderParts::EfficientNetLite(parts) => {
                    let network = EfficientNet::new(precision, threads, parts, rows);
                    EncoderNetwork::EfficientNet(Box::new(network))
                }
            },
        }
    }

    /// CLIP's image encoder: [`EncoderParts::clip`] says which tensors it has.
    ///
    /// # Errors
    /// When the configuration cannot be, or a tensor is missing or has another shape.
    pub fn clip(
        threads: &Threads,
        config: &ClipConfig,
        tensors: Tensors<'_>,
        rows: usize,
    ) -> Result<Self, EncoderError> {
        let parts = EncoderParts::clip(config, tensors)?;
        Ok(Self::new(threads, parts, rows))
    }

    /// EfficientNet-Lite 0, 1 or 2 without its classifier: [`EncoderParts::efficientnet_lite`] says which tensors it has.
    ///
    /// # Errors
    /// When there is no such variant, or a tensor is missing or has another shape.
    pub fn efficientnet_lite(
        threads: &Threads,
        variant: u32,
        tensors: Tensors<'_>,
        rows: usize,
    ) -> Result<Self, EncoderError> {
        let parts = EncoderParts::efficientnet_lite(variant, tensors)?;
        Ok(Self::new(threads, parts, rows))
    }

    /// The shape of a picture.
    pub fn input(&self) -> Dims {
        self.input
    }

    /// Numbers of a picture's vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Computes the vectors of `rows` pictures. `images` are normalised pixels, channels innermost; `out`
    /// takes a vector a picture.
    ///
    /// # Panics
    /// When `images` or `out` has another length than `rows` asks for.
    pub fn encode(&mut self, rows: usize, images: &[f32], out: &mut [f32]) {
        assert_eq!(
            images.len(),
            rows * self.input.len(),
            "numbers of {rows} pictures"
        );
        assert_eq!(out.len(), rows * self.width, "numbers of {rows} vectors");
        let images = images.chunks(self.rows * self.input.len());
        for (images, out) in images.zip(out.chunks_mut(self.rows * self.width)) {
            match &mut self.network {
                EncoderNetwork::Clip(net) => net.encode(&self.threads, images, out),
                EncoderNetwork::EfficientNet(net) => net.encode(&self.threads, images, out),
            }
        }
    }
}

/// A square picture in colour.
fn square(side: usize) -> Dims {
    Dims {
        height: side,
        width: side,
        channels: 3,
    }
}
