//! Limits that the system holds a job to, where a control group (cgroup v2) can be had.
//!
//! A server may make groups below its own if somebody has given that to it: `Delegate=yes` of systemd, a container with a
//! writable `/sys/fs/cgroup`, or root. Where it may not, what a job asks for still counts in the queue; nobody enforces it.

use crate::Needs;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The length of the time in which a job may use its processors' time, in microseconds.
const PERIOD_US: f64 = 100_000.0;
/// What is limited.
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// A job's own group, which goes away with it.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    /// Where the keeper came from.
    home: PathBuf,
}

impl Group {
    /// Makes a group that holds this process and all that it starts to what was asked for. None if nothing was asked
    /// for that could be held, or no group can be had.
    pub(crate) fn enter(id: &str, needs: &Needs) -> Option<Group> {
        if needs.cpus.is_none_or(|cpus| cpus <= 0.0) && needs.memory == 0 {
            return None;
        }
        let (home, base) = base().ok()?;
        let path = base.join(format!("lockstep-{id}"));
        // One of an earlier attempt, whose keeper was killed.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).ok()?;
        let group = Group { path, home };
        group.limit(needs).ok()?;
        fs::write(group.path.join("cgroup.procs"), "0").ok()?;
        Some(group)
    }

    fn limit(&self, needs: &Needs) -> io::Result<()> {
        if needs.memory > 0 {
            fs::write(self.path.join("memory.max"), needs.memory.to_string())?;
        }
        if let Some(cpus) = needs.cpus.filter(|cpus| *cpus > 0.0) {
            let share = (cpus * PERIOD_US).max(1_000.0);
            let text = format!("{share:.0} {PERIOD_US:.0}");
            fs::write(self.path.join("cpu.max"), text)?;
        }
        Ok(())
    }

    /// Whether the system killed a process because the memory was used up.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let text = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let killed = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        killed.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that stays takes no room to speak of.
        let _ = fs::write(self.home.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// The group of this process, and the one below which groups for jobs can be made.
fn base() -> Result<(PathBuf, PathBuf), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mounts
        .lines()
        .find_map(cgroup2)
        .ok_or("there is no cgroup v2")?;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    let own = own.ok_or("this process is in no cgroup v2")?;
    let home = mount.join(own.trim_start_matches('/'));
    let mut why = String::new();
    let above = home.parent().filter(|above| above.starts_with(&mount));
    for folder in [Some(home.as_path()), above].into_iter().flatten() {
        match delegate(folder) {
            Ok(()) => return Ok((home.clone(), folder.to_owned())),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// Lets the groups below `folder` have limits.
fn delegate(folder: &Path) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let has = |text: &str, what: &str| text.split_whitespace().any(|word| word == what);
    let there = read("cgroup.controllers");
    if let Some(missing) = CONTROLLERS.iter().find(|what| !has(&there, what)) {
        return Err(format!(
            "{} has no controller `{missing}`",
            folder.display()
        ));
    }
    let given = read("cgroup.subtree_control");
    for what in CONTROLLERS {
        if !has(&given, what) {
            let file = folder.join("cgroup.subtree_control");
            fs::write(&file, format!("+{what}"))
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// Where cgroup v2 is mounted, if this line of mountinfo says so.
fn cgroup2(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    after.starts_with("cgroup2 ").then_some(())?;
    before.split(' ').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found() {
        let line = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(cgroup2(line), Some(PathBuf::from("/sys/fs/cgroup")));
        let other = "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(cgroup2(other), None);
    }

    #[test]
    fn a_job_that_asks_for_nothing_has_no_group() {
        assert!(Group::enter("none", &Needs::default()).is_none());
    }
}
