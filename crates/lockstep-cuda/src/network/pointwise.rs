//! What changes an activation where it lies: ReLU and dropout. Kernels that make an activation may do it themselves.

use super::chain::Layer;
use super::pass::Pass;
use super::step::Progress;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, POINTWISE};
use crate::launch::Launch;
use crate::memory::DeviceSlice;

/// How many changes one kernel makes of an activation.
pub(crate) const MOST_STEPS: usize = 4;

const RELU: u32 = 0;
const DROPOUT: u32 = 1;

arguments! {
    /// One change. It is a ReLU or a dropout.
    pub(crate) struct PointwiseStep {
        kind: u32,
        threshold: u32,
        scale: f32,
        layer: u32,
    }

    /// What is done to an activation, in order.
    pub(crate) struct Pointwise {
        steps: [PointwiseStep; 4],
        count: u32,
        has_relu: u32,
        features: u32,
        samples: Pointer<u32>,
        progress: Pointer<Progress>,
        key: u64,
    }

    struct PointwiseForward {
        y: Pointer<f32>,
        numbers: u64,
        then: Pointwise,
    }

    struct PointwiseBackward {
        y: Pointer<f32>,
        dy: Pointer<f32>,
        numbers: u64,
        then: Pointwise,
    }
}

const FORWARD: Kernel<PointwiseForward> = Kernel::new(&POINTWISE, "pointwise_forward", 256);
const BACKWARD: Kernel<PointwiseBackward> = Kernel::new(&POINTWISE, "pointwise_backward", 256);

impl PointwiseStep {
    /// `max(x, 0)`.
    pub(crate) fn relu() -> Self {
        Self {
            kind: RELU,
            threshold: 0,
            scale: 1.0,
            layer: 0,
        }
    }

    /// Zeroes what is drawn below the threshold, and scales the rest.
    pub(crate) fn dropout(threshold: u16, scale: f32, layer: u8) -> Self {
        Self {
            kind: DROPOUT,
            threshold: threshold.into(),
            scale,
            layer: layer.into(),
        }
    }

    pub(crate) fn is_dropout(&self) -> bool {
        self.kind == DROPOUT
    }
}

impl Pointwise {
    /// At most [`MOST_STEPS`] steps, on rows of so many numbers. Draws depend on the samples, on how far training is, and
    /// on a key.
    pub(crate) fn new<'a>(
        steps: impl Iterator<Item = &'a PointwiseStep>,
        features: usize,
        (samples, progress, key): (DeviceSlice<u32>, DeviceSlice<Progress>, u64),
    ) -> Self {
        let mut all = [PointwiseStep::relu(); MOST_STEPS];
        let mut count = 0;
        let mut has_relu = false;
        for &step in steps {
            all[count] = step;
            count += 1;
            has_relu |= !step.is_dropout();
        }
        Self {
            steps: all,
            count: count as u32,
            has_relu: has_relu.into(),
            features: features as u32,
            samples: samples.pointer(),
            progress: progress.pointer(),
            key,
        }
    }

    /// What a layer does itself, and what is to be done after it.
    pub(crate) fn parted(self, layer: &dyn Layer) -> [Self; 2] {
        let nothing = Self { count: 0, ..self };
        match layer.is_pointwise_done() {
            true => [self, nothing],
            false => [nothing, self],
        }
    }

    /// Does it to an activation, unless there is nothing to do.
    pub(crate) fn forward(self, pass: &mut Pass<'_>, y: DeviceSlice<f32>) {
        if self.count > 0 {
            let arguments = PointwiseForward {
                y: y.pointer(),
                numbers: y.len() as u64,
                then: self,
            };
            pass.push(Launch::over(&FORWARD, y.len(), arguments));
        }
    }

    /// Turns the gradient by what became of an activation, `y`, into that by what it was before.
    pub(crate) fn backward(self, pass: &mut Pass<'_>, y: DeviceSlice<f32>, dy: DeviceSlice<f32>) {
        if self.count > 0 {
            let arguments = PointwiseBackward {
                y: y.pointer(),
                dy: dy.pointer(),
                numbers: y.len() as u64,
                then: self,
            };
            pass.push(Launch::over(&BACKWARD, y.len(), arguments));
        }
    }
}
