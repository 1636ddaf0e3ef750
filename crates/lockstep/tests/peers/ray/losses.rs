//! Whatever is lost in mid-training: the same weights, or a clear end and a resume that comes to them.

use super::{
    assert_nothing_is_left, children, cluster, disturbed, on, parent, place, reason, run, start,
    workers,
};
use crate::common::{Place, Running, send};
use lockstep_testkit::RayCluster;
use rustix::process::Signal;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the last processes of a run may take to end.
const PATIENCE: Duration = Duration::from_secs(120);

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
    assert!(!reason.contains("ran out of memory"), "{reason}");
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_lost_node_is_replaced_by_another() {
    let mut cluster = cluster();
    let place = place();
    let undisturbed = place.weights(&[]);
    // The head is not to be killed: nodes 1 and 2 take the workers, and a new one takes over.
    cluster.add(3);
    let labels = ["--set", "resources.labels.node=\"in(1,2,3,4)\""];
    let (result, events) = disturbed(&cluster, &place, &labels, |pid| {
        send(parent(parent(pid)), Signal::KILL);
    });
    cluster.add(4);
    assert_eq!(result["weights_sha256"], undisturbed);
    let reason = reason(&events);
    assert!(reason.contains("worker 1"), "{reason}");
    // Ray finds out within three seconds here, and the lease is as long: ten times that on a slow machine.
    let lost = result["seconds_lost"].as_f64().unwrap();
    assert!(lost < 70.0, "{lost} s were lost: {reason}");
    println!("{lost} s were lost: {reason}");
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_killed_coordinator_leaves_nothing_and_its_run_can_be_resumed() {
    let mut cluster = cluster();
    let place = place();
    let undisturbed = place.weights(&[]);
    cluster.slow_down();
    let mut running = start(&cluster, &place, &["--name", "killed"]);
    wait_for_checkpoint(&mut running, &place, "killed");
    running.signal(Signal::KILL);
    assert_eq!(running.finish().0, None);
    cluster.wake();
    assert_nothing_is_left(&mut cluster, &place);
    let args = ["run", "job.toml", "--json", "--name", "killed", "--resume"];
    let resumed = run(&cluster, &place, &args);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.result()["weights_sha256"], undisturbed);
    assert_nothing_is_left(&mut cluster, &place);
}

/// Waits until a run of this name can be resumed.
fn wait_for_checkpoint(run: &mut Running, place: &Place, name: &str) {
    let checkpoints = || {
        let mut runs = place.runs().into_iter();
        let run = runs.find(|run| run.to_string_lossy().contains(&format!("/{name}-")));
        fs::read_dir(run.unwrap().join("checkpoints")).map_or(0, Iterator::count)
    };
    run.wait_for("epoch");
    // When the second is begun, the first is whole.
    while checkpoints() < 2 {
        run.wait_for("epoch");
    }
}

/// Runs a long job, slowly, until it can be resumed, does `what`, and returns the error that it ends with. Its run is then
/// resumed on this machine, and comes to the weights of one that nothing happened to.
fn ends_and_is_resumed_here(
    cluster: &mut RayCluster,
    env: &[(&str, &str)],
    what: impl FnOnce(&Running, &mut RayCluster),
) -> String {
    let place = place();
    let long = ["--epochs", "60"];
    let undisturbed = place.weights(&long);
    cluster.slow_down();
    let args = ["run", "job.toml", "--json", "--name", "ended"];
    let mut command = on(cluster, &place, &[&args[..], &long].concat());
    command.envs(env.iter().copied());
    let mut run = Running::new(command);
    wait_for_checkpoint(&mut run, &place, "ended");
    what(&run, cluster);
    let (code, result, _) = run.finish();
    assert_eq!(code, Some(1), "{result}");
    cluster.wake();
    let begin = Instant::now();
    while !workers(cluster).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "left: {:?}", workers(cluster));
        sleep(Duration::from_millis(100));
    }
    let resumed = place.train(&["--name", "ended", "--resume", long[0], long[1]]);
    assert_eq!(resumed["weights_sha256"], undisturbed);
    place.assert_no_process_is_left();
    result["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn without_the_process_that_speaks_with_ray_the_run_ends_and_can_be_resumed_on_one_machine() {
    let mut cluster = cluster();
    let error = ends_and_is_resumed_here(&mut cluster, &[], |run, _| {
        let shim = children(run.pid());
        assert_eq!(shim.len(), 1, "{shim:?}");
        send(shim[0], Signal::KILL);
    });
    // It is said once.
    let said = error.matches("the process that speaks with Ray ended");
    assert_eq!(said.count(), 1, "{error}");
}

#[test]
fn without_the_head_the_run_ends_and_can_be_resumed_on_one_machine() {
    // Ray gives up a head after a minute; here after three seconds.
    let patience = [("RAY_gcs_rpc_server_reconnect_timeout_s", "3")];
    let mut cluster = RayCluster::start_with(3, &patience);
    let kill = |_: &Running, cluster: &mut RayCluster| cluster.kill_head();
    let error = ends_and_is_resumed_here(&mut cluster, &patience, kill);
    assert!(
        error.contains("the process that speaks with Ray ended"),
        "{error}"
    );
}

#[test]
fn a_worker_that_ray_ends_for_want_of_memory_is_said_to_have_lacked_it() {
    let mut cluster = cluster();
    let place = place();
    // Ray takes this node to be full whatever it holds.
    let full = [
        ("RAY_memory_usage_threshold", "0.001"),
        ("RAY_memory_monitor_refresh_ms", "3000"),
    ];
    cluster.add_with(11, &full);
    cluster.slow_down();
    let args = ["run", "job.toml", "--json", "--epochs", "60"];
    let here = ["--set", "resources.labels.node=\"in(0,11)\""];
    let once = ["--set", "recover.max_restarts=0"];
    let ran = run(&cluster, &place, &[&args[..], &here, &once].concat());
    cluster.wake();
    cluster.remove_last();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("out of memory"), "{}", ran.stderr);
    assert_nothing_is_left(&mut cluster, &place);
}
