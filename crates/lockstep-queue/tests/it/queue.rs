//! A queue with real processes: what it promises, seen from outside.
//!
//! Who looks after a job is this test program itself, called once more.

use lockstep_queue::{
    JobProcess, JobStatus, JobView, Needs, Queue, QueueError, QueueSettings, Submission, keep,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(120);
/// Name the folder, the attempt and the GPUs of the job that this program looks after.
const KEEP: [&str; 3] = ["TEST_KEEP_FOLDER", "TEST_KEEP_ATTEMPT", "TEST_KEEP_GPUS"];

/// Not a test: what the program of the queue calls.
#[test]
fn keeper() {
    let [Ok(folder), Ok(attempt), Ok(gpus)] = KEEP.map(std::env::var) else {
        return;
    };
    let gpus: Vec<u32> = gpus.split(',').filter_map(|gpu| gpu.parse().ok()).collect();
    let process = JobProcess {
        folder: folder.into(),
        attempt: attempt.parse().unwrap(),
        gpus,
        user: None,
    };
    keep(&process).unwrap();
}

/// A program that takes the arguments of `lockstep job-process`.
fn program() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let [a, b, c] = KEEP;
        let script = format!("export {a}=$2 {b}=$4 {c}=$6\n");
        lockstep_testkit::write_child(&path, &script, &lockstep_testkit::child!(keeper));
        folder
    });
    folder.path().join("program")
}

/// A queue in a folder of its own.
struct Place {
    folder: TempDir,
    settings: QueueSettings,
}

impl Place {
    fn new(cpus: f64) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = QueueSettings::new(folder.path().join("queue"), program());
        settings.machine.cpus = cpus;
        settings.machine.gpus = 2;
        settings.grace_s = 0.5;
        Place { folder, settings }
    }

    fn open(&self) -> Queue {
        // The one before lets go within moments.
        let began = Instant::now();
        loop {
            match Queue::open(self.settings.clone()) {
                Err(QueueError::InUse { .. }) if began.elapsed() < LIMIT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return opened.unwrap(),
            }
        }
    }

    /// A file that jobs may write.
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The lines of such a file.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A command that waits until the test says [`go`](Self::go).
    fn waits(&self) -> String {
        let file = self.file("go").display().to_string();
        format!("until [ -e {file} ]; do sleep 0.02; done")
    }

    /// Lets all commands that wait go on.
    fn go(&self) {
        fs::write(self.file("go"), "").unwrap();
    }

    /// A command that writes a line.
    fn says(&self, line: &str) -> String {
        format!("echo {line} >> {}", self.file("said").display())
    }
}

fn job(id: &str, command: &str, metadata: &[(&str, &str)]) -> Submission {
    let pairs = metadata.iter().map(|(k, v)| ((*k).into(), (*v).into()));
    Submission {
        id: Some(id.into()),
        user: "local".into(),
        entrypoint: command.into(),
        metadata: pairs.collect(),
        ..Submission::default()
    }
}

fn until(queue: &Queue, id: &str, what: impl Fn(&JobView) -> bool) -> JobView {
    let began = Instant::now();
    loop {
        let view = queue.get(id).unwrap();
        if what(&view) {
            return view;
        }
        assert!(began.elapsed() < LIMIT, "{view:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ended(queue: &Queue, id: &str) -> JobView {
    until(queue, id, |view| view.status.is_final())
}

fn running(queue: &Queue, id: &str) -> JobView {
    until(queue, id, |view| view.status == JobStatus::Running)
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

fn log(queue: &Queue, id: &str) -> String {
    let whole = queue.log(id).unwrap().whole().unwrap();
    String::from_utf8(whole).unwrap()
}

#[test]
fn a_job_runs_once_and_its_end_is_told() {
    let place = Place::new(2.0);
    let queue = place.open();
    queue
        .submit(job("good", "echo out; echo err >&2; pwd", &[]))
        .unwrap();
    queue
        .submit(job("bad", "echo the reason; exit 3", &[]))
        .unwrap();
    let good = ended(&queue, "good");
    assert_eq!(good.status, JobStatus::Succeeded);
    assert_eq!((good.exit_code, good.attempt), (Some(0), 1));
    assert_eq!(good.message, "Job finished successfully.");
    let text = log(&queue, "good");
    assert!(text.starts_with("out\nerr\n") && text.trim_end().ends_with("good/working"));
    let bad = ended(&queue, "bad");
    assert_eq!((bad.status, bad.exit_code), (JobStatus::Failed, Some(3)));
    assert_eq!(
        bad.message,
        "Job entrypoint command failed with exit code 3, last available logs (truncated to 20,000 chars):\nthe reason\n"
    );
    assert_eq!(
        bad.error_type.as_deref(),
        Some("JOB_ENTRYPOINT_COMMAND_ERROR")
    );
    let twice = queue.submit(job("good", "true", &[])).unwrap_err();
    assert!(twice.to_string().contains("already exists"), "{twice}");
}

#[test]
fn a_job_is_tried_again_after_the_exit_codes_that_it_names_and_no_others() {
    let place = Place::new(4.0);
    let queue = place.open();
    let command = format!("{}; test $LOCKSTEP_ATTEMPT = 2 || exit 75", place.says("x"));
    let twice = [("lockstep.retries", "3")];
    queue.submit(job("temporary", &command, &twice)).unwrap();
    let named = [("lockstep.retries", "1"), ("lockstep.retry_codes", "9,143")];
    let kill = "kill -TERM $$";
    queue.submit(job("signal", kill, &named)).unwrap();
    queue.submit(job("other", "exit 8", &named)).unwrap();
    let other = ended(&queue, "other");
    assert_eq!((other.attempt, other.exit_code), (1, Some(8)));
    let temporary = ended(&queue, "temporary");
    assert_eq!(
        (temporary.status, temporary.attempt, temporary.attempts),
        (JobStatus::Succeeded, 2, 4)
    );
    assert_eq!(place.lines("said"), ["x", "x"]);
    assert!(log(&queue, "temporary").contains("--- attempt 2 of 4 ---"));
    let signal = ended(&queue, "signal");
    assert_eq!(
        (signal.status, signal.attempt, signal.exit_code),
        (JobStatus::Failed, 2, Some(143))
    );
}

#[test]
fn a_job_never_begins_after_one_that_did_not_succeed() {
    let place = Place::new(4.0);
    let queue = place.open();
    // Jobs are looked at by name: here before and after what they wait for.
    let fails = format!("{}; exit 1", place.waits());
    queue.submit(job("m", &fails, &[])).unwrap();
    let after = |id: &'static str| [("lockstep.after", id)];
    queue
        .submit(job("a", &place.says("a"), &after("m")))
        .unwrap();
    queue
        .submit(job("z", &place.says("z"), &after("m")))
        .unwrap();
    queue
        .submit(job("b", &place.says("b"), &after("z")))
        .unwrap();
    queue.submit(job("good", "true", &[])).unwrap();
    queue
        .submit(job("c", &place.says("c"), &after("good")))
        .unwrap();
    let refused = queue.submit(job("d", "true", &after("nobody")));
    assert!(refused.unwrap_err().to_string().contains("no job nobody"));
    place.go();
    for id in ["a", "z", "b"] {
        let job = ended(&queue, id);
        assert_eq!(job.status, JobStatus::Failed, "{job:?}");
        assert!(job.message.contains("did not succeed"), "{job:?}");
    }
    assert_eq!(ended(&queue, "c").status, JobStatus::Succeeded);
    assert_eq!(place.lines("said"), ["c"]);
}

#[test]
fn jobs_wait_for_room_by_priority_and_then_as_they_came() {
    let place = Place::new(1.0);
    let queue = place.open();
    queue.submit(job("first", &place.waits(), &[])).unwrap();
    running(&queue, "first");
    for (id, priority) in [("x", "0"), ("w", "0"), ("urgent", "5"), ("later", "-5")] {
        let priority = [("lockstep.priority", priority)];
        queue.submit(job(id, &place.says(id), &priority)).unwrap();
    }
    assert_eq!(queue.get("w").unwrap().position, Some(2));
    place.go();
    ended(&queue, "later");
    assert_eq!(place.lines("said"), ["urgent", "x", "w", "later"]);
}

#[test]
fn a_user_has_at_most_so_many_jobs_running() {
    let mut place = Place::new(8.0);
    place.settings.per_user = Some(1);
    let queue = place.open();
    let of = |user: &'static str| [("lockstep.user", user)];
    queue.submit(job("1", &place.waits(), &of("ann"))).unwrap();
    queue.submit(job("2", "true", &of("ann"))).unwrap();
    queue.submit(job("3", "true", &of("bob"))).unwrap();
    ended(&queue, "3");
    assert_eq!(queue.get("2").unwrap().status, JobStatus::Pending);
    place.go();
    ended(&queue, "2");
    assert_eq!(queue.get("1").unwrap().status, JobStatus::Succeeded);
}

#[test]
fn a_job_that_is_stopped_ends_in_good_order_or_is_killed() {
    let mut place = Place::new(2.0);
    // Time enough for a shell to end in good order on any machine.
    place.settings.grace_s = 5.0;
    let queue = place.open();
    let saves = format!(
        "trap '{}; exit 143' TERM; echo ready; while :; do sleep 0.05; done",
        place.says("saved")
    );
    queue.submit(job("saves", &saves, &[])).unwrap();
    let deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    queue.submit(job("deaf", deaf, &[])).unwrap();
    queue.submit(job("waits", "true", &[])).unwrap();
    let ready = |id: &str| {
        until(&queue, id, |view| {
            view.pid.is_some() && log(&queue, id).contains("ready")
        })
    };
    let (saves, deaf) = (ready("saves"), ready("deaf"));
    assert!(queue.stop("waits").unwrap());
    assert_eq!(ended(&queue, "waits").status, JobStatus::Stopped);
    for view in [saves, deaf] {
        assert!(queue.stop(&view.id).unwrap());
        let stopped = ended(&queue, &view.id);
        assert_eq!(stopped.status, JobStatus::Stopped);
        assert_eq!(stopped.message, "Job was intentionally stopped.");
        assert!(!is_alive(view.pid.unwrap()));
        assert!(!queue.stop(&view.id).unwrap());
    }
    assert_eq!(queue.get("saves").unwrap().exit_code, Some(143));
    assert_eq!(queue.get("deaf").unwrap().exit_code, Some(137));
    assert_eq!(place.lines("said"), ["saved"]);
    assert!(queue.stop("nobody").is_err());
}

#[test]
fn jobs_go_on_without_the_queue_and_none_is_lost_or_run_twice() {
    let place = Place::new(1.0);
    let queue = place.open();
    let command = format!(
        "{}; {}; {}",
        place.says("began"),
        place.waits(),
        place.says("ended")
    );
    queue.submit(job("runs", &command, &[])).unwrap();
    queue
        .submit(job("waits", &place.says("after"), &[]))
        .unwrap();
    running(&queue, "runs");
    drop(queue);
    let queue = place.open();
    assert_eq!(queue.get("runs").unwrap().status, JobStatus::Running);
    assert_eq!(queue.get("waits").unwrap().status, JobStatus::Pending);
    place.go();
    assert_eq!(ended(&queue, "waits").status, JobStatus::Succeeded);
    assert_eq!(queue.get("runs").unwrap().status, JobStatus::Succeeded);
    assert_eq!(place.lines("said"), ["began", "ended", "after"]);
    drop(queue);
    let queue = place.open();
    assert_eq!(queue.list().len(), 2);
    assert_eq!(queue.get("runs").unwrap().exit_code, Some(0));
    assert_eq!(place.lines("said").len(), 3);
}

#[test]
fn a_job_that_ended_while_nobody_looked_is_told_as_it_ended() {
    let place = Place::new(1.0);
    let queue = place.open();
    let fails = format!("{}; exit 4", place.waits());
    queue.submit(job("a", &fails, &[])).unwrap();
    let pid = running(&queue, "a").pid.unwrap();
    drop(queue);
    place.go();
    let began = Instant::now();
    while is_alive(pid) {
        assert!(began.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    let queue = place.open();
    assert_eq!(ended(&queue, "a").exit_code, Some(4));
}

#[test]
fn a_job_whose_keeper_is_killed_is_ended_and_told_as_lost() {
    let place = Place::new(1.0);
    let queue = place.open();
    queue.submit(job("a", "sleep 300", &[])).unwrap();
    let pid = running(&queue, "a").pid.unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let killed = Command::new("kill")
        .args(["-9", parent.unwrap().trim()])
        .status();
    assert!(killed.unwrap().success());
    let job = ended(&queue, "a");
    assert_eq!(
        job.error_type.as_deref(),
        Some("JOB_SUPERVISOR_ACTOR_DIED"),
        "{job:?}"
    );
    assert!(!is_alive(pid));
}

#[test]
fn what_a_command_leaves_behind_is_ended_with_it() {
    let place = Place::new(1.0);
    let queue = place.open();
    let command = "setsid sh -c 'echo $$; : > begun; sleep 300' & sleep 300 & echo $!; \
                   until [ -e begun ]; do sleep 0.02; done";
    queue.submit(job("a", command, &[])).unwrap();
    let job = ended(&queue, "a");
    assert_eq!(job.status, JobStatus::Succeeded);
    let pids = log(&queue, "a");
    let pids: Vec<u32> = pids.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn a_job_that_lower_limits_leave_no_room_for_waits_and_lets_others_pass() {
    let mut place = Place::new(2.0);
    let queue = place.open();
    queue.submit(job("first", &place.waits(), &[])).unwrap();
    let mut large = job("large", "true", &[]);
    large.needs.cpus = Some(2.0);
    queue.submit(large).unwrap();
    running(&queue, "first");
    drop(queue);
    place.settings.machine.cpus = 1.0;
    let queue = place.open();
    place.go();
    queue.submit(job("small", "true", &[])).unwrap();
    assert_eq!(ended(&queue, "small").status, JobStatus::Succeeded);
    let large = queue.get("large").unwrap();
    assert_eq!(large.status, JobStatus::Pending);
    assert!(large.message.contains("asks for 2"), "{}", large.message);
    drop(queue);
    place.settings.machine.cpus = 2.0;
    let queue = place.open();
    assert_eq!(ended(&queue, "large").status, JobStatus::Succeeded);
}

#[test]
fn a_job_has_the_gpus_that_it_asks_for_and_the_variables() {
    let place = Place::new(4.0);
    let queue = place.open();
    // Both run at the same time.
    let show = format!(
        "echo gpus=$CUDA_VISIBLE_DEVICES job=$LOCKSTEP_JOB a=$A; {}",
        place.waits()
    );
    for id in ["a", "b"] {
        let mut one = job(id, &show, &[]);
        one.needs = Needs {
            gpus: 1.0,
            ..Needs::default()
        };
        let variables = serde_json::json!({"A": "x ${LOCKSTEP_NOT_SET}y"});
        one.runtime_env = BTreeMap::from([("env_vars".to_owned(), variables)]);
        queue.submit(one).unwrap();
    }
    running(&queue, "a");
    running(&queue, "b");
    place.go();
    ended(&queue, "a");
    ended(&queue, "b");
    assert_eq!(log(&queue, "a"), "gpus=0 job=a a=x y\n");
    assert_eq!(log(&queue, "b"), "gpus=1 job=b a=x y\n");
}

/// Writes a package with one module that holds `word`, which pip installs without asking anybody. Returns its path.
fn wheel(place: &Place, word: &str) -> PathBuf {
    let script = "\
import sys, zipfile
path, word = sys.argv[1:]
about = 'tiny-1.0.dist-info/'
with zipfile.ZipFile(path, 'w') as wheel:
    wheel.writestr('tiny.py', f'WORD = {word!r}\\n')
    wheel.writestr(about + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr(about + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(about + 'RECORD', '')
";
    let folder = place.file(word);
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("tiny-1.0-py3-none-any.whl");
    let mut python = std::process::Command::new("python3");
    let made = python.args(["-c", script]).arg(&path).arg(word).status();
    assert!(made.unwrap().success());
    path
}

#[test]
fn packages_are_installed_once_for_all_jobs_that_name_them_and_removed_by_age() {
    let place = Place::new(4.0);
    let queue = place.open();
    let wheel = wheel(&place, "first");
    let submit = |id: &str, packages: serde_json::Value| {
        let mut one = job(id, "python3 -c 'import tiny; print(tiny.WORD)'", &[]);
        let environment = serde_json::json!({ "packages": packages, "pip_check": false });
        one.runtime_env = BTreeMap::from([("pip".to_owned(), environment)]);
        queue.submit(one).unwrap();
    };
    // Two at once make one.
    for id in ["a", "b"] {
        submit(id, serde_json::json!([wheel]));
    }
    let said = ["a", "b"].map(|id| {
        assert_eq!(
            ended(&queue, id).status,
            JobStatus::Succeeded,
            "{}",
            log(&queue, id)
        );
        log(&queue, id)
    });
    let made = said
        .iter()
        .filter(|said| said.contains("--- making an environment with pip"));
    assert_eq!(made.count(), 1, "{said:?}");
    for said in &said {
        assert!(said.ends_with("first\n"), "{said}");
    }
    submit("c", serde_json::json!([wheel]));
    ended(&queue, "c");
    assert_eq!(log(&queue, "c"), "first\n");
    // What cannot be installed is said, and nothing is left of it.
    submit("d", serde_json::json!([place.file("none.whl")]));
    let failed = ended(&queue, "d");
    assert_eq!(
        failed.error_type.as_deref(),
        Some("RUNTIME_ENV_SETUP_FAILURE")
    );
    assert!(failed.message.contains("none.whl"), "{}", failed.message);
    let environments = place.settings.folder.join("environments");
    let folders = || {
        let entries = std::fs::read_dir(&environments).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().is_dir())
            .count()
    };
    assert_eq!(folders(), 1);
    for id in ["a", "b", "c", "d"] {
        queue.remove(id).unwrap();
    }
    drop(queue);
    // They are kept for whoever comes next, until nobody has for a week.
    let old = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    for entry in std::fs::read_dir(&environments).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        file.set_modified(old).unwrap();
    }
    let _queue = place.open();
    let begin = Instant::now();
    while folders() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_folder_comes_from_a_web_server_as_an_archive() {
    let place = Place::new(1.0);
    let queue = place.open();
    let script = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    archive.writestr('repository-main/main.sh', 'echo it came')
";
    let made = Command::new("python3")
        .args(["-c", script])
        .arg(place.file("app.zip"))
        .status();
    assert!(made.unwrap().success());
    let archive = fs::read(place.file("app.zip")).unwrap();
    let address = serve_file(archive);
    let submit = |id: &str, uri: String| {
        let mut one = job(id, "sh main.sh", &[]);
        let uri = serde_json::json!(uri);
        one.runtime_env = BTreeMap::from([("working_dir".to_owned(), uri)]);
        queue.submit(one).unwrap();
        ended(&queue, id)
    };
    let brought = submit("a", format!("http://{address}/app.zip"));
    assert_eq!(brought.status, JobStatus::Succeeded, "{}", brought.message);
    assert_eq!(log(&queue, "a"), "it came\n");
    for (id, uri) in [
        ("b", "file:///etc/passwd.zip"),
        ("c", "https://127.0.0.1/app.tar"),
    ] {
        let refused = submit(id, uri.to_owned());
        assert_eq!(
            refused.error_type.as_deref(),
            Some("RUNTIME_ENV_SETUP_FAILURE")
        );
        assert!(
            refused.message.contains("name a .zip"),
            "{}",
            refused.message
        );
    }
}

/// A web server that has one file, whatever is asked. Returns its address.
fn serve_file(content: Vec<u8>) -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            let mut range = None;
            for line in lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
            {
                let line = line.to_ascii_lowercase();
                if let Some(bytes) = line.strip_prefix("range: bytes=") {
                    let (from, to) = bytes.split_once('-').unwrap();
                    let from: usize = from.parse().unwrap();
                    let to = to
                        .parse()
                        .map_or(content.len(), |to: usize| (to + 1).min(content.len()));
                    range = Some(from..to);
                }
            }
            let (status, part) = match range {
                Some(range) => ("206 Partial Content", range),
                None => ("200 OK", 0..content.len()),
            };
            let mut head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"a\"\r\nConnection: close\r\n",
                part.len()
            );
            if status.starts_with("206") {
                head += &format!(
                    "Content-Range: bytes {}-{}/{}\r\n",
                    part.start,
                    part.end - 1,
                    content.len()
                );
            }
            let body = match first.starts_with("HEAD") {
                true => &[][..],
                false => &content[part],
            };
            let _ = stream.write_all((head + "\r\n").as_bytes());
            let _ = stream.write_all(body);
        }
    });
    address
}

#[test]
fn what_was_not_sent_fails_the_job_before_its_command_starts() {
    let place = Place::new(1.0);
    let queue = place.open();
    let mut missing = job("a", &place.says("a"), &[]);
    let uri = serde_json::json!("gcs://_ray_pkg_0123456789abcdef.zip");
    missing.runtime_env = BTreeMap::from([("working_dir".to_owned(), uri)]);
    queue.submit(missing).unwrap();
    let job = ended(&queue, "a");
    assert_eq!(job.error_type.as_deref(), Some("RUNTIME_ENV_SETUP_FAILURE"));
    assert!(job.message.contains("does not exist"), "{}", job.message);
    assert_eq!(job.exit_code, None);
    assert!(place.lines("said").is_empty());
}

#[test]
fn a_job_is_forgotten_only_after_its_end_and_when_nobody_waits_for_it() {
    let place = Place::new(2.0);
    let queue = place.open();
    queue.submit(job("a", "true", &[])).unwrap();
    queue.submit(job("b", &place.waits(), &[])).unwrap();
    let after = [("lockstep.after", "a,b")];
    queue.submit(job("c", "true", &after)).unwrap();
    ended(&queue, "a");
    let needed = queue.remove("a").unwrap_err();
    assert!(matches!(needed, QueueError::Needed { .. }), "{needed}");
    let early = queue.remove("b").unwrap_err();
    assert!(
        early.to_string().contains("in a non-terminal state"),
        "{early}"
    );
    place.go();
    ended(&queue, "c");
    queue.remove("a").unwrap();
    assert!(queue.get("a").is_none());
    assert!(matches!(queue.remove("a"), Err(QueueError::Missing(_))));
    queue.submit(job("a", "true", &[])).unwrap();
    assert_eq!(ended(&queue, "a").status, JobStatus::Succeeded);
}

#[test]
fn a_queue_has_one_server_at_a_time() {
    let place = Place::new(1.0);
    let _queue = place.open();
    let second = Queue::open(place.settings.clone());
    assert!(matches!(second, Err(QueueError::InUse { .. })));
}

#[test]
fn a_retry_does_not_wait_for_a_clock_that_was_set_back() {
    let place = Place::new(2.0);
    let queue = place.open();
    queue.submit(job("before", &place.waits(), &[])).unwrap();
    queue.submit(job("fails", "exit 75", &[])).unwrap();
    ended(&queue, "fails");
    let again = [("lockstep.after", "before"), ("lockstep.retries", "1")];
    queue.submit(job("again", "true", &again)).unwrap();
    running(&queue, "before");
    drop(queue);
    // Its first attempt ended tomorrow.
    let jobs = place.settings.folder.join("jobs");
    for name in ["begun.1.json", "ended.1.json"] {
        let text = fs::read(jobs.join("fails").join(name)).unwrap();
        let mut said: serde_json::Value = serde_json::from_slice(&text).unwrap();
        said["at_ms"] = (said["at_ms"].as_u64().unwrap() + 86_400_000).into();
        fs::write(jobs.join("again").join(name), said.to_string()).unwrap();
    }
    let queue = place.open();
    place.go();
    let again = ended(&queue, "again");
    assert_eq!((again.status, again.attempt), (JobStatus::Succeeded, 2));
}

#[test]
fn a_job_waits_while_the_system_has_no_room_for_it() {
    let mut place = Place::new(1.0);
    let (tried, given) = (place.file("tried"), place.file("program"));
    // What looks after a job ends so when files or processes run out: here twice.
    let script = format!(
        "echo x >> {tried}; [ $(wc -l < {tried}) -gt 2 ] || exit {}\nexec {} \"$@\"\n",
        lockstep_queue::TRY_AGAIN,
        place.settings.program.display(),
        tried = tried.display()
    );
    lockstep_testkit::write_program(&given, &script);
    place.settings.program = given;
    let queue = place.open();
    queue.submit(job("one", "true", &[])).unwrap();
    let one = ended(&queue, "one");
    assert_eq!(
        (one.status, one.attempt),
        (JobStatus::Succeeded, 1),
        "{one:?}"
    );
    assert_eq!(place.lines("tried").len(), 3);
}

#[test]
fn what_a_job_started_ends_with_it_without_group_session_and_environment() {
    let place = Place::new(1.0);
    let queue = place.open();
    let pid = place.file("pid");
    let pid = pid.display();
    let command = format!(
        "setsid env -i sh -c 'echo $$ > {pid}; exec sleep 600' & until [ -s {pid} ]; do sleep 0.02; done"
    );
    queue.submit(job("one", &command, &[])).unwrap();
    assert_eq!(ended(&queue, "one").status, JobStatus::Succeeded);
    let left: u32 = place.lines("pid")[0].parse().unwrap();
    assert!(!is_alive(left));
}
