//! Hosts are killed and started again, stand still and go on, and lose their workers, by turns and at random: the weights are
//! those of one machine.

use crate::Dice;
use crate::common::pods::{Gang, job};
use crate::common::{Running, send};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long hosts are left alone after they are all there again.
const PEACE: Duration = Duration::from_millis(700);
/// How long a host stands still: shorter than it would take to be missed, or longer.
const STANDSTILLS: [Duration; 2] = [Duration::from_millis(800), Duration::from_secs(9)];

/// What was done to a run.
#[derive(Debug, Default)]
struct Harm {
    hosts: usize,
    workers: usize,
    coordinators: usize,
    standstills: usize,
    /// How often the gang went on with another worker in the place of one.
    restarts: usize,
}

/// Disturbs a run of three hosts, one loss after the other, as often as is asked for, and lets it end. Returns its weights and
/// what was done.
fn disturb(gang: &mut Gang, losses: usize, dice: &mut Dice) -> (String, Harm) {
    let mut harm = Harm::default();
    let mut run = gang.start();
    let mut pids = BTreeMap::new();
    for loss in 0..losses {
        harm.restarts += until_in_peace(&mut run, &mut pids);
        let victim = 1 + dice.below(2) as usize;
        match loss % 4 {
            0 => {
                gang.replace(victim);
                harm.hosts += 1;
            }
            1 => {
                let rank = dice.below(3);
                send(pids[&rank], Signal::KILL);
                harm.workers += 1;
            }
            2 => {
                let long = STANDSTILLS[dice.below(2) as usize];
                gang.signal(victim, Signal::STOP);
                std::thread::sleep(long);
                gang.signal(victim, Signal::CONT);
                harm.standstills += 1;
            }
            _ => {
                run.signal(Signal::KILL);
                assert_eq!(run.finish().0, None);
                run = gang.coordinate();
                harm.coordinators += 1;
            }
        }
    }
    harm.restarts += until_in_peace(&mut run, &mut pids);
    let result = gang.succeed(run);
    (result["weights_sha256"].as_str().unwrap().to_owned(), harm)
}

/// Hears a run until its workers have trained for a while. Says how often the gang began again.
fn until_in_peace(run: &mut Running, pids: &mut BTreeMap<u64, i32>) -> usize {
    let (mut since, mut restarts) = (Instant::now(), 0);
    loop {
        let event = run.next().expect("a run that goes on");
        match event["event"].as_str().unwrap() {
            "worker" => {
                let pid = event["pid"].as_i64().unwrap();
                pids.insert(event["rank"].as_u64().unwrap(), pid as i32);
                since = Instant::now();
            }
            "restart" => {
                restarts += 1;
                since = Instant::now();
            }
            "started" => since = Instant::now(),
            "progress" | "epoch" if since.elapsed() > PEACE => return restarts,
            _ => {}
        }
    }
}

/// So many losses in a run of so many epochs, which are more than it does meanwhile.
fn soak(losses: usize, epochs: usize) {
    let epochs = format!("epochs = {epochs}");
    let keys = "[checkpoint]\nevery = \"40 steps\"\n[recover]\nmax_restarts = 1000\n";
    let mut gang = Gang::slow(&(job().replace("epochs = 16", &epochs) + keys));
    let undisturbed = gang.place.weights(&[]);
    let began = Instant::now();
    let (weights, harm) = disturb(&mut gang, losses, &mut Dice::new());
    eprintln!("{harm:?} in {:?}", began.elapsed());
    assert_eq!(weights, undisturbed);
    // A worker and a host that are killed are always missed.
    assert!(harm.restarts >= harm.hosts + harm.workers, "{harm:?}");
}

#[test]
#[ignore = "takes minutes: make soak"]
fn losses_of_hosts_workers_and_coordinators_change_nothing() {
    soak(40, 500);
}
