//! The scales of a layer's operands: found, and kept from the forward pass for the way back.

use super::scale::Scale;
use crate::layers::{Pass, of_rows};
use crate::threads::{pieces, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// An operand of the weight gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    /// The layer's input.
    Input,
    /// The gradient by its output.
    Error,
}

/// The scales of rows, of both operands. In training all rows of a lane have one; in an evaluation every row has its own,
/// so that what is said of it does not depend on others.
pub(super) struct RowScales {
    rows: [Vec<Scale>; 2],
    most_lanes: usize,
}

impl RowScales {
    /// For at most so many rows, of so many lanes.
    pub(super) fn new(rows: usize, lanes: usize) -> Self {
        Self {
            rows: [Operand::Input, Operand::Error].map(|_| vec![Scale::default(); rows]),
            most_lanes: lanes,
        }
    }

    /// How many lanes there are at the most.
    pub(super) fn most_lanes(&self) -> usize {
        self.most_lanes
    }

    /// Finds and returns the scale of each row.
    pub(super) fn find(
        &mut self,
        pass: Pass<'_>,
        x: &[f32],
        width: usize,
        operand: Operand,
    ) -> &[Scale] {
        let scales = &mut self.rows[operand as usize][..x.len() / width];
        if pass.step.is_some() {
            for rows in pass.lanes {
                let scale = Scale::on(pass.threads, of_rows(x, rows, width));
                scales[rows.clone()].fill(scale);
            }
        } else {
            let at_once = rows_of_a_tile(width);
            let tiles = (pieces(x, at_once * width), pieces_mut(scales, at_once));
            pass.threads.each(tiles, |_, (x, scales)| {
                for (x, scale) in x.chunks_exact(width).zip(scales) {
                    *scale = Scale::of(x);
                }
            });
        }
        scales
    }

    /// The scales of so many rows that were found last, of both operands.
    pub(super) fn found(&self, rows: usize) -> [&[Scale]; 2] {
        self.rows.each_ref().map(|scales| &scales[..rows])
    }

    /// Those of a lane of these rows.
    pub(super) fn of_lane(&self, rows: &Range<usize>) -> [Scale; 2] {
        self.rows.each_ref().map(|scales| scales[rows.start])
    }
}
