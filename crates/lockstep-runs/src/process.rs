//! Which process this is, and whether another one of this machine is still there.
//!
//! A number alone does not say: it is given again, and another container counts from 1 too. So a process is
//! known by the boot of its machine, its name space, its number and when it started. Where a system does
//! not tell that, nobody is ever said to be gone.

use serde::{Deserialize, Serialize};
use std::fs;

/// A process of some machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    host: String,
    pid: u32,
    /// The machine's boot and the process's name space.
    world: String,
    /// When it started, in ticks since the boot.
    start: String,
}

impl Process {
    /// This one.
    pub(crate) fn own() -> Process {
        let pid = std::process::id();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let host = text("/proc/sys/kernel/hostname");
        Process {
            host: host.trim().to_owned(),
            pid,
            world: world(),
            start: start(pid).unwrap_or_default(),
        }
    }

    /// Whether it has ended for sure: it was one of this machine and is none any more.
    pub(crate) fn is_gone(&self) -> bool {
        !self.world.is_empty()
            && self.world == world()
            && start(self.pid).is_none_or(|start| start != self.start)
    }

    /// Whether it is one of this machine and goes on.
    pub(crate) fn is_here(&self) -> bool {
        !self.world.is_empty()
            && self.world == world()
            && start(self.pid).is_some_and(|start| start == self.start)
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        match self.host.as_str() {
            "" => format!("process {}", self.pid),
            host => format!("process {} on {host}", self.pid),
        }
    }
}

/// The boot of this machine and the name space of this process; empty where that is not told.
fn world() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let space = fs::read_link("/proc/self/ns/pid");
    match (boot, space) {
        (Ok(boot), Ok(space)) => format!("{} {}", boot.trim(), space.display()),
        _ => String::new(),
    }
}

/// When the process of this number started. None if there is none, or only its exit status is left.
fn start(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, which may hold anything, ends with the last bracket; the state comes after it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // The 22nd of all, and so the 19th after the state.
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_there_until_it_ended() {
        let own = Process::own();
        assert!(!own.is_gone(), "{own:?}");
        assert!(own.is_here() || cfg!(not(target_os = "linux")));
        assert!(own.words().contains(&own.pid.to_string()));
        // Another machine's cannot be looked at.
        let elsewhere = Process {
            world: "other".into(),
            pid: u32::MAX,
            ..own.clone()
        };
        assert!(!elsewhere.is_gone() && !elsewhere.is_here());
        if cfg!(target_os = "linux") {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let process = Process {
                pid: child.id(),
                start: start(child.id()).unwrap(),
                ..own
            };
            assert!(!process.is_gone());
            // Its number given again to another is not it.
            let before = Process {
                start: "1".into(),
                ..process.clone()
            };
            assert!(before.is_gone());
            child.kill().unwrap();
            // Its exit status may wait for its parent: it is gone all the same.
            while !process.is_gone() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            child.wait().unwrap();
            assert!(process.is_gone());
        }
    }
}
