//! `lockstep submit` and `lockstep jobs`, against our own server.

use crate::common::serve::Serve;
use crate::common::serve_jobs::{ended, job, until};
use crate::common::{JOB, Place, Ran, Running};
use serde_json::Value;
use std::fs;

/// A server, and commands that ask it.
struct Team {
    place: Place,
    serve: Serve,
}

impl Team {
    fn new(limits: &[&str]) -> Team {
        let place = Place::new();
        let serve = Serve::start(&place, limits);
        Team { place, serve }
    }

    /// `lockstep ARGS`, with the server's address in the environment.
    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.place.command(args);
        let output = command
            .env("RAY_ADDRESS", self.serve.url())
            .output()
            .unwrap();
        Ran::from(output)
    }

    /// The same, which must end with this code; what it wrote to its standard output.
    fn says(&self, args: &[&str], code: i32) -> String {
        let ran = self.run(args);
        assert_eq!(
            ran.code,
            Some(code),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
        ran.stdout
    }
}

#[test]
fn a_command_is_submitted_and_looked_after_to_its_end() {
    let team = Team::new(&["--cpus", "2"]);
    let id = team.says(&["submit", "--", "sh", "-c", "echo 'it is' done"], 0);
    let id = id.trim();
    assert!(id.starts_with("sh-"), "{id}");
    ended(&team.serve, id);
    assert_eq!(team.says(&["jobs", "logs", id], 0), "it is done\n");
    assert_eq!(team.says(&["jobs", "logs", "-f", id], 0), "it is done\n");
    let list = team.says(&["jobs", "list"], 0);
    assert!(list.contains(id) && list.contains("succeeded"), "{list}");
    let status: Value =
        serde_json::from_str(&team.says(&["jobs", "status", id, "--json"], 0)).unwrap();
    assert_eq!(status["driver_exit_code"], 0);
    team.says(&["jobs", "wait", id], 0);
    let bad = team.run(&[
        "submit",
        "--wait",
        "--id",
        "bad",
        "--",
        "sh",
        "-c",
        "echo why; exit 7",
    ]);
    assert_eq!(
        (bad.code, bad.stdout.as_str()),
        (Some(7), "why\n"),
        "{}",
        bad.stderr
    );
    team.says(&["jobs", "wait", "bad"], 7);
    team.says(&["submit", "--id", "long", "--", "sleep", "600"], 0);
    until(&team.serve, "long", &["RUNNING"]);
    assert_eq!(team.run(&["jobs", "rm", "long"]).code, Some(1));
    let stopped = team.says(&["jobs", "stop", "long"], 0);
    assert!(stopped.contains("has stopped"), "{stopped}");
    team.says(&["jobs", "wait", "long"], 130);
    team.says(&["jobs", "rm", "long", "bad", id], 0);
    assert!(team.says(&["jobs", "list"], 0).contains("no jobs"));
    assert_eq!(team.run(&["jobs", "status", "long"]).code, Some(1));
    let twice = team.run(&["submit", "job.toml", "--", "true"]);
    assert_eq!(twice.code, Some(2), "{}", twice.stderr);
    assert_eq!(team.run(&["submit"]).code, Some(2));
    let nodes = team.says(&["cluster", "status"], 0);
    assert!(nodes.contains('2'), "{nodes}");
}

#[test]
fn a_folder_travels_without_what_is_ignored_and_a_job_has_its_place_in_the_queue() {
    let team = Team::new(&["--cpus", "1"]);
    for (name, text) in [
        ("app/main.sh", "ls -A; echo $SEED"),
        ("app/.gitignore", "*.bin\n"),
        ("app/.rayignore", "data/\n"),
        ("app/a.bin", ""),
        ("app/data/b", ""),
    ] {
        let path = team.place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let folder = ["--working-dir", "app", "--env", "SEED=${NOT_SET}7"];
    let args = [&["submit", "--wait"], &folder[..], &["--", "sh", "main.sh"]].concat();
    let listed = team.says(&args, 0);
    assert_eq!(listed, ".gitignore\n.rayignore\nmain.sh\n7\n");
    team.says(&["submit", "--id", "first", "--", "sleep", "0.5"], 0);
    let place = [
        "--priority",
        "-3",
        "--retries",
        "1",
        "--retry-code",
        "3",
        "--after",
        "first",
    ];
    let args = [
        &["submit", "--id", "last"],
        &place[..],
        &["--", "sh", "-c", "test $LOCKSTEP_ATTEMPT = 2 || exit 3"],
    ];
    team.says(&args.concat(), 0);
    let told = ended(&team.serve, "last");
    assert_eq!(told["status"], "SUCCEEDED", "{told}");
    assert_eq!(told["metadata"]["lockstep.priority"], "-3");
}

#[test]
fn a_job_file_runs_on_the_server_and_its_run_is_in_the_servers_store() {
    let team = Team::new(&["--cpus", "2"]);
    let ran = team.run(&["submit", "job.toml", "--json", "--id", "trains"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.result()["status"], "succeeded");
    assert_eq!(team.place.runs().len(), 1, "{}", ran.stdout);
    let told = job(&team.serve, "trains");
    assert_eq!(told["status"], "SUCCEEDED");
    // The same as a run here.
    let here = team.place.train(&[]);
    assert_eq!(here["weights_sha256"], ran.result()["weights_sha256"]);
}

#[test]
fn what_a_command_trains_is_in_the_servers_store_and_outlives_the_job() {
    let team = Team::new(&["--cpus", "2"]);
    fs::create_dir(team.place.path("app")).unwrap();
    for name in ["train-images", "train-labels", "test-images", "test-labels"] {
        fs::copy(team.place.path(name), team.place.path("app").join(name)).unwrap();
    }
    fs::write(team.place.path("app/job.toml"), JOB).unwrap();
    let submit = ["submit", "--wait", "--working-dir", "app", "--id"];
    let trains = ["--", "lockstep", "run", "job.toml", "--epochs", "1"];
    team.says(&[&submit[..], &["trains"], &trains].concat(), 0);
    let script = ["--", "lockstep", "launch", "--", "true"];
    team.says(&[&submit[..], &["starts"], &script].concat(), 0);
    let listed = team.says(
        &[&submit[..], &["lists"], &["--", "lockstep", "runs", "list"]].concat(),
        0,
    );
    assert!(listed.contains("small"), "{listed}");
    assert_eq!(team.place.runs().len(), 2);
    for (id, name) in [("trains", "small"), ("starts", "true")] {
        let runs = team.serve.get(&format!("/api/v1/jobs/{id}")).ok().json()["runs"].clone();
        let run = runs[0].as_str().unwrap_or_default().to_owned();
        assert!(run.starts_with(name), "{id}: {runs}");
        team.says(&["jobs", "rm", id], 0);
        assert!(team.place.path("runs").join(&run).exists(), "{run}");
    }
    // A store that the job names is its own affair, but for one that goes with the job.
    let elsewhere = format!("run.store='{}'", team.place.path("elsewhere").display());
    let named = [&submit[..], &["names"], &trains, &["--set", &elsewhere]].concat();
    let said = team.says(&named, 0);
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(team.place.runs().len(), 2);
    let inside = "lockstep run job.toml --epochs 1 --set run.store=\"'$PWD/mine'\"";
    let lost = [&submit[..], &["loses"], &["--", "sh", "-c", inside]].concat();
    let said = team.says(&lost, 0);
    assert!(
        said.contains("is removed when the job is forgotten"),
        "{said}"
    );
}

#[test]
fn a_run_that_is_stopped_is_saved_and_goes_on() {
    let team = Team::new(&["--cpus", "2"]);
    // Data that travel lie in the folder of one job; those that stay are the same for the next.
    let here = team.place.path("t");
    let here = here.to_str().unwrap().strip_suffix('t').unwrap();
    let job = JOB.replace("\"train-", &format!("\"{here}train-"));
    team.place
        .write_job(&job.replace("\"test-", &format!("\"{here}test-")));
    let args = [
        "submit", "job.toml", "--detach", "--id", "long", "--epochs", "1000000",
    ];
    team.says(&args, 0);
    until(&team.serve, "long", &["RUNNING"]);
    let began = std::time::Instant::now();
    while !team
        .says(&["jobs", "logs", "long"], 0)
        .contains("\"first_step\"")
    {
        assert!(began.elapsed() < crate::common::LIMIT);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    team.says(&["jobs", "stop", "long"], 0);
    let told = ended(&team.serve, "long");
    assert_eq!(told["status"], "STOPPED", "{told}");
    // The shell around the run may end by the signal before the run has saved its state.
    let code = told["driver_exit_code"].as_i64().unwrap();
    assert!([130, 143].contains(&code), "{told}");
    let again = [
        "submit", "job.toml", "--json", "--resume", "--epochs", "1000000", "--id", "again",
    ];
    let mut command = team.place.command(&again);
    command.env("RAY_ADDRESS", team.serve.url());
    let mut again = Running::new(command);
    let started = again.wait_for("started");
    assert!(started["resumed_step"].as_u64() > Some(0), "{started}");
    again.wait_for("first_step");
    team.says(&["jobs", "stop", "again"], 0);
    let (code, result, stderr) = again.finish();
    assert_eq!(
        (code, &result["status"]),
        (Some(130), &"interrupted".into()),
        "{stderr}"
    );
}
