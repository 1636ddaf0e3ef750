//! `y = x W + b`.

use super::flatten::flatten;
use super::{Layer, Pass, of_rows};
use crate::build::Site;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::factors::Factored;
use crate::fixed16::{Fixed16Linear, Precision};
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::{LayerGradient, Replica};
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{Threads, pieces_mut, rows_of_a_tile};

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
        let bound = Initial::uniform_for_inputs(inputs);
        model.initial.extend([bound, bound]);
        let linear: Box<dyn Layer> = match model.precision {
            Precision::F32 => Box::new(LinearLayer::new(name, inputs, out, &mut model.layout)),
            Precision::Fixed16 => {
                let most = (model.rows, model.lanes);
                let layout = &mut model.layout;
                Box::new(Fixed16Linear::new(name, (inputs, out), most, layout))
            }
        };
        chain.push(linear, Dims::vector(out));
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
}

impl LinearLayer {
    /// Appends the layer's tensors to the layout.
    pub(crate) fn new(name: &str, inputs: usize, outputs: usize, layout: &mut Layout) -> Self {
        let factored = Factored::new(name, inputs, outputs, layout);
        layout.factored.push(factored.clone());
        Self {
            factored,
            number: layout.factored.len() - 1,
        }
    }
}

impl Layer for LinearLayer {
    fn scratch(&self, _: &Threads, rows: usize) -> usize {
        rows * (self.factored.inputs + self.factored.outputs)
    }

    fn dense(&self) -> Option<usize> {
        Some(self.number)
    }

    fn operation(&self) -> Operation {
        Operation::Dense {
            layer: self.factored.clone(),
            precision: Precision::F32,
        }
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        self.factored.forward(pass.threads, state, x, y);
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let Factored {
            inputs, outputs, ..
        } = self.factored;
        let (threads, rows) = (pass.threads, dy.len() / outputs);
        let dy = &*dy;
        let of_lane = |rows| (of_rows(x, rows, inputs), of_rows(dy, rows, outputs));
        let mut taken = false;
        for (lane, rows) in pass.lanes.iter().enumerate() {
            let (x, dy) = of_lane(rows);
            taken = replica.factors(lane, self.number, x, dy);
        }
        if let Some(dx) = dx {
            let (dy_t, dx_t) = scratch.split_at_mut(rows * outputs);
            let dx_t = &mut dx_t[..rows * inputs];
            transpose_on(threads, dy, outputs, dy_t);
            let state = replica.state();
            (self.factored).input_gradient(threads, state, dy_t, dx_t);
            transpose_on(threads, dx_t, rows, dx);
        }
        if taken {
            return replica.factors_used(self.number);
        }
        let gradient = FactorProducts {
            layer: &self.factored,
            pass,
            x,
            dy,
        };
        let (lanes, chunks) = (0..pass.lanes.len(), self.factored.chunks.clone());
        replica.gradient(lanes, chunks, &gradient);
    }
}

/// The gradient of a dense layer, formed where it is asked for.
struct FactorProducts<'a> {
    layer: &'a Factored,
    pass: Pass<'a>,
    x: &'a [f32],
    dy: &'a [f32],
}

impl FactorProducts<'_> {
    /// One lane's factors.
    fn factors(&self, lane: usize) -> (&[f32], &[f32]) {
        let rows = &self.pass.lanes[lane];
        let x = of_rows(self.x, rows, self.layer.inputs);
        (x, of_rows(self.dy, rows, self.layer.outputs))
    }
}

impl LayerGradient for FactorProducts<'_> {
    fn write(&self, lane: usize, chunk: usize, to: &mut [f32]) {
        let threads = self.pass.threads;
        (self.layer).gradient(threads, chunk, self.factors(lane), to);
    }

    fn add(&self, lane: usize, chunk: usize, sum: &mut [f32], spare: &mut [f32]) {
        let threads = self.pass.threads;
        (self.layer).add_gradient(threads, chunk, self.factors(lane), sum, spare);
    }
}

/// Rows and columns that are transposed together.
const BLOCK: usize = 16;

/// Writes the transpose of `from`, whose rows have `width` numbers.
pub(crate) fn transpose(from: &[f32], width: usize, to: &mut [f32]) {
    transpose_columns(from, width, 0, to);
}

/// The same on these threads.
pub(crate) fn transpose_on(threads: &Threads, from: &[f32], width: usize, to: &mut [f32]) {
    let height = from.len() / width;
    let columns = rows_of_a_tile(BLOCK * height) * BLOCK;
    threads.each(pieces_mut(to, columns * height), |tile, to| {
        transpose_columns(from, width, tile * columns, to);
    });
}

for_each_isa! {
    /// Writes the transpose of some columns of `from`, from `first` on: as many as there is room for.
    pub(crate) fn transpose_columns(from: &[f32], width: usize, first: usize, to: &mut [f32]) {
        let height = from.len() / width;
        let count = to.len() / height.max(1);
        for top in (0..height).step_by(BLOCK) {
            for left in (0..count).step_by(BLOCK) {
                for j in left..(left + BLOCK).min(count) {
                    for i in top..(top + BLOCK).min(height) {
                        to[j * height + i] = from[i * width + first + j];
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
            let mut layer = LinearLayer::new("l", inputs, outputs, &mut layout);
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
