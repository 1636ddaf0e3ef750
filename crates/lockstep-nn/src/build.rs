//! From layers as asked for to layers that compute: shapes are followed, tensors placed, and what
//! cannot be built is refused by name.

use crate::chain::Chain;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::fixed16::Precision;
use crate::init::Initial;
use crate::layout::Layout;
use crate::rates::LayerRates;
use crate::spec::{FirstWeights, LayerSpec, LayerSummary, NamedLayer};

/// Where in a network a layer is built.
pub(crate) struct Site<'a> {
    /// What the layer is called: the prefix of its tensors' names.
    pub(crate) name: &'a str,
    /// How its weights are drawn.
    pub(crate) weights: FirstWeights,
    /// Layers begun before it.
    pub(crate) number: usize,
    /// Whether a batch-norm is a ReLU too, since one follows.
    pub(crate) with_relu: bool,
    /// What was built before it.
    pub(crate) model: &'a mut ModelBuilder,
    /// The chain that it is appended to.
    pub(crate) chain: &'a mut Chain,
}

/// What has been built so far.
pub(crate) struct ModelBuilder {
    /// The most rows that a pass may have.
    pub(crate) rows: usize,
    /// The most lanes that they may be of.
    pub(crate) lanes: usize,
    /// How products are computed.
    pub(crate) precision: Precision,
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
    pub(crate) fn new(rows: usize, lanes: usize) -> Self {
        Self {
            rows,
            lanes,
            precision: Precision::default(),
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
            let definition = layer.spec.definition();
            let number = self.count;
            self.count += 1;
            if fused {
                // Built with the batch-norm before it.
                fused = false;
            } else {
                let next = layers.get(i + 1).map(|next| &next.spec);
                fused = layer.spec == LayerSpec::BatchNorm && next == Some(&LayerSpec::Relu);
                definition.build(&mut Site {
                    name: &layer.name,
                    weights: layer.weights,
                    number,
                    with_relu: fused,
                    model: self,
                    chain: &mut chain,
                })?;
            }
            chain.name_newest(&layer.name);
            if !definition.has_named_parts() {
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
}

/// Groups must part channels evenly.
pub(crate) fn check_groups(name: &str, groups: usize, channels: &[usize]) -> Result<(), NnError> {
    let uneven = |&&channels: &&usize| groups == 0 || channels % groups != 0;
    match channels.iter().find(uneven) {
        None => Ok(()),
        Some(&channels) => Err(LayerFault::Groups { groups, channels }.of(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers;

    fn error(specs: Vec<LayerSpec>) -> String {
        let input = Dims::image(5, 4, 3);
        let built = ModelBuilder::new(2, 1).chain(&NamedLayer::stack(specs), input);
        built
            .err()
            .expect("a chain that cannot be built")
            .to_string()
    }

    fn convolution(kernel: usize, stride: usize) -> LayerSpec {
        LayerSpec::Conv2d(layers::Conv2d {
            out: 2,
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: [1, 0],
            groups: 1,
            bias: false,
        })
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
        let pool = LayerSpec::MaxPool(layers::MaxPool {
            kernel: [1, 3],
            stride: [1, 1],
            padding: [1, 1],
        });
        let found = error(vec![pool]);
        assert!(found.contains("the margin may be half a window"), "{found}");
    }

    #[test]
    fn groups_that_do_not_part_the_channels_are_refused() {
        assert_eq!(
            error(vec![LayerSpec::GroupNorm(layers::GroupNorm { groups: 2 })]),
            "layer layers.0 parts 3 channels into 2 groups; they must be parted evenly"
        );
        let LayerSpec::Conv2d(layers::Conv2d {
            kernel,
            stride,
            padding,
            bias,
            ..
        }) = convolution(3, 1)
        else {
            unreachable!()
        };
        let grouped = LayerSpec::Conv2d(layers::Conv2d {
            out: 4,
            groups: 3,
            kernel,
            stride,
            padding,
            bias,
        });
        assert!(error(vec![grouped]).contains("parts 4 channels into 3 groups"));
    }

    #[test]
    fn sequences_are_convolved_with_kernels_of_pytorchs_shape() {
        let convolution = LayerSpec::Conv1d(layers::Conv1d {
            out: 4,
            kernel: 3,
            stride: 2,
            padding: 1,
            groups: 1,
            bias: true,
        });
        let of_length = |width| {
            LayerSpec::Unflatten(layers::Unflatten {
                shape: Dims {
                    height: 1,
                    width,
                    channels: 2,
                },
            })
        };
        let layers = NamedLayer::stack([of_length(9), convolution.clone()]);
        let mut builder = ModelBuilder::new(2, 1);
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
        let residual = LayerSpec::Residual(layers::Residual {
            body: vec![NamedLayer::new("conv", convolution(3, 1))],
            shortcut: vec![],
        });
        assert_eq!(
            error(vec![residual]),
            "layer layers.0 adds its body's 5 x 2 x 2 to its shortcut's 5 x 4 x 3; they must be the same \
             shape"
        );
        let empty = LayerSpec::Residual(layers::Residual {
            body: vec![],
            shortcut: vec![],
        });
        assert!(error(vec![empty]).contains("without layers in its body"));
    }

    #[test]
    fn a_dense_layer_flattens_an_image_and_every_layer_is_listed() {
        let layers = NamedLayer::stack([
            convolution(3, 1),
            LayerSpec::BatchNorm,
            LayerSpec::Relu,
            LayerSpec::Linear(layers::Linear { out: 7 }),
        ]);
        let input = Dims::image(5, 4, 3);
        let mut builder = ModelBuilder::new(2, 1);
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
