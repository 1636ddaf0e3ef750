//! Two paths from the same input, added: `y = body(x) + shortcut(x)`.
//!
//! The body's tensors lie before the shortcut's, so on the way back the shortcut comes first.

use super::linear::Linear;
use super::{Layer, Pass, carve, carved};
use crate::build::Site;
use crate::chain::Chain;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::factors::add;
use crate::graph::{Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::Layout;
use crate::operation::Operation;
use crate::replica::Replica;
use crate::spec::{LayerKind, LayerSpec, NamedLayer};
use crate::threads::{NUMBERS, Threads, pieces, pieces_mut};

/// The settings of two paths from the same input, added: `body(x) + shortcut(x)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// The one path; at least one layer.
    pub body: Vec<NamedLayer>,
    /// The other; the input as it is when there are no layers.
    pub shortcut: Vec<NamedLayer>,
}

impl LayerKind for Residual {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (name, input) = (site.name, chain.output());
        if self.body.is_empty() {
            return Err(LayerFault::EmptyBody.of(name));
        }
        // The body's tensors lie before the shortcut's.
        let body = model.chain(&self.body, input)?;
        let output = body.output();
        let shortcut = match self.shortcut.is_empty() {
            true => None,
            false => Some(model.chain(&self.shortcut, input)?),
        };
        let found = shortcut.as_ref().map_or(input, Chain::output);
        if found != output {
            let (body, shortcut) = (output, found);
            return Err(LayerFault::Paths { body, shortcut }.of(name));
        }
        chain.push(Box::new(ResidualLayer { body, shortcut }), output);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let mut one = graph.write_layers(&self.body, flow.clone());
        let mut other = graph.write_layers(&self.shortcut, flow);
        if one.flat != other.flat {
            one = graph.flattened("body.flatten", one);
            other = graph.flattened("shortcut.flatten", other);
        }
        Flow {
            value: graph.node("Add", &[&one.value, &other.value], &[]),
            ..one
        }
    }

    fn torch_module(&self) -> String {
        let path = |layers: &[NamedLayer]| {
            let modules = layers.iter().map(|layer| layer.spec.torch_module());
            format!("nn.Sequential({})", modules.collect::<Vec<_>>().join(", "))
        };
        format!("Residual({}, {})", path(&self.body), path(&self.shortcut))
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    fn sample() -> (Dims, Self) {
        let (input, linear) = Linear::sample();
        let path = |prefix: &str| vec![NamedLayer::new(prefix, LayerSpec::Linear(linear))];
        let layer = Self {
            body: path("body"),
            shortcut: path("shortcut"),
        };
        (input, layer)
    }
}

/// Two chains side by side; without a shortcut the input itself is added.
pub(crate) struct ResidualLayer {
    body: Chain,
    shortcut: Option<Chain>,
}

impl Layer for ResidualLayer {
    fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let body = self.body.scratch(threads, rows);
        let Some(shortcut) = &self.shortcut else {
            return body;
        };
        // The shortcut's output on the way there, its input's gradient on the way back.
        let own = rows * self.body.output().len().max(self.body.input().len());
        carved(own) + body.max(shortcut.scratch(threads, rows))
    }

    fn bytes(&self) -> usize {
        self.body.bytes() + self.shortcut.as_ref().map_or(0, Chain::bytes)
    }

    fn operation(&self) -> Operation {
        Operation::Residual {
            body: self.body.operations(),
            shortcut: self.shortcut.as_ref().map(Chain::operations),
        }
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.body.forward(0, pass, state, x, y, scratch);
        match &mut self.shortcut {
            None => add_on(pass.threads, y, x),
            Some(shortcut) => {
                let (beside, scratch) = carve(scratch, y.len());
                shortcut.forward(0, pass, state, x, beside, scratch);
                add_on(pass.threads, y, beside);
            }
        }
    }

    fn place_statistics(&mut self, layout: &mut Layout, initial: &mut Vec<Initial>) {
        self.body.place_statistics(layout, initial);
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.place_statistics(layout, initial);
        }
    }

    fn statistics(&mut self, pass: Pass<'_>, replica: &mut dyn Replica) {
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.statistics(pass, replica);
        }
        self.body.statistics(pass, replica);
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
        match (&mut self.shortcut, dx) {
            (None, None) => self.body.backward(pass, replica, x, dy, None, scratch),
            (None, Some(dx)) => {
                self.body.backward(pass, replica, x, dy, Some(dx), scratch);
                add_on(pass.threads, dx, dy);
            }
            (Some(shortcut), None) => {
                shortcut.backward(pass, replica, x, dy, None, scratch);
                self.body.backward(pass, replica, x, dy, None, scratch);
            }
            (Some(shortcut), Some(dx)) => {
                let (beside, scratch) = carve(scratch, dx.len());
                shortcut.backward(pass, replica, x, dy, Some(beside), scratch);
                self.body.backward(pass, replica, x, dy, Some(dx), scratch);
                add_on(pass.threads, dx, beside);
            }
        }
    }
}

/// Adds `from` to `into`, on these threads.
fn add_on(threads: &Threads, into: &mut [f32], from: &[f32]) {
    let tiles = (pieces_mut(into, NUMBERS), pieces(from, NUMBERS));
    threads.each(tiles, |_, (into, from)| add(into, from));
}

#[cfg(test)]
mod tests {
    use super::super::check::{Definition, check_layer};
    use super::*;
    use crate::build::ModelBuilder;
    use crate::layers;

    /// A dense layer in `f64` on one row, and what of the state it leaves.
    fn dense<'a>(state: &'a [f64], x: &[f64], out: usize) -> (Vec<f64>, &'a [f64]) {
        let (weight, rest) = state.split_at(x.len() * out);
        let (bias, rest) = rest.split_at(out);
        let sum = |o: usize| {
            let products = x.iter().enumerate().map(|(i, x)| x * weight[i * out + o]);
            bias[o] + products.sum::<f64>()
        };
        ((0..out).map(sum).collect(), rest)
    }

    fn check(body: Vec<LayerSpec>, shortcut: Vec<LayerSpec>, row: &Definition<'_>) {
        const ROWS: usize = 4;
        let mut builder = ModelBuilder::new(ROWS, 1);
        let input = Dims::vector(3);
        let body = builder.chain(&NamedLayer::stack(body), input).unwrap();
        let shortcut = match shortcut.is_empty() {
            true => None,
            false => Some(builder.chain(&NamedLayer::stack(shortcut), input).unwrap()),
        };
        let outputs = body.output().len();
        let mut layer = ResidualLayer { body, shortcut };
        check_layer(
            &mut layer,
            &builder.layout,
            ROWS,
            3,
            outputs,
            &|state, x| x.chunks(3).flat_map(|x| row(state, x)).collect(),
        );
    }

    fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + b).collect()
    }

    fn rectified(x: Vec<f64>) -> Vec<f64> {
        x.into_iter().map(|x| x.max(0.0)).collect()
    }

    #[test]
    fn an_input_added_to_a_body_agrees_with_finite_differences() {
        let linear = |out| LayerSpec::Linear(layers::Linear { out });
        check(
            vec![linear(5), LayerSpec::Relu, linear(3)],
            vec![],
            &|state, x| {
                let (hidden, state) = dense(state, x, 5);
                let (y, _) = dense(state, &rectified(hidden), 3);
                sum(&y, x)
            },
        );
    }

    #[test]
    fn two_paths_agree_with_finite_differences() {
        let linear = |out| LayerSpec::Linear(layers::Linear { out });
        // A body that ends, and a shortcut that begins, with a layer that works in place.
        let body = vec![linear(2), LayerSpec::Relu];
        let shortcut = vec![LayerSpec::Relu, linear(2)];
        check(body, shortcut, &|state, x| {
            let (hidden, state) = dense(state, x, 2);
            let (beside, _) = dense(state, &rectified(x.to_vec()), 2);
            sum(&rectified(hidden), &beside)
        });
    }
}
