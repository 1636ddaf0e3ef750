//! Layers that are timed one by one.

use crate::emulated;
use lockstep_cuda::{Gpu, TimedLayers, TimedPass};
use lockstep_nn::{Dims, Model, zoo};

#[test]
fn a_layer_is_timed_kernel_by_kernel() {
    let Some(driver) = emulated() else {
        return;
    };
    let gpu = Gpu::of(&driver, 0).expect("a GPU");
    let layers = zoo::cnn(&[(16, 0.0)], 4, 0.0, 3);
    let model = Model::new(&layers, Dims::image(4, 4, 1), 1).expect("a network");
    let mut chain = model.operations();
    // The second convolution.
    chain.layers = vec![chain.layers.swap_remove(2)];
    chain.input = Dims::image(4, 4, 16);
    let timed = TimedLayers::new(&gpu, &chain, model.layout(), &[2, 1]).expect("a layer");
    for pass in [
        TimedPass::Forward,
        TimedPass::InputGradient,
        TimedPass::WeightGradient,
        TimedPass::Backward,
    ] {
        let time = timed.time(pass).expect("a time");
        let names: Vec<_> = time.kernels.iter().map(|kernel| kernel.kernel).collect();
        let expected = ["winograd_begin", "winograd_products", "winograd_end"];
        assert_eq!(names, expected);
        assert!(!time.whole.is_zero() && time.kernels.iter().all(|kernel| kernel.blocks[0] > 0));
    }
}
