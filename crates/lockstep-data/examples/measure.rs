//! Measures opening a data set and gathering batches from it:
//! `cargo run --release -p lockstep-data --example measure -- [IMAGES_FILE]`
//! (Fashion-MNIST without an argument).

use lockstep_data::{DataError, Dataset, EpochOrder, Normaliser, Source};
use lockstep_store::CacheDir;
use std::hint::black_box;
use std::time::Instant;

const ROWS: usize = 16;

fn main() -> Result<(), DataError> {
    let source = match std::env::args_os().nth(1) {
        Some(images) => Source::Idx {
            images: images.into(),
            labels: None,
            class_names: None,
        },
        None => Source::Known {
            name: "fashion-mnist".into(),
            split: "train".into(),
        },
    };
    let cache = CacheDir::locate()?;
    source.ensure(&cache, &mut |message| println!("{message}"))?;

    let scratch = tempfile::tempdir().map_err(|source| DataError::Io {
        action: "make",
        path: std::env::temp_dir(),
        source,
    })?;
    // The files of the real cache, a decoded cache of our own: it is empty the first time.
    let decoded = scratch.path().join("decoded");
    let own = CacheDir::at(scratch.path())?;
    if let Source::Known { .. } = source {
        std::os::unix::fs::symlink(cache.path().join("datasets"), own.path().join("datasets"))
            .map_err(|source| DataError::Io {
                action: "link",
                path: decoded,
                source,
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
    let mut order = EpochOrder::new(0, 0, set.len());
    println!(
        "order of an epoch: {:.3} ms",
        1e3 * begun.elapsed().as_secs_f64()
    );
    let normaliser = Normaliser::new(&[0.28604], &[0.32025], set.shape()[0])?;
    let mut rows = vec![0.0; ROWS * set.sample_len()];
    let mut labels = vec![0; ROWS];
    for epoch in 0..5 {
        order.fill(0, epoch);
        let begun = Instant::now();
        let batches = order.indices().chunks_exact(ROWS);
        let count = batches.len();
        for batch in batches {
            set.gather(batch, &normaliser, &mut rows, &mut labels);
            black_box(&mut rows);
        }
        let each = 1e6 * begun.elapsed().as_secs_f64() / count as f64;
        println!("gather in epoch {epoch}: {each:.2} us for {ROWS} rows");
    }
    Ok(())
}
