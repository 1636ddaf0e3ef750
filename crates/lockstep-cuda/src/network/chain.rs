//! Layers in a row and the activations between them, as lockstep-nn's own chain has them.
//!
//! What changes an activation where it lies belongs to the layer that makes the activation: its kernels may do it on the
//! way, which saves a launch and a visit of the memory. On the way back it belongs to the layer above, which makes the
//! gradient by that activation.

use super::activation::ActivationLayer;
use super::batch_norm::BatchNormLayer;
use super::convolution::{Convolution, Fixed16Layer};
use super::copy::{CopyLayer, copy};
use super::dense::DenseLayer;
use super::embedding::EmbeddingLayer;
use super::group_norm::GroupNormLayer;
use super::head::is_head;
use super::learn::DenseGradient;
use super::loss::{LossKernel, LossPass};
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::{MOST_STEPS, Pointwise, PointwiseStep};
use super::pool::PoolLayer;
use super::residual::ResidualLayer;
use super::transpose::TransposeLayer;
use crate::error::CudaError;
use crate::memory::DeviceSlice;
use lockstep_nn::{Factored, Operation, OperationChain, Precision};

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

    /// The layer, if it is a dense one. Such a layer puts the gradient of its weights off to the end of a pass, so that the
    /// gradient by its output must stay until then; and as the first of a network it gathers its rows by itself.
    fn as_dense(&self) -> Option<&Factored> {
        None
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
    Ok(match operation {
        Operation::Dense { layer, precision } => match precision {
            Precision::F32 => Part::layer(DenseLayer(layer.clone())),
            Precision::Fixed16 => Part::layer(Fixed16Layer::dense(layer, planner)?),
        },
        Operation::Convolution {
            method,
            window,
            input,
            output,
            weight,
            bias,
        } => {
            let convolution = Convolution {
                window: *window,
                input: *input,
                output: *output,
                weight: weight.clone(),
                bias: bias.clone(),
            };
            Part::Layer(convolution.layer(*method, planner)?)
        }
        Operation::BatchNorm(norm) => {
            Part::layer(BatchNormLayer::new(norm.clone(), inputs, planner))
        }
        Operation::GroupNorm(norm) => {
            Part::layer(GroupNormLayer::new(norm.clone(), inputs, planner))
        }
        &Operation::MaxPool { window, input } => {
            Part::layer(PoolLayer::max(planner, window, input)?)
        }
        &Operation::AvgPool { window, input } => {
            Part::layer(PoolLayer::mean(planner, window, input)?)
        }
        &Operation::GlobalPool { input } => Part::layer(PoolLayer::image(planner, input)?),
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
    /// Those by the outputs of dense layers, which stay.
    kept_gradients: Vec<Option<DeviceSlice<f32>>>,
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
            let activations = activations.collect();
            let trained_rows = planner.trained_rows;
            let kept_gradients = stages.iter().map(|stage| {
                let is_kept = stage.layer.as_dense().is_some();
                is_kept.then(|| planner.keep(trained_rows * stage.features))
            });
            Ok(Self {
                kept_gradients: kept_gradients.collect(),
                activations,
                stages,
                inputs,
                gradients,
                first_trained,
            })
        })
    }

    /// Whether the first layer gathers the rows of a batch by itself.
    pub(crate) fn gathers(&self) -> bool {
        let first = self.stages.first();
        first.is_some_and(|stage| stage.layer.as_dense().is_some())
    }

    /// Appends what computes `y` from `x`.
    pub(crate) fn forward(&self, pass: &mut Pass<'_>, x: DeviceSlice<f32>, y: DeviceSlice<f32>) {
        self.forward_to(pass, self.stages.len(), x, y);
    }

    /// The same of the first stages only; `y` is the output of the very last one.
    fn forward_to(
        &self,
        pass: &mut Pass<'_>,
        count: usize,
        x: DeviceSlice<f32>,
        y: DeviceSlice<f32>,
    ) {
        for (i, stage) in self.stages[..count].iter().enumerate() {
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
    /// wanted. `x` is what [`Chain::forward`] had. Others may write to `dy` afterwards.
    pub(crate) fn backward(
        &self,
        pass: &mut Pass<'_>,
        x: DeviceSlice<f32>,
        dy: DeviceSlice<f32>,
        dx: Option<DeviceSlice<f32>>,
    ) {
        let dy = match self.kept_gradients.last() {
            Some(&Some(kept)) => {
                let kept = kept.first(dy.len());
                copy(pass, dy, kept);
                kept
            }
            _ => dy,
        };
        self.backward_from(pass, self.stages.len(), (x, dy, dx));
    }

    /// Appends what computes the gradients of a network by a loss: all of a step but for its beginning and its end.
    pub(crate) fn step(&self, pass: &mut Pass<'_>, x: DeviceSlice<f32>, loss: &LossPass<'_>) {
        let batch = loss.batch;
        let count = self.stages.len();
        if let Some(layer) = self.head(loss.kernel) {
            let last = count - 1;
            self.forward_to(pass, last, x, batch.scores);
            let of_last = self.input(pass, last, x);
            let dx = self.gradient(last - 1).first(of_last.len());
            let below = self.stages[last - 1].pointwise(pass);
            loss.head(pass, layer, (of_last, dx), below);
            let dy = batch.delta;
            pass.learn(layer, DenseGradient { x: of_last, dy });
            return self.backward_from(pass, last, (x, dx, None));
        }
        self.forward_to(pass, count, x, batch.scores);
        loss.push(pass);
        self.backward_from(pass, count, (x, batch.delta, None));
    }

    /// The last layer, if there is a kernel that computes it together with the loss, and something below it learns.
    fn head(&self, loss: &LossKernel) -> Option<&Factored> {
        let last = self.stages.last()?;
        let layer = last.layer.as_dense()?;
        let is_last = self.first_trained? + 1 < self.stages.len() && last.then.is_empty();
        (is_last && loss.has_head() && is_head(layer)).then_some(layer)
    }

    /// Where the gradient by the output of a stage goes.
    fn gradient(&self, stage: usize) -> DeviceSlice<f32> {
        self.kept_gradients[stage].unwrap_or(self.gradients[stage % 2])
    }

    /// What goes back from the first `count` stages on.
    fn backward_from(
        &self,
        pass: &mut Pass<'_>,
        count: usize,
        (x, dy, dx): (DeviceSlice<f32>, DeviceSlice<f32>, Option<DeviceSlice<f32>>),
    ) {
        let first = match dx {
            Some(_) => Some(0),
            None => self.first_trained,
        };
        let Some(first) = first else {
            return;
        };
        let mut dy = dy;
        for i in (first..count).rev() {
            let layer = &self.stages[i].layer;
            let x = self.input(pass, i, x);
            if i == first {
                let below = pass.pointwise(&[], 0);
                return layer.backward(pass, Backward { x, dy, dx, below });
            }
            let to = self.gradient(i - 1).first(x.len());
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
            0 if pass.begin_of(x).is_some() => x,
            0 => x.first(pass.rows * self.inputs),
            i => self.activations[i - 1].first(pass.rows * self.stages[i - 1].features),
        }
    }
}
