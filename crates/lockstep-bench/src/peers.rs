//! The same job in other systems: what they need is installed once, and the samples are handed over as plain files.

use crate::{MeasureError, Measured, Peer, PeerAnswer, RunTrainer, Setting};
use lockstep_base::calendar;
use lockstep_base::fs::CacheDir;
use lockstep_data::{Dataset, Normaliser, TargetKind};
use lockstep_job::{Data, Job, JobColumnType, JobLoss, JobOptimizer, JobSchedule, NetworkJob};
use lockstep_resolve::{NetworkPlan, ResolvedJob};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a process is looked at.
const TICK: Duration = Duration::from_millis(20);
/// Samples that are written at a time.
const ROWS: usize = 1024;
/// Names a Python that has all that peers need.
const PYTHON: &str = "LOCKSTEP_BENCH_PYTHON";

/// Other systems, ready to train.
pub(crate) struct Peers {
    python: PathBuf,
    /// Goes with this.
    folder: tempfile::TempDir,
    train: Value,
    test: Value,
    shape: [usize; 3],
    outputs: usize,
}

/// What of a job peers would leave out, so that they would train something else.
fn unknown_to_peers(data: &Data, network: &NetworkJob) -> Option<&'static str> {
    let learner = &network.train.learner;
    let schedule = &learner.schedule;
    let columns = data.train.columns();
    let is_embedding = |word: &JobColumnType| *word == JobColumnType::Embedding;
    let unknown = [
        (
            matches!(
                learner.loss,
                Some(JobLoss::Mae | JobLoss::Huber | JobLoss::Quantile | JobLoss::Focal)
            ),
            "train.loss",
        ),
        (learner.class_weights.is_some(), "train.class_weights"),
        (!learner.freeze.is_empty(), "train.freeze"),
        (!learner.rates.is_empty(), "train.rates"),
        (data.balance, "data.balance"),
        (
            columns.is_some_and(|columns| columns.weight.is_some()),
            "a column of weights",
        ),
        (
            columns.is_some_and(|columns| columns.types.values().any(is_embedding)),
            "a column of the type \"embedding\"",
        ),
        (learner.average.is_some(), "train.average"),
        (learner.patience.is_some(), "train.patience"),
        (
            matches!(learner.optimizer, JobOptimizer::Lion { .. }),
            "the optimizer \"lion\"",
        ),
        (
            matches!(schedule, JobSchedule::Plateau { .. }),
            "the schedule \"plateau\"",
        ),
        (
            matches!(schedule, JobSchedule::OneCycle { .. }),
            "the schedule \"one-cycle\"",
        ),
    ];
    let found = unknown.into_iter().find(|(has, _)| *has);
    found.map(|(_, key)| key)
}

impl Peers {
    /// Installs what `peers` need, and writes the samples of `job`.
    pub(crate) fn prepare(
        peers: &[Peer],
        (job, network): (&Job, &NetworkJob),
        cache: &CacheDir,
        trainer: &dyn RunTrainer,
    ) -> Result<Peers, MeasureError> {
        let resolved = ResolvedJob::of(job, network)?;
        let data = job.data.as_ref();
        let data = data.ok_or(MeasureError::NoData)?;
        if resolved.embedding.is_some() || data.augment.is_some() {
            return Err(MeasureError::Changing);
        }
        if let Some(key) = unknown_to_peers(data, network) {
            return Err(MeasureError::UnknownToPeers(key));
        }
        let mut tell = |message: &str| trainer.say(message);
        let train = Dataset::open_telling(&resolved.sets.train, cache, &mut tell)?;
        if train.target_kind() != TargetKind::Classes {
            return Err(MeasureError::NoClasses {
                set: train.name().to_owned(),
                kind: train.target_kind().to_string(),
            });
        }
        let test = resolved.sets.test.as_ref();
        let test = test.map(|source| Dataset::open_beside(source, &train, cache, &mut tell));
        let settings = &resolved.training;
        let folder = tempfile::tempdir_in(cache.folder("peers")?)?;
        fs::write(folder.path().join("peer.py"), Peer::SCRIPT)?;
        let (rows, _) = train.split(settings.val_share, settings.stratify, settings.seed);
        let normaliser = settings.normaliser(&train, &rows)?;
        let shape = match normaliser.encoding() {
            Some(encoding) => [encoding.width(), 1, 1],
            None => train.shape(),
        };
        let written = write(&train, &rows, &normaliser, &folder.path().join("train"))?;
        let test = match test.transpose()? {
            Some(set) => {
                let rows: Vec<u32> = (0..set.len() as u32).collect();
                write(&set, &rows, &normaliser, &folder.path().join("test"))?
            }
            None => Value::Null,
        };
        Ok(Peers {
            python: python(peers, cache, trainer)?,
            train: written,
            test,
            shape,
            outputs: train.classes(),
            folder,
        })
    }

    /// Trains once, or so many steps. Nothing if somebody asked to stop.
    pub(crate) fn train(
        &self,
        peer: Peer,
        network: &NetworkJob,
        setting: &Setting,
        max_steps: Option<u64>,
        trainer: &dyn RunTrainer,
    ) -> Result<Option<Measured>, MeasureError> {
        let learner = &network.train.learner;
        let answer = self.folder.path().join("answer.json");
        let layers = NetworkPlan::of(&network.model.network).layers(self.outputs);
        let modules: Vec<String> = layers
            .iter()
            .map(|layer| layer.spec.torch_module())
            .collect();
        let spec = json!({
            "peer": peer.name(),
            "workers": setting.workers,
            "batch": learner.batch,
            "epochs": learner.epochs,
            "max_steps": max_steps,
            "seed": network.train.seed,
            "layers": modules,
            "shape": self.shape,
            "optimizer": learner.optimizer,
            "schedule": learner.schedule,
            "clip_norm": learner.clip_norm,
            "label_smoothing": learner.label_smoothing,
            "train": self.train,
            "test": self.test,
            "answer": answer,
            "started": calendar::now(),
        });
        let file = self.folder.path().join("spec.json");
        fs::write(&file, spec.to_string())?;
        let _ = fs::remove_file(&answer);
        let log = self.folder.path().join("log");
        let mut command = Command::new(&self.python);
        command.arg(self.folder.path().join("peer.py")).arg(file);
        command
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?);
        let began = Instant::now();
        let Some(ended) = wait(&mut command, trainer)? else {
            return Ok(None);
        };
        let total = began.elapsed().as_secs_f64();
        let said = match (ended.success(), fs::read(&answer)) {
            (true, Ok(said)) => said,
            _ => {
                let said = tail(&log);
                return Err(MeasureError::Peer { peer, ended, said });
            }
        };
        let answer: PeerAnswer = serde_json::from_slice(&said)
            .map_err(|source| MeasureError::PeerAnswer { peer, source })?;
        Ok(Some(answer.measured(total)))
    }
}

/// Writes samples and classes as plain numbers; where they are.
fn write(set: &Dataset, rows: &[u32], normaliser: &Normaliser, at: &Path) -> io::Result<Value> {
    let (samples, labels) = (at.with_extension("samples"), at.with_extension("labels"));
    let mut out = BufWriter::new(File::create(&samples)?);
    let mut classes = BufWriter::new(File::create(&labels)?);
    let width = normaliser.row_len(set.sample_len());
    let mut numbers = vec![0.0; ROWS * width];
    let mut words = vec![0; ROWS];
    for rows in rows.chunks(ROWS) {
        let numbers = &mut numbers[..rows.len() * width];
        set.gather(rows, normaliser, numbers);
        for number in numbers.iter() {
            out.write_all(&number.to_ne_bytes())?;
        }
        set.gather_labels(rows, &mut words[..rows.len()]);
        for word in &words[..rows.len()] {
            classes.write_all(&word.to_ne_bytes())?;
        }
    }
    out.flush()?;
    classes.flush()?;
    Ok(json!({ "samples": samples, "labels": labels, "count": rows.len() }))
}

/// A Python that has all that `peers` need, which is installed once.
fn python(
    peers: &[Peer],
    cache: &CacheDir,
    trainer: &dyn RunTrainer,
) -> Result<PathBuf, MeasureError> {
    if let Some(python) = env::var_os(PYTHON) {
        return Ok(python.into());
    }
    let folder = cache.folder("peers")?.join("python");
    let (python, note) = (folder.join("bin/python"), folder.join("installed"));
    let mut needed: Vec<&str> = Vec::new();
    let mut gigabytes: f64 = 0.0;
    for peer in peers {
        let (packages, size) = peer.packages();
        needed.extend(packages);
        gigabytes = gigabytes.max(size);
    }
    needed.sort_unstable();
    needed.dedup();
    let installed = fs::read_to_string(&note).unwrap_or_default();
    if needed
        .iter()
        .all(|package| installed.lines().any(|line| line == *package))
    {
        return Ok(python);
    }
    trainer.say(&format!(
        "installing {} into {} (once; about {gigabytes} GB); {PYTHON} would name a Python that has them",
        needed.join(" "),
        folder.display()
    ));
    let steps: [Vec<&str>; 2] = [
        vec!["-m", "venv"],
        [
            &[
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ],
            &needed[..],
        ]
        .concat(),
    ];
    for (program, step) in [Path::new("python3"), &python].into_iter().zip(steps) {
        let mut command = Command::new(program);
        command.args(&step).stdout(Stdio::null());
        if step[1] == "venv" {
            command.arg(&folder);
        }
        let ended = wait(&mut command, trainer).map_err(MeasureError::NoPython)?;
        let ended = ended.ok_or(MeasureError::Interrupted)?;
        if !ended.success() {
            let command = format!("{} {}", program.display(), step.join(" "));
            return Err(MeasureError::Install { command, ended });
        }
    }
    let all: Vec<&str> = installed.lines().chain(needed).collect();
    fs::write(note, all.join("\n") + "\n")?;
    Ok(python)
}

/// Runs a command to its end. Nothing, and no process left, if somebody asked to stop.
fn wait(command: &mut Command, trainer: &dyn RunTrainer) -> io::Result<Option<ExitStatus>> {
    let mut child: Child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    loop {
        if let Some(ended) = child.try_wait()? {
            return Ok(Some(ended));
        }
        if trainer.is_stopped() {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// The last lines of a file.
fn tail(log: &Path) -> String {
    const LINES: usize = 20;
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
