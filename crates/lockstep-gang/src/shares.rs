//! Where shares lie in a rank that has no memory in common with its peers.

use crate::Plan;

/// Room for every lane's share of each kind.
#[derive(Debug)]
pub(crate) struct ShareBuffers {
    /// The first share's number among the plan's pieces.
    first: usize,
    shares: Vec<Vec<f32>>,
}

impl ShareBuffers {
    pub(crate) fn new(plan: &Plan) -> Self {
        let shares = plan
            .shares()
            .map(|share| vec![0.0; plan.chunk(share).len()]);
        Self {
            first: plan.chunks(),
            shares: shares.collect(),
        }
    }

    /// What lies there for a share.
    pub(crate) fn get(&self, share: usize) -> &[f32] {
        &self.shares[share - self.first]
    }

    /// What lies there for a share, to be written, or taken away for a while.
    pub(crate) fn get_mut(&mut self, share: usize) -> &mut Vec<f32> {
        &mut self.shares[share - self.first]
    }
}
