//! The points that a test has asked for, and what they do.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    action: Action,
    /// The only time that it acts.
    at: Option<u64>,
    reached: AtomicU64,
}

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Kill,
    Cut,
    Error(i32),
    Sleep(Duration),
}

impl Points {
    /// Reads `NAME[@rankR]=ACTION[@N]` entries, separated by commas.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|e| !e.is_empty());
        Ok(Self(entries.map(parse_point).collect::<Result<_, _>>()?))
    }

    /// Counts that `name` was reached on `rank`, and says what is to happen.
    pub(crate) fn hit(&self, name: &str, rank: usize) -> Option<Action> {
        let meant = |point: &&Point| point.name == name && point.rank.is_none_or(|r| r == rank);
        // All are counted, also when two are asked for at the same point.
        let due = self.0.iter().filter(meant).filter(|point| {
            let reached = 1 + point.reached.fetch_add(1, Ordering::Relaxed);
            point.at.is_none_or(|at| at == reached)
        });
        due.fold(None, |first, point| first.or(Some(point.action)))
    }
}

fn parse_point(entry: &str) -> Result<Point, String> {
    let wrong = |what: &str| format!("`{entry}`: {what}; write NAME[@rankR]=ACTION[@N]");
    let (name, action) = entry.split_once('=').ok_or_else(|| wrong("no `=`"))?;
    let (name, rank) = match name.split_once('@') {
        None => (name, None),
        Some((name, rank)) => {
            let rank = rank.strip_prefix("rank").and_then(|r| r.parse().ok());
            (name, Some(rank.ok_or_else(|| wrong("no such rank"))?))
        }
    };
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
        ("cut", None) => Action::Cut,
        ("error", None) => Action::Error(DEFAULT_ERROR),
        ("error", Some(number)) => Action::Error(number as i32),
        ("sleep", Some(ms)) => Action::Sleep(Duration::from_millis(ms.into())),
        _ => return Err(wrong("the action is kill, cut, error[:ERRNO] or sleep:MS")),
    };
    Ok(Point {
        name: name.to_owned(),
        rank,
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
            Self::Cut => kill(&[std::os::unix::process::parent_id(), std::process::id()]),
            Self::Error(number) => return Err(io::Error::from_raw_os_error(number)),
            Self::Sleep(time) => std::thread::sleep(time),
        }
        Ok(())
    }
}

/// Ends processes as nothing but the kernel can: no handler runs, no buffer is flushed.
fn kill(pids: &[u32]) {
    const SIGKILL: i32 = 9;
    // SAFETY: the signature is that of `kill` in POSIX, whose `pid_t` is 32 bits wide here; it takes
    // plain numbers and touches no memory of ours.
    unsafe extern "C" {
        safe fn kill(pid: i32, signal: i32) -> i32;
    }
    for &pid in pids {
        kill(pid as i32, SIGKILL);
    }
    // The signal may reach another thread first.
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_acts_at_its_time_on_its_rank_and_counts_for_itself() {
        let points = Points::parse("a=kill@3, b@rank1=error:28 ,c=sleep:200,a=cut@1").unwrap();
        let hits: Vec<_> = (0..4).map(|_| points.hit("a", 0)).collect();
        assert_eq!(hits, [Some(Action::Cut), None, Some(Action::Kill), None]);
        assert_eq!(points.hit("b", 0), None);
        assert_eq!(points.hit("b", 1), Some(Action::Error(28)));
        assert_eq!(points.hit("b", 1), Some(Action::Error(28)));
        let sleep = Action::Sleep(Duration::from_millis(200));
        assert_eq!(points.hit("c", usize::MAX), Some(sleep));
        assert_eq!(points.hit("d", 0), None);
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
