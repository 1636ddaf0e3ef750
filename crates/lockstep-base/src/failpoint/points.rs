//! The points that a test has asked for, and what they do.

use crate::failpoint::AWAKE;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long it may take to notice that nobody is to sleep any longer.
const NOTICED: Duration = Duration::from_millis(20);

/// EIO on every system that we build for.
const DEFAULT_ERROR: i32 = 5;

/// All entries of the variable.
#[derive(Debug)]
pub(crate) struct Points(Vec<Point>);

#[derive(Debug)]
struct Point {
    name: String,
    /// The only rank that it is for.
    rank: Option<usize>,
    /// The only generation that it is for.
    generation: Option<usize>,
    action: Action,
    /// The only time that it acts.
    at: Option<u64>,
    reached: AtomicU64,
}

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Kill,
    Stop,
    Cut,
    Error(i32),
    Sleep(Duration),
}

impl Points {
    /// Reads `NAME[@rankR][@genG]=ACTION[@N]` entries, separated by commas.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|e| !e.is_empty());
        Ok(Self(entries.map(parse_point).collect::<Result<_, _>>()?))
    }

    /// Counts that `name` was reached on `rank` in `generation`, and says what is to happen.
    pub(crate) fn hit(&self, name: &str, rank: usize, generation: usize) -> Option<Action> {
        let meant = |point: &&Point| {
            point.name == name
                && point.rank.is_none_or(|r| r == rank)
                && point.generation.is_none_or(|g| g == generation)
        };
        // All are counted, also when two are asked for at the same point.
        let due = self.0.iter().filter(meant).filter(|point| {
            let reached = 1 + point.reached.fetch_add(1, Ordering::Relaxed);
            point.at.is_none_or(|at| at == reached)
        });
        due.fold(None, |first, point| first.or(Some(point.action)))
    }
}

fn parse_point(entry: &str) -> Result<Point, String> {
    let wrong = |what: &str| format!("`{entry}`: {what}; write NAME[@rankR][@genG]=ACTION[@N]");
    let (name, action) = entry.split_once('=').ok_or_else(|| wrong("no `=`"))?;
    let mut parts = name.split('@');
    let name = parts.next().unwrap_or_default();
    let (mut rank, mut generation) = (None, None);
    for part in parts {
        let number = |word: &str| part.strip_prefix(word)?.parse().ok();
        match (number("rank"), number("gen")) {
            (None, None) => return Err(wrong("no such rank or generation")),
            (None, some) => generation = some,
            (some, _) => rank = some,
        }
    }
    let (action, at) = match action.split_once('@') {
        None => (action, None),
        Some((action, at)) => match at.parse() {
            Ok(at @ 1..) => (action, Some(at)),
            _ => return Err(wrong("N counts from 1")),
        },
    };
    let (word, number) = match action.split_once(':') {
        None => (action, None),
        Some((word, number)) => {
            let number: u32 = number.parse().map_err(|_| wrong("no number after `:`"))?;
            (word, Some(number))
        }
    };
    let action = match (word, number) {
        ("kill", None) => Action::Kill,
        ("stop", None) => Action::Stop,
        ("cut", None) => Action::Cut,
        ("error", None) => Action::Error(DEFAULT_ERROR),
        ("error", Some(number)) => Action::Error(number as i32),
        ("sleep", Some(ms)) => Action::Sleep(Duration::from_millis(ms.into())),
        _ => {
            return Err(wrong(
                "the action is kill, stop, cut, error[:ERRNO] or sleep:MS",
            ));
        }
    };
    Ok(Point {
        name: name.to_owned(),
        rank,
        generation,
        action,
        at,
        reached: AtomicU64::new(0),
    })
}

impl Action {
    /// Does it. Returns only if this process is to live.
    pub(crate) fn perform(self) -> io::Result<()> {
        match self {
            Self::Kill => kill(&[std::process::id()]),
            Self::Stop => signal(&[std::process::id()], SIGSTOP),
            Self::Cut => kill(&[std::os::unix::process::parent_id(), std::process::id()]),
            Self::Error(number) => return Err(io::Error::from_raw_os_error(number)),
            Self::Sleep(time) => sleep(time, std::env::var_os(AWAKE).as_deref().map(Path::new)),
        }
        Ok(())
    }
}

/// Sleeps so long, or until this file is there.
fn sleep(time: Duration, awake: Option<&Path>) {
    let begin = Instant::now();
    while let Some(left) = time.checked_sub(begin.elapsed()) {
        if awake.is_some_and(Path::exists) {
            break;
        }
        std::thread::sleep(left.min(NOTICED));
    }
}

/// Ends processes as nothing but the kernel can: no handler runs, no buffer is flushed.
fn kill(pids: &[u32]) {
    signal(pids, SIGKILL);
    // The signal may reach another thread first.
    loop {
        std::thread::park();
    }
}

const SIGKILL: i32 = 9;
const SIGSTOP: i32 = if cfg!(target_os = "linux") { 19 } else { 17 };

fn signal(pids: &[u32], signal: i32) {
    // SAFETY: the signature is that of `kill` in POSIX, whose `pid_t` is 32 bits wide here; it takes
    // plain numbers and touches no memory of ours.
    unsafe extern "C" {
        safe fn kill(pid: i32, signal: i32) -> i32;
    }
    for &pid in pids {
        kill(pid as i32, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_acts_at_its_time_on_its_rank_and_counts_for_itself() {
        let points = Points::parse("a=kill@3, b@rank1=error:28 ,c=sleep:200,a=cut@1").unwrap();
        let hits: Vec<_> = (0..4).map(|_| points.hit("a", 0, 1)).collect();
        assert_eq!(hits, [Some(Action::Cut), None, Some(Action::Kill), None]);
        assert_eq!(points.hit("b", 0, 1), None);
        assert_eq!(points.hit("b", 1, 1), Some(Action::Error(28)));
        assert_eq!(points.hit("b", 1, 1), Some(Action::Error(28)));
        let sleep = Action::Sleep(Duration::from_millis(200));
        assert_eq!(points.hit("c", usize::MAX, 1), Some(sleep));
        assert_eq!(points.hit("d", 0, 1), None);
        let points = Points::parse("e@rank1@gen2=stop").unwrap();
        let hits =
            [(1, 1), (0, 2), (1, 2)].map(|(rank, generation)| points.hit("e", rank, generation));
        assert_eq!(hits, [None, None, Some(Action::Stop)]);
    }

    #[test]
    fn a_sleep_ends_with_its_time_or_when_a_file_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (short, long) = (Duration::from_millis(30), Duration::from_secs(3600));
        let begin = Instant::now();
        sleep(short, Some(&folder.path().join("awake")));
        assert!(begin.elapsed() >= short);
        sleep(long, Some(folder.path()));
        assert!(begin.elapsed() < long);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for wrong in [
            "a",
            "a=",
            "a=die",
            "a=kill@0",
            "a=kill@x",
            "a@1=kill",
            "a=sleep",
            "a=error:x",
        ] {
            let error = Points::parse(&format!("ok=kill,{wrong}")).unwrap_err();
            assert!(error.starts_with(&format!("`{wrong}`")), "{error}");
        }
        assert!(Points::parse("").unwrap().0.is_empty());
    }
}
