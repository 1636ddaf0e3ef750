//! `max(x, 0)`.

use super::{Pass, Pointwise};
use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Flow, LayerGraph};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{NUMBERS, pieces, pieces_mut};

/// The rectified linear unit. It needs no memory: where the activation is zero, so is the gradient,
/// also after a dropout that zeroed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relu;

impl LayerKind for Relu {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        site.chain.push_in_place(Box::new(Relu));
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        graph.map("Relu", flow, &[])
    }

    fn torch_module(&self) -> String {
        "nn.ReLU(inplace=True)".to_owned()
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self)
    }
}

impl Pointwise for Relu {
    fn operation(&self) -> Operation {
        Operation::Relu
    }

    fn forward(&mut self, pass: Pass<'_>, y: &mut [f32]) {
        (pass.threads).each(pieces_mut(y, NUMBERS), |_, y| rectify(y));
    }

    fn backward(&mut self, pass: Pass<'_>, y: &[f32], dy: &mut [f32]) {
        let tiles = (pieces(y, NUMBERS), pieces_mut(dy, NUMBERS));
        pass.threads.each(tiles, |_, (y, dy)| mask(y, dy));
    }
}

for_each_isa! {
    fn rectify(y: &mut [f32]) {
        for y in y {
            // NaN stays NaN, so that a diverged run shows.
            *y = if *y < 0.0 { 0.0 } else { *y };
        }
    }

    fn mask(y: &[f32], dy: &mut [f32]) {
        for (dy, &y) in dy.iter_mut().zip(y) {
            *dy = if y == 0.0 { 0.0 } else { *dy };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{Reference, check_pointwise};
    use super::*;

    #[test]
    fn it_agrees_with_finite_differences() {
        check_pointwise(&mut Relu, &Reference::Map(&|x| x.max(0.0)), 5, 7);
    }

    #[test]
    fn a_nan_is_not_hidden() {
        let mut y = [f32::NAN, -1.0, 2.0];
        Relu.forward(Pass::evaluation(&crate::Threads::default()), &mut y);
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [0.0, 2.0]);
    }
}
