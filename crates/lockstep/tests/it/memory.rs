//! Memory that is limited: a plan that does not fit is refused, and who runs out of memory is named.

use crate::common::{Place, Ran};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the processes of a group may take.
const LIMIT: u64 = 256 << 20;

/// A control group with a limit, of either version; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// None where this process may not make one, which is said.
    fn new(name: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let first = own.lines().find_map(|line| line.split_once(":memory:"));
        let (top, file) = match first {
            Some((_, path)) => (
                format!("/sys/fs/cgroup/memory{path}"),
                "memory.limit_in_bytes",
            ),
            None => ("/sys/fs/cgroup".to_owned(), "memory.max"),
        };
        let folder = Path::new(&top).join(format!("{name}-{}", std::process::id()));
        let made = fs::create_dir(&folder).is_ok();
        let group = made.then(|| Self(folder.clone()));
        let is_limited = made && fs::write(folder.join(file), LIMIT.to_string()).is_ok();
        if !is_limited {
            eprintln!("skipped: no control group with a limit of memory can be made here");
        }
        group.filter(|_| is_limited)
    }

    /// Runs a command of a place within the group.
    fn run(&self, place: &Place, args: &[&str]) -> Ran {
        let within = place.command(args);
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs"));
        command.arg(within.get_program()).args(within.get_args());
        command.current_dir(place.path(""));
        for (name, value) in within.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ran::from(command.output().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group whose last process has just ended may be busy for a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_plan_that_does_not_fit_is_refused_before_it_begins() {
    let Some(group) = Group::new("lockstep-plan") else {
        return;
    };
    let place = Place::new();
    let wide = ["run", "job.toml", "--set", "model.hidden=[8192, 8192]"];
    let ran = group.run(&place, &wide);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("the control group allows"),
        "{}",
        ran.stderr
    );
    assert!(place.runs().is_empty());
}

#[test]
fn a_worker_that_runs_out_of_memory_is_named_by_a_coordinator_that_lives() {
    let Some(group) = Group::new("lockstep-worker") else {
        return;
    };
    let place = Place::new();
    let script = "taken = []\nwhile True:\n    taken.append(bytearray(1 << 24))\n";
    fs::write(place.path("script.py"), script).unwrap();
    let words = [
        "launch",
        "--max-restarts",
        "0",
        "--",
        "python3",
        "script.py",
    ];
    let ran = group.run(&place, &words);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("ran out of memory"), "{said}");
}
