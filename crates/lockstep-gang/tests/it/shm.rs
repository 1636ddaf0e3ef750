//! What shared memory alone can do: the coordinator's hold on it, and real processes.

use crate::conformance::PATIENCE;
use crate::conformance::toy::*;
use lockstep_gang::*;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const LENGTHS: [usize; 5] = [40, 7, 300, 1, 64];

fn plan(workers: usize) -> Plan {
    Plan::new(chunks(&LENGTHS), 4, workers).unwrap()
}

fn member(rank: usize, generation: u16, deadline: Deadline) -> Membership {
    Membership {
        rank,
        generation,
        deadline,
        ..Membership::default()
    }
}

fn prepared(plan: &Plan) -> (Segment, ShmControl) {
    let segment = Segment::create(ShmCollective::bytes_needed(plan)).unwrap();
    let control = ShmControl::new(&segment, plan, 1).unwrap();
    (segment, control)
}

#[test]
fn the_coordinator_can_call_off_a_step_and_say_who_died() {
    let plan = plan(2);
    let (segment, control) = prepared(&plan);
    let mut rank = ShmCollective::join(&segment, plan, &member(0, 1, PATIENCE)).unwrap();
    control.lost(1);
    let error = rank.barrier().unwrap_err();
    assert!(
        matches!(error, GangError::PeerLost { rank: 1, .. }),
        "{error}"
    );
    control.abort();
    assert!(matches!(rank.barrier(), Err(GangError::Aborted)));
}

#[test]
fn a_rank_that_waits_shows_that_it_lives() {
    let plan = plan(2);
    let (segment, control) = prepared(&plan);
    let deadline = Deadline(Duration::from_millis(50));
    let mut rank = ShmCollective::join(&segment, plan, &member(0, 1, deadline)).unwrap();
    let before = control.heartbeat(0);
    rank.barrier().unwrap_err();
    assert!(control.heartbeat(0) > before);
    assert_eq!(control.heartbeat(1), 0);
}

#[test]
fn a_worker_of_a_generation_that_was_replaced_can_write_nothing() {
    let plan = plan(2);
    let (segment, control) = prepared(&plan);
    let mut old: Vec<_> = (0..2)
        .map(|rank| {
            ShmCollective::join(&segment, plan.clone(), &member(rank, 1, PATIENCE)).unwrap()
        })
        .collect();
    control.lost(1);
    ShmControl::new(&segment, &plan, 2).unwrap();
    let (own, other) = match plan.owner(0) {
        0 => (0, (0..plan.chunks()).find(|c| plan.owner(*c) == 1).unwrap()),
        _ => ((0..plan.chunks()).find(|c| plan.owner(*c) == 0).unwrap(), 0),
    };
    let replaced = |result| {
        assert!(matches!(
            result,
            Err(GangError::Replaced {
                mine: 1,
                current: 2
            })
        ))
    };
    replaced(old[0].post(other));
    replaced(old[0].cast(1));
    replaced(old[0].barrier());
    let values = vec![0.0; plan.chunk(own).len()];
    replaced(old[0].publish(own, &values));
    replaced(ShmCollective::join(&segment, plan.clone(), &member(0, 1, PATIENCE)).map(drop));
    replaced(ShmControl::new(&segment, &plan, 1).map(drop));
    drop(old);

    // The new generation is disturbed neither by old stamps, nor by the old abort, nor by departures.
    let expected = reference(7, 5, plan.lanes(), plan.len());
    let gang = (0..2)
        .map(|rank| {
            let joined =
                ShmCollective::join(&segment, plan.clone(), &member(rank, 2, PATIENCE)).unwrap();
            Box::new(joined) as Box<dyn SharingCollective>
        })
        .collect();
    let ends = all_ranks(gang, |mut rank| train(rank.as_mut(), 7, 5).unwrap());
    assert!(ends.iter().all(|end| *end == expected));
}

#[test]
fn a_later_generation_may_have_fewer_workers() {
    let workers = [4, 3, 2];
    let plans = workers.map(|workers| plan(4).for_workers(workers).unwrap());
    let bytes = plans.iter().map(ShmCollective::bytes_needed).max().unwrap();
    let segment = Segment::create(bytes).unwrap();
    let expected = reference(7, 5, 4, plans[0].len());
    for (generation, plan) in (1..).zip(&plans) {
        ShmControl::new(&segment, plan, generation).unwrap();
        let join = |rank| {
            let joined =
                ShmCollective::join(&segment, plan.clone(), &member(rank, generation, PATIENCE));
            Box::new(joined.unwrap()) as Box<dyn SharingCollective>
        };
        let gang = (0..plan.workers()).map(join).collect();
        let ends = all_ranks(gang, |mut rank| {
            // Numbers where others have stamps.
            let mut all = vec![0.0; 300 * plan.workers()];
            rank.all_gather(&[f64::MAX; 300], &mut all).unwrap();
            train(rank.as_mut(), 7, 5).unwrap()
        });
        assert!(ends.iter().all(|end| *end == expected), "{plan:?}");
    }
}

#[test]
fn a_segment_that_is_too_small_or_for_another_plan_is_refused() {
    let plan = plan(2);
    let small = Segment::create(100).unwrap();
    assert!(matches!(
        ShmControl::new(&small, &plan, 1),
        Err(GangError::Mismatch { .. })
    ));
    let segment = Segment::create(ShmCollective::bytes_needed(&plan)).unwrap();
    let unprepared = ShmCollective::join(&segment, plan.clone(), &member(0, 1, PATIENCE));
    assert!(matches!(unprepared, Err(GangError::Mismatch { .. })));
    ShmControl::new(&segment, &plan, 1).unwrap();
    let other = Plan::new(chunks(&[10, 10]), 4, 2).unwrap();
    let error = ShmCollective::join(&segment, other, &member(0, 1, PATIENCE))
        .unwrap_err()
        .to_string();
    assert!(error.contains("plan"), "{error}");
}

/// This very binary, as a worker process with the segment.
fn start(segment: &Segment, plan: &Plan, rank: usize, steps: u64) -> Child {
    let mut command = lockstep_testkit::child!(a_worker_process);
    let number = segment.give_to(&mut command).unwrap();
    command
        .env(
            "GANG_WORKER",
            format!("{number} {} {rank} {steps}", plan.workers()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the processes of the tests below do.
#[test]
fn a_worker_process() {
    let Ok(what) = std::env::var("GANG_WORKER") else {
        return;
    };
    let numbers: Vec<u64> = what
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let &[number, workers, rank, steps] = numbers.as_slice() else {
        panic!("{what}")
    };
    let segment = Segment::inherited(number as i32).unwrap();
    let plan = plan(workers as usize);
    let mut gang =
        ShmCollective::join(&segment, plan, &member(rank as usize, 1, PATIENCE)).unwrap();
    match train(&mut gang, 11, steps) {
        Ok(bits) => eprintln!("bits {bits:?}"),
        Err(error) => eprintln!("error {error}"),
    }
}

fn last_words(mut child: Child) -> String {
    let mut words = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut words)
        .unwrap();
    child.wait().unwrap();
    words
}

#[test]
fn processes_exchange_as_threads_do() {
    let plan = plan(3);
    let (segment, _control) = prepared(&plan);
    let expected = format!("bits {:?}", reference(11, 50, plan.lanes(), plan.len()));
    let children: Vec<_> = (0..3)
        .map(|rank| start(&segment, &plan, rank, 50))
        .collect();
    for child in children {
        assert_eq!(last_words(child).trim(), expected);
    }
}

#[test]
fn a_killed_process_is_reported_to_the_others_by_the_coordinator() {
    let plan = plan(2);
    let (segment, control) = prepared(&plan);
    let mut children: Vec<_> = (0..2)
        .map(|rank| start(&segment, &plan, rank, u64::MAX >> 20))
        .collect();
    let begin = Instant::now();
    while control.heartbeat(0) < 100 || control.heartbeat(1) < 100 {
        assert!(begin.elapsed() < 4 * PATIENCE.0, "the workers do not work");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut killed = children.pop().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    control.lost(1);
    let words = last_words(children.pop().unwrap());
    assert!(words.contains("error rank 1 was lost"), "{words}");
}
