//! The table that grows by a row an epoch.

use super::table::{Column, Frame, Table};
use super::words;
use lockstep_events::Metrics;
use lockstep_events::event::{EpochResult, Started};

/// One column: what it shows of an epoch, and how readily it is given up when room is short.
struct Field {
    column: Column,
    show: Box<dyn Fn(&EpochResult) -> String>,
    /// The highest is left out first; 0 never.
    dispensable: u8,
    /// Whether its cells stand out.
    bright: bool,
}

/// The table of epochs of one run.
pub(crate) struct Epochs {
    fields: Vec<Field>,
    table: Table,
    /// Every so many have a row.
    every: u32,
    /// The best of those that have none.
    best: Option<EpochResult>,
}

/// Trees grow by many rounds, of which every so many have a row, and the best one.
const ROUNDS_A_ROW: u32 = 10;

/// The key of a job that grows trees, which have rounds where others have epochs.
pub(crate) const ROUNDS: &str = "model.rounds";

/// What a run with this configuration counts: trees grow by rounds.
pub(crate) fn unit(config: &[(String, String)]) -> &'static str {
    match config.iter().any(|(key, _)| key == ROUNDS) {
        true => "round",
        false => "epoch",
    }
}

impl Epochs {
    /// With the columns that this run has something to say in, as far as `width` has room for them.
    ///
    /// The first of the run's metrics is what training minimises, and shown of every set; the others are
    /// shown of what the model is measured on.
    /// All rounds have a row if there are to be `all`.
    pub(crate) fn new(started: &Started, frame: Frame, width: usize, all: bool) -> Self {
        let every = match unit(&started.config) {
            "round" if !all => ROUNDS_A_ROW,
            _ => 1,
        };
        let val = started.val_samples > 0;
        // Trees are measured on their test set at the end.
        let test = started.test_samples > 0 && unit(&started.config) != "round";
        let mut names = started.metrics.iter();
        let first = names.next().map_or("", String::as_str);
        let others: Vec<&str> = names.map(String::as_str).collect();
        let mut fields = vec![
            field(0, Column::right(unit(&started.config), 5), |e| {
                e.epoch.to_string()
            }),
            metric(0, ("train", 10), first, |e| Some(&e.train)),
        ];
        if val {
            fields.push(metric(0, ("val", 9), first, |e| e.val.as_ref()));
            for (index, name) in others.iter().enumerate() {
                let dispensable = if index == 0 { 1 } else { 3 };
                fields.push(metric(dispensable, ("val", 7), name, |e| e.val.as_ref()));
            }
        }
        if test {
            fields.push(metric(5, ("test", 9), first, |e| e.test.as_ref()));
            // Where another set is measured too, a number without a name could be of either.
            let set = if val { "test" } else { "" };
            for (index, name) in others.iter().enumerate() {
                let dispensable = if index == 0 { 0 } else { 3 };
                let mut field = metric(dispensable, (set, 8), name, |e| e.test.as_ref());
                field.bright = true;
                fields.push(field);
            }
        }
        if !val && !test {
            let others = others.iter().take(1);
            fields.extend(others.map(|name| metric(0, ("train", 9), name, |e| Some(&e.train))));
        }
        fields.push(field(6, Column::right("samples/s", 9), |e| {
            words::rate(e.samples_per_s)
        }));
        fields.push(field(2, Column::right("time", 8), |e| {
            words::clock(e.seconds)
        }));
        fields.push(field(4, Column::right("total", 8), |e| {
            words::clock(e.total_s)
        }));
        if val {
            let mut best = field(0, Column::left("best", 4), |e| {
                if e.best { "★" } else { "" }.to_owned()
            });
            best.bright = true;
            fields.push(best);
        }
        loop {
            let columns = fields.iter().map(|field| field.column.clone()).collect();
            let table = Table::new(columns, frame);
            let least = (0..fields.len()).max_by_key(|index| fields[*index].dispensable);
            match least {
                Some(index) if table.width() > width && fields[index].dispensable > 0 => {
                    fields.remove(index);
                }
                _ => {
                    return Self {
                        fields,
                        table,
                        every,
                        best: None,
                    };
                }
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
            .map(|field| match field.bright {
                true => style((field.show)(epoch)),
                false => (field.show)(epoch),
            })
            .collect();
        self.table.row(&cells)
    }

    /// Whether an epoch has a row of its own when it has ended. The best of those that have none is kept.
    pub(crate) fn has_row(&mut self, epoch: &EpochResult) -> bool {
        let has_row = epoch.epoch.is_multiple_of(self.every);
        if epoch.best {
            self.best = (!has_row).then(|| epoch.clone());
        }
        has_row
    }

    /// The best epoch, if it had no row.
    pub(crate) fn take_best(&mut self) -> Option<EpochResult> {
        self.best.take()
    }

    /// The line after the last row.
    pub(crate) fn foot(&self) -> Option<String> {
        self.table.foot()
    }
}

fn field(
    dispensable: u8,
    column: Column,
    show: impl Fn(&EpochResult) -> String + 'static,
) -> Field {
    Field {
        column,
        show: Box::new(show),
        dispensable,
        bright: false,
    }
}

/// The column of one metric of one set, whose name stands before it.
fn metric(
    dispensable: u8,
    (set, width): (&str, usize),
    name: &str,
    of: impl Fn(&EpochResult) -> Option<&Metrics> + 'static,
) -> Field {
    let title = match (set, name) {
        ("", name) => name.to_owned(),
        (set, "accuracy") => format!("{set} acc"),
        (set, name) => format!("{set} {name}"),
    };
    let name = name.to_owned();
    field(dispensable, Column::right(title, width), move |epoch| {
        let value = of(epoch).and_then(|metrics| metrics.get(&name));
        value.map_or(String::new(), |value| words::metric(&name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{epoch, started};
    use super::*;

    #[test]
    fn columns_follow_what_the_run_measures() {
        let mut run = started();
        let head = |run: &Started| {
            Epochs::new(run, Frame::Bare, 200, false).head(|title| title)[0].clone()
        };
        assert!(head(&run).contains("accuracy"));
        assert!(!head(&run).contains("val"));
        run.val_samples = 100;
        assert!(head(&run).contains("val loss"));
        assert!(head(&run).contains("best"));
        (run.val_samples, run.test_samples) = (0, 0);
        assert!(head(&run).contains("train acc"));
        run.test_samples = 100;
        run.metrics = ["loss", "mae", "r2"].map(String::from).to_vec();
        assert!(head(&run).contains("mae") && head(&run).contains("r2"));
        assert!(!head(&run).contains("accuracy"));
    }

    #[test]
    fn every_number_says_of_which_set_it_is_however_narrow_the_terminal() {
        let mut run = started();
        run.val_samples = 100;
        for width in [50, 60, 70, 80, 200] {
            let epochs = Epochs::new(&run, Frame::Rounded, width, false);
            let head = epochs.head(|title| title).join("\n");
            assert!(
                head.contains("val loss") && head.contains("test acc"),
                "{head}"
            );
            assert!(!head.contains("accuracy"), "{head}");
            assert_eq!(head.contains("val acc"), width > 60, "{width}: {head}");
        }
    }

    #[test]
    fn a_narrow_terminal_keeps_the_columns_that_matter() {
        for width in [50, 60, 70, 80] {
            let epochs = Epochs::new(&started(), Frame::Rounded, width, false);
            let row = epochs.row(&epoch(3), |cell| cell);
            assert!(console::measure_text_width(&row) <= width, "{row}");
            assert!(row.contains("0.8123"), "{row}");
        }
    }

    #[test]
    fn of_rounds_every_tenth_has_a_row_and_the_best() {
        let mut trees = started();
        trees.config.push((ROUNDS.to_owned(), "30".to_owned()));
        let rows = |all: bool, best: u32| {
            let mut epochs = Epochs::new(&trees, Frame::Bare, 200, all);
            let round = |number: u32| EpochResult {
                best: number <= best,
                ..epoch(number)
            };
            let shown = (1..=30).map(round).filter(|round| epochs.has_row(round));
            let mut shown: Vec<u32> = shown.map(|round| round.epoch).collect();
            shown.extend(epochs.take_best().map(|round| round.epoch));
            shown
        };
        assert_eq!(rows(false, 30), [10, 20, 30]);
        assert_eq!(rows(false, 17), [10, 20, 30, 17]);
        assert_eq!(rows(true, 17), (1..=30).collect::<Vec<_>>());
        trees.config.pop();
        let mut epochs = Epochs::new(&trees, Frame::Bare, 200, false);
        assert!((1..=3).all(|number| epochs.has_row(&epoch(number))));
    }
}
