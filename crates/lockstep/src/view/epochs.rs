//! The table that grows by a row an epoch.

use super::table::{Column, Frame, Table};
use super::words;
use lockstep_train::event::{EpochResult, Started};

/// One column: what it shows of an epoch, and how readily it is given up when room is short.
struct Field {
    column: Column,
    show: fn(&EpochResult) -> String,
    /// The highest is left out first; 0 never.
    dispensable: u8,
}

/// The table of epochs of one run.
pub(crate) struct Epochs {
    fields: Vec<Field>,
    table: Table,
}

impl Epochs {
    /// With the columns that this run has something to say in, as far as `width` has room for them.
    pub(crate) fn new(started: &Started, frame: Frame, width: usize) -> Self {
        let (val, test) = (started.val_samples > 0, started.test_samples > 0);
        let mut fields = vec![
            field(0, Column::right("epoch", 5), |e| e.epoch.to_string()),
            field(0, Column::right("train loss", 10), |e| {
                words::loss(e.train_loss)
            }),
        ];
        if val {
            fields.push(field(0, Column::right("val loss", 9), |e| {
                e.val.map_or(String::new(), |m| words::loss(m.loss))
            }));
            fields.push(field(3, Column::right("val acc", 7), |e| {
                e.val.map_or(String::new(), |m| accuracy(m.accuracy))
            }));
        }
        if test {
            fields.push(field(4, Column::right("test loss", 9), |e| {
                e.test.map_or(String::new(), |m| words::loss(m.loss))
            }));
            fields.push(field(0, Column::right("accuracy", 8), |e| {
                e.test.map_or(String::new(), |m| accuracy(m.accuracy))
            }));
        }
        if !val && !test {
            fields.push(field(0, Column::right("train acc", 9), |e| {
                accuracy(e.train_accuracy)
            }));
        }
        fields.push(field(5, Column::right("samples/s", 9), |e| {
            words::rate(e.samples_per_s)
        }));
        fields.push(field(1, Column::right("time", 8), |e| {
            words::clock(e.seconds)
        }));
        fields.push(field(2, Column::right("total", 8), |e| {
            words::clock(e.total_s)
        }));
        if val {
            fields.push(field(0, Column::left("best", 4), |e| {
                if e.best { "★" } else { "" }.to_owned()
            }));
        }
        loop {
            let columns = fields.iter().map(|field| field.column.clone()).collect();
            let table = Table::new(columns, frame);
            let least = (0..fields.len()).max_by_key(|index| fields[*index].dispensable);
            match least {
                Some(index) if table.width() > width && fields[index].dispensable > 0 => {
                    fields.remove(index);
                }
                _ => return Self { fields, table },
            }
        }
    }

    /// The lines before the first row.
    pub(crate) fn head(&self, style: impl Fn(String) -> String) -> Vec<String> {
        let head = self.table.head(style);
        self.table.top().into_iter().chain(head).collect()
    }

    /// The row of one epoch.
    pub(crate) fn row(&self, epoch: &EpochResult, style: impl Fn(String) -> String) -> String {
        let cells: Vec<String> = self
            .fields
            .iter()
            .map(|field| match field.column.title {
                "accuracy" | "best" => style((field.show)(epoch)),
                _ => (field.show)(epoch),
            })
            .collect();
        self.table.row(&cells)
    }

    /// The line after the last row.
    pub(crate) fn foot(&self) -> Option<String> {
        self.table.foot()
    }
}

fn field(dispensable: u8, column: Column, show: fn(&EpochResult) -> String) -> Field {
    Field {
        column,
        show,
        dispensable,
    }
}

/// Accuracy as a share of 1, as the metrics have it.
pub(crate) fn accuracy(accuracy: f64) -> String {
    format!("{accuracy:.4}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{epoch, started};
    use super::*;

    #[test]
    fn columns_follow_what_the_run_measures() {
        let mut run = started();
        let head =
            |run: &Started| Epochs::new(run, Frame::Bare, 200).head(|title| title)[0].clone();
        assert!(head(&run).contains("accuracy"));
        assert!(!head(&run).contains("val"));
        run.val_samples = 100;
        assert!(head(&run).contains("val loss"));
        assert!(head(&run).contains("best"));
        (run.val_samples, run.test_samples) = (0, 0);
        assert!(head(&run).contains("train acc"));
    }

    #[test]
    fn a_narrow_terminal_keeps_the_columns_that_matter() {
        for width in [50, 60, 70, 80] {
            let epochs = Epochs::new(&started(), Frame::Rounded, width);
            let row = epochs.row(&epoch(3), |cell| cell);
            assert!(console::measure_text_width(&row) <= width, "{row}");
            assert!(row.contains("0.8123"), "{row}");
        }
    }
}
