//! Notices: a webhook and a command are told, and neither holds up a run.

use super::{job, only_run, warnings};
use crate::common::Place;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A server that takes what is posted to it, and answers, or not.
fn receiver(answers: bool) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if !answers {
                open.push(stream);
                continue;
            }
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let (mut path, mut length) = (String::new(), 0);
                    if reader.read_line(&mut path).unwrap_or(0) == 0 {
                        return;
                    }
                    loop {
                        let mut line = String::new();
                        reader.read_line(&mut line).unwrap();
                        if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
                            length = number.trim().parse().unwrap();
                        }
                        if line.trim().is_empty() {
                            break;
                        }
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    let body = serde_json::from_slice(&body).unwrap();
                    sender.send((path, body)).unwrap();
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (address, received)
}

#[test]
fn a_webhook_hears_of_a_recovery_a_line_that_is_crossed_and_the_end() {
    let place = Place::new();
    let (address, received) = receiver(true);
    let sections =
        "[notify]\nwebhook = \"env:HOOK\"\nwhen = [\"val.accuracy > 0\", \"val.loss > 1e9\"]\n";
    place.write_job(&job(300, sections));
    let mut command = place.command(&["run", "job.toml", "--json"]);
    command.env("HOOK", format!("{address}/services/hunter2"));
    let mut running = crate::common::Running::new(command);
    let worker = running.wait_for_worker(1);
    running.wait_for("epoch");
    crate::common::send(worker, Signal::KILL);
    let (code, result, stderr) = running.finish();
    assert_eq!(code, Some(0), "{stderr}");
    let notices: Vec<(String, Value)> = received.try_iter().collect();
    let occasions: Vec<&str> = notices
        .iter()
        .map(|(_, notice)| notice["occasion"].as_str().unwrap())
        .collect();
    assert_eq!(occasions.last(), Some(&"success"), "{notices:?}");
    assert!(occasions.contains(&"recovery"), "{notices:?}");
    assert_eq!(
        occasions.iter().filter(|what| **what == "metric").count(),
        1
    );
    assert!(
        notices[0].0.starts_with("POST /services/hunter2 "),
        "{}",
        notices[0].0
    );
    let last = &notices.last().unwrap().1;
    assert_eq!(last["run"], result["run"]);
    assert!(last["text"].as_str().unwrap().contains("succeeded"));
    let folder = only_run(&place);
    for file in ["job.toml", "events.jsonl", "origin.json"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(!text.contains("hunter2"), "{file}");
    }
}

#[test]
fn a_command_gets_the_notice_on_its_input_and_in_its_environment() {
    let place = Place::new();
    let sections = "[notify]\ncommand = [\"sh\", \"-c\", \"cat > told.json; echo $LOCKSTEP_OCCASION > told\"]\n";
    place.write_job(&job(1, sections));
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(place.path("told")).unwrap(), "success\n");
    let told: Value = serde_json::from_slice(&fs::read(place.path("told.json")).unwrap()).unwrap();
    assert_eq!(told["run"], ran.result()["run"]);
    // A run that never began is told of too.
    let job = job(1, sections).replace("\"train-images\"", "\"missing\"");
    place.write_job(&job);
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(place.path("told")).unwrap(), "failure\n");
    assert_eq!(place.runs().len(), 1, "and leaves nothing");
}

#[test]
fn neither_a_webhook_nor_a_command_that_hangs_holds_up_a_run() {
    for command in [false, true] {
        let place = Place::new();
        let (address, _received) = receiver(false);
        let what = match command {
            true => "command = [\"sh\", \"-c\", \"sleep 1000\"]".to_owned(),
            false => format!("webhook = \"{address}/secret\""),
        };
        let sections = format!("[notify]\n{what}\ntimeout_s = 1\n");
        place.write_job(&job(1, &sections));
        let began = Instant::now();
        let ran = place.run(&["run", "job.toml", "--json"]);
        assert!(began.elapsed() < crate::common::LIMIT);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let warnings = warnings(&ran);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("notices: "), "{warnings:?}");
        assert!(!warnings[0].contains("/secret"), "{warnings:?}");
        place.assert_no_process_is_left();
    }
}
