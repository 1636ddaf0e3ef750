//! The same job on a real Ray cluster of three nodes: the same weights, whatever is killed meanwhile, and nothing left
//! behind.
//!
//! The nodes are on this machine. All tests share one cluster, and take turns. `LOCKSTEP_TEST_RAY` names another
//! version of Ray than the usual one.

mod common;

use common::{JOB, Place, Ran, Running, send};
use lockstep_engine::launcher::{Launcher, WorkerEnd, conformance};
use lockstep_job::Resources;
use lockstep_ray::{RayLauncher, RayRequest};
use lockstep_testkit::RayCluster;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The cluster; whoever has it is alone with it.
fn cluster() -> MutexGuard<'static, RayCluster> {
    static CLUSTER: OnceLock<Mutex<RayCluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Mutex::new(RayCluster::start(3)));
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

/// [`JOB`] with workers on nodes of their own, long enough to be disturbed.
fn place() -> Place {
    let place = Place::new();
    let job = JOB.replace("epochs = 2", "epochs = 40");
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
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn start(cluster: &RayCluster, place: &Place, args: &[&str]) -> Running {
    let args = [&["run", "job.toml", "--json"], args].concat();
    let mut command = on(cluster, place, &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(command.spawn().unwrap())
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

/// Workers of this program that nobody ended.
fn workers() -> Vec<String> {
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_lockstep")).unwrap();
    let pids = fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    pids.filter(|pid| {
        let exe = fs::read_link(format!("/proc/{pid}/exe"));
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        exe.is_ok_and(|exe| exe == program)
            && String::from_utf8_lossy(&environ).contains("LOCKSTEP_TEST_CLUSTER=")
    })
    .collect()
}

/// Fails if a worker, an actor or a placement group is still there after a moment.
fn assert_nothing_is_left(cluster: &mut RayCluster, place: &Place) {
    let begin = Instant::now();
    loop {
        let left = [workers(), cluster.left()].concat();
        if left.is_empty() {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "left: {left:?}");
        sleep(Duration::from_millis(100));
    }
    place.assert_no_process_is_left();
}

/// Runs the job, and does something when the second epoch is over to whoever has rank 1. Returns the result.
fn disturbed(
    cluster: &RayCluster,
    place: &Place,
    args: &[&str],
    what: impl FnOnce(i32),
) -> (Value, Vec<Value>) {
    let mut run = start(cluster, place, args);
    let mut what = Some(what);
    let (mut pid, mut epochs, mut events) = (0, 0, Vec::new());
    while let Some(event) = run.next() {
        if event["event"] == "worker" && event["rank"] == 1 {
            pid = i32::try_from(event["pid"].as_i64().unwrap()).unwrap();
        }
        epochs += usize::from(event["event"] == "epoch");
        if epochs == 2
            && let Some(what) = what.take()
        {
            what(pid);
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

#[test]
fn actors_of_ray_conform_to_what_is_asked_of_a_launcher() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let mut scripts = 0;
    conformance::check(&mut |script| {
        // Each in a file of its own: actors of the last launcher may still run the file before.
        scripts += 1;
        let path = folder.path().join(format!("worker-{scripts}.sh"));
        write_script(&path, script);
        launcher(&cluster, path)
    });
}

/// A launcher on the cluster whose program is at `program`.
fn launcher(cluster: &RayCluster, program: PathBuf) -> Box<dyn Launcher> {
    let request = RayRequest {
        name: "launcher".to_owned(),
        workers: 3,
        resources: Resources::default(),
        program,
        lease_s: 2.0,
        python: Some(cluster.python.clone()),
        address: Some(cluster.address.clone()),
    };
    let mut launcher = RayLauncher::open(request).unwrap();
    let patience = Duration::from_secs(60);
    assert!(launcher.ready(patience, &mut |_| true).unwrap());
    Box::new(launcher)
}

/// Writes a program; by a shell, since nobody may have it open for writing when it is started.
fn write_script(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
    shell.args(["-c", write, "sh", script]).arg(path);
    assert!(shell.status().unwrap().success());
}

#[test]
fn a_node_that_lacks_the_program_gets_a_copy() {
    let mut cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    write_script(&path, "read line; echo \"$line\"");
    // A name that means this file in this process and its children, and nothing on a node.
    let file = fs::File::open(&path).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let program = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut launcher = launcher(&cluster, program);
    let heard = conformance::Heard::default();
    let spec = conformance::spec(1, 1);
    launcher.start(&spec, heard.notify()).unwrap();
    assert_eq!(heard.end(spec.id), WorkerEnd::Code(0));
    drop(launcher);
    let copies = (0..9).filter(|node| cluster.cache(*node).join("programs").is_dir());
    assert!(copies.count() >= 1);
    let place = Place::new();
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn what_only_one_node_sees_is_named_before_anything_is_trained() {
    let mut cluster = cluster();
    let place = place();
    // A path that leads every process to another folder.
    let refused = |set: &str| {
        let ran = run(&cluster, &place, &["run", "job.toml", "--set", set]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stderr.contains("on node "), "{}", ran.stderr);
        ran.stderr
    };
    let said = refused("run.store=\"/proc/self/cwd/runs\"");
    assert!(
        said.contains("run.store: what the coordinator wrote to"),
        "{said}"
    );
    let images = "images = \"/proc/self/cwd/test-images\"";
    let labels = "labels = \"/proc/self/cwd/test-labels\"";
    let said = refused(&format!("data.test={{ {images}, {labels} }}"));
    assert!(
        said.contains("data.test: /proc/self/cwd/test-images"),
        "{said}"
    );
    assert!(place.runs().is_empty(), "{:?}", place.runs());
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn workers_on_nodes_of_their_own_come_to_the_weights_of_this_machine() {
    let mut cluster = cluster();
    let place = place();
    let here = place.train(&[]);
    let there = run(&cluster, &place, &["run", "job.toml", "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    let result = there.result();
    assert_eq!(result["weights_sha256"], here["weights_sha256"]);
    assert_eq!(result["metrics"], here["metrics"]);
    let started = there.events().into_iter().find(|e| e["event"] == "started");
    assert_eq!(started.unwrap()["transport"], "tcp");
    assert_nothing_is_left(&mut cluster, &place);

    // Each node decoded what its worker read into a cache of its own.
    let decoded = (0..3).filter(|node| cluster.cache(*node).is_dir()).count();
    assert!(decoded >= 2, "{decoded} caches");

    // A crew on the cluster measures the same.
    let name = result["run"].as_str().unwrap();
    let here = place.run(&["evaluate", name, "--json"]);
    let there = run(&cluster, &place, &["evaluate", name, "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.stdout, here.stdout);
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_killed_worker_is_replaced_by_its_actor() {
    let mut cluster = cluster();
    let place = place();
    let undisturbed = place.weights(&[]);
    let (result, events) = disturbed(&cluster, &place, &[], |pid| send(pid, Signal::KILL));
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(result["restarts"], 1);
    let reason = reason(&events);
    assert!(
        reason.contains("on node ") && reason.contains("SIGKILL"),
        "{reason}"
    );
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_killed_actor_is_replaced_and_its_worker_dies_with_it() {
    let mut cluster = cluster();
    let place = place();
    let undisturbed = place.weights(&[]);
    let (result, events) = disturbed(&cluster, &place, &[], |pid| send(parent(pid), Signal::KILL));
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(result["restarts"], 1);
    let reason = reason(&events);
    assert!(
        reason.contains("worker 1") && reason.contains("on node "),
        "{reason}"
    );
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_lost_node_is_replaced_by_another() {
    let mut cluster = cluster();
    let place = place();
    // Long enough for Ray to find out.
    let long = ["--epochs", "400"];
    let undisturbed = place.weights(&long);
    // The head is not to be killed: nodes 1 and 2 take the workers, and a new one takes over.
    cluster.add(3);
    let labels = ["--set", "resources.labels.node=\"in(1,2,3,4)\""];
    let args = [long, labels].concat();
    let (result, events) = disturbed(&cluster, &place, &args, |pid| {
        send(parent(parent(pid)), Signal::KILL);
    });
    cluster.add(4);
    assert_eq!(result["weights_sha256"], undisturbed);
    let reason = reason(&events);
    assert!(reason.contains("worker 1"), "{reason}");
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_killed_coordinator_leaves_nothing_and_its_run_can_be_resumed() {
    let mut cluster = cluster();
    let place = place();
    let long = ["--epochs", "400"];
    let undisturbed = place.weights(&long);
    let mut running = start(&cluster, &place, &["--name", "killed", long[0], long[1]]);
    let checkpoints = || {
        let run = place
            .runs()
            .into_iter()
            .find(|run| run.to_string_lossy().contains("/killed-"));
        fs::read_dir(run.unwrap().join("checkpoints")).map_or(0, Iterator::count)
    };
    running.wait_for("epoch");
    // When the second is begun, the first is whole.
    while checkpoints() < 2 {
        running.wait_for("epoch");
    }
    running.signal(Signal::KILL);
    assert_eq!(running.finish().0, None);
    assert_nothing_is_left(&mut cluster, &place);
    let args = ["run", "job.toml", "--json", "--name", "killed", "--resume"];
    let resumed = run(&cluster, &place, &[&args[..], &long].concat());
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.result()["weights_sha256"], undisturbed);
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn what_cannot_be_placed_is_explained() {
    let mut cluster = cluster();
    let place = place();
    let args = ["run", "job.toml", "--set", "resources.cpus=99", "--set"];
    let ran = run(
        &cluster,
        &place,
        &[&args[..], &["gang.start_deadline_s=5"]].concat(),
    );
    assert_eq!(ran.code, Some(1));
    for words in [
        "asked for 2 workers with 99 CPUs each, each on a node of its own",
        "has 2 CPUs",
        "it would hold 0 of them",
        "gang.start_deadline_s",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(place.runs().is_empty(), "{:?}", place.runs());
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn without_ray_or_a_cluster_it_is_said_what_to_do() {
    let place = place();
    let refused = |python: &str, address: &str| {
        let mut command = place.command(&["run", "job.toml", "--engine", "ray"]);
        command
            .env("LOCKSTEP_PYTHON", python)
            .env("RAY_ADDRESS", address);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused("/no/such/python", "");
    assert!(
        said.contains("cannot start `/no/such/python`") && said.contains("LOCKSTEP_PYTHON"),
        "{said}"
    );
    let bare = lockstep_testkit::python("bare", &["pip"]);
    let said = refused(bare.to_str().unwrap(), "");
    assert!(said.contains("cannot import Ray"), "{said}");
    let ray = lockstep_testkit::python_with_ray();
    let said = refused(ray.to_str().unwrap(), "127.0.0.1:1");
    assert!(
        said.contains("cannot reach a Ray cluster at 127.0.0.1:1 (RAY_ADDRESS)"),
        "{said}"
    );
    assert!(place.runs().is_empty());
    place.assert_no_process_is_left();
}
