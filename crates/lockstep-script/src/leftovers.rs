//! Processes that a script left behind.
//!
//! A script may start processes of its own, which outlive it if it is killed. All of them inherit a variable that
//! names the run and the seat, by which they are found and ended.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// The variable.
pub(crate) const MARK: &str = "LOCKSTEP_SEAT";

/// Ends every process of this user that carries the mark, and returns how many there were.
pub(crate) fn end(mark: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let mut ended = 0;
    for pid in processes() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let carries = environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes());
        if let Some(pid) = Pid::from_raw(pid).filter(|_| carries) {
            ended += usize::from(kill_process(pid, Signal::KILL).is_ok());
        }
    }
    ended
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// The processor time that a process and those that it started have used, in ticks of the clock.
pub(crate) fn processor_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything. After it come the state and 10 other numbers, then these.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let numbers = after.split_whitespace().skip(11).take(4);
    let own: u64 = numbers
        .filter_map(|number| number.parse::<u64>().ok())
        .sum();
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let children = threads.flatten().flat_map(|thread| {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace();
        children
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<u32>>()
    });
    own + children.map(processor_time).sum::<u64>()
}
