//! What the control groups of this process allow it, and whether they ended something for lack of memory.
//!
//! A container or a job of a cluster has less than the machine shows: its control group says how much. There are two
//! versions of control groups, and a machine may have both. A group lies in others, and the least counts.

use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 writes a number beyond any memory where there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// Cores that the control groups allow, such as 1.5; none where they set no limit.
pub fn cores() -> Option<f64> {
    Groups::own().cores()
}

/// Bytes of memory that the control groups allow; none where they set no limit.
pub fn memory_bytes() -> Option<u64> {
    Groups::own().memory(&["memory.max", "memory.limit_in_bytes"])
}

/// Bytes that may be swapped out beside that memory, as far as the machine has as many.
pub fn swap_bytes() -> u64 {
    let machine = text("/proc/meminfo");
    let line = machine
        .lines()
        .find_map(|line| line.strip_prefix("SwapTotal:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let machine = number.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let groups = Groups::own();
    let beside = groups.memory(&["memory.swap.max"]);
    // Version 1 says how much both are together.
    let both = groups.memory(&["memory.memsw.limit_in_bytes"]);
    let beside = beside.or_else(|| Some(both?.saturating_sub(memory_bytes()?)));
    beside.map_or(machine, |beside| beside.min(machine))
}

/// How many processes of this group, or of this machine where there is no group, the system has ended for lack of memory.
/// None where it does not say.
pub fn oom_kills() -> Option<u64> {
    let own = Groups::own().oom_kills();
    own.or_else(|| count_of(&text("/proc/vmstat")))
}

/// The folders that describe the groups of a process, each from the innermost to the outermost.
struct Groups {
    /// Of version 2, and of memory in version 1.
    all: Vec<Vec<PathBuf>>,
    /// Of processors in version 1.
    cpu: Vec<Vec<PathBuf>>,
}

impl Groups {
    fn own() -> Self {
        Self::of(&text("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"))
    }

    /// Those that a text names, as `/proc/self/cgroup` has it, below the folder of all groups.
    fn of(named: &str, root: &Path) -> Self {
        let folders = |first_version: &'static str| {
            named.lines().filter_map(move |line| {
                // `0::/path`, or with version 1 `4:memory:/path` and `5:cpu,cpuacct:/path`.
                let mut parts = line.splitn(3, ':').skip(1);
                let (kinds, path) = (parts.next()?, parts.next()?);
                let top = match kinds {
                    "" => root.to_owned(),
                    kinds if kinds.split(',').any(|kind| kind == first_version) => {
                        // Kinds that belong together share a folder, of which the others are links.
                        root.join(first_version)
                    }
                    _ => return None,
                };
                let inner = top.join(path.trim_start_matches('/'));
                let around = inner
                    .ancestors()
                    .take_while(|folder| folder.starts_with(&top));
                Some(around.map(Path::to_owned).collect())
            })
        };
        Self {
            all: folders("memory").collect(),
            cpu: folders("cpu").collect(),
        }
    }

    /// The least that any group allows, in files of these names.
    fn memory(&self, names: &[&str]) -> Option<u64> {
        let files = self.all.iter().flatten();
        let files = files.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        let limits = files.filter_map(|file| text(file).trim().parse().ok());
        limits.filter(|limit| *limit < UNLIMITED).min()
    }

    fn cores(&self) -> Option<f64> {
        let folders = self.all.iter().chain(&self.cpu).flatten();
        let limits = folders.filter_map(|folder| {
            let second = cores_of(&text(folder.join("cpu.max")));
            // Version 1 has two files, and a quota of -1 where there is no limit.
            let number = |file| text(folder.join(file)).trim().parse::<f64>().ok();
            let first = || Some(number("cpu.cfs_quota_us")? / number("cpu.cfs_period_us")?);
            second.or_else(|| first().filter(|cores| *cores > 0.0))
        });
        limits.reduce(f64::min)
    }

    /// What the innermost group of either version counts.
    fn oom_kills(&self) -> Option<u64> {
        let innermost = self.all.iter().filter_map(|folders| folders.first());
        let names = ["memory.events", "memory.oom_control"];
        let files = innermost.flat_map(|folder| names.map(|name| folder.join(name)));
        files.filter_map(|file| count_of(&text(file))).max()
    }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The number in the line `oom_kill NUMBER`.
fn count_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line?.trim().parse().ok()
}

/// The cores that `cpu.max` allows, such as `150000 100000`; none for `max 100000`.
fn cores_of(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, content: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn the_least_limit_of_all_groups_counts_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "a/b/memory.max", "max\n");
        write(root, "a/memory.max", "3000\n");
        write(root, "a/b/cpu.max", "150000 100000\n");
        write(root, "a/cpu.max", "max 100000\n");
        write(root, "a/b/memory.events", "oom 3\noom_kill 2\n");
        let names = ["memory.max", "memory.limit_in_bytes"];
        let second = Groups::of("0::/a/b\n", root);
        assert_eq!(second.memory(&names), Some(3000));
        assert_eq!(second.cores(), Some(1.5));
        assert_eq!(second.oom_kills(), Some(2));
        write(
            root,
            "memory/c/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        write(root, "memory/memory.limit_in_bytes", "2000\n");
        write(
            root,
            "memory/c/memory.oom_control",
            "under_oom 0\noom_kill 7\n",
        );
        let both = Groups::of("4:cpuset,memory:/c\n1:cpu:/x\n0::/a/b\n", root);
        assert_eq!(both.memory(&names), Some(2000));
        assert_eq!(both.oom_kills(), Some(7));
        write(root, "cpu/x/cpu.cfs_quota_us", "250000\n");
        write(root, "cpu/x/cpu.cfs_period_us", "100000\n");
        write(root, "cpu/cpu.cfs_quota_us", "-1\n");
        write(root, "cpu/cpu.cfs_period_us", "100000\n");
        assert_eq!(both.cores(), Some(1.5));
        let first = Groups::of("5:cpu,cpuacct:/x\n", root);
        assert_eq!(first.cores(), Some(2.5));
        // Of a container, the path may be that of the machine around it.
        let first = Groups::of("4:memory:/docker/0123\n", root);
        assert_eq!(first.memory(&names), Some(2000));
        assert_eq!(Groups::of("", root).memory(&names), None);
        assert_eq!(Groups::of("0::/elsewhere\n", root).oom_kills(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_learns_how_many_were_ended() {
        assert!(oom_kills().is_some());
    }
}
