//! Measures opening a data set and gathering batches from it, plain and, if it is of images, augmented:
//! `cargo run --release -p lockstep-data --example measure -- [IMAGES_FILE | CIFAR_FOLDER]`
//! (Fashion-MNIST without an argument).

use lockstep_base::fs::CacheDir;
use lockstep_data::{
    Augment, Augmenter, CifarSplit, DataError, Dataset, EpochOrder, Normaliser, Source,
};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

const ROWS: usize = 64;
const AUGMENT: Augment = Augment {
    crop_padding: 4,
    flip: true,
};

fn main() -> Result<(), DataError> {
    let source = match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(folder) if folder.is_dir() => Source::CifarFolder {
            folder,
            split: CifarSplit::Train,
        },
        Some(images) => Source::Idx {
            images,
            labels: None,
            class_names: None,
        },
        None => Source::Known {
            name: "fashion-mnist".into(),
            split: "train".into(),
        },
    };
    let cache = CacheDir::locate()?;
    let mut tell = |message: &str| println!("{message}");
    Dataset::open_telling(&source, &cache, &mut tell)?;

    let scratch = tempfile::tempdir().map_err(|source| DataError::Io {
        action: "make",
        path: std::env::temp_dir(),
        source,
    })?;
    // The files of the real cache, a decoded cache of our own: it is empty the first time.
    let own = CacheDir::at(scratch.path())?;
    if let Source::Known { .. } = source {
        let link = own.path().join("datasets");
        std::os::unix::fs::symlink(cache.path().join("datasets"), &link).map_err(|source| {
            DataError::Io {
                action: "link",
                path: link,
                source,
            }
        })?;
    }
    for way in [
        "from the files",
        "from the decoded cache",
        "from the decoded cache",
    ] {
        let begun = Instant::now();
        let set = black_box(Dataset::open(&source, &own)?);
        println!(
            "open {way}: {:.3} ms, {} samples",
            1e3 * begun.elapsed().as_secs_f64(),
            set.len()
        );
    }

    let set = Dataset::open(&source, &own)?;
    let begun = Instant::now();
    let order = EpochOrder::new(0, 0, set.len());
    println!(
        "order of an epoch: {:.3} ms",
        1e3 * begun.elapsed().as_secs_f64()
    );
    for epoch in 1..=4 {
        gather("gather", &set, epoch, None, order.clone())?;
    }
    if let Ok(augmenter) = Augmenter::new(AUGMENT, set.shape(), 0) {
        for epoch in 1..=4 {
            gather("augment", &set, epoch, Some(augmenter), order.clone())?;
        }
    }
    Ok(())
}

/// Gathers an epoch and says how long a batch took.
fn gather(
    what: &str,
    set: &Dataset,
    epoch: u32,
    augmenter: Option<Augmenter>,
    mut order: EpochOrder,
) -> Result<(), DataError> {
    let normaliser = Normaliser::new(&[0.28604], &[0.32025], set.shape()[0])?;
    let mut rows = vec![0.0; ROWS * set.sample_len()];
    let mut labels = vec![0; ROWS];
    order.fill(0, epoch);
    let begun = Instant::now();
    let batches = order.indices().chunks_exact(ROWS);
    let count = batches.len();
    for (step, batch) in (0..).zip(batches) {
        match &augmenter {
            None => set.gather(batch, &normaliser, &mut rows),
            Some(augmenter) => {
                let seen = (augmenter, step);
                set.gather_augmented(batch, &normaliser, seen, &mut rows);
            }
        }
        set.gather_labels(batch, &mut labels);
        black_box((&mut rows, &mut labels));
    }
    let each = 1e6 * begun.elapsed().as_secs_f64() / count as f64;
    println!("{what} in epoch {epoch}: {each:.2} us for {ROWS} rows");
    Ok(())
}
