//! `y = x W + b`.

use super::flatten::flatten;
use super::{Layer, Pass};
use crate::build::Site;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::factors::Factored;
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::Replica;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::Threads;

/// The settings of a dense layer. An image is flattened for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// Number of outputs.
    pub out: usize,
}

impl LayerKind for Linear {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        flatten(chain);
        let (name, out) = (site.name, self.out);
        if out == 0 {
            return Err(LayerFault::NoOutputs.of(name));
        }
        let inputs = chain.output().len();
        let linear = LinearLayer::new(name, inputs, out, &model.compute, &mut model.layout);
        let bound = Initial::uniform_for_inputs(inputs);
        model.initial.extend([bound, bound]);
        chain.push(Box::new(linear), Dims::vector(out));
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let flow = graph.flattened("flatten", flow);
        let own = graph.tensors(&["weight", "bias"]);
        let settings = [("transB", Attribute::Int(1))];
        Flow {
            value: graph.apply("Gemm", graph.name, &flow.value, &own, &settings),
            dims: graph.output,
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        format!("Linear({})", self.out)
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self { out: 5 })
    }
}

/// A dense layer with a bias. What it computes is [`Factored`]'s.
pub(crate) struct LinearLayer {
    factored: Factored,
    /// The place of `factored` in the layout.
    number: usize,
    compute: Threads,
}

impl LinearLayer {
    /// Appends the layer's tensors to the layout.
    pub(crate) fn new(
        name: &str,
        inputs: usize,
        outputs: usize,
        compute: &Threads,
        layout: &mut Layout,
    ) -> Self {
        let factored = Factored::new(name, inputs, outputs, layout);
        layout.factored.push(factored.clone());
        Self {
            factored,
            number: layout.factored.len() - 1,
            compute: compute.clone(),
        }
    }
}

impl Layer for LinearLayer {
    fn operation(&self) -> Operation {
        Operation::Dense(self.factored.clone())
    }

    fn scratch(&self, rows: usize) -> usize {
        rows * (self.factored.inputs + self.factored.outputs)
    }

    fn dense(&self) -> Option<usize> {
        Some(self.number)
    }

    fn forward(&mut self, _: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        self.factored.forward(&self.compute, state, x, y);
    }

    fn backward(
        &mut self,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let Factored {
            inputs, outputs, ..
        } = self.factored;
        let rows = dy.len() / outputs;
        let taken = replica.factors(self.number, x, dy);
        if let Some(dx) = dx {
            let (dy_t, dx_t) = scratch.split_at_mut(rows * outputs);
            let dx_t = &mut dx_t[..rows * inputs];
            transpose(dy, outputs, dy_t);
            let state = replica.state();
            (self.factored).input_gradient(&self.compute, state, dy_t, dx_t);
            transpose(dx_t, rows, dx);
        }
        if taken {
            return replica.factors_used(self.number);
        }
        for chunk in self.factored.chunks.clone().rev() {
            replica.gradient(chunk, &mut |gradient| {
                (self.factored).gradient(&self.compute, chunk, (x, dy), gradient);
            });
        }
    }
}

for_each_isa! {
    /// Writes the transpose of `from`, whose rows have `width` numbers.
    pub(crate) fn transpose(from: &[f32], width: usize, to: &mut [f32]) {
        const BLOCK: usize = 16;
        let height = from.len() / width;
        for top in (0..height).step_by(BLOCK) {
            for left in (0..width).step_by(BLOCK) {
                for j in left..(left + BLOCK).min(width) {
                    for i in top..(top + BLOCK).min(height) {
                        to[j * height + i] = from[i * width + j];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check_layer;
    use super::*;
    use crate::factors::PANEL;

    #[test]
    fn it_agrees_with_finite_differences() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 4), (17, 20, 9), (2, 3, 40)] {
            let mut layout = Layout::default();
            let mut layer =
                LinearLayer::new("l", inputs, outputs, &Threads::default(), &mut layout);
            check_layer(&mut layer, &layout, rows, inputs, outputs, &|state, x| {
                let (weight, bias) = state.split_at(inputs * outputs);
                let weight = |i: usize, o: usize| {
                    let first = o / PANEL * PANEL;
                    let width = PANEL.min(outputs - first);
                    weight[first * inputs + i * width + o - first]
                };
                x.chunks(inputs)
                    .flat_map(|x| {
                        (0..outputs).map(move |o| {
                            let products = x.iter().enumerate().map(|(i, x)| x * weight(i, o));
                            bias[o] + products.sum::<f64>()
                        })
                    })
                    .collect()
            });
        }
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let from: Vec<f32> = (0..37 * 19).map(|x| x as f32).collect();
        let (mut there, mut back) = (vec![0.0; from.len()], vec![0.0; from.len()]);
        transpose(&from, 19, &mut there);
        transpose(&there, 37, &mut back);
        assert_eq!(from, back);
        assert_eq!(there[1], from[19]);
    }
}
