//! Links between processes: workers that are lost while they connect to each other, and strangers who
//! connect to a run.
#![cfg(all(debug_assertions, target_os = "linux"))]

use crate::common::{JOB, Place};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};

/// A job of three workers over TCP that waits two seconds for a silent one.
fn place() -> Place {
    let place = Place::new();
    let job = JOB.replace("workers = 2\nlanes = 2", "workers = 3\nlanes = 3");
    place.write_job(&(job + "[gang]\ntransport = \"tcp\"\ndeadline_s = 2\n"));
    place
}

/// Trains with a failpoint and returns all events.
fn train(place: &Place, failpoint: &str) -> Vec<Value> {
    let mut command = place.command(&["run", "job.toml", "--json"]);
    let output = command.env("LOCKSTEP_FAILPOINTS", failpoint).output();
    let output = output.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{failpoint}: {stderr}\n{stdout}"
    );
    place.assert_no_process_is_left();
    let lines = stdout.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn is(event: &Value, name: &str) -> bool {
    event["event"] == name
}

#[test]
fn a_worker_that_is_lost_while_the_mesh_forms_is_named_and_replaced() {
    let place = place();
    let undisturbed = place.weights(&[]);
    for point in ["mesh.begin", "mesh.dialed", "mesh.formed"] {
        for rank in 0..3 {
            // Rank 0 is connected to, and connects to nobody.
            if point == "mesh.dialed" && rank == 0 {
                continue;
            }
            // One that stands still is waited for: one rank at each point is enough.
            let actions: &[&str] = match rank {
                1 => &["kill", "stop"],
                _ => &["kill"],
            };
            for action in actions {
                let failpoint = format!("{point}@rank{rank}@gen1={action}@1");
                let events = train(&place, &failpoint);
                let result = events.last().unwrap();
                assert_eq!(result["weights_sha256"], undisturbed, "{failpoint}");
                assert_eq!(result["restarts"], 1, "{failpoint}");
                let restart = events.iter().find(|event| is(event, "restart")).unwrap();
                let reason = restart["reason"].as_str().unwrap();
                let named = reason.starts_with(&format!("worker {rank} "));
                assert!(named, "{failpoint}: {reason}");
            }
        }
    }
}

/// The ports that a process listens on.
fn ports(pid: u32) -> Vec<u16> {
    let inodes: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?;
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let sockets = table.lines().skip(1).map(|line| line.split_whitespace());
    sockets
        .filter_map(|columns| {
            let columns: Vec<&str> = columns.collect();
            let listens = columns[3] == "0A" && inodes.contains(columns[9]);
            let port = columns[1].split_once(':')?.1;
            listens.then(|| u16::from_str_radix(port, 16).unwrap())
        })
        .collect()
}

#[test]
fn a_stranger_who_connects_to_a_run_is_named_and_the_run_goes_on() {
    let place = place();
    let epochs = ["--epochs", "12"];
    let undisturbed = place.weights(&epochs);
    let command = place.command(&[&["run", "job.toml", "--json"], &epochs[..]].concat());
    let mut run = place.start_slow(command, "step.begin=sleep:10");
    let mut strangers = Vec::new();
    let mut warned = 0;
    while let Some(event) = run.next() {
        if is(&event, "first_step") {
            for port in ports(run.pid()) {
                let mut stranger = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                stranger.write_all(&[0x5a; 64]).unwrap();
                strangers.push(stranger);
            }
        }
        let from = strangers
            .first()
            .map(|s| s.local_addr().unwrap().to_string());
        let words = event["message"].as_str().unwrap_or_default();
        if is(&event, "warning") && from.is_some_and(|from| words.contains(&from)) {
            assert!(words.contains("refused a connection"), "{words}");
            warned += 1;
            place.wake();
        }
        if is(&event, "result") {
            break;
        }
    }
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!((strangers.len(), warned), (1, 1));
}
