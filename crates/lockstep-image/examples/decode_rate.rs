//! How many pictures a second are decoded, resized, cropped and normalised.
//!
//!     cargo run --release -p lockstep-image --example decode_rate -- FOLDER [--processes 2] [--seconds 5]
//!         [--resize 224] [--crop 224] [--filter bilinear] [--stages]
//!
//! Every process has one thread, holds the folder's files in memory and goes through all of them again and again.
//! One line of JSON comes out. `--stages` says instead what a picture costs up to each stage, in one process.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use lockstep_image::{
    ByteNormaliser, Filter, Limits, Normalise, Transform, Transformer, decode, probe,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const IMAGENET: Normalise = Normalise {
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
};

struct Options {
    folder: String,
    processes: usize,
    seconds: f64,
    resize: u32,
    crop: u32,
    filter: Filter,
    stages: bool,
    /// Set in the processes that this one starts.
    worker: bool,
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let files = read_folder(Path::new(&options.folder))?;
    if options.stages {
        return stages(&options, &files);
    }
    if options.worker {
        return worker(&options, &files);
    }
    let mut workers = (0..options.processes)
        .map(|_| Worker::start())
        .collect::<Result<Vec<_>>>()?;
    for worker in &mut workers {
        worker.wait_until_ready()?;
    }
    for worker in &mut workers {
        worker.go()?;
    }
    let rates = workers
        .into_iter()
        .map(Worker::finish)
        .collect::<Result<Vec<f64>>>()?;
    let (total, pictures) = (rates.iter().sum::<f64>(), files.len());
    println!(
        "{{\"images_per_s\": {total:.1}, \"processes\": {}, \"pictures\": {pictures}}}",
        rates.len()
    );
    Ok(())
}

/// Goes through the files for some seconds, when told to.
fn worker(options: &Options, files: &[Vec<u8>]) -> Result<()> {
    let mut transformer = Transformer::new(&options.transform(), Limits::default())?;
    let normalise = ByteNormaliser::new(&IMAGENET);
    let mut out = vec![0.0; transformer.output_len()];
    // The first pictures take page faults and grow the buffers.
    for file in files.iter().take(50) {
        transformer.apply_normalised(file, &normalise, &mut out)?;
    }
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < options.seconds {
        for file in files {
            transformer.apply_normalised(file, &normalise, &mut out)?;
            black_box(&out);
        }
        done += files.len();
    }
    println!("{}", done as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

/// The time of a picture up to each stage; the least of some passes.
fn stages(options: &Options, files: &[Vec<u8>]) -> Result<()> {
    let mut transformer = Transformer::new(&options.transform(), Limits::default())?;
    let normalise = ByteNormaliser::new(&IMAGENET);
    let mut pixels = vec![0; transformer.output_len()];
    let mut out = vec![0.0; transformer.output_len()];
    let report =
        |stage: &str, time: Duration| println!("{stage:>10} {:8.1} us", time.as_secs_f64() * 1e6);
    report(
        "probe",
        least(files, |file| {
            black_box(probe(file)?);
            Ok(())
        })?,
    );
    report(
        "decode",
        least(files, |file| {
            black_box(decode(file, &Limits::default())?);
            Ok(())
        })?,
    );
    report(
        "transform",
        least(files, |file| {
            transformer.apply(file, &mut pixels)?;
            Ok(())
        })?,
    );
    report(
        "normalise",
        least(files, |file| {
            transformer.apply_normalised(file, &normalise, &mut out)?;
            Ok(())
        })?,
    );
    Ok(())
}

fn least(files: &[Vec<u8>], mut work: impl FnMut(&[u8]) -> Result<()>) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for file in files {
            work(file)?;
        }
        least = least.min(start.elapsed() / files.len() as u32);
    }
    Ok(least)
}

fn read_folder(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut paths = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    let files = paths
        .iter()
        .map(std::fs::read)
        .collect::<std::result::Result<Vec<_>, _>>()?;
    if files.is_empty() {
        Err("the folder is empty".into())
    } else {
        Ok(files)
    }
}

/// Another process of this program.
struct Worker {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    fn start() -> Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(std::env::args().skip(1))
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("a pipe was asked for")?);
        Ok(Worker { child, lines })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        self.lines.read_line(&mut String::new())?;
        Ok(())
    }

    fn go(&mut self) -> Result<()> {
        Ok(self
            .child
            .stdin
            .as_mut()
            .ok_or("a pipe was asked for")?
            .write_all(b"go\n")?)
    }

    fn finish(mut self) -> Result<f64> {
        let mut rate = String::new();
        self.lines.read_to_string(&mut rate)?;
        self.child.wait()?;
        Ok(rate.trim().parse()?)
    }
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            folder: words.next().ok_or("the folder of pictures is missing")?,
            processes: 1,
            seconds: 5.0,
            resize: 224,
            crop: 224,
            filter: Filter::Bilinear,
            stages: false,
            worker: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--processes" => options.processes = value()?.parse()?,
                "--seconds" => options.seconds = value()?.parse()?,
                "--resize" => options.resize = value()?.parse()?,
                "--crop" => options.crop = value()?.parse()?,
                "--filter" => options.filter = serde_json::from_value(value()?.into())?,
                "--stages" => options.stages = true,
                "--worker" => options.worker = true,
                _ => return Err(format!("{word} is not known").into()),
            }
        }
        Ok(options)
    }

    fn transform(&self) -> Transform {
        Transform {
            resize: Some(self.resize),
            crop: Some([self.crop, self.crop]),
            filter: self.filter,
            ..Transform::default()
        }
    }
}
