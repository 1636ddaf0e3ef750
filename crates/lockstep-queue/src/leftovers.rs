//! Processes of a job that are still there, wherever they went.
//!
//! A process may leave its group and its parent, but hardly its environment: all processes of a job have its mark there.
//! So they are found without trusting a number that was written down.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;

/// The variable that holds a job's mark.
pub(crate) const MARK: &str = "LOCKSTEP_JOB_MARK";
/// Processes that are being made are found on a further look.
const LOOKS: usize = 5;

/// Kills all processes that have this mark, and returns how many there were.
pub(crate) fn kill_marked(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let mut killed = 0;
    for _ in 0..LOOKS {
        let found = kill_once(wanted.as_bytes());
        if found == 0 {
            break;
        }
        killed += found;
    }
    killed
}

fn kill_once(wanted: &[u8]) -> usize {
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
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|pair| pair == wanted)
            && pidfd_send_signal(&held, Signal::KILL).is_ok()
        {
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
