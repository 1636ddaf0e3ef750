//! A running average of the weights: what is measured and what becomes the model, where the job asks for one.
//!
//! Every rank has all new weights after a step, and averages them all by itself: nothing is exchanged, and the bits are
//! the same everywhere. Running statistics are averaged like parameters.

use lockstep_nn::optimizer;
use std::ops::Range;

/// The average, once there is something to average.
pub(crate) struct WeightAverage {
    /// How much of the distance to the new weights it goes in a step.
    share: f32,
    /// What changes at all. What is frozen is not touched: even adding 0 would turn -0 into 0.
    trained: Vec<Range<usize>>,
    values: Option<Vec<f32>>,
}

impl WeightAverage {
    /// An average of which each step keeps the share `kept`, that goes on from `values`. Only what is `trained` changes.
    pub(crate) fn new(kept: f64, trained: Vec<Range<usize>>, values: Option<Vec<f32>>) -> Self {
        Self {
            share: (1.0 - kept) as f32,
            trained,
            values,
        }
    }

    /// Takes in the weights after a step. The first ones are taken as they are.
    pub(crate) fn add(&mut self, weights: &[f32]) {
        match &mut self.values {
            Some(values) => {
                for range in &self.trained {
                    let (values, weights) = (&mut values[range.clone()], &weights[range.clone()]);
                    optimizer::average(values, weights, self.share);
                }
            }
            None => self.values = Some(weights.to_vec()),
        }
    }

    /// The average so far; none before the first step.
    pub(crate) fn values(&self) -> Option<&[f32]> {
        self.values.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_the_first_weights_and_follows_the_others() {
        // What lies between is frozen.
        let trained = || vec![0..1, 2..3];
        let mut average = WeightAverage::new(0.75, trained(), None);
        assert_eq!(average.values(), None);
        for weights in [[1.0, -0.0, 3.0], [5.0, -0.0, 3.0], [2.0, -0.0, 3.0]] {
            average.add(&weights);
        }
        let values = average.values().unwrap();
        assert_eq!(values, [2.0, 0.0, 3.0]);
        assert!(values[1].is_sign_negative(), "not even a sign changes");
        let mut resumed = WeightAverage::new(0.75, trained(), Some(vec![2.0, 1.0, 0.0]));
        resumed.add(&[6.0, 1.0, 0.0]);
        assert_eq!(resumed.values(), Some(&[3.0, 1.0, 0.0][..]));
    }
}
