//! Rows that are trained on and measured on: what is measured on them says nothing about new ones.

use crate::{Dataset, TargetKind};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Rows of fewer columns are often the same by chance.
const LEAST_COLUMNS: usize = 4;
/// Of so many rows, one may be the same by chance.
const ONE_OF: usize = 200;

/// Says that rows of a table which a model is measured on are rows that it is trained on too, if they are more than would be
/// by chance. Each set comes with the rows that are meant.
pub fn leak_note(train: (&Dataset, &[u32]), measured: (&Dataset, &[u32])) -> Option<String> {
    let (set, rows) = measured;
    if train.0.table().columns.is_empty() || rows.is_empty() {
        return None;
    }
    if set.sha256() == train.0.sha256() {
        // The same table: its rows are known by their places, and nothing is the same by chance.
        let trained: HashSet<u32> = train.1.iter().copied().collect();
        let both = rows.iter().filter(|row| trained.contains(row)).count();
        return (both > 0).then(|| sentence(both, set, rows.len()));
    }
    if train.0.table().columns.len() < LEAST_COLUMNS {
        return None;
    }
    let mut seen: HashMap<u64, usize> = HashMap::with_capacity(rows.len());
    for &row in rows {
        *seen.entry(hash(set, row)).or_default() += 1;
    }
    let mut both = 0;
    for &row in train.1 {
        both += seen.remove(&hash(train.0, row)).unwrap_or(0);
        if seen.is_empty() {
            break;
        }
    }
    (both * ONE_OF > rows.len()).then(|| sentence(both, set, rows.len()))
}

fn sentence(both: usize, set: &Dataset, rows: usize) -> String {
    format!(
        "{both} of the {rows} rows of {} are trained on too, with the same inputs and label: what is measured on them is too \
         good",
        set.name()
    )
}

/// A hash of all that is known of a row.
fn hash(set: &Dataset, row: u32) -> u64 {
    let (row, width) = (row as usize, set.sample_len());
    let mut hasher = DefaultHasher::new();
    let add = |numbers: &[f32], hasher: &mut DefaultHasher| {
        numbers
            .iter()
            .for_each(|number| number.to_bits().hash(hasher));
    };
    add(&set.floats()[row * width..(row + 1) * width], &mut hasher);
    match set.target_kind() {
        TargetKind::Classes => set.labels().get(row).hash(&mut hasher),
        TargetKind::Numbers | TargetKind::Labels => {
            let outputs = set.outputs();
            add(
                &set.numbers()[row * outputs..(row + 1) * outputs],
                &mut hasher,
            );
        }
    }
    hasher.finish()
}
