//! What workers write arrives with their rank and pid, identical lines folded, nothing lost.

mod common;

use common::Place;
use lockstep_engine::StopFlag;
use lockstep_engine::local::{RunRequest, run};
use lockstep_job::Job;
use lockstep_store::CacheDir;
use lockstep_train::event::{Event, LogLine, Status};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

#[test]
fn identical_lines_are_folded_with_a_count_and_others_are_not() {
    let place = Place::new();
    // A worker that has something to say before it begins.
    let talkative = place.path("talkative");
    let script = format!(
        "#!/bin/sh\nprintf 'the same\\rfor all\\n'\necho \"only $$\" >&2\nexec '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_lockstep")
    );
    fs::write(&talkative, script).unwrap();
    fs::set_permissions(&talkative, fs::Permissions::from_mode(0o755)).unwrap();

    let request = RunRequest {
        job: Job::load(&place.path("job.toml"), &[], None).unwrap(),
        started_at: Instant::now(),
        resume: None,
        stop: StopFlag::new(),
        cache: CacheDir::at(&place.path("cache")).unwrap(),
        worker_exe: talkative,
    };
    let mut lines: Vec<LogLine> = Vec::new();
    let mut pids = Vec::new();
    let result = run(request, &mut |event| match event {
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
        let log = result
            .run_dir
            .as_ref()
            .unwrap()
            .join(format!("logs/worker-{rank}.log"));
        assert_eq!(
            fs::read_to_string(log).unwrap(),
            format!("the same\nfor all\n{own}\n")
        );
    }
}
