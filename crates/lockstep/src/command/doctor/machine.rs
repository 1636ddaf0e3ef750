//! This machine: cores, memory, shared memory, files, the cache.

use super::check::{Check, State};
use crate::view::{bytes, plural};
use lockstep_base::fs::CacheDir;
use lockstep_bench::MachineFacts;
use lockstep_job::Job;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Less memory than this is not enough for more than the smallest networks.
const LEAST_MEMORY: u64 = 1 << 30;
/// Containers have 64 MiB of shared memory if nobody says otherwise; PyTorch's data loaders need more.
const LEAST_SHARED: u64 = 256 << 20;
/// A worker takes some files, and a connection to every other one.
const LEAST_FILES: u64 = 1024;
/// Less free space than this is soon used up by checkpoints.
const LEAST_DISK: u64 = 1 << 30;

pub(super) fn checks(job: Option<&Job>) -> Vec<Check> {
    let facts = MachineFacts::find();
    vec![
        program(),
        cores(&facts, job),
        memory(&facts),
        shared_memory(),
        open_files(),
        cache(),
    ]
}

fn program() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    match cfg!(debug_assertions) {
        false => Check::ok("lockstep", format!("version {version}")),
        true => Check::wrong(
            State::Warning,
            "lockstep",
            format!("version {version}, built without all optimisation"),
            "build it with `cargo build --release`",
        ),
    }
}

fn cores(facts: &MachineFacts, job: Option<&Job>) -> Check {
    let found = facts.words();
    let (cores, usable) = (facts.machine.cores as f64, facts.usable_cores());
    // Threads that the job does not name are as many as there are cores for.
    let wanted = job.map_or(1, |job| job.workers().max * job.threads().unwrap_or(1));
    let what_to_do = if wanted as f64 > usable {
        format!(
            "the job wants {wanted} threads on {usable:.2} cores: use fewer workers, or a larger machine"
        )
    } else if usable < cores {
        format!(
            "the control group allows {usable:.2} of {cores} cores: raise the CPU limit of the container"
        )
    } else if facts.load > 0.5 * cores {
        format!(
            "others are at work here (load {:.2}): measure nothing until they are done",
            facts.load
        )
    } else {
        return Check::ok("cores", found);
    };
    Check::wrong(State::Warning, "cores", found, what_to_do)
}

fn memory(facts: &MachineFacts) -> Check {
    let all = facts.machine.memory_bytes;
    let limit = facts.cgroup_memory_bytes.filter(|limit| *limit < all);
    let found = match limit {
        Some(limit) => format!(
            "{} of {}, by the control group's limit",
            bytes(limit),
            bytes(all)
        ),
        None => bytes(all),
    };
    match limit.unwrap_or(all) < LEAST_MEMORY {
        false => Check::ok("memory", found),
        true => Check::wrong(
            State::Warning,
            "memory",
            found,
            "give the container or the machine at least 1 GiB, or train with a smaller train.batch",
        ),
    }
}

/// Bytes that are free where `path` lies.
fn free(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail * found.f_frsize)
}

fn shared_memory() -> Check {
    let name = "shm";
    match free(Path::new("/dev/shm")) {
        Some(bytes_free) if bytes_free >= LEAST_SHARED => {
            Check::ok(name, format!("{} free in /dev/shm", bytes(bytes_free)))
        }
        found => Check::wrong(
            State::Warning,
            name,
            match found {
                Some(bytes_free) => format!("only {} free in /dev/shm", bytes(bytes_free)),
                None => "there is no /dev/shm".to_owned(),
            },
            "start the container with --shm-size=1g, or mount a volume of medium Memory at /dev/shm; scripts with \
             PyTorch's data loaders need it, Lockstep's own workers do not",
        ),
    }
}

fn open_files() -> Check {
    let limit = getrlimit(Resource::Nofile).current;
    match limit.filter(|limit| *limit < LEAST_FILES) {
        None => Check::ok(
            "open files",
            limit.map_or("no limit".to_owned(), |limit| format!("up to {limit}")),
        ),
        Some(limit) => Check::wrong(
            State::Warning,
            "open files",
            format!("at most {limit}"),
            "raise the limit: ulimit -n 4096",
        ),
    }
}

fn cache() -> Check {
    let cache = match CacheDir::locate() {
        Ok(cache) => cache,
        Err(error) => {
            return Check::wrong(
                State::Problem,
                "cache",
                error.to_string(),
                "set LOCKSTEP_CACHE to a folder that can be written",
            );
        }
    };
    let path = cache.path().display();
    let trial = cache.path().join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::write(&trial, b"x").and_then(|()| std::fs::remove_file(&trial));
    if let Err(error) = written {
        return Check::wrong(
            State::Problem,
            "cache",
            format!("{path} cannot be written: {error}"),
            "set LOCKSTEP_CACHE to a folder that can be written",
        );
    }
    match free(cache.path()) {
        Some(left) if left < LEAST_DISK => Check::wrong(
            State::Warning,
            "cache",
            format!("{path}, where only {} are free", bytes(left)),
            "make room, or set LOCKSTEP_CACHE to a folder on another disk",
        ),
        left => Check::ok(
            "cache",
            format!(
                "{path}, {} free",
                left.map_or_else(|| plural(0, "byte"), bytes)
            ),
        ),
    }
}
