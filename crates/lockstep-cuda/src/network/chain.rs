//! Layers in a row and the activations between them, as lockstep-nn's own chain has them.
//!
//! What changes an activation where it lies belongs to the layer that makes the activation: its kernels may do it on the
//! way, which saves a launch and a visit of the memory. On the way back it belongs to the layer above, which makes the
//! gradient by that activation.

use super::activation::ActivationLayer;
use super::batch_norm::BatchNormLayer;
use super::copy::CopyLayer;
use super::dense::DenseLayer;
use super::embedding::EmbeddingLayer;
use super::group_norm::GroupNormLayer;
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::{MOST_STEPS, Pointwise, PointwiseStep};
use super::residual::ResidualLayer;
use super::transpose::TransposeLayer;
use crate::error::CudaError;
use crate::memory::DeviceSlice;
use lockstep_nn::{Operation, OperationChain};

/// What a layer computes on the way there.
pub(crate) struct Forward {
    pub(crate) x: DeviceSlice<f32>,
    pub(crate) y: DeviceSlice<f32>,
    /// What is then done to `y`; nothing unless [`Layer::is_pointwise_done`].
    pub(crate) then: Pointwise,
}

/// What a layer computes on the way back.
pub(crate) struct Backward {
    /// The input, as the layer had it on the way there.
    pub(crate) x: DeviceSlice<f32>,
    /// The gradient by the output. It must not be changed.
    pub(crate) dy: DeviceSlice<f32>,
    /// Where the gradient by the input goes, if it is wanted.
    pub(crate) dx: Option<DeviceSlice<f32>>,
    /// What was done to `x` where it lies: the gradient is wanted by what it was before. Nothing unless
    /// [`Layer::is_pointwise_done`].
    pub(crate) below: Pointwise,
}

/// A layer whose output is a new activation.
pub(crate) trait Layer {
    /// Whether its kernels do what is pointwise; else it is done after them.
    fn is_pointwise_done(&self) -> bool {
        false
    }

    /// Appends what computes the output.
    fn forward(&self, pass: &mut Pass<'_>, forward: Forward);

    /// Appends what computes the gradient by the input, if it is wanted, and those of the parameters, lane by lane.
    fn backward(&self, pass: &mut Pass<'_>, backward: Backward);
}

/// A layer, and what is done to its output where it lies.
struct Stage {
    layer: Box<dyn Layer>,
    then: Vec<PointwiseStep>,
    /// Numbers of a row of the output.
    features: usize,
}

impl Stage {
    /// What is done to its output in a pass.
    fn pointwise(&self, pass: &Pass<'_>) -> Pointwise {
        pass.pointwise(&self.then, self.features)
    }
}

/// What an operation is here.
enum Part {
    /// It makes a new activation.
    Layer(Box<dyn Layer>),
    /// It changes the newest one where it lies.
    Pointwise(PointwiseStep),
}

impl Part {
    fn layer(layer: impl Layer + 'static) -> Self {
        Self::Layer(Box::new(layer))
    }
}

/// What an operation on rows of so many numbers is, with its memory.
fn part(operation: &Operation, inputs: usize, planner: &mut Planner) -> Result<Part, CudaError> {
    let lacking = |what: &str| {
        Err(CudaError::Unsupported {
            what: what.to_owned(),
        })
    };
    Ok(match operation {
        Operation::Dense(dense) => Part::layer(DenseLayer(dense.clone())),
        Operation::Convolution { .. } => return lacking("a convolution"),
        Operation::BatchNorm(norm) => {
            Part::layer(BatchNormLayer::new(norm.clone(), inputs, planner))
        }
        Operation::GroupNorm(norm) => {
            Part::layer(GroupNormLayer::new(norm.clone(), inputs, planner))
        }
        Operation::MaxPool { .. } | Operation::AvgPool { .. } | Operation::GlobalPool { .. } => {
            return lacking("a pool");
        }
        Operation::Relu => Part::Pointwise(PointwiseStep::relu()),
        &Operation::LeakyRelu { slope } => Part::layer(ActivationLayer::leaky_relu(slope)),
        Operation::Gelu => Part::layer(ActivationLayer::GELU),
        Operation::Silu => Part::layer(ActivationLayer::SILU),
        Operation::Sigmoid => Part::layer(ActivationLayer::SIGMOID),
        Operation::Tanh => Part::layer(ActivationLayer::TANH),
        &Operation::Dropout {
            threshold,
            scale,
            layer,
        } => Part::Pointwise(PointwiseStep::dropout(threshold, scale, layer)),
        Operation::Embedding {
            inputs,
            outputs,
            tables,
        } => Part::layer(EmbeddingLayer::new([*inputs, *outputs], tables, planner)),
        &Operation::Transpose { width, height } => Part::layer(TransposeLayer { width, height }),
        Operation::Copy => Part::layer(CopyLayer),
        Operation::Residual { body, shortcut } => {
            Part::layer(ResidualLayer::new(body, shortcut.as_ref(), planner)?)
        }
    })
}

/// Layers in a row.
pub(crate) struct Chain {
    stages: Vec<Stage>,
    /// Numbers of a row of the input.
    inputs: usize,
    /// The output of every stage but the last, which belongs to whoever runs the chain.
    activations: Vec<DeviceSlice<f32>>,
    /// Gradients between stages go back and forth between these.
    gradients: [DeviceSlice<f32>; 2],
    /// The first stage that learns. No gradient is needed below it, unless the chain's input needs one.
    first_trained: Option<usize>,
}

impl Chain {
    /// Plans a chain.
    ///
    /// # Errors
    /// When there is no kernel for something in it.
    pub(crate) fn new(chain: &OperationChain, planner: &mut Planner) -> Result<Self, CudaError> {
        let inputs = chain.input.len();
        let features = chain.layers.iter().map(|layer| layer.output.len());
        let widest = planner.rows * features.max().unwrap_or(0).max(inputs);
        planner.lend(|planner| {
            let gradients = [planner.borrow(widest), planner.borrow(widest)];
            let mut stages: Vec<Stage> = Vec::new();
            let mut first_trained = None;
            for (i, built) in chain.layers.iter().enumerate() {
                let stage = |layer| Stage {
                    layer,
                    then: Vec::new(),
                    features: built.output.len(),
                };
                let inputs = match i {
                    0 => inputs,
                    i => chain.layers[i - 1].output.len(),
                };
                match planner.lend(|planner| part(&built.operation, inputs, planner))? {
                    Part::Layer(layer) => stages.push(stage(layer)),
                    Part::Pointwise(step) => match stages.last_mut() {
                        Some(last) if last.then.len() < MOST_STEPS => last.then.push(step),
                        _ => stages.push(Stage {
                            then: vec![step],
                            ..stage(Box::new(CopyLayer))
                        }),
                    },
                }
                if chain.first_trained == Some(i) {
                    first_trained = Some(stages.len() - 1);
                }
            }
            let rows = planner.rows;
            let kept = &stages[..stages.len().saturating_sub(1)];
            let activations = kept.iter();
            let activations = activations.map(|stage| planner.keep(rows * stage.features));
            Ok(Self {
                activations: activations.collect(),
                stages,
                inputs,
                gradients,
                first_trained,
            })
        })
    }

    /// Appends what computes `y` from `x`.
    pub(crate) fn forward(&self, pass: &mut Pass<'_>, x: DeviceSlice<f32>, y: DeviceSlice<f32>) {
        for (i, stage) in self.stages.iter().enumerate() {
            let x = self.input(pass, i, x);
            let y = match self.activations.get(i) {
                Some(y) => y.first(pass.rows * stage.features),
                None => y,
            };
            let [then, after] = stage.pointwise(pass).parted(&*stage.layer);
            stage.layer.forward(pass, Forward { x, y, then });
            after.forward(pass, y);
        }
    }

    /// Appends what computes the gradients of all that learns from that by the output, and the one by the input if it is
    /// wanted. `x` is what [`Chain::forward`] had.
    pub(crate) fn backward(
        &self,
        pass: &mut Pass<'_>,
        x: DeviceSlice<f32>,
        dy: DeviceSlice<f32>,
        dx: Option<DeviceSlice<f32>>,
    ) {
        let first = match dx {
            Some(_) => Some(0),
            None => self.first_trained,
        };
        let Some(first) = first else {
            return;
        };
        let mut dy = dy;
        for i in (first..self.stages.len()).rev() {
            let layer = &self.stages[i].layer;
            let x = self.input(pass, i, x);
            if i == first {
                let below = pass.pointwise(&[], 0);
                return layer.backward(pass, Backward { x, dy, dx, below });
            }
            let to = self.gradients[i % 2].first(x.len());
            let [below, after] = self.stages[i - 1].pointwise(pass).parted(&**layer);
            let dx = Some(to);
            layer.backward(pass, Backward { x, dy, dx, below });
            after.backward(pass, x, to);
            dy = to;
        }
    }

    /// What stage `i` reads, of the rows of a pass.
    fn input(&self, pass: &Pass<'_>, i: usize, x: DeviceSlice<f32>) -> DeviceSlice<f32> {
        match i {
            0 => x.first(pass.rows * self.inputs),
            i => self.activations[i - 1].first(pass.rows * self.stages[i - 1].features),
        }
    }
}
