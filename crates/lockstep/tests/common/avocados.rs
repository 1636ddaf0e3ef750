//! A little job of a table with every kind of column and gaps, for those who ask a model.

use super::Place;
use std::fs;

const JOB: &str = r#"
name = "avocados"

[data]
train = { csv = "sales.csv", label = "price" }

[model]
kind = "mlp"
hidden = [8]

[train]
epochs = 2
batch = 8
optimizer = { kind = "adam" }
lanes = 2
workers = 1

[run]
store = "runs"
"#;

/// A row of `new.csv`.
pub(crate) struct NewRow {
    pub(crate) date: String,
    pub(crate) region: &'static str,
    pub(crate) organic: bool,
    pub(crate) volume: String,
}

/// A place with the job, with `sales.csv` to train on, and with `new.csv`, of which nobody knows the prices and where
/// there is a region more; and the rows of that.
pub(crate) fn avocados() -> (Place, Vec<NewRow>) {
    let place = Place::new();
    let mut known = "date,region,organic,volume,price\n".to_owned();
    let mut new = "date,region,organic,volume\n".to_owned();
    let row = |row: usize| NewRow {
        date: format!("2024-{:02}-{:02}", row % 12 + 1, row % 28 + 1),
        region: ["east", "north", "west", "no-where"][row % 4],
        organic: row.is_multiple_of(3),
        volume: match row % 11 {
            0 => String::new(),
            _ => format!("{}.25", row * 7 % 13),
        },
    };
    let rows: Vec<NewRow> = (0..60).map(row).collect();
    for (number, row) in rows.iter().enumerate() {
        let NewRow {
            date,
            region,
            organic,
            volume,
        } = row;
        let line = format!("{date},{region},{organic},{volume}");
        let price = 1.0 + (number % 5) as f32 / 3.0;
        if number % 4 < 3 {
            known += &format!("{line},{price}\n");
        }
        new += &format!("{line}\n");
    }
    fs::write(place.path("sales.csv"), known).unwrap();
    fs::write(place.path("new.csv"), new).unwrap();
    place.write_job(JOB);
    (place, rows)
}
