//! The seam between training and the device that a network is computed on.
//!
//! Whoever trains knows a device by two things: a [`Network`], which computes gradients and scores, and its
//! [`DeviceState`], the state vector with the optimizer's vectors beside it. The seam lies here and not at
//! the layer, so that a device may keep all numbers in its own memory, compute many layers at once, and
//! hand out gradients when it likes. [`Model`](crate::Model) with [`HostState`](crate::HostState) is the
//! processor.
//!
//! What crosses the seam is chunks: a few calls for some ten thousand numbers each, never one a number.

use crate::layers::Step;
use crate::layout::Layout;
use crate::loss::{Loss, LossSum};
use crate::model::Batch;
use crate::optimizer::Update;
use crate::replica::Replica;
use std::ops::Range;

/// A network on some device. Every device gives the same bits.
pub trait Network: Send {
    /// The parameters and running statistics as this network reads them: a slice, or a device's memory.
    type Values: ?Sized;

    /// The state vector of such a network.
    type State: DeviceState<Values = Self::Values>;

    /// Where every tensor lies in the state vector. Dense layers are in [`Layout::factored`] if the
    /// network offers their factors.
    fn layout(&self) -> &Layout;

    /// Numbers that it says of every row.
    fn outputs(&self) -> usize;

    /// What it minimises.
    fn loss(&self) -> Loss;

    /// Brings a state vector to the device, with so many vectors of an optimizer, all zeros.
    fn load_state(&self, values: &[f32], planes: usize) -> Self::State;

    /// Computes the loss over one lane's rows and hands the gradient to `replica`, last chunk first.
    ///
    /// # Panics
    /// When the batch has more rows than the network was built for, or its parts differ in length.
    fn gradient(
        &mut self,
        replica: &mut dyn Replica<Self::Values>,
        batch: Batch<'_>,
        step: Step<'_>,
    ) -> LossSum;

    /// The outputs for some rows, row after row, with the running statistics and without dropout. Those of
    /// a row do not depend on the others.
    ///
    /// # Panics
    /// When there are more rows than the network was built for, or a part of one.
    fn scores(&mut self, values: &Self::Values, inputs: &[f32]) -> &[f32];
}

/// One of the vectors of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatePart {
    /// Parameters, then running statistics.
    Values,
    /// A vector of the optimizer, by its number.
    Plane(usize),
}

/// A state vector and the optimizer's vectors, in the memory of some device.
///
/// Ranges are whole chunks, or blocks of one, all of them parameters or all running statistics.
pub trait DeviceState: Send {
    /// What the network reads.
    type Values: ?Sized;

    /// The parameters and running statistics.
    fn values(&self) -> &Self::Values;

    /// Updates a range by its summed gradient: parameters by the optimizer, running statistics by blending.
    fn update(&mut self, range: Range<usize>, gradient: &[f32], update: &Update);

    /// Updates a range by the gradient that the network hands out, with nothing to add to it. `fill` writes
    /// that gradient; a device that has it in its own memory need not call it.
    fn update_at_once(
        &mut self,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [f32]),
        update: &Update,
    );

    /// A range of the values, to be looked at.
    fn read(&mut self, range: Range<usize>) -> &[f32];

    /// All vectors, whole: the values, and the optimizer's two, empty where it has none.
    fn read_all(&mut self) -> [&[f32]; 3];

    /// Lets `change` rewrite a range of a vector; it is given the present numbers.
    fn write(&mut self, part: StatePart, range: Range<usize>, change: &mut dyn FnMut(&mut [f32]));
}
