//! However a script ends, that is said in a clear word, and no process is left of it.

use super::{error, place, run};
use crate::common::{LIMIT, Place, Ran, logged};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn ended(script: &str, train: &str) -> (Ran, Place) {
    let place = place(script, train);
    let ran = run(&place, &[]);
    place.assert_no_process_is_left();
    (ran, place)
}

#[test]
fn a_missing_program_or_module_is_named() {
    let (place, _) = (place("", ""), ());
    let ran = place.run(&[
        "launch",
        "--workers",
        "2",
        "--json",
        "--",
        "/no/such/python",
    ]);
    let said = error(&ran);
    assert!(said.contains("cannot start `/no/such/python`"), "{said}");
    assert!(place.runs().is_empty());
    let (ran, place) = ended("import no_such_module", "workers = 2");
    let said = error(&ran);
    assert!(said.contains("No module named 'no_such_module'"), "{said}");
    assert!(
        said.contains("worker 0") || said.contains("worker 1"),
        "{said}"
    );
    assert!(
        said.contains("train.py\", line 1"),
        "the traceback is there: {said}"
    );
    assert!(place.runs().is_empty(), "{:?}", place.runs());
}

#[test]
fn the_rank_that_failed_first_is_told_with_its_traceback() {
    let script = "import lockstep, time\n\
        lockstep.report({'a': 1})\n\
        if lockstep.get_context().get_world_rank() == 1:\n    raise ValueError('rank one is tired')\n\
        lockstep.collective.barrier()\n";
    let (ran, _) = ended(script, "workers = 2");
    let said = error(&ran);
    assert!(
        said.contains("worker 1") && said.contains("ValueError: rank one is tired"),
        "{said}"
    );
    assert!(said.contains("Traceback"), "{said}");
}

#[test]
fn ranks_that_do_not_come_to_a_meeting_are_named() {
    let script = "import lockstep, time\n\
        if lockstep.get_context().get_world_rank() == 0:\n    lockstep.collective.barrier()\n\
        time.sleep(60)\n";
    let (ran, _) = ended(script, "workers = 3\nreport_timeout_s = 1");
    let said = error(&ran);
    assert!(said.contains("1, 2") || said.contains("[1, 2]"), "{said}");
}

#[test]
fn a_script_that_hangs_is_ended() {
    let (ran, _) = ended(
        "import time\ntime.sleep(600)",
        "workers = 2\nstall_s = 3\n[recover]\nmax_restarts = 0",
    );
    let said = error(&ran);
    assert!(said.contains("made no progress for 3 s"), "{said}");
}

#[test]
fn one_rank_that_ends_before_the_others_waits_for_them() {
    let script = "import os, time\ntime.sleep(2 * int(os.environ['RANK']))\nprint('rank', os.environ['RANK'])\n";
    let (ran, _) = ended(script, "workers = 2");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(logged(&ran).len(), 2);
    // If the others hang for ever, it is they who are named.
    let script = "import os, time\ntime.sleep(600 * int(os.environ['RANK']))\n";
    let (ran, _) = ended(
        script,
        "workers = 2\nstall_s = 3\n[recover]\nmax_restarts = 0",
    );
    assert!(error(&ran).contains("made no progress"), "{}", error(&ran));
}

#[test]
fn what_a_script_started_ends_with_it() {
    let script = "import subprocess, sys, time, os\n\
        subprocess.Popen(['sleep', '600'], start_new_session=True)\n\
        if os.fork() == 0:\n    time.sleep(600)\n";
    let (ran, _) = ended(script, "workers = 2");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Asks a run to end once its script has reported, and a moment later; it must do so long before the script would.
fn stopped(script: &str, train: &str, moment: Duration) {
    let place = place(script, train);
    let mut run = place.start(&[]);
    run.wait_for("reported");
    std::thread::sleep(moment);
    let begin = Instant::now();
    run.signal(Signal::INT);
    let (code, _, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let took = begin.elapsed();
    assert!(took < LIMIT, "{took:?}");
    place.assert_no_process_is_left();
}

#[test]
fn a_script_that_ignores_the_wish_to_end_is_ended() {
    let script = "import signal, time, lockstep\n\
        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
        lockstep.report({'a': 1})\ntime.sleep(600)\n";
    stopped(script, "workers = 2\nstop_s = 1", Duration::ZERO);
}

#[test]
fn a_run_is_stopped_also_when_one_rank_is_done_already() {
    let script = "import lockstep, os, time\n\
        lockstep.report({'a': 1})\n\
        time.sleep(600 * int(os.environ['RANK']))\n";
    stopped(script, "workers = 2", Duration::from_secs(1));
}

/// Interrupts two ranks that save their state when they are asked to end, in the midst of what they then do, and
/// resumes them.
fn saved_when_asked(then: &str) {
    let script = format!(
        "import lockstep, os, signal, sys, tempfile, time\n\
        from lockstep import train\n\
        def save(*_):\n\
        \x20   with tempfile.TemporaryDirectory() as folder:\n\
        \x20       open(os.path.join(folder, 'state'), 'w').write('saved')\n\
        \x20       train.report({{'saved': 1}}, checkpoint=train.Checkpoint.from_directory(folder))\n\
        \x20   sys.exit(0)\n\
        if train.get_checkpoint():\n\
        \x20   print('resumed', flush=True)\n\
        \x20   sys.exit(0)\n\
        signal.signal(signal.SIGTERM, save)\n\
        train.report({{'begun': 1}})\n\
        print('begun', os.environ['RANK'], flush=True)\n\
        {then}\n\
        time.sleep(600)\n"
    );
    let place = place(&script, "workers = 2");
    let mut running = place.start(&[]);
    // Both, since a checkpoint is one of all ranks after equally many reports.
    let mut begun = BTreeSet::new();
    while begun.len() < 2 {
        let line = running.wait_for("log")["line"].clone();
        begun.extend(
            line.as_str()
                .filter(|line| line.starts_with("begun"))
                .map(str::to_owned),
        );
    }
    let begin = Instant::now();
    running.signal(Signal::INT);
    let (code, _, stderr) = running.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let took = begin.elapsed();
    assert!(took < LIMIT, "{took:?}");
    let resumed = run(&place, &["--resume"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(logged(&resumed).iter().any(|line| line == "resumed"));
    place.assert_no_process_is_left();
}

#[test]
fn a_script_that_saves_its_state_when_it_is_asked_to_end_can_be_resumed() {
    saved_when_asked("");
}

#[test]
fn a_script_saves_its_state_also_when_the_wish_to_end_interrupts_a_meeting() {
    saved_when_asked("if os.environ['RANK'] == '0': train.collective.barrier()");
}

/// Prints ten megabytes in one line, and so many more in short ones.
fn flood(megabytes: usize) {
    let script = format!(
        "import sys\nsys.stdout.write('x' * 10_000_000 + '\\n')\n\
         block = ''.join(f'{{i:6}} ' + 'y' * 92 + '\\n' for i in range(10_000))\n\
         for _ in range({megabytes}):\n    sys.stdout.write(block)\nprint('the end')\n"
    );
    let begin = Instant::now();
    let (ran, place) = ended(&script, "workers = 1");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    println!("{megabytes} MB in {:?}", begin.elapsed());
    let run = place.runs().pop().unwrap();
    let log = run.join("logs/worker-0.log");
    let length = std::fs::metadata(&log).unwrap().len();
    assert!(length > megabytes as u64 * 1_000_000 / 2, "{length}");
}

#[test]
fn a_flood_of_output_is_written_down_and_ends_nothing() {
    flood(3);
}

#[test]
#[ignore = "writes a gigabyte"]
fn a_gigabyte_of_output_is_written_down_and_ends_nothing() {
    flood(1000);
}
