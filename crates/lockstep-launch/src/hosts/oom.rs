//! Whether the kernel ended a process for want of memory, which looks like any other `kill -9`.

/// How often the kernel ended a process of this cgroup for want of memory.
pub(crate) fn kills() -> u64 {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own.trim().rsplit(':').next().unwrap_or_default();
    // In a container the own group is often mounted as the root.
    let places = [path, ""].map(|path| format!("/sys/fs/cgroup{path}/memory.events"));
    let events = places
        .iter()
        .find_map(|place| std::fs::read_to_string(place).ok());
    events.as_deref().map_or(0, count)
}

fn count(events: &str) -> u64 {
    let line = events
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_in_what_the_kernel_says() {
        assert_eq!(count("low 0\noom 3\noom_kill 2\noom_group_kill 1\n"), 2);
        assert_eq!(count("low 0\n"), 0);
    }
}
