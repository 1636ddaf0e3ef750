//! Learned vectors in place of numbers: the last inputs of a row are places in tables, and each becomes the row of its
//! table that it points to. What comes before them goes on as it is.
//!
//! Place 0 stands for what is not known. Its vector begins as zeros, so that a table that never meets it in training has
//! nothing to say of it.

use super::{Layer, Pass, of_rows};
use crate::build::Site;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::graph::{Attribute, Flow, LayerGraph};
use crate::init::Initial;
use crate::layout::{Layout, NumberOrder, Role};
use crate::operation::{Operation, TablePlace};
use crate::replica::{Replica, written};
use crate::spec::LayerKind;
use crate::threads::{pieces, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// A table of learned vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingTable {
    /// Vectors. The first stands for what is not known, and begins as zeros.
    pub rows: usize,
    /// Numbers of a vector.
    pub width: usize,
}

/// The settings of a layer that puts learned vectors in place of the last inputs, which are places in tables; what comes
/// before them goes on as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// The tables, one for each of those inputs.
    pub tables: Vec<EmbeddingTable>,
}

impl LayerKind for Embedding {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let (name, tables, input) = (site.name, &self.tables[..], chain.output());
        let is_empty = |table: &EmbeddingTable| table.rows == 0 || table.width == 0;
        if input.pixels() != 1 || input.channels < tables.len() || tables.iter().any(is_empty) {
            let tables = tables.len();
            return Err(LayerFault::Embedding { tables, input }.of(name));
        }
        let embedding = EmbeddingLayer::new(name, input.channels, tables, &mut model.layout);
        for (number, chunks) in embedding.chunks().enumerate() {
            let rate = model.rates.of(&EmbeddingLayer::table_name(name, number));
            model.layout.rates[chunks].fill(rate);
        }
        let begin = |table: &EmbeddingTable| Initial::Normal {
            zeros: table.width,
            deviation: 1.0,
        };
        model.initial.extend(tables.iter().map(begin));
        let output = Dims::vector(embedding.outputs());
        chain.push(Box::new(embedding), output);
        Ok(())
    }

    /// The first numbers of a row as they are, and in place of each of the last the row of its table that it points to.
    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        let plain = flow.dims.len() - self.tables.len();
        let axis = [("axis", Attribute::Int(1))];
        let mut parts = Vec::new();
        if plain > 0 {
            let columns: Vec<i64> = (0..plain as i64).collect();
            let columns = graph.graph.integers(&graph.part("plain.columns"), &columns);
            let inputs = [&flow.value[..], &columns];
            parts.push(graph.part_node("plain.picked", "Gather", &inputs, &axis));
        }
        for number in 0..self.tables.len() {
            let part = |part: &str| format!("{number}.{part}");
            // One number and not a list of one, so that a row is left of each row.
            let column = graph.part(&part("column"));
            let column = graph.graph.integer(&column, (plain + number) as i64);
            let inputs = [&flow.value[..], &column];
            let place = graph.part_node(&part("place"), "Gather", &inputs, &axis);
            let to = [("to", Attribute::Int(INT64))];
            let place = graph.part_node(&part("whole"), "Cast", &[&place], &to);
            let own = graph.tensor(&part("weight")).expect("the layer has it");
            let rows = [("axis", Attribute::Int(0))];
            parts.push(graph.part_node(&part("vector"), "Gather", &[&own, &place], &rows));
        }
        let value = match &parts[..] {
            [one] => one.clone(),
            parts => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                graph.node("Concat", &parts, &axis)
            }
        };
        Flow {
            value,
            dims: graph.output,
            ..flow
        }
    }

    fn torch_module(&self) -> String {
        let table = |table: &EmbeddingTable| format!("({}, {})", table.rows, table.width);
        let tables: Vec<String> = self.tables.iter().map(table).collect();
        format!("Embedding([{}])", tables.join(", "))
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    fn sample() -> (Dims, Self) {
        let tables = vec![EmbeddingTable { rows: 5, width: 3 }; 2];
        (Dims::vector(4), Self { tables })
    }
}

/// What ONNX calls whole numbers of 64 bits.
const INT64: i64 = 7;

/// Tables beside each other.
pub(crate) struct EmbeddingLayer {
    /// Numbers of a row of the input, and of the output.
    inputs: usize,
    outputs: usize,
    tables: Vec<Table>,
}

/// One table.
struct Table {
    rows: usize,
    width: usize,
    /// Which input is the place in it.
    input: usize,
    /// Where its vector goes in the output.
    output: usize,
    weight: Range<usize>,
    chunks: Range<usize>,
    rows_per_chunk: usize,
}

impl Table {
    /// The row that a row of the input points to.
    fn row(&self, x: &[f32]) -> usize {
        (x[self.input] as usize).min(self.rows - 1)
    }
}

impl EmbeddingLayer {
    /// Appends the tables to the layout, for rows of so many inputs, of which the last are places in them.
    pub(crate) fn new(
        name: &str,
        inputs: usize,
        tables: &[EmbeddingTable],
        layout: &mut Layout,
    ) -> Self {
        let plain = inputs - tables.len();
        let mut outputs = plain;
        let mut placed = Vec::new();
        for (number, &EmbeddingTable { rows, width }) in tables.iter().enumerate() {
            let weight = layout.push(
                format!("{}.weight", Self::table_name(name, number)),
                vec![rows, width],
                NumberOrder::AsIs,
                Role::Parameter,
            );
            let (chunks, rows_per_chunk) = layout.cut_rows(rows, width, None);
            placed.push(Table {
                rows,
                width,
                input: plain + number,
                output: outputs,
                weight,
                chunks,
                rows_per_chunk,
            });
            outputs += width;
        }
        Self {
            inputs,
            outputs,
            tables: placed,
        }
    }

    /// What a layer of this name calls one of its tables.
    pub(crate) fn table_name(name: &str, number: usize) -> String {
        format!("{name}.{number}")
    }

    /// The chunks of each table.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        self.tables.iter().map(|table| table.chunks.clone())
    }

    /// Numbers of a row of the output.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Inputs that go on as they are.
    fn plain(&self) -> usize {
        self.inputs - self.tables.len()
    }
}

impl Layer for EmbeddingLayer {
    fn operation(&self) -> Operation {
        let place = |table: &Table| TablePlace {
            rows: table.rows,
            width: table.width,
            input: table.input,
            output: table.output,
            weight: table.weight.clone(),
        };
        Operation::Embedding {
            inputs: self.inputs,
            outputs: self.outputs,
            tables: self.tables.iter().map(place).collect(),
        }
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], x: &[f32], y: &mut [f32], _: &mut [f32]) {
        let (plain, rows) = (self.plain(), rows_of_a_tile(self.outputs));
        let to = pieces_mut(y, rows * self.outputs);
        let tiles = (pieces(x, rows * self.inputs), to);
        pass.threads.each(tiles, |_, (x, y)| {
            let rows = x.chunks_exact(self.inputs);
            for (x, y) in rows.zip(y.chunks_exact_mut(self.outputs)) {
                y[..plain].copy_from_slice(&x[..plain]);
                for table in &self.tables {
                    let at = table.weight.start + table.row(x) * table.width;
                    y[table.output..][..table.width].copy_from_slice(&state[at..][..table.width]);
                }
            }
        });
    }

    fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        _: &mut [f32],
    ) {
        let plain = self.plain();
        if let Some(dx) = dx {
            let rows = dx.chunks_exact_mut(self.inputs);
            for (dx, dy) in rows.zip(dy.chunks_exact(self.outputs)) {
                dx[..plain].copy_from_slice(&dy[..plain]);
                dx[plain..].fill(0.0);
            }
        }
        for table in self.tables.iter().rev() {
            let (lanes, chunks) = (0..pass.lanes.len(), table.chunks.clone());
            let handed_out = written(|lane, chunk, gradient| {
                let first = (chunk - table.chunks.start) * table.rows_per_chunk;
                let own = first..(first + table.rows_per_chunk).min(table.rows);
                gradient.fill(0.0);
                // Rows of the batch are added in their order.
                let rows = of_rows(x, &pass.lanes[lane], self.inputs).chunks_exact(self.inputs);
                let dy = of_rows(dy, &pass.lanes[lane], self.outputs);
                for (x, dy) in rows.zip(dy.chunks_exact(self.outputs)) {
                    let row = table.row(x);
                    if !own.contains(&row) {
                        continue;
                    }
                    let sum = &mut gradient[(row - first) * table.width..][..table.width];
                    let dy = &dy[table.output..][..table.width];
                    for (sum, dy) in sum.iter_mut().zip(dy) {
                        *sum += dy;
                    }
                }
            });
            replica.gradient(lanes, chunks, &handed_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::check::one_lane;
    use crate::replica::Collect;

    const TABLES: [EmbeddingTable; 2] = [
        EmbeddingTable { rows: 3, width: 2 },
        // More than one chunk.
        EmbeddingTable {
            rows: 40,
            width: 1000,
        },
    ];

    /// As a product with rows that are 1 at their place: what an embedding is by definition.
    #[test]
    fn it_is_a_product_with_one_hot_rows_forward_and_backward() {
        let mut layout = Layout::default();
        let mut layer = EmbeddingLayer::new("e", 3, &TABLES, &mut layout);
        assert!(layout.chunks.len() > 2);
        let names: Vec<&str> = layout
            .tensors
            .iter()
            .map(|tensor| &tensor.name[..])
            .collect();
        assert_eq!(names, ["e.0.weight", "e.1.weight"]);
        let state: Vec<f32> = (0..layout.len()).map(|i| (i % 31) as f32 - 15.0).collect();
        // The same place twice, and places that no table has.
        let x = [
            0.5,
            2.0,
            39.0,
            -7.0,
            0.0,
            3.0,
            1.5,
            2.0,
            39.0,
            4.0,
            99.0,
            f32::NAN,
        ];
        let places = [[2, 39], [0, 3], [2, 39], [2, 0]];
        let outputs = 1 + 2 + 1000;
        assert_eq!(layer.outputs(), outputs);
        let mut y = vec![f32::NAN; 4 * outputs];
        one_lane(4, &[0, 1, 2, 3], |pass| {
            layer.forward(pass, &state, &x, &mut y, &mut []);
        });
        for (row, y) in y.chunks(outputs).enumerate() {
            assert_eq!(y[0], x[row * 3]);
            let (first, second) = (places[row][0] * 2, 6 + places[row][1] * 1000);
            assert_eq!(y[1..3], state[first..first + 2]);
            assert_eq!(y[3..], state[second..second + 1000]);
        }
        let dy: Vec<f32> = (0..4 * outputs).map(|i| (i % 17) as f32 - 8.0).collect();
        let mut collect = Collect::new(&state, &layout);
        let mut dx = [f32::NAN; 12];
        one_lane(4, &[0, 1, 2, 3], |pass| {
            let (mut dy, dx) = (dy.clone(), Some(&mut dx[..]));
            layer.backward(pass, &mut collect, &x, &mut dy, dx, &mut []);
        });
        let mut expected = vec![0.0; state.len()];
        for (row, dy) in dy.chunks(outputs).enumerate() {
            assert_eq!(dx[row * 3..][..3], [dy[0], 0.0, 0.0]);
            for j in 0..2 {
                expected[places[row][0] * 2 + j] += dy[1 + j];
            }
            for j in 0..1000 {
                expected[6 + places[row][1] * 1000 + j] += dy[3 + j];
            }
        }
        assert_eq!(collect.gradient, expected);
    }
}
