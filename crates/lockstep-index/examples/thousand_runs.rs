//! How long an index of many runs takes to answer.
//!
//!     cargo run --release -p lockstep-index --example thousand_runs -- [RUNS] [POINTS]
//!
//! Writes the folders of 1,000 runs of 10,000 points, reads them into an index, and then asks what `runs list`, `runs
//! show` and `runs compare` of ten ask, each as its command does: the index is opened and brought up to date first.

use lockstep_index::{Index, Keys, Kind};
use lockstep_place::{Access, Place};
use lockstep_runs::RunDir;
use std::fmt::Write;
use std::time::Instant;

const TIMES: usize = 9;

fn main() {
    let given: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|n| n.parse().ok())
        .collect();
    let (runs, points) = (
        given.first().unwrap_or(&1000),
        given.get(1).unwrap_or(&10_000),
    );
    let folder = tempfile::tempdir().expect("a folder for the runs");
    let path = folder.path().to_str().expect("a path that is text");
    let store = Place::parse(path, &Access::default()).expect("a local store");
    let names: Vec<String> = (0..*runs)
        .map(|number| write(&store, number, *points))
        .collect();

    let began = Instant::now();
    let mut index = Index::open(&store, None).expect("an index");
    index.refresh_all().expect("folders that can be read");
    println!("{runs} runs of {points} points");
    println!(
        "reindex            {:>8.1} ms",
        began.elapsed().as_secs_f64() * 1e3
    );
    drop(index);
    let size = std::fs::metadata(folder.path().join("index.sqlite")).map_or(0, |file| file.len());
    println!(
        "index.sqlite       {:>8.1} MiB",
        size as f64 / f64::from(1 << 20)
    );

    let open = || {
        let mut index = Index::open(&store, None).expect("an index");
        let read = index.refresh_all().expect("folders that can be read").read;
        assert_eq!(read, 0);
        index
    };
    measure("list", || {
        open().runs(&Keys::Some(Vec::new())).expect("runs").len()
    });
    measure("list and filter", || {
        let index = open();
        let keys = Keys::Some(vec!["train.optimizer.lr".into()]);
        index.keys().expect("keys").len() + index.runs(&keys).expect("runs").len()
    });
    let show = |index: &Index, name: &str| {
        let details = index.details(name).expect("a run").expect("a run");
        let series = index.series(name, |_, _| true).expect("series");
        assert_eq!(details.run.name, name);
        series
            .iter()
            .map(|series| series.points.len())
            .sum::<usize>()
    };
    measure("show", || show(&open(), &names[names.len() / 2]));
    measure("compare 10", || {
        let index = open();
        names
            .iter()
            .take(10)
            .map(|name| show(&index, name))
            .sum::<usize>()
    });
    let index = open();
    let kinds = index
        .series(&names[0], |kind, _| kind == Kind::Metric)
        .expect("series")
        .len();
    println!("metrics a run      {kinds:>8}");
}

/// The median of some times that something takes.
fn measure(what: &str, mut ask: impl FnMut() -> usize) {
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            let found = std::hint::black_box(ask());
            assert!(found > 0);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (median, worst) = (times[TIMES / 2], times[TIMES - 1]);
    println!("{what:<18} {median:>8.1} ms   (worst {worst:.1})");
}

/// A run with so many points, of which half are losses by step and half are what two workers do.
fn write(store: &Place, number: usize, points: usize) -> String {
    let (run, lock) = RunDir::create(store, "digits").expect("a run");
    let mut job = format!(
        "name = \"digits\"\n[train]\nepochs = 10\nbatch = 32\noptimizer = {{ kind = \"sgd\", lr = {:?} }}\n",
        0.001 * (1 + number % 50) as f64
    );
    job += "[model]\nkind = \"mlp\"\nhidden = [512, 512]\ndropout = 0.25\n[other]\n";
    for key in 0..30 {
        let _ = writeln!(job, "key_{key} = {key}");
    }
    run.job().write(job.as_bytes()).expect("a job");
    let time = 1_794_000_000.0 + number as f64;
    let mut text = format!(
        "{{\"v\":1,\"time\":{time},\"event\":\"started\",\"workers\":2,\"lanes\":2,\"epochs\":10,\
         \"steps_per_epoch\":1000,\"metrics\":[\"loss\",\"accuracy\"]}}\n"
    );
    for point in 0..points / 4 {
        let now = time + point as f64;
        let _ = writeln!(
            text,
            "{{\"v\":1,\"time\":{now},\"event\":\"progress\",\"epoch\":1,\"step\":{point},\"steps\":100000,\
             \"loss\":{},\"accuracy\":{},\"rank\":0}}",
            1.0 / (1 + point) as f64,
            1.0 - 1.0 / (1 + point) as f64
        );
        let _ = writeln!(
            text,
            "{{\"v\":1,\"time\":{now},\"event\":\"usage\",\"rank\":{},\"cpu_percent\":99.0,\"memory_bytes\":100000}}",
            point % 2
        );
    }
    let _ = writeln!(
        text,
        "{{\"v\":1,\"time\":{},\"event\":\"result\",\"status\":\"succeeded\",\"epochs\":10,\
         \"metrics\":{{\"loss\":0.3,\"accuracy\":{}}}}}",
        time + 60.0,
        0.5 + 0.0004 * number as f64
    );
    run.file(lockstep_runs::files::EVENTS)
        .write(text.as_bytes())
        .expect("a record");
    drop(lock);
    run.name
}
