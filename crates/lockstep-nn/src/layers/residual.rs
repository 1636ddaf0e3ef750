//! Two paths from the same input, added: `y = body(x) + shortcut(x)`.
//!
//! The body's tensors lie before the shortcut's, so on the way back the shortcut comes first.

use super::{Layer, Pass, Step, carve, carved};
use crate::chain::Chain;
use crate::factors::add;
use crate::init::Initial;
use crate::layout::Layout;
use crate::replica::Replica;

/// Two chains side by side; without a shortcut the input itself is added.
pub(crate) struct Residual {
    body: Chain,
    shortcut: Option<Chain>,
}

impl Residual {
    /// Of two chains with the same input and output shapes.
    pub(crate) fn new(body: Chain, shortcut: Option<Chain>) -> Self {
        Self { body, shortcut }
    }
}

impl Layer for Residual {
    fn scratch(&self, rows: usize) -> usize {
        let Some(shortcut) = &self.shortcut else {
            return self.body.scratch(rows);
        };
        // The shortcut's output on the way there, its input's gradient on the way back.
        let own = rows * self.body.output().len().max(self.body.input().len());
        carved(own) + self.body.scratch(rows).max(shortcut.scratch(rows))
    }

    fn bytes(&self) -> usize {
        self.body.bytes() + self.shortcut.as_ref().map_or(0, Chain::bytes)
    }

    fn forward(
        &mut self,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        self.body.forward(pass, state, x, y, scratch);
        match &mut self.shortcut {
            None => add(y, x),
            Some(shortcut) => {
                let (beside, scratch) = carve(scratch, y.len());
                shortcut.forward(pass, state, x, beside, scratch);
                add(y, beside);
            }
        }
    }

    fn place_statistics(&mut self, layout: &mut Layout, initial: &mut Vec<Initial>) {
        self.body.place_statistics(layout, initial);
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.place_statistics(layout, initial);
        }
    }

    fn statistics(&mut self, step: Step<'_>, replica: &mut dyn Replica) {
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.statistics(step, replica);
        }
        self.body.statistics(step, replica);
    }

    fn backward(
        &mut self,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        match (&mut self.shortcut, dx) {
            (None, None) => self.body.backward(replica, x, dy, None, scratch),
            (None, Some(dx)) => {
                self.body.backward(replica, x, dy, Some(dx), scratch);
                add(dx, dy);
            }
            (Some(shortcut), None) => {
                shortcut.backward(replica, x, dy, None, scratch);
                self.body.backward(replica, x, dy, None, scratch);
            }
            (Some(shortcut), Some(dx)) => {
                let (beside, scratch) = carve(scratch, dx.len());
                shortcut.backward(replica, x, dy, Some(beside), scratch);
                self.body.backward(replica, x, dy, Some(dx), scratch);
                add(dx, beside);
            }
        }
    }
}
