//! Processes of a job that are still there, wherever they went.
//!
//! A process may leave its group and its parent. Whatever it leaves, a job's keeper becomes its parent in the end, and ends
//! it. Where the keeper itself is gone, processes are found by their environment, in which all of a job have its mark: so
//! no number is trusted that was written down.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;

/// The variable that holds a job's mark.
pub(crate) const MARK: &str = "LOCKSTEP_JOB_MARK";
/// Processes that are being made are found on a further look.
const LOOKS: usize = 5;
/// The longest way up from a process that is followed.
const DEEPEST: usize = 1000;

/// Kills all processes that have this mark, and returns how many there were.
pub(crate) fn kill_marked(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut pairs = environment.split(|byte| *byte == 0);
        pairs.any(|pair| pair == wanted.as_bytes())
    };
    let mut killed = 0;
    for _ in 0..LOOKS {
        let found = kill_all(&is_marked);
        if found == 0 {
            break;
        }
        killed += found;
    }
    killed
}

/// Kills all that this process has started, and all that those have, whatever group, session and environment they gave
/// themselves: this process adopts what loses its parent. Returns how many there were. Processes that have ended and that
/// nobody has waited for are not counted.
pub(crate) fn kill_descendants() -> usize {
    let own = std::process::id();
    kill_all(&|pid| {
        let mut at = pid;
        // Parents do not go in circles; but they may change while they are read.
        for _ in 0..DEEPEST {
            match parent(at) {
                Some(parent) if parent == own => return true,
                Some(parent) if parent > 1 => at = parent,
                _ => return false,
            }
        }
        false
    })
}

/// The parent of a process that goes on.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name may hold anything, so what follows the last parenthesis counts.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?;
    words.next()?.parse().ok().filter(|_| state != "Z")
}

fn kill_all(is_meant: &dyn Fn(u32) -> bool) -> usize {
    let own = std::process::id();
    let mut killed = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let (Some(pid), true) = (pid, number != own) else {
            continue;
        };
        // The process is held before it is looked at, so that it cannot be another when it is killed.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if is_meant(number) && pidfd_send_signal(&held, Signal::KILL).is_ok() {
            killed += 1;
        }
    }
    killed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn processes_are_found_by_their_mark_alone() {
        let start = |mark: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").env(MARK, mark).spawn().unwrap()
        };
        let name = format!("test-{}", std::process::id());
        let (mut mine, mut other) = (start(&name), start(&format!("{name}x")));
        while kill_marked(&name) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(mine.wait().unwrap().signal(), Some(9));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
