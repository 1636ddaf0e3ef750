//! The engine with workers that misbehave: what they write arrives with their rank and pid, identical
//! lines folded and nothing lost, and whoever fails is named.
use crate::common::Place;
use crate::learners;
use lockstep_base::fs::CacheDir;
use lockstep_engine::{RunRequest, StopFlag, run};
use lockstep_events::event::{Event, LogLine, Status};
use lockstep_job::Job;
use lockstep_launch::LocalLauncher;
use lockstep_launch::{
    Ending, LaunchError, Launched, Launcher, Notify, Site, WorkerId, WorkerSpec,
};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// An executable that stands for a worker and does what the script says, `$EXE` being the real one.
///
/// A script cannot be executed while any process has it open for writing, which a fork in another
/// test would inherit from this one: so a shell writes it.
fn script(place: &Place, body: &str) -> PathBuf {
    let path = place.path("worker.sh");
    let exe = env!("CARGO_BIN_EXE_lockstep");
    let text = format!("#!/bin/sh\nEXE='{exe}'\n{body}\n");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"printf %s "$1" > "$2" && chmod +x "$2""#,
        "sh",
        &text,
    ]);
    assert!(shell.arg(&path).status().unwrap().success());
    path
}

fn launcher(place: &Place, program: PathBuf) -> LocalLauncher {
    LocalLauncher::new(program).with("LOCKSTEP_CACHE", place.path("cache"))
}

fn request(place: &Place, worker_exe: PathBuf) -> RunRequest {
    RunRequest {
        coordinator: learners::coordinator,
        job: Job::load(&place.path("job.toml"), &[], None).unwrap(),
        folder: place.path(""),
        started_at: Instant::now(),
        resume: None,
        fork: None,
        max_steps: None,
        step_times: false,
        profile: None,
        name: None,
        stop: StopFlag::new(),
        cache: CacheDir::at(&place.path("cache")).unwrap(),
        launcher: Box::new(launcher(place, worker_exe)),
    }
}

#[test]
fn identical_lines_are_folded_with_a_count_and_others_are_not() {
    let place = Place::new();
    // A worker that has something to say before it begins.
    let talkative = script(
        &place,
        r#"printf 'the same\rfor all\n'; echo "only $$" >&2; exec "$EXE" "$@""#,
    );
    let mut lines: Vec<LogLine> = Vec::new();
    let mut pids = Vec::new();
    let result = run(request(&place, talkative), &mut |event| match event {
        Event::Log(line) => lines.push(line),
        Event::Worker { rank, pid } => pids.push((rank, pid)),
        _ => (),
    })
    .unwrap();
    assert_eq!(result.status, Status::Succeeded);

    let said = |text: &str| -> usize {
        let same = lines.iter().filter(|line| line.line == text);
        same.map(|line| line.count).sum()
    };
    assert_eq!(said("the same"), 2, "{lines:?}");
    assert_eq!(said("for all"), 2, "{lines:?}");
    pids.sort_unstable();
    for (rank, pid) in pids {
        let own = format!("only {pid}");
        let line = lines
            .iter()
            .find(|line| line.line == own)
            .expect("its own line");
        assert_eq!((line.rank, line.pid, line.count), (rank, pid, 1));
        let folder = PathBuf::from(result.run_dir.as_ref().unwrap());
        let log = folder.join(format!("logs/worker-{rank}.log"));
        assert_eq!(
            fs::read_to_string(log).unwrap(),
            format!("the same\nfor all\n{own}\n")
        );
    }
}

#[test]
fn a_worker_that_dies_before_it_joins_is_named_with_its_last_line_and_leaves_no_folder() {
    let place = Place::new();
    let unlucky = script(&place, "echo out of luck; exit 3");
    let mut last = None;
    let error = run(request(&place, unlucky), &mut |event| last = Some(event)).unwrap_err();
    let error = error.to_string();
    let reason = "failed first: exited with code 3; the last it wrote was: out of luck";
    assert!(error.contains(reason), "{error}");
    assert!(place.runs().is_empty());
    match last {
        Some(Event::Result(result)) => assert_eq!(result.error, Some(error)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_that_ends_early_without_an_error_is_still_a_failure() {
    let place = Place::new();
    let idle = script(&place, "exit 0");
    let error = run(request(&place, idle), &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("ended before its work was done"), "{error}");
}

#[test]
fn a_worker_that_cannot_be_executed_is_named() {
    let place = Place::new();
    let error = run(request(&place, place.path("nothing")), &mut |_| ()).unwrap_err();
    assert!(
        error.to_string().contains("cannot start worker 0"),
        "{error}"
    );
    assert!(place.runs().is_empty());
}

/// Workers on a machine that is out of reach as soon as one of them is to be ended: nobody can say whether
/// it was, and nothing more is heard of it.
#[derive(Debug)]
struct OutOfReach {
    here: LocalLauncher,
    lost: Arc<Mutex<Vec<WorkerId>>>,
    pids: Vec<(WorkerId, u32)>,
    /// How each worker was when its successor was started, as Linux says it: `Z` has ended.
    ends: Arc<Mutex<Vec<String>>>,
}

impl Launcher for OutOfReach {
    fn start(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, LaunchError> {
        let before = self.pids.iter().find(|(id, _)| id.successor() == spec.id);
        if let Some((_, pid)) = before {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next().unwrap_or_default();
            self.ends.lock().unwrap().push(state[..1].to_owned());
        }
        let lost = self.lost.clone();
        let notify: Notify =
            Arc::new(move |notice| lost.lock().unwrap().contains(&notice.id) || notify(notice));
        let launched = self.here.start(spec, notify)?;
        self.pids.extend(launched.pid.map(|pid| (spec.id, pid)));
        Ok(launched)
    }

    fn tell(&mut self, id: WorkerId, line: &str) {
        self.here.tell(id, line);
    }

    fn end(&mut self, id: WorkerId) -> Ending {
        self.lost.lock().unwrap().push(id);
        Ending::Unknown
    }

    fn end_all(&mut self) {
        self.here.end_all();
    }

    fn describe(&self, id: WorkerId) -> String {
        self.here.describe(id)
    }

    fn site(&self) -> Site {
        Site {
            leased: true,
            ..self.here.site()
        }
    }
}

#[test]
fn a_worker_out_of_reach_ends_itself_with_its_lease_and_only_then_is_it_replaced() {
    let place = Place::new();
    let undisturbed = place.weights(&[]);
    let ends = Arc::new(Mutex::new(Vec::new()));
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_lockstep"));
    let mut request = request(&place, exe.clone());
    request.job.gang.deadline_s = 4.0;
    request.job.gang.lease_s = 8.0;
    // Its training hangs in the second epoch; its replacement makes too few steps for that.
    let hang = "step.begin@rank1=sleep:1000000@50";
    request.launcher = Box::new(OutOfReach {
        here: launcher(&place, exe).with("LOCKSTEP_FAILPOINTS", hang),
        lost: Arc::default(),
        pids: Vec::new(),
        ends: ends.clone(),
    });
    let mut reasons = Vec::new();
    let result = run(request, &mut |event| {
        if let Event::Restart(restart) = event {
            reasons.push(restart.reason);
        }
    })
    .unwrap();
    assert_eq!(result.weights_sha256.as_ref(), Some(&undisturbed));
    assert_eq!(result.restarts, 1, "{reasons:?}");
    assert_eq!(*ends.lock().unwrap(), ["Z"]);
    place.assert_no_process_is_left();
}

#[test]
fn the_record_of_events_is_what_was_told() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "--json"]);
    let told = ran.events().into_iter();
    // Of progress only some is recorded.
    let told: Vec<Value> = told.filter(|event| event["event"] != "progress").collect();
    let run = place.runs().remove(0);
    let recorded = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let recorded: Vec<Value> = recorded
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            let event_of = event.as_object_mut().unwrap();
            assert_eq!(event_of.remove("v"), Some(Value::from(2)));
            assert!(event_of.remove("time").unwrap().as_f64().unwrap() > 1.6e9);
            event
        })
        .filter(|event| event["event"] != "progress")
        .collect();
    assert_eq!(recorded, told);
}
