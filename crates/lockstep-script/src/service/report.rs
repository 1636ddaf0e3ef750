//! Reports of a script, and the checkpoints that come with them.
//!
//! A report without a checkpoint returns at once: the others are only told that this rank has none. A rank that has
//! one waits until every rank has come to the same report, so that all of them know who has files. The lowest of
//! these writes the files of all; those of other machines come through the run's store.

use super::{Refusal, Service, lock};
use crate::ScriptError;
use crate::checkpoints::{Files, Header, read_files};
use crate::order::{HandedOut, Position};
use lockstep_events::control::FromWorker;
use lockstep_events::event::Reported;
use lockstep_place::Place;
use lockstep_runs::{RunDir, RunsError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The folder of a run through which files of other machines come.
const INCOMING: &str = "incoming";

/// What a rank says of its report.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RankReport {
    /// The folder of its checkpoint.
    folder: Option<PathBuf>,
    /// What rank 0 reports.
    metrics: Map<String, Value>,
    /// How far each data set was handed out to it.
    handed: BTreeMap<String, Handed>,
}

/// How far a data set was handed out to one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Handed {
    /// What was handed out to all before this generation.
    pub(super) before: Position,
    /// Samples in its batches, and how many it has had.
    pub(super) batch: usize,
    pub(super) batches: u64,
}

impl Service<'_> {
    pub(super) fn report(
        &self,
        metrics: Map<String, Value>,
        checkpoint: Option<&Path>,
        patience: Duration,
    ) -> Result<Value, Refusal> {
        let number = self.reports.fetch_add(1, Ordering::SeqCst) + 1;
        let rank = self.placing.rank;
        if rank == 0 {
            let reported = Reported {
                report: number,
                metrics: metrics.clone(),
                checkpoint: checkpoint.is_some(),
                ..Reported::default()
            };
            let told = lock(&self.reporter).send(&FromWorker::Reported(reported));
            told.map_err(|error| Refusal::from(lockstep_learner::ShareError::from(error)))?;
        }
        let said = RankReport {
            folder: checkpoint.map(Path::to_owned),
            metrics: if rank == 0 { metrics } else { Map::new() },
            handed: lock(&self.shards).handed(),
        };
        let name = format!("report-{number}");
        let value = serde_json::to_value(said).expect("what is said is plain data");
        if checkpoint.is_none() {
            if self.placing.workers > 1 {
                self.gang
                    .tell_all(&name, value)
                    .map_err(lockstep_learner::ShareError::from)?;
            }
            return Ok(json!({ "number": number, "checkpoint": null }));
        }
        let all = self.share(&name, value, None, patience)?;
        let all: Vec<RankReport> = all
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()
            .map_err(|error| Refusal::new(error.to_string()))?;
        self.write(number, &all, patience)?;
        Ok(json!({ "number": number, "checkpoint": null }))
    }

    /// Gathers the files of all ranks at the one that writes, and begins to write them.
    fn write(&self, number: u64, all: &[RankReport], patience: Duration) -> Result<(), Refusal> {
        let rank = self.placing.rank;
        let with_files: Vec<usize> = (0..all.len())
            .filter(|rank| all[*rank].folder.is_some())
            .collect();
        let writer = with_files[0];
        let node = |rank: usize| &self.all[rank].node;
        let run = self.run()?;
        let incoming = run.file(INCOMING);
        let of = |rank: usize| format!("{number}-{rank}");
        let alone = with_files.len() == 1;
        if rank != writer && node(rank) != node(writer) {
            let files = read_files(all[rank].folder.as_deref().unwrap_or(Path::new("")))?;
            send(&incoming, &of(rank), &files).map_err(ScriptError::from)?;
        }
        let meet = |what: &str| {
            let name = format!("{what}-{number}");
            self.share(&name, Value::Null, Some(&with_files), patience)
        };
        if !alone {
            meet("sent")?;
        }
        let gathered = if rank == writer {
            let mut files = Files::new();
            // What a lower rank has under the same name counts.
            for &from in with_files.iter().rev() {
                let found = match (&all[from].folder, node(from) == node(writer)) {
                    (Some(folder), true) => read_files(folder)?,
                    _ => receive(&incoming, &of(from)).map_err(ScriptError::from)?,
                };
                files.extend(found);
            }
            Some(files)
        } else {
            None
        };
        if !alone {
            // Before that, nobody may remove the files.
            meet("read")?;
        }
        if let Some(files) = gathered {
            let header = Header {
                report: number,
                metrics: all[0].metrics.clone(),
                positions: positions(all),
                ..Header::default()
            };
            if let Some(words) = lock(&self.store).write(header, files)? {
                self.gang.warn(words);
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<RunDir, Refusal> {
        let place = Place::parse(&self.gang.assignment().run_dir, &self.part.access);
        let run = RunDir::open(&place.map_err(ScriptError::from)?);
        Ok(run.map_err(ScriptError::from)?)
    }
}

/// How far each data set was handed out to all ranks together.
fn positions(all: &[RankReport]) -> BTreeMap<String, Position> {
    let mut positions = BTreeMap::new();
    let names = all.iter().flat_map(|said| said.handed.keys());
    for name in names {
        let of = |said: &RankReport| said.handed.get(name).cloned();
        let handed: Vec<Option<Handed>> = all.iter().map(of).collect();
        let Some(least) = handed
            .iter()
            .flatten()
            .min_by_key(|handed| handed.before.epoch)
        else {
            continue;
        };
        let mut position = least.before.clone();
        // One that is an epoch ahead has had all of this one.
        let count = |handed: &Option<Handed>| match handed {
            Some(handed) if handed.before.epoch > position.epoch => u64::MAX,
            Some(handed) => handed.batches,
            None => 0,
        };
        let batches: Vec<u64> = handed.iter().map(count).collect();
        if batches.iter().any(|count| *count > 0) {
            position.parts.push(HandedOut {
                batch: least.batch,
                batches,
            });
        }
        positions.insert(name.clone(), position);
    }
    positions
}

/// Puts files where a writer on another machine finds them.
fn send(incoming: &Place, name: &str, files: &Files) -> Result<(), RunsError> {
    let folder = incoming.join(name)?;
    folder.make_folder()?;
    let mut names = BTreeMap::new();
    for (number, (name, bytes)) in files.iter().enumerate() {
        let part = format!("file-{number:04}");
        folder.join(&part)?.write(bytes)?;
        names.insert(name, part);
    }
    let text = serde_json::to_vec(&names).expect("names are plain data");
    Ok(folder.join("files.json")?.write(&text)?)
}

/// Takes them from there.
fn receive(incoming: &Place, name: &str) -> Result<Files, RunsError> {
    let folder = incoming.join(name)?;
    let names = folder.join("files.json")?.read()?;
    let names: BTreeMap<String, String> = serde_json::from_slice(&names).unwrap_or_default();
    let mut files = Files::new();
    for (name, part) in names {
        files.insert(name, folder.join(&part)?.read()?);
    }
    folder.delete_all()?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(epoch: u32, batches: u64) -> RankReport {
        let handed = Handed {
            before: Position {
                epoch,
                parts: Vec::new(),
            },
            batch: 4,
            batches,
        };
        RankReport {
            folder: None,
            metrics: Map::new(),
            handed: BTreeMap::from([("train".to_owned(), handed)]),
        }
    }

    #[test]
    fn the_position_is_that_of_all_ranks_together() {
        let position = &positions(&[said(2, 3), said(2, 4)])["train"];
        assert_eq!(position.epoch, 2);
        assert_eq!(position.parts[0].batches, [3, 4]);
        // One that begins the next epoch has had all of this one.
        let position = &positions(&[said(2, 9), said(3, 0)])["train"];
        assert_eq!(
            (position.epoch, position.parts[0].batches.clone()),
            (2, vec![9, u64::MAX])
        );
    }
}
