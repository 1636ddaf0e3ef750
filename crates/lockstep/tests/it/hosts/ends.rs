//! What exit codes say: whether a pod is to be started again.

use super::{Gang, job};
use lockstep_job::pod::{AGAIN, FAILED, PATIENCE, TOKEN};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_host_whose_coordinator_never_comes_says_so_after_the_deadline() {
    let gang = Gang::new(&job());
    let alone = gang.command(1).env(PATIENCE, "1").output().unwrap();
    assert_eq!(alone.status.code(), Some(AGAIN.into()));
    let said = words(&alone);
    let expected = format!(
        "cannot reach the coordinator, host 0 at {}:7474, within 1 s",
        gang.address
    );
    assert!(said.contains(&expected), "{said}");
    gang.place.assert_no_process_is_left();
}

#[test]
fn a_coordinator_whose_hosts_do_not_come_names_them_after_the_deadline() {
    let gang = Gang::new(&job());
    let alone = gang.command(0).env(PATIENCE, "1").output().unwrap();
    assert_eq!(alone.status.code(), Some(AGAIN.into()));
    let said = words(&alone);
    let expected = "1 of the 3 hosts that the run needs came within 1 s";
    assert!(
        said.contains(expected) && said.contains("host 1, host 2"),
        "{said}"
    );
    let result = String::from_utf8_lossy(&alone.stdout);
    let result = result.lines().last().unwrap();
    assert!(result.contains("\"status\":\"interrupted\""), "{result}");
    assert!(!gang.place.path("runs/small-run").exists());
    gang.place.assert_no_process_is_left();
}

#[test]
fn a_wrong_token_is_refused_and_disturbs_nobody() {
    let mut gang = Gang::slow(&job());
    let other = gang.place.path("other-token");
    std::fs::write(&other, "a5".repeat(32)).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o400)).unwrap();
    let mut run = gang.start();
    run.wait_for("first_step");
    let mut stranger = gang.command(1);
    stranger.env(TOKEN, &other).env(PATIENCE, "3");
    let stranger = stranger.output().unwrap();
    assert_eq!(stranger.status.code(), Some(AGAIN.into()));
    assert!(
        words(&stranger).contains("handshake"),
        "{}",
        words(&stranger)
    );
    gang.place.wake();
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 0, "{result}");
    assert!(stderr.contains("refused a connection"), "{stderr}");
}

#[test]
fn a_token_that_others_may_read_is_not_used() {
    let gang = Gang::new(&job());
    let token = gang.place.path("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o444)).unwrap();
    let output = gang.command(1).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILED.into()));
    assert!(words(&output).contains("mode 444"), "{}", words(&output));
}

#[test]
fn a_wrong_job_file_is_not_tried_again_and_whoever_follows_the_log_is_told() {
    let gang = Gang::new(&job().replace("epochs", "epoch"));
    let output = gang.command(0).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILED.into()));
    let last = String::from_utf8(output.stdout.clone()).unwrap();
    let result: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&result["event"], &result["status"]),
        (&"result".into(), &"failed".into())
    );
    assert!(words(&output).contains("epoch"), "{}", words(&output));
}

/// [`job`] with data, or a store, in a bucket of a server that nothing listens for.
fn away(from: &str, to: &str) -> String {
    let job = job();
    assert!(job.contains(from), "{job}");
    let storage = "[storage]\nendpoint = \"http://127.0.0.1:9\"\nanonymous = true\nretries = 1\ntimeout_s = 20\n";
    format!("{}\n{storage}", job.replace(from, to))
}

#[test]
fn data_or_a_store_that_is_out_of_reach_may_be_there_later() {
    let data = (
        "{ images = \"train-images\", labels = \"train-labels\" }",
        "{ csv = \"s3://bucket/train.csv\" }",
    );
    let store = ("store = \"runs\"", "store = \"s3://bucket/runs\"");
    for (from, to) in [data, store] {
        let gang = Gang::new(&away(from, to));
        let output = gang.command(0).env(PATIENCE, "60").output().unwrap();
        let said = words(&output);
        assert_eq!(output.status.code(), Some(AGAIN.into()), "{said}");
        assert!(said.contains("127.0.0.1:9"), "{said}");
        gang.place.assert_no_process_is_left();
    }
}

#[test]
fn data_that_is_not_there_is_not_tried_again() {
    let gang = Gang::new(&job().replace("\"train-images\"", "\"no-such-images\""));
    let output = gang.command(0).env(PATIENCE, "60").output().unwrap();
    let said = words(&output);
    assert_eq!(output.status.code(), Some(FAILED.into()), "{said}");
    assert!(said.contains("no-such-images"), "{said}");
}

#[test]
fn a_run_that_fails_by_itself_ends_all_pods_for_good() {
    let job = "name = \"script\"\n[train]\ncommand = [\"sh\", \"-c\", \"exit 3\"]\nworkers = 3\n\
               [recover]\nmax_restarts = 0\n[run]\nstore = \"runs\"\n";
    let mut gang = Gang::new(job);
    let run = gang.start();
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(FAILED.into()), "{stderr}");
    assert_eq!(result["status"], "failed");
    for index in [1, 2] {
        let (code, stderr) = gang.ended(index);
        assert_eq!(code, Some(FAILED.into()), "{stderr}");
    }
    gang.place.assert_no_process_is_left();
}

#[test]
fn pods_that_are_started_when_the_run_is_over_find_that_out() {
    let mut gang = Gang::new(&job());
    let run = gang.start();
    let result = gang.succeed(run);
    gang.host(1);
    let (code, stderr) = gang.ended(1);
    assert_eq!(code, Some(0), "{stderr}");
    let run = gang.coordinate();
    let again = gang.succeed(run);
    assert_eq!(again["weights_sha256"], result["weights_sha256"]);
}
