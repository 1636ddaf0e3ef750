//! From layers as asked for to layers that compute: shapes are followed, tensors placed, and what
//! cannot be built is refused by name.

use crate::NnError;
use crate::chain::Chain;
use crate::compute::Compute;
use crate::dims::Dims;
use crate::init::Initial;
use crate::layers::activation::Activation;
use crate::layers::avg_pool::AvgPool;
use crate::layers::batch_norm::BatchNorm;
use crate::layers::conv2d::Conv2d;
use crate::layers::dropout::Dropout;
use crate::layers::embedding::Embedding;
use crate::layers::flatten::Flatten;
use crate::layers::gelu::Gelu;
use crate::layers::global_pool::GlobalPool;
use crate::layers::group_norm::GroupNorm;
use crate::layers::grouped::GroupedConv2d;
use crate::layers::linear::Linear;
use crate::layers::max_pool::{MAX_AREA, MaxPool};
use crate::layers::relu::Relu;
use crate::layers::residual::Residual;
use crate::layers::window::Window;
use crate::layout::Layout;
use crate::rates::LayerRates;
use crate::spec::{EmbeddingTable, LayerSpec, LayerSummary, NamedLayer};

/// What has been built so far.
pub(crate) struct ModelBuilder {
    /// The most rows that a pass may have.
    rows: usize,
    compute: Compute,
    /// How fast layers learn.
    pub(crate) rates: LayerRates,
    /// Layers begun so far.
    count: usize,
    pub(crate) layout: Layout,
    /// How each of the layout's tensors begins.
    pub(crate) initial: Vec<Initial>,
    pub(crate) summary: Vec<LayerSummary>,
    /// Whether some batch-norm sees one number of each channel a row.
    pub(crate) normalises_vectors: bool,
}

impl ModelBuilder {
    pub(crate) fn new(rows: usize, compute: &Compute) -> Self {
        Self {
            rows,
            compute: compute.clone(),
            rates: LayerRates::default(),
            count: 0,
            layout: Layout::default(),
            initial: Vec::new(),
            summary: Vec::new(),
            normalises_vectors: false,
        }
    }

    /// Builds layers in a row.
    pub(crate) fn chain(&mut self, layers: &[NamedLayer], input: Dims) -> Result<Chain, NnError> {
        let mut chain = Chain::new(input);
        let mut fused = false;
        for (i, layer) in layers.iter().enumerate() {
            let before = self.layout.parameters;
            let (listed, chunks) = (self.summary.len(), self.layout.chunks.len());
            let next = layers.get(i + 1).map(|next| &next.spec);
            match &layer.spec {
                // Built with the batch-norm before it.
                LayerSpec::Relu if fused => {
                    self.count += 1;
                    fused = false;
                }
                LayerSpec::BatchNorm => {
                    fused = next == Some(&LayerSpec::Relu);
                    self.batch_norm(&layer.name, fused, &mut chain);
                }
                _ => self.layer(layer, &mut chain)?,
            }
            // What is inside of these has names of its own.
            let has_parts = matches!(
                layer.spec,
                LayerSpec::Residual { .. } | LayerSpec::Embedding { .. }
            );
            if !has_parts {
                self.layout.rates[chunks..].fill(self.rates.of(&layer.name));
            }
            if self.layout.rates[chunks..].iter().any(|&rate| rate != 0.0) {
                chain.train_newest();
            }
            let parts = self.summary[listed..].iter().map(|part| part.parameters);
            self.summary.push(LayerSummary {
                name: layer.name.clone(),
                kind: layer.spec.kind(),
                output: chain.output(),
                parameters: self.layout.parameters - before - parts.sum::<usize>(),
            });
        }
        chain.plan(self.rows);
        Ok(chain)
    }

    /// Appends one layer to a chain.
    fn layer(&mut self, layer: &NamedLayer, chain: &mut Chain) -> Result<(), NnError> {
        let (name, input) = (&layer.name, chain.output());
        let number = self.count;
        self.count += 1;
        match layer.spec {
            LayerSpec::Linear { out } => {
                flatten(chain);
                self.linear(name, out, chain)?;
            }
            LayerSpec::BatchNorm => unreachable!("built by `chain`, which knows what follows"),
            LayerSpec::Relu => {
                chain.push_in_place(Box::new(Relu));
            }
            LayerSpec::Gelu => {
                chain.push(Box::new(Gelu), input);
            }
            LayerSpec::LeakyRelu { slope } => {
                let slope = slope as f32;
                chain.push(Box::new(Activation::LeakyRelu { slope }), input);
            }
            LayerSpec::Silu => {
                chain.push(Box::new(Activation::Silu), input);
            }
            LayerSpec::Sigmoid => {
                chain.push(Box::new(Activation::Sigmoid), input);
            }
            LayerSpec::Tanh => {
                chain.push(Box::new(Activation::Tanh), input);
            }
            LayerSpec::LayerNorm => {
                // Every pixel is a row of its own.
                let rows = self.rows * input.pixels();
                self.group_norm(name, (input.channels, 1), (1, rows), chain);
            }
            LayerSpec::GroupNorm { groups } => {
                self.check_groups(name, groups, &[input.channels])?;
                let rows = (input.pixels(), self.rows);
                self.group_norm(name, (input.channels, groups), rows, chain);
            }
            LayerSpec::Dropout { p } => {
                let p = p as f32;
                if !(0.0..1.0).contains(&p) {
                    return Err(NnError::Probability {
                        layer: name.clone(),
                        found: p,
                    });
                }
                let number = u8::try_from(number).map_err(|_| NnError::TooManyLayers {
                    layer: name.clone(),
                })?;
                let dropout = Dropout::new(p, number, input.len(), self.rows);
                chain.push_in_place(Box::new(dropout));
            }
            LayerSpec::Conv2d {
                out,
                kernel,
                stride,
                padding,
                groups,
                bias,
            } => {
                let window = Window {
                    kernel,
                    stride,
                    padding,
                };
                self.convolution(name, (out, groups), window, bias, chain)?;
            }
            LayerSpec::Conv1d {
                out,
                kernel,
                stride,
                padding,
                groups,
                bias,
            } => {
                if input.height != 1 || input.width == 1 {
                    return Err(NnError::NoSequence {
                        layer: name.clone(),
                        input,
                    });
                }
                let window = Window {
                    kernel: [1, kernel],
                    stride: [1, stride],
                    padding: [0, padding],
                };
                let weight = self.layout.tensors.len();
                self.convolution(name, (out, groups), window, bias, chain)?;
                // PyTorch's kernels of sequences have no height.
                self.layout.tensors[weight].shape.remove(2);
            }
            LayerSpec::MaxPool {
                kernel,
                stride,
                padding,
            } => {
                let window = Window {
                    kernel,
                    stride,
                    padding,
                };
                let output = pooled(name, window, input)?;
                chain.push(Box::new(MaxPool::new(input, window, self.rows)), output);
            }
            LayerSpec::AvgPool {
                kernel,
                stride,
                padding,
            } => {
                let window = Window {
                    kernel,
                    stride,
                    padding,
                };
                let output = pooled(name, window, input)?;
                chain.push(Box::new(AvgPool::new(input, window)), output);
            }
            LayerSpec::GlobalPool => {
                let pool = GlobalPool::new(input);
                chain.push(Box::new(pool), Dims::vector(input.channels));
            }
            LayerSpec::Flatten => {
                flatten(chain);
            }
            LayerSpec::Unflatten { shape } => {
                if input.pixels() != 1 || input.len() != shape.len() {
                    return Err(NnError::Unflatten {
                        layer: name.clone(),
                        shape,
                        input,
                    });
                }
                match Flatten::reversed(shape) {
                    Some(unflatten) => chain.push(Box::new(unflatten), shape),
                    None => chain.reshape(shape),
                }
            }
            LayerSpec::Embedding { ref tables } => {
                self.embedding(name, tables, chain)?;
            }
            LayerSpec::Residual {
                ref body,
                ref shortcut,
            } => {
                self.residual(name, body, shortcut, chain)?;
            }
        }
        Ok(())
    }

    fn linear(&mut self, name: &str, out: usize, chain: &mut Chain) -> Result<(), NnError> {
        let inputs = chain.output().len();
        if out == 0 {
            return Err(NnError::NoOutputs {
                layer: name.to_owned(),
            });
        }
        let linear = Linear::new(name, inputs, out, &self.compute, &mut self.layout);
        let bound = Initial::uniform_for_inputs(inputs);
        self.initial.extend([bound, bound]);
        chain.push(Box::new(linear), Dims::vector(out));
        Ok(())
    }

    fn embedding(
        &mut self,
        name: &str,
        tables: &[EmbeddingTable],
        chain: &mut Chain,
    ) -> Result<(), NnError> {
        let input = chain.output();
        let is_empty = |table: &EmbeddingTable| table.rows == 0 || table.width == 0;
        if input.pixels() != 1 || input.channels < tables.len() || tables.iter().any(is_empty) {
            return Err(NnError::Embedding {
                layer: name.to_owned(),
                tables: tables.len(),
                input,
            });
        }
        let embedding = Embedding::new(name, input.channels, tables, &mut self.layout);
        for (number, chunks) in embedding.chunks().enumerate() {
            let rate = self.rates.of(&Embedding::table_name(name, number));
            self.layout.rates[chunks].fill(rate);
        }
        let begin = |table: &EmbeddingTable| Initial::Normal { zeros: table.width };
        self.initial.extend(tables.iter().map(begin));
        let output = Dims::vector(embedding.outputs());
        chain.push(Box::new(embedding), output);
        Ok(())
    }

    fn batch_norm(&mut self, name: &str, relu: bool, chain: &mut Chain) {
        let input = chain.output();
        self.count += 1;
        let norm = BatchNorm::new(name, input.channels, relu, &mut self.layout);
        let is_frozen = self.rates.of(name) == 0.0;
        let begin = [Initial::Constant(1.0), Initial::Constant(0.0)];
        self.initial.extend(begin);
        self.normalises_vectors |= !is_frozen && input.pixels() == 1;
        chain.push(Box::new(norm.frozen(is_frozen)), input);
    }

    /// Groups of so many channels; rows of so many pixels, at most so many.
    fn group_norm(
        &mut self,
        name: &str,
        groups: (usize, usize),
        (pixels, rows): (usize, usize),
        chain: &mut Chain,
    ) {
        let norm = GroupNorm::new(name, groups, pixels, rows, &mut self.layout);
        let begin = [Initial::Constant(1.0), Initial::Constant(0.0)];
        self.initial.extend(begin);
        let input = chain.output();
        chain.push(Box::new(norm), input);
    }

    /// Groups must part channels evenly.
    fn check_groups(&self, name: &str, groups: usize, channels: &[usize]) -> Result<(), NnError> {
        let uneven = |&&channels: &&usize| groups == 0 || channels % groups != 0;
        match channels.iter().find(uneven) {
            None => Ok(()),
            Some(&channels) => Err(NnError::Groups {
                layer: name.to_owned(),
                groups,
                channels,
            }),
        }
    }

    fn convolution(
        &mut self,
        name: &str,
        (out, groups): (usize, usize),
        window: Window,
        bias: bool,
        chain: &mut Chain,
    ) -> Result<(), NnError> {
        let input = chain.output();
        if out == 0 {
            return Err(NnError::NoOutputs {
                layer: name.to_owned(),
            });
        }
        let output = Dims {
            channels: out,
            ..windows(name, window, input)?
        };
        self.check_groups(name, groups, &[input.channels, out])?;
        let (compute, layout) = (&self.compute, &mut self.layout);
        let bound = Initial::uniform_for_inputs(window.area() * (input.channels / groups));
        let tensors = if bias { 2 } else { 1 };
        self.initial.extend(std::iter::repeat_n(bound, tensors));
        match groups {
            1 => {
                let plain = Conv2d::new(name, input, output, window, bias, compute, layout);
                chain.push(Box::new(plain), output);
            }
            groups => {
                let dims = (input, output);
                let grouped = GroupedConv2d::new(name, dims, window, groups, bias, layout);
                chain.push(Box::new(grouped), output);
            }
        }
        Ok(())
    }

    fn residual(
        &mut self,
        name: &str,
        body: &[NamedLayer],
        shortcut: &[NamedLayer],
        chain: &mut Chain,
    ) -> Result<(), NnError> {
        let input = chain.output();
        if body.is_empty() {
            return Err(NnError::EmptyBody {
                layer: name.to_owned(),
            });
        }
        // The body's tensors lie before the shortcut's.
        let body = self.chain(body, input)?;
        let output = body.output();
        let shortcut = match shortcut.is_empty() {
            true => None,
            false => Some(self.chain(shortcut, input)?),
        };
        let found = shortcut.as_ref().map_or(input, Chain::output);
        if found != output {
            return Err(NnError::Paths {
                layer: name.to_owned(),
                body: output,
                shortcut: found,
            });
        }
        chain.push(Box::new(Residual::new(body, shortcut)), output);
        Ok(())
    }
}

/// Makes a vector of the newest activation.
fn flatten(chain: &mut Chain) {
    let input = chain.output();
    let output = Dims::vector(input.len());
    match Flatten::new(input) {
        Some(flatten) => chain.push(Box::new(flatten), output),
        None => chain.reshape(output),
    }
}

/// The windows on an image, if at least one fits.
fn windows(name: &str, window: Window, input: Dims) -> Result<Dims, NnError> {
    let Window {
        kernel,
        stride,
        padding,
    } = window;
    if kernel.contains(&0) || stride.contains(&0) {
        return Err(NnError::NoWindow {
            layer: name.to_owned(),
            kernel,
            stride,
        });
    }
    window.output(input).ok_or_else(|| NnError::TooSmall {
        layer: name.to_owned(),
        kernel,
        padding,
        input,
    })
}

/// The same for a pool, where every window has a pixel of the image.
fn pooled(name: &str, window: Window, input: Dims) -> Result<Dims, NnError> {
    let output = windows(name, window, input)?;
    let fits = |axis: usize| 2 * window.padding[axis] <= window.kernel[axis];
    if fits(0) && fits(1) && window.area() <= MAX_AREA {
        return Ok(output);
    }
    Err(NnError::Pool {
        layer: name.to_owned(),
        kernel: window.kernel,
        padding: window.padding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(specs: Vec<LayerSpec>) -> String {
        let input = Dims {
            height: 5,
            width: 4,
            channels: 3,
        };
        let built =
            ModelBuilder::new(2, &Compute::default()).chain(&NamedLayer::stack(specs), input);
        built
            .err()
            .expect("a chain that cannot be built")
            .to_string()
    }

    fn convolution(kernel: usize, stride: usize) -> LayerSpec {
        LayerSpec::Conv2d {
            out: 2,
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: [1, 0],
            groups: 1,
            bias: false,
        }
    }

    #[test]
    fn windows_that_do_not_fit_are_refused_with_the_layer_and_the_shapes() {
        assert_eq!(
            error(vec![LayerSpec::Relu, convolution(5, 1)]),
            "layer layers.1 has windows of 5 x 5 pixels, but its input is 5 x 4 x 3 and has a margin of \
             1 x 0; use a smaller kernel, more padding, or fewer pools before it"
        );
        assert_eq!(
            error(vec![convolution(3, 0)]),
            "layer layers.0 has windows of 3 x 3 pixels, 0 x 0 apart; each number must be at least 1"
        );
        let pool = LayerSpec::MaxPool {
            kernel: [1, 3],
            stride: [1, 1],
            padding: [1, 1],
        };
        let found = error(vec![pool]);
        assert!(found.contains("the margin may be half a window"), "{found}");
    }

    #[test]
    fn groups_that_do_not_part_the_channels_are_refused() {
        assert_eq!(
            error(vec![LayerSpec::GroupNorm { groups: 2 }]),
            "layer layers.0 parts 3 channels into 2 groups; they must be parted evenly"
        );
        let LayerSpec::Conv2d {
            kernel,
            stride,
            padding,
            bias,
            ..
        } = convolution(3, 1)
        else {
            unreachable!()
        };
        let grouped = LayerSpec::Conv2d {
            out: 4,
            groups: 3,
            kernel,
            stride,
            padding,
            bias,
        };
        assert!(error(vec![grouped]).contains("parts 4 channels into 3 groups"));
    }

    #[test]
    fn sequences_are_convolved_with_kernels_of_pytorchs_shape() {
        let convolution = LayerSpec::Conv1d {
            out: 4,
            kernel: 3,
            stride: 2,
            padding: 1,
            groups: 1,
            bias: true,
        };
        let of_length = |width| LayerSpec::Unflatten {
            shape: Dims {
                height: 1,
                width,
                channels: 2,
            },
        };
        let layers = NamedLayer::stack([of_length(9), convolution.clone()]);
        let mut builder = ModelBuilder::new(2, &Compute::default());
        let chain = builder.chain(&layers, Dims::vector(18)).unwrap();
        let output = Dims {
            height: 1,
            width: 5,
            channels: 4,
        };
        assert_eq!(chain.output(), output);
        assert_eq!(builder.layout.tensors[0].shape, [4, 2, 3]);
        assert_eq!(
            error(vec![convolution.clone()]),
            "layer layers.0 convolves sequences, and its input is 5 x 4 x 3; use `conv2d`, or put \
             `{ kind = \"unflatten\", shape = [channels, length] }` before it to read a row of numbers as a sequence"
        );
        assert_eq!(
            error(vec![LayerSpec::Flatten, of_length(7)]),
            "layer layers.1 reads rows as 1 x 7 x 2, which is 14 numbers, and its input is 60"
        );
    }

    #[test]
    fn paths_that_cannot_be_added_are_refused_with_their_shapes() {
        let residual = LayerSpec::Residual {
            body: vec![NamedLayer::new("conv", convolution(3, 1))],
            shortcut: vec![],
        };
        assert_eq!(
            error(vec![residual]),
            "layer layers.0 adds its body's 5 x 2 x 2 to its shortcut's 5 x 4 x 3; they must be the same \
             shape"
        );
        let empty = LayerSpec::Residual {
            body: vec![],
            shortcut: vec![],
        };
        assert!(error(vec![empty]).contains("without layers in its body"));
    }

    #[test]
    fn a_dense_layer_flattens_an_image_and_every_layer_is_listed() {
        let layers = NamedLayer::stack([
            convolution(3, 1),
            LayerSpec::BatchNorm,
            LayerSpec::Relu,
            LayerSpec::Linear { out: 7 },
        ]);
        let input = Dims {
            height: 5,
            width: 4,
            channels: 3,
        };
        let mut builder = ModelBuilder::new(2, &Compute::default());
        let chain = builder.chain(&layers, input).unwrap();
        assert_eq!(chain.output(), Dims::vector(7));
        let lines: Vec<(&str, usize)> = builder
            .summary
            .iter()
            .map(|line| (line.kind, line.parameters))
            .collect();
        let expected = [
            ("conv2d", 54),
            ("batch-norm", 4),
            ("relu", 0),
            ("linear", 20 * 7 + 7),
        ];
        assert_eq!(lines, expected);
        assert!(!builder.normalises_vectors);
    }
}
