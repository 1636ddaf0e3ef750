//! Sets that are larger than the memory stream through: the whole process stays below the limit.
//!
//! Each set is opened by a process of its own, whose peak the kernel counts.

use lockstep_base::fs::CacheDir;
use lockstep_data::{ColumnNames, Dataset, Pictures, Source, TableFormat, TableSource};
use lockstep_image::{Limits, Transform};
use lockstep_place::{Access, Place};
use lockstep_table::{EmbeddingPart, write_part};
use std::env;
use std::fs;
use std::path::Path;

/// What the process that opens a set may take in all.
const MEMORY: u64 = 64 << 20;
/// Names the folder of the set to the process that opens it.
const FOLDER: &str = "LOCKSTEP_TEST_FOLDER";

/// A grey picture of 24 x 20 pixels.
fn picture(grey: u8) -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for number in [54 + 24 * 20 * 3u32, 0, 54, 40, 24, 20] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    bytes.resize(bytes.len() + 24 * 20 * 3, grey);
    bytes
}

fn source(folder: &Path) -> Source {
    let place = Place::parse(folder.join("set").to_str().unwrap(), &Access::default()).unwrap();
    if folder.join("set/part-0.parquet").exists() {
        return Source::Table(TableSource {
            format: TableFormat::Parquet,
            place,
            columns: ColumnNames {
                path: Some("path".into()),
                ..ColumnNames::default()
            },
            target: None,
            memory: MEMORY / 2,
        });
    }
    Source::Pictures(Pictures {
        folder: place,
        transform: Transform {
            resize: Some(32),
            ..Transform::default()
        },
        limits: Limits::default(),
        max_bad: 0.0,
        memory: MEMORY / 2,
        threads: 2,
    })
}

/// Opens the set in `folder` in a process of its own; its samples, and the most memory that it took.
fn open_apart(folder: &Path) -> (usize, u64) {
    let output = lockstep_testkit::child!(opens_the_set_that_it_is_given)
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let number = |name: &str| -> u64 {
        let (_, rest) = text.split_once(name).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    (number("samples: ") as usize, number("VmHWM:") << 10)
}

#[test]
#[ignore = "what the other tests here run apart"]
fn opens_the_set_that_it_is_given() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let cache = CacheDir::at(&folder.join("cache")).unwrap();
    let set = Dataset::open(&source(folder), &cache).unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    println!("samples: {}\n{peak}", set.len());
}

/// Writes `count` pictures in ten classes, and opens them.
fn pictures(count: usize) {
    let folder = tempfile::tempdir().unwrap();
    for class in 0..10 {
        fs::create_dir_all(folder.path().join(format!("set/class-{class}"))).unwrap();
    }
    for i in 0..count {
        let name = format!("set/class-{}/{i:06}.bmp", i % 10);
        fs::write(folder.path().join(name), picture(i as u8)).unwrap();
    }
    let (samples, peak) = open_apart(folder.path());
    assert_eq!(samples, count);
    println!("{count} pictures: {} MiB", peak >> 20);
    assert!(peak < MEMORY, "{peak} bytes for {count} pictures");
}

#[test]
fn thirty_thousand_pictures_stream_through() {
    // Three kilobytes each, once decoded: more than the memory.
    pictures(30_000);
}

/// Writes `files` Parquet files of 16 MiB, and opens them.
fn parquet(files: usize) {
    let (rows, width) = (8192, 512);
    let paths: Vec<_> = (0..rows)
        .map(|row| format!("some/folder/{row:06}.jpg"))
        .collect();
    let labels: Vec<_> = (0..rows)
        .map(|row| Some(format!("class {}", row % 100)))
        .collect();
    let embeddings: Vec<f32> = (0..(rows * width) as u32)
        .map(|i| i.wrapping_mul(2_654_435_761) as f32 / u32::MAX as f32 - 0.5)
        .collect();
    let part = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width,
        embeddings: &embeddings,
    };
    let bytes = write_part(&part, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    fs::write(set.join("part-0.parquet"), bytes).unwrap();
    for file in 1..files {
        fs::hard_link(
            set.join("part-0.parquet"),
            set.join(format!("part-{file}.parquet")),
        )
        .unwrap();
    }
    let (samples, peak) = open_apart(folder.path());
    assert_eq!(samples, files * rows);
    println!("{} MiB of vectors: {} MiB", 16 * files, peak >> 20);
    assert!(peak < MEMORY, "{peak} bytes for {files} files of 16 MiB");
}

#[test]
fn a_table_of_twice_the_memory_streams_through() {
    parquet(8);
}

#[test]
#[ignore = "takes a minute and 5 GiB of disk: make test-long"]
fn a_table_of_5_gib_streams_through() {
    parquet(320);
}
