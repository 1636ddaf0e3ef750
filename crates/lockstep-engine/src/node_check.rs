//! Whether every node of a cluster sees what a run needs, found out before anything is trained.
//!
//! A path means something on each machine, but not the same. So the coordinator writes a file into the run's folder,
//! and one process on each node reads it, lists it, writes one of its own, and looks whether the files of the job are
//! there. What the nodes wrote the coordinator reads again. What only some of them see is named with its key.

use crate::worker::WorkerError;
use crate::{EngineError, describe};
use lockstep_job::{LocalInput, Storage};
use lockstep_launch::{
    LaunchNotice, Launcher, Notify, WorkerEnd, WorkerEvent, WorkerId, WorkerSpec,
};
use lockstep_place::{Access, Place, PlaceError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The folder of what is written meanwhile.
const FOLDER: &str = "node-check";
/// What the coordinator writes.
const COORDINATOR: &str = "coordinator";

/// What a node is to look at.
#[derive(Debug, Serialize, Deserialize)]
struct Questions {
    /// The key that the folder follows from.
    key: String,
    /// The folder that all write to.
    place: String,
    access: Access,
    /// The file that this node writes, and what all files hold.
    file: String,
    content: String,
    /// What the job reads, each with its key.
    paths: Vec<(String, PathBuf)>,
}

/// What a node found, in one line.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    problem: Option<String>,
}

/// Has every node look at `place`, which follows from the key, and at what the job reads. Nothing is done where all
/// workers are on this machine.
pub(crate) fn check_nodes(
    launcher: &mut dyn Launcher,
    (inputs, storage): (&[LocalInput], &Storage),
    (key, place): (&str, &Place),
    deadline: Duration,
) -> Result<(), EngineError> {
    // One seat for each node.
    let mut nodes: BTreeMap<usize, String> = BTreeMap::new();
    for (seat, node) in launcher.nodes() {
        if !nodes.values().any(|known| *known == node) {
            nodes.insert(seat, node);
        }
    }
    if nodes.is_empty() {
        return Ok(());
    }
    let folder = place.join(FOLDER).map_err(unusable(key))?;
    let checked = ask_all(
        launcher,
        (inputs, storage),
        (key, &folder),
        &nodes,
        deadline,
    );
    launcher.end_all();
    let cleared = folder.delete_all();
    checked?;
    cleared.map_err(unusable(key))
}

fn ask_all(
    launcher: &mut dyn Launcher,
    (inputs, storage): (&[LocalInput], &Storage),
    (key, folder): (&str, &Place),
    nodes: &BTreeMap<usize, String>,
    deadline: Duration,
) -> Result<(), EngineError> {
    let content = format!("{} {}", std::process::id(), folder);
    folder.make_folder().map_err(unusable(key))?;
    let own = folder.join(COORDINATOR).map_err(unusable(key))?;
    own.write(content.as_bytes()).map_err(unusable(key))?;
    let (sender, notices) = channel();
    let sender = std::sync::Mutex::new(sender);
    let notify: Notify = Arc::new(move |notice| {
        sender
            .lock()
            .is_ok_and(|sender| sender.send(notice).is_ok())
    });
    let file = |seat: usize| format!("node-{seat}");
    let inputs = inputs.iter();
    let inputs: Vec<_> = inputs
        .map(|input| (input.key.to_owned(), input.path.clone()))
        .collect();
    for &seat in nodes.keys() {
        let questions = Questions {
            key: key.to_owned(),
            place: folder.to_string(),
            access: lockstep_resolve::access(storage).map_err(unusable(key))?,
            file: file(seat),
            content: content.clone(),
            paths: inputs.clone(),
        };
        let invitation = serde_json::to_string(&questions).map_err(EngineError::unspeakable)?;
        let spec = WorkerSpec {
            // Those that train are counted from 1.
            id: WorkerId {
                seat,
                incarnation: 0,
            },
            command: lockstep_launch::NODE_CHECK,
            invitation,
            speaks: true,
            memory: None,
        };
        launcher.start(&spec, notify.clone())?;
    }
    let mut waiting = nodes.keys().copied().collect();
    hear_all(&notices, deadline, nodes, &mut waiting)?;
    for (&seat, node) in nodes {
        let written = folder.join(&file(seat)).and_then(|file| file.read());
        if written.ok().as_deref() != Some(content.as_bytes()) {
            let what = format!("{key}: what {node} wrote there is not seen here");
            return Err(EngineError::NotShared(what));
        }
    }
    Ok(())
}

/// Hears the answers of all seats that are waited for.
fn hear_all(
    notices: &Receiver<LaunchNotice>,
    deadline: Duration,
    nodes: &BTreeMap<usize, String>,
    waiting: &mut Vec<usize>,
) -> Result<(), EngineError> {
    let until = Instant::now() + deadline;
    let (mut last, mut end) = (String::new(), WorkerEnd::Unknown);
    while let Some(&first) = waiting.first() {
        let left = until.saturating_duration_since(Instant::now());
        let silent = || {
            let node = &nodes[&first];
            let seconds = deadline.as_secs_f64();
            EngineError::NotShared(format!(
                "node {node} did not say within {seconds} s (gang.start_deadline_s) whether it sees the run's folder"
            ))
        };
        let notice = notices.recv_timeout(left).map_err(|_| silent())?;
        let seat = notice.id.seat;
        match notice.what {
            WorkerEvent::Said(line) => {
                let Ok(answer) = serde_json::from_str::<Answer>(&line) else {
                    last = line;
                    continue;
                };
                if let Some(problem) = answer.problem {
                    let node = &nodes[&seat];
                    return Err(EngineError::NotShared(format!("on node {node}: {problem}")));
                }
                waiting.retain(|waits| *waits != seat);
            }
            WorkerEvent::Wrote(line) => last = line,
            WorkerEvent::Leaving(_) => {}
            WorkerEvent::Ended(how) => end = how,
            WorkerEvent::OutputEnded if waiting.contains(&seat) => {
                let node = &nodes[&seat];
                let what =
                    format!("cannot look at node {node}: {end}; the last it wrote was: {last}");
                return Err(EngineError::NotShared(what));
            }
            WorkerEvent::OutputEnded | WorkerEvent::Started(_) => {}
        }
    }
    Ok(())
}

/// The node's side: answers what it is asked through standard input, in one line.
///
/// # Errors
/// When it is asked nothing.
pub fn answer() -> Result<(), WorkerError> {
    crate::parent::die_with_parent().map_err(crate::worker::system("die with the parent"))?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(crate::worker::system("read what to do"))?;
    let questions: Questions = serde_json::from_str(&line)
        .map_err(|_| WorkerError::Uninvited("something else".to_owned()))?;
    let answer = Answer {
        problem: look(&questions).err(),
    };
    let text = serde_json::to_string(&answer).expect("an answer is plain data");
    writeln!(io::stdout().lock(), "{text}").map_err(crate::worker::system("answer"))
}

/// What is wrong here.
fn look(questions: &Questions) -> Result<(), String> {
    let Questions { key, content, .. } = questions;
    for (key, path) in &questions.paths {
        if let Err(error) = std::fs::metadata(path) {
            return Err(format!(
                "{key}: {}: {error}; every node must have it under the same path, or it must be in a bucket",
                path.display()
            ));
        }
    }
    let told = |error: PlaceError| format!("{key}: {}", describe(&error));
    let place = Place::parse(&questions.place, &questions.access).map_err(told)?;
    let other = place.join(COORDINATOR).map_err(told)?;
    let shared = "it must be a folder that all nodes share, or a bucket";
    match other.entry().map_err(told)? {
        Some(_) if other.read().map_err(told)? == content.as_bytes() => {}
        _ => {
            return Err(format!(
                "{key}: what the coordinator wrote to {place} is not there; {shared}"
            ));
        }
    }
    let own = place.join(&questions.file).map_err(told)?;
    own.write(content.as_bytes()).map_err(told)?;
    if own.read().map_err(told)? != content.as_bytes() {
        return Err(format!("{key}: what was written to {own} reads otherwise"));
    }
    let listed = place.list().map_err(told)?;
    let names = |name: &str| listed.iter().any(|entry| entry.path == name);
    match names(COORDINATOR) && names(&questions.file) {
        true => Ok(()),
        false => Err(format!(
            "{key}: {place} does not list what was written there; {shared}"
        )),
    }
}

fn unusable(key: &str) -> impl FnOnce(PlaceError) -> EngineError {
    let key = key.to_owned();
    move |error| EngineError::NotShared(format!("{key}: {}", describe(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(folder: &std::path::Path) -> Questions {
        Questions {
            key: "run.store".to_owned(),
            place: folder.to_string_lossy().into_owned(),
            access: Access::default(),
            file: "node-1".to_owned(),
            content: "content".to_owned(),
            paths: Vec::new(),
        }
    }

    #[test]
    fn a_folder_that_others_do_not_see_is_named_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let problem = look(&questions(folder.path())).unwrap_err();
        assert!(
            problem.contains("run.store: what the coordinator wrote"),
            "{problem}"
        );
        std::fs::write(folder.path().join(COORDINATOR), "content").unwrap();
        look(&questions(folder.path())).unwrap();
    }

    #[test]
    fn data_that_a_node_lacks_is_named_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let mut questions = questions(folder.path());
        questions.paths = vec![("data.train".to_owned(), folder.path().join("gone.csv"))];
        let problem = look(&questions).unwrap_err();
        assert!(
            problem.starts_with("data.train: ") && problem.contains("gone.csv"),
            "{problem}"
        );
    }
}
