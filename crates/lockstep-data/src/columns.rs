//! The columns of a table that samples come from: what they hold, and what was seen of it.

use lockstep_table::{ColumnKind, InputColumn, LeftOut, RowBatch};
use serde::{Deserialize, Serialize};

/// The columns of a table, in the order of the input.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableSchema {
    /// Those that the input comes from.
    pub columns: Vec<TableColumn>,
    /// Those that are of no use.
    pub left_out: Vec<LeftOut>,
}

/// A column and what was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableColumn {
    /// What it is.
    #[serde(flatten)]
    pub column: InputColumn,
    /// Rows in which it is not there, or is none of the categories.
    pub gaps: u64,
    /// Of these, rows whose category the training table does not have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// The first such value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unseen: Option<String>,
    /// The smallest number; of dates, the first year.
    pub smallest: Option<f32>,
    /// The largest number.
    pub largest: Option<f32>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TableColumn {
    /// A column that nothing was seen of yet.
    pub(crate) fn new(column: InputColumn) -> Self {
        Self {
            column,
            gaps: 0,
            unseen: 0,
            first_unseen: None,
            smallest: None,
            largest: None,
        }
    }

    fn see(&mut self, number: f32) {
        if number.is_nan() {
            self.gaps += 1;
            return;
        }
        self.smallest = Some(self.smallest.map_or(number, |least| least.min(number)));
        self.largest = Some(self.largest.map_or(number, |most| most.max(number)));
    }

    /// Whether all rows say the same of it.
    pub fn is_constant(&self) -> bool {
        let single = self.column.kind.width() == 1;
        single && self.gaps == 0 && self.smallest.is_some() && self.smallest == self.largest
    }
}

impl TableSchema {
    /// Takes in what some rows hold.
    pub(crate) fn see(&mut self, batch: &RowBatch) {
        for row in batch.features.chunks_exact(batch.width) {
            let mut at = 0;
            for column in &mut self.columns {
                column.see(row[at]);
                at += column.column.kind.width();
            }
        }
        for (feature, value) in &batch.unseen {
            let column = &mut self.columns[*feature];
            column.unseen += 1;
            column.first_unseen.get_or_insert_with(|| value.clone());
        }
    }

    /// What the columns hold.
    pub fn inputs(&self) -> Vec<InputColumn> {
        self.columns
            .iter()
            .map(|column| column.column.clone())
            .collect()
    }

    /// What each number of a sample is called.
    pub(crate) fn number_names(&self) -> Vec<String> {
        let names = self.columns.iter();
        names
            .flat_map(|column| column.column.number_names())
            .collect()
    }

    /// Whether all columns are numbers, or truths, without gaps: a sample can be taken as it is.
    pub fn is_plain(&self) -> bool {
        self.columns.iter().all(|column| {
            let kind = &column.column.kind;
            column.gaps == 0 && matches!(kind, ColumnKind::Number | ColumnKind::Boolean)
        })
    }

    /// What tells this table from another of the same numbers, where these stand for something else.
    pub(crate) fn meaning(&self) -> Option<String> {
        let stands = |column: &TableColumn| {
            !matches!(column.column.kind, ColumnKind::Number | ColumnKind::Boolean)
        };
        let json = || serde_json::to_string(&self.inputs()).expect("columns are plain data");
        self.columns.iter().any(stands).then(json)
    }

    /// What a person should know of the table before a model is trained on it, each a sentence.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.columns.is_empty() {
            return notes;
        }
        let named = |fits: &dyn Fn(&TableColumn) -> bool| {
            let fitting = self.columns.iter().filter(|column| fits(column));
            list(
                &fitting
                    .map(|column| column.column.name.clone())
                    .collect::<Vec<_>>(),
            )
        };
        let numbers = self.number_names().len();
        let names: Vec<String> = self.inputs().into_iter().map(|input| input.name).collect();
        match self.meaning() {
            None => notes.push(match numbers {
                1 => format!("a sample has 1 number, the column {}", list(&names).1),
                _ => format!(
                    "a sample has {numbers} numbers, the columns {}",
                    list(&names).1
                ),
            }),
            Some(_) => {
                let kinds = [
                    ("number", "numbers"),
                    ("boolean", "booleans"),
                    ("category", "categories"),
                    ("date", "dates"),
                ];
                let of_kind = kinds.iter().filter_map(|&(word, words)| {
                    let (count, names) = named(&|column| column.column.kind.word() == word);
                    let word = if count == 1 { word } else { words };
                    (count > 0).then(|| format!("{count} {word} ({names})"))
                });
                let of_kind: Vec<String> = of_kind.collect();
                notes.push(format!("the input is {}", of_kind.join(", ")));
            }
        }
        let gaps: Vec<String> = self
            .columns
            .iter()
            .filter(|column| column.gaps > column.unseen)
            .map(|column| format!("{} ({})", column.column.name, column.gaps - column.unseen))
            .collect();
        if !gaps.is_empty() {
            notes.push(format!("there are gaps in {}", list(&gaps).1));
        }
        notes.extend(self.unseen_notes());
        for left in &self.left_out {
            let column = match &left.name[..] {
                "" => "a column without a name".to_owned(),
                name => format!("the column {name}"),
            };
            notes.push(format!("{column} is left out: {}", left.reason));
        }
        if let (1.., names) = named(&TableColumn::is_constant) {
            notes.push(format!(
                "nothing can be learned from what is the same in all rows: {names}"
            ));
        }
        notes
    }

    /// What is said of values that the training table does not have, a sentence for each column.
    pub fn unseen_notes(&self) -> Vec<String> {
        let unseen = self.columns.iter().filter_map(|column| {
            let first = column.first_unseen.as_ref()?;
            Some(format!(
                "the column {} has values in {} rows that the training table does not have, such as {first:?}; they \
                 are taken as gaps",
                column.column.name, column.unseen
            ))
        });
        unseen.collect()
    }
}

/// How many there are, and the first of them.
fn list(names: &[String]) -> (usize, String) {
    const SHOWN: usize = 8;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let shown = &names[..names.len().min(SHOWN)];
    (names.len(), format!("{}{more}", shown.join(", ")))
}
