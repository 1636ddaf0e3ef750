//! Small data of one's own: a table and photos, each with a job on them.

use super::Place;
use super::bitmap::bitmap;
use std::fs;

const TABLE: &str = "name = 'table'\n[data]\ntrain = 'table.csv'\ntest = 'table.csv'\n\
    [model]\nkind = 'mlp'\nhidden = [8]\n[train]\nepochs = 2\nbatch = 8\noptimizer = { kind = 'adam' }\n";

const PHOTOS: &str = "name = 'photos'\n[data]\ntrain = 'photos/'\nval_split = 0.2\ntransform = { resize = 8 }\nmax_bad = 0.0\n\
    [model]\nkind = 'mlp'\nhidden = [8]\n[train]\nepochs = 2\nbatch = 8\noptimizer = { kind = 'adam' }\n";

/// Rows of two numbers, of which the first decides the class.
pub(crate) fn table(rows: usize) -> String {
    let row = |row: usize| {
        let a = (row * 7 % 13) as f32 - 6.0;
        let class = if a > 0.0 { "high" } else { "low" };
        format!("{a},{},{class}\n", row % 5)
    };
    "a,b,label\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

/// A place with a table and a job on it.
pub(crate) fn tables() -> Place {
    let place = Place::new();
    fs::write(place.path("table.csv"), table(60)).unwrap();
    place.write_job(TABLE);
    place
}

/// A place with two classes of photos and a job on them.
pub(crate) fn photos() -> Place {
    let place = Place::new();
    for (class, name) in ["wide", "tall"].into_iter().enumerate() {
        let folder = place.path(&format!("photos/{name}"));
        fs::create_dir_all(&folder).unwrap();
        for number in 0..10 {
            let picture = bitmap(12 + number % 7, 10 + number % 5, class as u32, number);
            fs::write(folder.join(format!("{number}.bmp")), picture).unwrap();
        }
    }
    place.write_job(PHOTOS);
    place
}
