//! The same job on a real Ray cluster of three nodes: the same weights, whatever is killed meanwhile, and nothing left
//! behind.
//!
//! The nodes are on this machine. All tests share one cluster, and take turns. `LOCKSTEP_TEST_RAY` names another
//! version of Ray than the usual one.

mod elastic;
mod launching;
mod losses;
mod placing;
pub(crate) mod same_bits;
mod scripts;
mod tuning;

use crate::common::{JOB, Place, Ran, Running};
use lockstep_testkit::RayCluster;
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The cluster; whoever has it is alone with it.
fn cluster() -> MutexGuard<'static, RayCluster> {
    static CLUSTER: OnceLock<Mutex<RayCluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        let xgboost = lockstep_testkit::xgboost_library();
        let variables = [("LOCKSTEP_XGBOOST", xgboost.to_str().unwrap())];
        Mutex::new(RayCluster::start_with(3, &variables))
    });
    let cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
    // Whoever had it before may have failed while it was slow.
    cluster.wake();
    cluster
}

/// [`JOB`] with workers on nodes of their own, long enough to be disturbed while steps are slow.
fn place() -> Place {
    let place = Place::new();
    let job = JOB.replace("epochs = 2", "epochs = 8");
    place.write_job(&format!(
        "{job}\n[resources]\nplace = \"strict-spread\"\n[gang]\nlease_s = 3\n"
    ));
    place
}

/// A command that finds the cluster.
fn on(cluster: &RayCluster, place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(&[args, &["--engine", "ray"]].concat());
    command
        .env("RAY_ADDRESS", &cluster.address)
        .env("LOCKSTEP_PYTHON", &cluster.python);
    command
}

fn run(cluster: &RayCluster, place: &Place, args: &[&str]) -> Ran {
    let output = on(cluster, place, args).output().unwrap();
    Ran::from(output)
}

fn start(cluster: &RayCluster, place: &Place, args: &[&str]) -> Running {
    let args = [&["run", "job.toml", "--json"], args].concat();
    Running::new(on(cluster, place, &args))
}

/// The process that started another.
fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// The processes that one started.
fn children(pid: u32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let pids = fs::read_to_string(path).unwrap();
    let pids = pids.split_whitespace();
    pids.map(|pid| pid.parse().unwrap()).collect()
}

/// Workers of this program on this cluster that nobody ended.
fn workers(cluster: &RayCluster) -> Vec<String> {
    let mark = format!("LOCKSTEP_TEST_CLUSTER={}\0", cluster.path().display());
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_lockstep")).unwrap();
    let pids = fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    pids.filter(|pid| {
        let exe = fs::read_link(format!("/proc/{pid}/exe"));
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        exe.is_ok_and(|exe| exe == program) && String::from_utf8_lossy(&environ).contains(&mark)
    })
    .collect()
}

/// Fails if a worker, an actor or a placement group is still there after a moment.
fn assert_nothing_is_left(cluster: &mut RayCluster, place: &Place) {
    let begin = Instant::now();
    loop {
        let left = [workers(cluster), cluster.left()].concat();
        if left.is_empty() {
            break;
        }
        assert!(begin.elapsed() < crate::common::LIMIT, "left: {left:?}");
        sleep(Duration::from_millis(100));
    }
    place.assert_no_process_is_left();
}

/// Runs the job, slowly, and does something when the second epoch is over, or the second report there, to whoever has
/// rank 1. Returns the result of the rest, at full speed.
fn disturbed(
    cluster: &RayCluster,
    place: &Place,
    args: &[&str],
    what: impl FnOnce(i32),
) -> (Value, Vec<Value>) {
    cluster.slow_down();
    let mut run = start(cluster, place, args);
    let mut what = Some(what);
    let (mut pid, mut epochs, mut events) = (0, 0, Vec::new());
    while let Some(event) = run.next() {
        if event["event"] == "worker" && event["rank"] == 1 {
            pid = i32::try_from(event["pid"].as_i64().unwrap()).unwrap();
        }
        epochs += usize::from(event["event"] == "epoch" || event["event"] == "reported");
        if epochs == 2
            && let Some(what) = what.take()
        {
            what(pid);
            cluster.wake();
        }
        events.push(event);
    }
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}\n{result}");
    (result, events)
}

fn reason(events: &[Value]) -> String {
    let restart = events.iter().find(|event| event["event"] == "restart");
    restart.expect("a restart")["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}
