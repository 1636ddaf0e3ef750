//! What this machine has, and what it does now.

use super::now;
use super::processes::{self, Processes};
use crate::Server;
use lockstep_queue::JobStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// What was seen so short a time ago is still true.
const FRESH: Duration = Duration::from_millis(900);
/// A driver is asked at most so often: its program takes a part of a second.
const GPUS: Duration = Duration::from_secs(5);

/// What is needed to say how much was done since the last time.
#[derive(Debug, Default)]
pub(super) struct Meter {
    cores: Vec<Busy>,
    processes: Processes,
    gpus: Option<(Instant, Vec<Gpu>)>,
    last: Option<(Instant, Sample)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    busy: u64,
    all: u64,
}

/// What a machine does at one time.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sample {
    time: f64,
    host: String,
    /// What its processors are called.
    cpu: String,
    /// Of each processor, how busy it was: 0 to 100.
    cores: Vec<f32>,
    /// Processors that are wanted, over one, five and fifteen minutes.
    load: Vec<f32>,
    memory_used: u64,
    memory_total: u64,
    disk_free: u64,
    disk_total: u64,
    gpus: Vec<Gpu>,
    /// What jobs may use together.
    shared: Amounts,
    /// What running jobs asked for.
    taken: Amounts,
    jobs: Vec<Used>,
}

/// Amounts that jobs share.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Amounts {
    cpus: f64,
    memory: u64,
    gpus: f64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<String, f64>,
}

/// What the processes of a job use.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Used {
    id: String,
    entrypoint: String,
    user: String,
    gpus: Vec<u32>,
    /// Of one processor: 200 is two whole ones.
    cpu_percent: f32,
    memory_bytes: u64,
    processes: usize,
    /// Processes that are workers of a gang.
    workers: usize,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Gpu {
    number: u32,
    name: String,
    percent: Option<f32>,
    memory_used: Option<u64>,
    memory_total: Option<u64>,
    celsius: Option<f32>,
}

impl Sample {
    /// Looks at the machine; or, if that was a moment ago, what was seen then.
    pub(super) fn take(server: &Server) -> Sample {
        let meter = server.view().meter.lock();
        let mut meter = meter.unwrap_or_else(PoisonError::into_inner);
        if let Some((when, sample)) = &meter.last
            && when.elapsed() < FRESH
        {
            return sample.clone();
        }
        let sample = Self::look(server, &mut meter);
        meter.last = Some((Instant::now(), sample.clone()));
        sample
    }

    fn look(server: &Server, meter: &mut Meter) -> Sample {
        let (memory_used, memory_total) = memory();
        let store = server.view().store.place().local();
        let disk = store.and_then(|path| rustix::fs::statvfs(path).ok());
        let queue = server.queue();
        let jobs = queue.list();
        let running = || jobs.iter().filter(|job| job.status == JobStatus::Running);
        let pids: Vec<u32> = running().filter_map(|job| job.pid).collect();
        let used = meter.processes.of(&pids);
        let mut taken = Amounts::default();
        for job in running() {
            taken.cpus += job.needs.cpus();
            taken.memory += job.needs.memory;
            taken.gpus += job.needs.gpus;
            for (name, amount) in &job.needs.resources {
                *taken.resources.entry(name.clone()).or_default() += amount;
            }
        }
        let machine = &queue.settings().machine;
        let jobs = running().map(|job| {
            let of = job.pid.and_then(|pid| used.get(&pid)).copied();
            let of = of.unwrap_or_default();
            Used {
                id: job.id.clone(),
                entrypoint: job.entrypoint.clone(),
                user: job.user.clone(),
                gpus: job.gpus.clone(),
                cpu_percent: of.cpu_percent,
                memory_bytes: of.memory_bytes,
                processes: of.processes,
                workers: of.workers,
            }
        });
        Sample {
            time: now(),
            host: text("/proc/sys/kernel/hostname").trim().to_owned(),
            cpu: processor(),
            cores: meter.cores(),
            load: load(),
            memory_used,
            memory_total,
            disk_free: disk
                .as_ref()
                .map_or(0, |disk| disk.f_bavail * disk.f_frsize),
            disk_total: disk
                .as_ref()
                .map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            gpus: meter.gpus(),
            shared: Amounts {
                cpus: machine.cpus,
                memory: machine.memory,
                gpus: f64::from(machine.gpus),
                resources: machine.resources.clone(),
            },
            taken,
            jobs: jobs.collect(),
        }
    }
}

impl Meter {
    fn cores(&mut self) -> Vec<f32> {
        let now = busy(&text("/proc/stat"));
        let none = Busy::default();
        let before = std::mem::replace(&mut self.cores, now.clone());
        let percent = |(at, now): (usize, &Busy)| {
            let before = before.get(at).unwrap_or(&none);
            let all = now.all.saturating_sub(before.all).max(1);
            let busy = now.busy.saturating_sub(before.busy);
            (busy as f32 / all as f32 * 1000.0).round() / 10.0
        };
        now.iter().enumerate().map(percent).collect()
    }

    fn gpus(&mut self) -> Vec<Gpu> {
        if let Some((when, gpus)) = &self.gpus
            && when.elapsed() < GPUS
        {
            return gpus.clone();
        }
        let gpus = match fs::exists("/dev/nvidiactl") {
            Ok(true) => ask_driver(),
            _ => Vec::new(),
        };
        self.gpus = Some((Instant::now(), gpus.clone()));
        gpus
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Of each processor, how much time it had, and how much of that it worked.
fn busy(stat: &str) -> Vec<Busy> {
    let cores = stat.lines().filter(|line| {
        let number = line
            .strip_prefix("cpu")
            .and_then(|rest| rest.chars().next());
        number.is_some_and(|first| first.is_ascii_digit())
    });
    let core = |line: &str| {
        let words = line.split_whitespace().skip(1).take(8);
        let times: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        let all = times.iter().sum();
        // Idle, and idle while a disk is waited for.
        let idle: u64 = times.iter().skip(3).take(2).sum();
        Busy {
            busy: all - idle,
            all,
        }
    };
    cores.map(core).collect()
}

fn memory() -> (u64, u64) {
    let text = text("/proc/meminfo");
    let of = |name: &str| processes::kilobytes(&text, name);
    let total = of("MemTotal:");
    (total.saturating_sub(of("MemAvailable:")), total)
}

fn load() -> Vec<f32> {
    let text = text("/proc/loadavg");
    let words = text.split_whitespace().take(3);
    words.map(|word| word.parse().unwrap_or(0.0)).collect()
}

fn processor() -> String {
    let text = text("/proc/cpuinfo");
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or(String::new(), |(_, name)| name.trim().to_owned())
}

fn ask_driver() -> Vec<Gpu> {
    let wanted = "--query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu";
    let said = Command::new("nvidia-smi")
        .args([wanted, "--format=csv,noheader,nounits"])
        .output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    said.map(|said| said.lines().filter_map(gpu).collect())
        .unwrap_or_default()
}

fn gpu(line: &str) -> Option<Gpu> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let number = |at: usize| words.get(at)?.parse::<f32>().ok();
    let bytes = |at: usize| number(at).map(|mebibytes| (mebibytes as u64) << 20);
    Some(Gpu {
        number: words.first()?.parse().ok()?,
        name: (*words.get(1)?).to_owned(),
        percent: number(2),
        memory_used: bytes(3),
        memory_total: bytes(4),
        celsius: number(5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_does_not_know_something_still_tells_the_rest() {
        let found = gpu("0, NVIDIA H200, 97, 1024, 143771, [N/A]").unwrap();
        let wanted = Gpu {
            number: 0,
            name: "NVIDIA H200".into(),
            percent: Some(97.0),
            memory_used: Some(1 << 30),
            memory_total: Some(143_771 << 20),
            celsius: None,
        };
        assert_eq!(found, wanted);
        assert_eq!(gpu("NVIDIA-SMI has failed"), None);
    }

    #[test]
    fn waiting_for_a_disk_is_not_work() {
        let cores = busy("cpu 9 9 9 9\ncpu0 10 0 20 60 10 0 0 0 0 0\nintr 5\n");
        assert_eq!((cores[0].busy, cores[0].all, cores.len()), (30, 100, 1));
    }
}
