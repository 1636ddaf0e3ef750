//! Task workers that are this test program, run anew: tasks are done exactly once, whoever dies.

use lockstep_engine::tasks::{self, Request, TaskEvent, TasksDone, Work};
use lockstep_engine::{EngineError, Stop, StopFlag};
use lockstep_launch::Launcher;
use lockstep_launch::LocalLauncher;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set in the processes that are workers.
const WORKER: &str = "LOCKSTEP_TEST_TASK_WORKER";
/// Set in the process that is a coordinator, to a folder.
const COORDINATOR: &str = "LOCKSTEP_TEST_COORDINATOR";

/// How long anything may take that nothing holds up.
const LIMIT: Duration = Duration::from_secs(120);
/// How long a worker makes no progress before it is replaced, where a test waits for it.
const HANGING: Duration = Duration::from_secs(4);

/// Not a test: what a worker's process does.
#[test]
fn a_worker() {
    if std::env::var_os(WORKER).is_some() {
        let _ = tasks::serve(|_, kind, setup| match kind {
            "test" => Ok(worker(&setup)),
            _ => Err(format!("what is {kind}?").into()),
        });
        std::process::exit(1);
    }
}

/// Does what a task says. `setup` names a folder for what must be remembered between processes.
fn worker(setup: &Value) -> Work {
    let folder = PathBuf::from(setup["folder"].as_str().unwrap());
    Box::new(move |task, progress| {
        let mark = folder.join(task["mark"].as_str().unwrap_or("none"));
        match task["do"].as_str().unwrap() {
            "square" => {
                progress(json!("half"));
                let n = task["n"].as_u64().unwrap();
                Ok(json!(n * n))
            }
            "fail" => Err("this cannot be done".to_owned().into()),
            "die" => std::process::abort(),
            "die once" if !mark.exists() => {
                std::fs::write(&mark, "").unwrap();
                eprintln!("these are my last words");
                std::process::exit(7);
            }
            "hang once" if !mark.exists() => {
                std::fs::write(&mark, "").unwrap();
                loop {
                    std::thread::park();
                }
            }
            "die once" | "hang once" => Ok(json!("done after all")),
            "work for long" => {
                for _ in 0..2 * HANGING.as_secs() * 10 {
                    std::thread::sleep(Duration::from_millis(100));
                    lockstep_base::progress::advance();
                }
                Ok(json!("done"))
            }
            "sleep" => {
                std::thread::sleep(Duration::from_secs_f64(task["s"].as_f64().unwrap()));
                Ok(json!(std::process::id()))
            }
            "big" => Ok(json!("x".repeat(1 << 20))),
            other => panic!("{other}"),
        }
    })
}

/// A folder, and in it a script that stands for the program: it runs [`a_worker`] of this one.
struct Stage {
    folder: TempDir,
    exe: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let exe = folder.path().join("worker.sh");
        let script = format!("[ \"$1\" = task-worker ] || exit 2\nexport {WORKER}=1\n");
        lockstep_testkit::write_child(&exe, &script, &lockstep_testkit::child!(a_worker));
        Self { folder, exe }
    }

    fn request(&self, workers: usize, tasks: Vec<Value>) -> Request<'static> {
        Request {
            launcher: launcher(&self.exe),
            workers,
            kind: "test",
            setup: json!({ "folder": self.folder.path() }),
            tasks,
            stop: StopFlag::new(),
            max_restarts: 3,
            deadline: LIMIT,
        }
    }
}

/// A request borrows its launcher, and a test is a short life.
fn launcher(program: &Path) -> &'static mut dyn Launcher {
    Box::leak(Box::new(LocalLauncher::new(program)))
}

/// How the work ended, what came of each task, and all other events.
type Ran = (
    Result<TasksDone, EngineError>,
    BTreeMap<usize, Value>,
    Vec<TaskEvent>,
);

fn run(request: Request<'_>) -> Ran {
    let (mut done, mut events) = (BTreeMap::new(), Vec::new());
    let result = tasks::run(request, &mut |event| match event {
        TaskEvent::Done { task, payload } => {
            assert_eq!(done.insert(task, payload), None, "{task} came twice");
        }
        other => events.push(other),
    });
    (result, done, events)
}

fn summary(done: usize, restarts: usize) -> TasksDone {
    TasksDone {
        done,
        stopped: false,
        restarts,
    }
}

fn squares(n: usize) -> Vec<Value> {
    (0..n).map(|n| json!({ "do": "square", "n": n })).collect()
}

/// Whether a process is there and was not merely left to be reaped.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn every_task_is_done_once_on_any_number_of_workers() {
    let stage = Stage::new();
    for workers in [1, 2, 5] {
        let (result, done, events) = run(stage.request(workers, squares(20)));
        assert_eq!(result.unwrap(), summary(20, 0));
        let right = |(n, square): (&usize, &Value)| *square == json!(n * n);
        assert!(done.iter().all(right), "{done:?}");
        let count = |is: fn(&&TaskEvent) -> bool| events.iter().filter(is).count();
        assert_eq!(count(|e| matches!(e, TaskEvent::Worker { .. })), workers);
        assert_eq!(count(|e| matches!(e, TaskEvent::Progress { .. })), 20);
    }
}

#[test]
fn no_task_needs_no_worker() {
    let mut request = Stage::new().request(2, Vec::new());
    request.launcher = launcher(Path::new("/nonexistent"));
    let (result, _, events) = run(request);
    assert_eq!(result.unwrap(), summary(0, 0));
    assert_eq!(events, []);
}

#[test]
fn a_result_may_be_long() {
    let big = vec![json!({ "do": "big" })];
    let (result, done, _) = run(Stage::new().request(1, big));
    result.unwrap();
    assert_eq!(done[&0].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_worker_killed_from_outside_is_replaced_and_its_task_done_by_another() {
    let stage = Stage::new();
    // The first one is given to a worker that has done none yet, and lasts until that worker is killed.
    let mut tasks = vec![json!({ "do": "sleep", "s": 0.0 }); 4];
    tasks[0] = json!({ "do": "hang once", "mark": "killed" });
    let (mut pids, mut killed) = (BTreeMap::new(), None);
    let (mut done, mut restarts) = (BTreeMap::new(), Vec::new());
    let ended = tasks::run(stage.request(2, tasks), &mut |event| match event {
        TaskEvent::Worker { worker, pid } => drop(pids.insert(worker, pid)),
        TaskEvent::Started { task: 0, worker } if killed.is_none() => {
            killed = Some(pids[&worker]);
            wait_for(&stage.folder.path().join("killed"));
            let pid = Pid::from_raw(i32::try_from(pids[&worker]).unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
        TaskEvent::Restart { task, reason, .. } => restarts.push((task, reason)),
        TaskEvent::Done { task, payload } => drop(done.insert(task, payload)),
        _ => {}
    });
    assert_eq!(ended.unwrap(), summary(4, 1));
    let [(Some(0), reason)] = &restarts[..] else {
        panic!("{restarts:?}")
    };
    assert!(reason.contains("killed by signal 9 (SIGKILL)"), "{reason}");
    assert_eq!(done.len(), 4);
    assert!(done.values().all(|pid| *pid != json!(killed)), "{done:?}");
}

#[test]
fn a_worker_that_exits_is_replaced_with_its_last_words_told() {
    let stage = Stage::new();
    let mut tasks = squares(3);
    tasks.insert(1, json!({ "do": "die once", "mark": "died" }));
    let (result, done, events) = run(stage.request(1, tasks));
    assert_eq!(result.unwrap(), summary(4, 1));
    assert_eq!(done[&1], json!("done after all"));
    let restart = |event: &TaskEvent| match event {
        TaskEvent::Restart { task, reason, .. } => Some((*task, reason.clone())),
        _ => None,
    };
    let (task, reason) = events.iter().find_map(restart).unwrap();
    assert_eq!(task, Some(1));
    let words = "code 7; the last it wrote was: these are my last words";
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn a_task_that_kills_its_worker_twice_fails_the_job_by_its_number() {
    let stage = Stage::new();
    let mut tasks = squares(4);
    tasks[2] = json!({ "do": "die" });
    let (result, done, _) = run(stage.request(1, tasks));
    let error = result.unwrap_err().to_string();
    let words = "cannot test: task 2 lost its worker 2 times; the last time, worker 0 (pid ";
    assert!(error.starts_with(words), "{error}");
    assert_eq!(done.keys().copied().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn more_losses_than_allowed_fail_the_job() {
    let stage = Stage::new();
    let task = |n: usize| json!({ "do": "die once", "mark": n.to_string() });
    let (result, ..) = run(stage.request(1, (0..4).map(task).collect()));
    let error = result.unwrap_err();
    assert!(
        matches!(error, EngineError::TaskRestarts { restarts: 3, .. }),
        "{error}"
    );
}

#[test]
fn an_error_that_a_worker_reports_is_not_tried_again() {
    let stage = Stage::new();
    let mut tasks = squares(4);
    tasks[1] = json!({ "do": "fail" });
    let error = run(stage.request(1, tasks)).0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot test: task 1: this cannot be done"
    );
    let unknown = Request {
        kind: "dance",
        ..stage.request(2, squares(4))
    };
    let error = run(unknown).0.unwrap_err();
    assert_eq!(error.to_string(), "cannot dance: what is dance?");
}

#[test]
fn a_stop_finishes_what_is_in_progress_and_one_at_once_does_not() {
    let stage = Stage::new();
    for (stop, seconds, done) in [(Stop::Graceful, 0.3, 2), (Stop::Now, 1000.0, 0)] {
        let request = stage.request(2, vec![json!({ "do": "sleep", "s": seconds }); 6]);
        let flag = request.stop.clone();
        let (mut started, mut pids) = (0, Vec::new());
        let ended = tasks::run(request, &mut |event| match event {
            TaskEvent::Started { .. } => {
                started += 1;
                if started == 2 {
                    flag.raise(stop);
                }
            }
            TaskEvent::Worker { pid, .. } => pids.push(pid),
            _ => {}
        });
        let expected = TasksDone {
            stopped: true,
            ..summary(done, 0)
        };
        assert_eq!(ended.unwrap(), expected, "{stop:?}");
        assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    }
}

/// Not a test: a coordinator that is to be killed.
#[test]
fn a_coordinator() {
    let Some(folder) = std::env::var_os(COORDINATOR).map(PathBuf::from) else {
        return;
    };
    let stage = Stage::new();
    let tasks = vec![json!({ "do": "sleep", "s": 1000.0 }); 2];
    let (mut pids, mut started) = (Vec::new(), 0);
    let _ = tasks::run(stage.request(2, tasks), &mut |event| match event {
        TaskEvent::Worker { pid, .. } => pids.push(pid.to_string()),
        TaskEvent::Started { .. } => {
            started += 1;
            if started == 2 {
                std::fs::write(folder.join("aside"), pids.join(" ")).unwrap();
                std::fs::rename(folder.join("aside"), folder.join("pids")).unwrap();
            }
        }
        _ => {}
    });
}

#[test]
fn no_worker_outlives_a_coordinator_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut coordinator = lockstep_testkit::child!(a_coordinator)
        .env(COORDINATOR, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pids = wait_for(&folder.path().join("pids"));
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    let begin = Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        let patient = begin.elapsed() < LIMIT;
        assert!(patient, "{pids:?} are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for(file: &Path) -> String {
    let begin = Instant::now();
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) => return text,
            Err(_) => assert!(begin.elapsed() < LIMIT),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_worker_that_hangs_while_its_heart_beats_is_replaced_and_one_that_works_for_long_is_not() {
    let stage = Stage::new();
    let tasks = vec![
        json!({ "do": "hang once", "mark": "hung" }),
        json!({ "do": "work for long" }),
    ];
    let mut request = stage.request(2, tasks);
    request.deadline = HANGING;
    let (result, done, events) = run(request);
    assert_eq!(result.unwrap(), summary(2, 1));
    assert_eq!(done[&0], "done after all");
    let reasons: Vec<&String> = (events.iter())
        .filter_map(|event| match event {
            TaskEvent::Restart { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert!(
        reasons[0].ends_with("made no progress for 4 s"),
        "{reasons:?}"
    );
}
