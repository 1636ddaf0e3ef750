//! What ranks compute together.

use crate::xgboost::{Communicator, Operation, XgboostError};

/// Exact combinations of numbers over all ranks. Every rank calls the same functions in the same order with as many
/// numbers, and all have the same result.
pub trait Together {
    /// Why ranks cannot go on together.
    type Error;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Which of them this is.
    fn rank(&self) -> usize;

    /// Sums over all ranks, place by place.
    ///
    /// # Errors
    /// When a peer is lost.
    fn sum(&self, numbers: &mut [u64]) -> Result<(), Self::Error>;

    /// The largest of all ranks, place by place. No number is NaN.
    ///
    /// # Errors
    /// When a peer is lost.
    fn largest(&self, numbers: &mut [f64]) -> Result<(), Self::Error>;
}

/// One rank without peers.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Together for Alone {
    type Error = std::convert::Infallible;

    fn ranks(&self) -> usize {
        1
    }

    fn rank(&self) -> usize {
        0
    }

    fn sum(&self, _: &mut [u64]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn largest(&self, _: &mut [f64]) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Together for Communicator {
    type Error = XgboostError;

    fn ranks(&self) -> usize {
        Communicator::ranks(self)
    }

    fn rank(&self) -> usize {
        Communicator::rank(self)
    }

    fn sum(&self, numbers: &mut [u64]) -> Result<(), XgboostError> {
        self.combine(numbers, Operation::Sum)
    }

    fn largest(&self, numbers: &mut [f64]) -> Result<(), XgboostError> {
        self.combine(numbers, Operation::Max)
    }
}

/// A gang, or one rank that needs none.
impl<T: Together> Together for Option<T> {
    type Error = T::Error;

    fn ranks(&self) -> usize {
        self.as_ref().map_or(1, T::ranks)
    }

    fn rank(&self) -> usize {
        self.as_ref().map_or(0, T::rank)
    }

    fn sum(&self, numbers: &mut [u64]) -> Result<(), T::Error> {
        self.as_ref().map_or(Ok(()), |gang| gang.sum(numbers))
    }

    fn largest(&self, numbers: &mut [f64]) -> Result<(), T::Error> {
        self.as_ref().map_or(Ok(()), |gang| gang.largest(numbers))
    }
}
