//! Workers and the coordinator are killed again and again, at random and inside the update, and the
//! weights are still those of a run that nothing happened to. Over TCP workers are also stopped, and
//! killed and stopped while they connect to each other; and a training thread is frozen while the rest of
//! its process lives. `make soak` runs the long versions; `LOCKSTEP_SOAK_EPOCHS` says how many epochs each of
//! them trains.
#![cfg(debug_assertions)]

#[path = "../common/mod.rs"]
mod common;
mod hosts;

use common::{JOB, Place, Running, send};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The worker that fails by itself: in each of its lives it dies inside the update after so many chunks,
/// and in some generations before.
const FAILING: u64 = 1;

/// What workers exchange over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Shm,
    Tcp,
}

/// Random numbers; a failure says from which seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = now.unwrap().as_nanos() as u64 | 1;
        eprintln!("seed {seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What was done to a run.
#[derive(Debug, Default)]
struct Harm {
    /// Kills inside the update or while workers connect, of workers at random, and of the coordinator.
    inside_the_update: usize,
    workers: usize,
    coordinators: usize,
    /// Workers that were stopped, at random or while they connect, or whose training thread was frozen.
    silent: usize,
    /// How often the gang went on with a worker replaced.
    restarts: usize,
}

impl Harm {
    fn kills(&self) -> usize {
        self.inside_the_update + self.workers + self.coordinators
    }
}

/// Trains so many epochs while killing, and returns the result and what was done.
fn train(place: &Place, transport: Transport, epochs: u32, dice: &mut Dice) -> (Value, Harm) {
    let mut harm = Harm::default();
    let mut resume: Option<PathBuf> = None;
    loop {
        let epochs = epochs.to_string();
        let mut args = vec!["run", "job.toml", "--json", "--epochs", &epochs];
        if let Some(run) = &resume {
            args.extend(["--resume", run.to_str().unwrap()]);
        }
        let points = ["update.before", "update.reduce", "update.publish"];
        let point = points[dice.below(3) as usize];
        let life = 400 + dice.below(800);
        let mut command = place.command(&args);
        let mut failpoint = format!("{point}@rank{FAILING}=kill@{life}");
        // A thread that sleeps for a day is as good as frozen.
        let chunk = 1 + dice.below(300);
        failpoint += &format!(",update.before@rank{FAILING}@gen3=sleep:86400000@{chunk}");
        if transport == Transport::Tcp {
            let places = ["mesh.begin", "mesh.dialed", "mesh.formed"];
            for (generation, action) in [(2, "kill"), (4, "stop"), (6, "kill")] {
                let place = places[dice.below(3) as usize];
                failpoint += &format!(",{place}@rank{FAILING}@gen{generation}={action}@1");
            }
        }
        command.env("LOCKSTEP_FAILPOINTS", failpoint);
        let mut run = Running::new(command);
        // The coordinator of this part dies after so many restarts, if the run lasts so long.
        let last_restart = 4 + dice.below(8);
        let mut pids = BTreeMap::new();
        let mut killed = BTreeSet::new();
        // Those who were harmed and not named yet; they may have been replaced by then.
        let mut unnamed = BTreeSet::new();
        let mut restarts = 0;
        let mut next_kill = Instant::now() + Duration::from_millis(100 + dice.below(300));
        while let Some(event) = run.next() {
            match event["event"].as_str().unwrap() {
                "started" => resume = event["run_dir"].as_str().map(PathBuf::from),
                "worker" => {
                    let rank = event["rank"].as_u64().unwrap();
                    let before = pids.insert(rank, event["pid"].as_i64().unwrap() as i32);
                    let harmed = rank == FAILING || killed.remove(&rank);
                    assert!(
                        before.is_none() || harmed,
                        "healthy worker {rank} was replaced"
                    );
                }
                "restart" => {
                    restarts += 1;
                    harm.restarts += 1;
                    let reason = event["reason"].as_str().unwrap();
                    let of = |rank: &u64| reason.starts_with(&format!("worker {rank} "));
                    assert!(
                        of(&FAILING) || unnamed.iter().any(of),
                        "{unnamed:?}: {reason}"
                    );
                    unnamed.retain(|rank| !of(rank));
                    let killed_inside = of(&FAILING) && reason.contains("SIGKILL");
                    harm.inside_the_update += usize::from(killed_inside);
                    harm.silent += usize::from(!reason.contains("SIGKILL"));
                }
                "progress" if restarts >= last_restart => {
                    run.signal(Signal::KILL);
                    harm.coordinators += 1;
                    break;
                }
                "progress" | "epoch" if Instant::now() > next_kill && killed.is_empty() => {
                    next_kill = Instant::now() + Duration::from_millis(100 + dice.below(300));
                    let victim = [0, 2][dice.below(2) as usize];
                    killed.insert(victim);
                    unnamed.insert(victim);
                    let stop = transport == Transport::Tcp && dice.below(4) == 0;
                    harm.workers += usize::from(!stop);
                    send(
                        pids[&victim],
                        if stop { Signal::STOP } else { Signal::KILL },
                    );
                }
                _ => (),
            }
        }
        let (code, result, stderr) = run.finish();
        place.assert_no_process_is_left();
        if result["event"] == "result" {
            assert_eq!(code, Some(0), "{stderr}");
            return (result, harm);
        }
    }
}

/// All files of a run, by their paths in it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.strip_prefix(folder).unwrap().to_owned())),
            }
        }
    }
    found
}

fn soak(transport: Transport, epochs: u32, kills: usize, inside_the_update: usize) {
    let place = Place::new();
    let job = JOB.replace("workers = 2\nlanes = 2", "workers = 3\nlanes = 6");
    // Wide enough that the first layer is computed by columns.
    let job = job.replace("hidden = [24, 16]", "hidden = [3100, 16]");
    let keys = "[checkpoint]\nevery = \"9 steps\"\n[recover]\nmax_restarts = 1000\n[gang]\ndeadline_s = 3\n";
    let transport_key = match transport {
        Transport::Shm => "transport = \"shm\"\n",
        Transport::Tcp => "transport = \"tcp\"\n",
    };
    place.write_job(&(job + keys + transport_key));
    let undisturbed = place.train(&["--epochs", &epochs.to_string()]);
    let began = Instant::now();
    let (result, harm) = train(&place, transport, epochs, &mut Dice::new());
    eprintln!("{harm:?} in {:?}", began.elapsed());
    assert_eq!(result["weights_sha256"], undisturbed["weights_sha256"]);
    assert_eq!(result["metrics"], undisturbed["metrics"]);
    assert!(harm.kills() >= kills, "{harm:?}");
    assert!(harm.inside_the_update >= inside_the_update, "{harm:?}");
    assert!(harm.coordinators > 0 && harm.silent > 0, "{harm:?}");

    let folder = |result: &Value| PathBuf::from(result["run_dir"].as_str().unwrap());
    let (harmed, whole) = (folder(&result), folder(&undisturbed));
    // What each epoch came to is recorded once, and it came to the same.
    let losses = |folder: &Path| -> Vec<(Value, Value, Value)> {
        let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
        let lines = text
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap());
        lines
            .map(|l| {
                (
                    l["epoch"].clone(),
                    l["step"].clone(),
                    l["train"]["loss"].clone(),
                )
            })
            .collect()
    };
    assert_eq!(losses(&harmed), losses(&whole));
    assert_eq!(losses(&harmed).len(), epochs as usize);
    // Checkpoints may be of other steps, but there is nothing else.
    let stray = |path: &PathBuf| !path.starts_with("checkpoints") && !files(&whole).contains(path);
    let strays: Vec<_> = files(&harmed).into_iter().filter(stray).collect();
    assert_eq!(strays, [] as [PathBuf; 0]);
    let kept = |folder: &Path| fs::read_dir(folder.join("checkpoints")).unwrap().count();
    assert_eq!(kept(&harmed), kept(&whole));
}

/// How many epochs a long version trains.
fn epochs(usual: u32) -> u32 {
    let asked = std::env::var("LOCKSTEP_SOAK_EPOCHS").ok();
    let parse = |text: String| text.parse().expect("LOCKSTEP_SOAK_EPOCHS is a number");
    asked.map_or(usual, parse)
}

#[test]
fn a_dozen_kills_change_nothing() {
    soak(Transport::Shm, 60, 12, 6);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn scores_of_kills_change_nothing() {
    soak(Transport::Shm, epochs(500), 50, 20);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn scores_of_kills_and_stops_over_tcp_change_nothing() {
    soak(Transport::Tcp, epochs(15), 30, 10);
}
