//! From layers as asked for to layers that compute: shapes are followed, tensors placed, and what
//! cannot be built is refused by name.

use crate::NnError;
use crate::chain::Chain;
use crate::dims::Dims;
use crate::init::Initial;
use crate::layers::batch_norm::BatchNorm;
use crate::layers::dropout::Dropout;
use crate::layers::gelu::Gelu;
use crate::layers::linear::Linear;
use crate::layers::relu::Relu;
use crate::layers::residual::Residual;
use crate::layout::Layout;
use crate::spec::{LayerSpec, LayerSummary, NamedLayer};

/// What has been built so far.
pub(crate) struct Builder {
    /// The most rows that a pass may have.
    rows: usize,
    /// Layers begun so far.
    count: usize,
    pub(crate) layout: Layout,
    /// How each of the layout's tensors begins.
    pub(crate) initial: Vec<Initial>,
    pub(crate) summary: Vec<LayerSummary>,
    /// Whether some batch-norm sees one number of each channel a row.
    pub(crate) normalises_vectors: bool,
}

impl Builder {
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows,
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
        for layer in layers {
            let before = self.layout.parameters;
            let listed = self.summary.len();
            let kind = self.layer(layer, &mut chain)?;
            let parts = self.summary[listed..].iter().map(|part| part.parameters);
            self.summary.push(LayerSummary {
                name: layer.name.clone(),
                kind,
                output: chain.output(),
                parameters: self.layout.parameters - before - parts.sum::<usize>(),
            });
        }
        chain.plan(self.rows);
        Ok(chain)
    }

    /// Appends one layer to a chain and says what it is.
    fn layer(&mut self, layer: &NamedLayer, chain: &mut Chain) -> Result<&'static str, NnError> {
        let (name, input) = (&layer.name, chain.output());
        let number = self.count;
        self.count += 1;
        Ok(match layer.spec {
            LayerSpec::Linear { out } => {
                if out == 0 {
                    return Err(NnError::NoOutputs {
                        layer: name.clone(),
                    });
                }
                let linear = Linear::new(name, input.len(), out, &mut self.layout);
                let bound = Initial::uniform_for_inputs(input.len());
                self.initial.extend([bound, bound]);
                chain.push(Box::new(linear), Dims::vector(out));
                "linear"
            }
            LayerSpec::BatchNorm => {
                let norm = BatchNorm::new(name, input.channels, false, &mut self.layout);
                let begin = [Initial::Constant(1.0), Initial::Constant(0.0)];
                self.initial.extend(begin);
                self.normalises_vectors |= input.pixels() == 1;
                chain.push(Box::new(norm), input);
                "batch-norm"
            }
            LayerSpec::Relu => {
                chain.push_in_place(Box::new(Relu));
                "relu"
            }
            LayerSpec::Gelu => {
                chain.push(Box::new(Gelu), input);
                "gelu"
            }
            LayerSpec::Dropout { p } => {
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
                "dropout"
            }
            LayerSpec::Residual {
                ref body,
                ref shortcut,
            } => {
                if body.is_empty() {
                    return Err(NnError::EmptyBody {
                        layer: name.clone(),
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
                        layer: name.clone(),
                        body: output,
                        shortcut: found,
                    });
                }
                chain.push(Box::new(Residual::new(body, shortcut)), output);
                "residual"
            }
        })
    }
}
