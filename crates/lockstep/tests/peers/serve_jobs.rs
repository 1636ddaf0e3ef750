//! Every `ray job` command of Ray 2.53 and of Ray 2.60, against our server: the same words, the same exit codes.

use crate::common::serve::Serve;
use crate::common::serve_jobs::{ended, job, until};
use crate::common::{Place, Ran};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Ray's client of one version, and the server that it asks.
struct Client<'s> {
    program: PathBuf,
    serve: &'s Serve,
}

impl Client<'_> {
    /// `ray job ARGS`.
    fn run(&self, args: &[&str]) -> Ran {
        let output = Command::new(&self.program)
            .arg("job")
            .args(args)
            .env("RAY_API_SERVER_ADDRESS", self.serve.url())
            .env("RAY_USAGE_STATS_ENABLED", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ran::from(output)
    }

    /// The same, which must end with this code and say all of these.
    fn says(&self, args: &[&str], code: i32, words: &[&str]) -> String {
        let ran = self.run(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(code), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word}: {said}");
        }
        said
    }
}

#[test]
#[ignore = "it brings an older Ray: `make test-long`"]
fn every_command_of_ray_2_53_works() {
    every_command_works("2.53.0");
}

#[test]
fn every_command_of_ray_2_60_works() {
    every_command_works("2.60.0");
}

fn every_command_works(version: &str) {
    let python = lockstep_testkit::python_with_ray_of(version);
    let place = Place::new();
    let limits = [
        "--cpus",
        "4",
        "--resource",
        "licence=1",
        "--label",
        "zone=z1",
    ];
    let serve = Serve::start(&place, &limits);
    let client = Client {
        program: python.with_file_name("ray"),
        serve: &serve,
    };
    submits(&client, &place, version);
    trains(&client, &place);
    installs(&client);
    fails(&client);
    looks_and_stops(&client);
    lists(&client);
}

/// What Ray's state client asks by HTTP.
fn lists(client: &Client<'_>) {
    let ray = |args: &[&str]| {
        let mut command = Command::new(&client.program);
        let url = client.serve.url();
        let ran = command
            .args(args)
            .args(["--address", &url])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(
            ran.status.success(),
            "{args:?}: {said}{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        said
    };
    let all = ray(&["list", "jobs"]);
    assert!(all.contains("whole") && all.contains("SUCCEEDED"), "{all}");
    let none = ray(&["list", "jobs", "--filter", "submission_id=nobody"]);
    assert!(!none.contains("whole"), "{none}");
    let one = ray(&[
        "list",
        "jobs",
        "--filter",
        "submission_id=whole",
        "--format",
        "json",
    ]);
    assert!(one.contains("\"whole\""), "{one}");
    let nodes = ray(&["list", "nodes"]);
    assert!(nodes.contains("ALIVE"), "{nodes}");
    ray(&["list", "actors"]);
}

/// A command finds the packages that its job names.
fn installs(client: &Client<'_>) {
    let print = "python3 -c 'import six; print(six.__version__)'";
    let environment = r#"{"uv": ["six==1.16.0"]}"#;
    let args = [
        "submit",
        "--runtime-env-json",
        environment,
        "--",
        "sh",
        "-c",
        print,
    ];
    client.says(
        &args,
        0,
        &["making an environment with uv", "1.16.0", "succeeded"],
    );
}

/// What a job trains is its own, and is in the server's store, also when the job is forgotten.
fn trains(client: &Client<'_>, place: &Place) {
    let app = place.path("trainer");
    fs::create_dir(&app).unwrap();
    for name in [
        "job.toml",
        "train-images",
        "train-labels",
        "test-images",
        "test-labels",
    ] {
        fs::copy(place.path(name), app.join(name)).unwrap();
    }
    let folder = ["--working-dir", app.to_str().unwrap()];
    let command = ["--", "lockstep", "run", "job.toml", "--epochs", "1"];
    let args = [
        &["submit", "--submission-id", "trains"],
        &folder[..],
        &command,
    ]
    .concat();
    client.says(&args, 0, &["Job 'trains' succeeded"]);
    let runs = client.serve.get("/api/v1/jobs/trains").ok().json()["runs"].clone();
    let run = runs[0].as_str().unwrap_or_default().to_owned();
    assert!(run.starts_with("small"), "{runs}");
    client.says(&["delete", "trains"], 0, &["deleted"]);
    assert!(place.path("runs").join(run).join("job.toml").exists());
}

/// A folder and a module travel; variables, metadata and needs arrive.
fn submits(client: &Client<'_>, place: &Place, version: &str) {
    let write = |name: &str, text: &str| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "app/main.py",
        "import os, helper\nprint('a is', os.environ['A'], helper.WORD, sorted(os.listdir('.')))\n",
    );
    write("app/.gitignore", "secret*\n");
    write("app/secret.txt", "s");
    write("helper/__init__.py", "WORD = 'helped'\n");
    let (app, helper) = (place.path("app"), place.path("helper"));
    let environment = format!(
        r#"{{"env_vars": {{"A": "1"}}, "py_modules": ["{}"]}}"#,
        helper.display()
    );
    let mut args = vec![
        "submit",
        "--submission-id",
        "whole",
        "--working-dir",
        app.to_str().unwrap(),
        "--runtime-env-json",
        &environment,
        "--metadata-json",
        r#"{"owner": "me"}"#,
        "--entrypoint-num-cpus",
        "0.5",
        "--entrypoint-memory",
        "1000000",
        "--entrypoint-resources",
        r#"{"licence": 1}"#,
    ];
    if version.starts_with("2.6") {
        args.extend(["--entrypoint-label-selector", r#"{"zone": "in(z1,z2)"}"#]);
    }
    args.extend(["--", "python3", "main.py"]);
    let words = [
        "Job 'whole' submitted successfully",
        "Tailing logs until the job exits",
        "a is 1 helped ['.gitignore', 'main.py']",
        "Job 'whole' succeeded",
    ];
    client.says(&args, 0, &words);
    let told = job(client.serve, "whole");
    assert_eq!(told["metadata"]["owner"], "me");
    assert_eq!(told["driver_exit_code"], 0);
    client.says(&["logs", "whole"], 0, &["a is 1 helped"]);
    // The package is there, and not sent again.
    let again = ["submit", "--working-dir", app.to_str().unwrap(), "--", "ls"];
    client.says(&again, 0, &["main.py", "succeeded"]);
}

fn fails(client: &Client<'_>) {
    let command = ["sh", "-c", "echo the reason; exit 3"];
    let args = [&["submit", "--submission-id", "bad", "--"][..], &command].concat();
    let words = [
        "the reason",
        "Job 'bad' failed",
        "Status message: Job entrypoint command failed with exit code 3, last available logs (truncated to 20,000 \
         chars):",
    ];
    client.says(&args, 1, &words);
    let words =
        ["Job with submission_id bad already exists. Please use a different submission_id."];
    client.says(&args, 1, &words);
    client.says(&["status", "nobody"], 1, &["Job nobody does not exist"]);
}

fn looks_and_stops(client: &Client<'_>) {
    let submit = |id: &str, command: &[&str]| {
        let args = ["submit", "--submission-id", id, "--no-wait", "--"];
        let words = [format!("Job '{id}' submitted successfully")];
        client.says(&[&args, command].concat(), 0, &[&words[0]]);
    };
    submit("long", &["sleep", "600"]);
    until(client.serve, "long", &["RUNNING"]);
    let words = [
        "Status for job 'long': RUNNING",
        "Job is currently running.",
    ];
    client.says(&["status", "long"], 0, &words);
    let words = ["Attempted to delete job 'long', but it is in a non-terminal state RUNNING."];
    client.says(&["delete", "long"], 1, &words);
    submit(
        "grows",
        &[
            "sh",
            "-c",
            "echo line 1; sleep 1; echo line 2; sleep 1; echo line 3",
        ],
    );
    let words = ["line 1\n", "line 3\n", "Job 'grows' succeeded"];
    client.says(&["logs", "grows", "--follow"], 0, &words);
    let words = [
        "submission_id='long'",
        "submission_id='bad'",
        "JobStatus.FAILED",
    ];
    client.says(&["list"], 0, &words);
    let words = ["Attempting to stop job 'long'", "Job 'long' was stopped"];
    client.says(&["stop", "long"], 0, &words);
    assert_eq!(ended(client.serve, "long")["status"], "STOPPED");
    client.says(&["status", "long"], 0, &["Job 'long' was stopped"]);
    client.says(&["delete", "long"], 0, &["Job 'long' deleted successfully"]);
    client.says(&["status", "long"], 1, &["Job long does not exist"]);
}
