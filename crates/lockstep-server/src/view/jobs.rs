//! Jobs and their logs, as pages show them.

use super::live::whole_letters;
use super::{blocking, now};
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::{Path, Query, State};
use lockstep_queue::{JobStatus, JobView, Needs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// So many jobs are sent if nobody says how many, and the most at once.
const LIMITS: (usize, usize) = (100, 1000);
/// How much of a log is sent at once at the most. In JSON each byte may become six.
const PIECE: usize = 256 << 10;
/// Jobs that failed within this many seconds are counted as of late.
const OF_LATE: f64 = 86_400.0;

/// What is asked of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobListQuery {
    /// `PENDING`, `RUNNING`, …; any if it is empty.
    status: String,
    /// Words that must be in the command, the id, the user or the metadata.
    text: String,
    offset: usize,
    limit: Option<usize>,
}

/// How many jobs there are of each kind.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Counts {
    pending: usize,
    running: usize,
    stopped: usize,
    succeeded: usize,
    failed: usize,
    /// Failed within the last day.
    failed_of_late: usize,
}

/// A job as lists have it.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    id: String,
    number: u64,
    user: String,
    status: JobStatus,
    message: String,
    entrypoint: String,
    submitted_ms: u64,
    started_ms: Option<u64>,
    ended_ms: Option<u64>,
    exit_code: Option<i32>,
    attempt: u32,
    attempts: u32,
    priority: i64,
    needs: Needs,
    gpus: Vec<u32>,
    after: Vec<String>,
    stopping: bool,
    position: Option<usize>,
    metadata: BTreeMap<String, String>,
}

/// A part of the list, the newest first.
#[derive(Debug, Serialize)]
pub(super) struct List {
    counts: Counts,
    /// How many the words and the status choose.
    chosen: usize,
    offset: usize,
    jobs: Vec<Row>,
}

/// A job in full.
#[derive(Debug, Serialize)]
pub(super) struct Details {
    #[serde(flatten)]
    row: Row,
    error_type: Option<String>,
    /// Its package and modules; of its variables only the names, since values may be secrets.
    runtime_env: BTreeMap<String, Value>,
    pid: Option<u32>,
    /// Where its log begins and ends, in bytes.
    log: (u64, u64),
    /// The runs that its command made.
    runs: Vec<String>,
}

/// What is asked of a log.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedLog {
    /// Where it begins, in bytes; the end of the log if nothing is said.
    pub(super) from: Option<u64>,
    /// Where it ends.
    pub(super) to: Option<u64>,
    /// How many bytes at most.
    pub(super) most: Option<usize>,
}

/// A part of a log.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    /// Where it begins and ends, in bytes.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Where the log begins and ends.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) text: String,
}

impl Counts {
    pub(super) fn of(jobs: &[JobView], now: f64) -> Counts {
        let mut counts = Counts::default();
        for job in jobs {
            let count = match job.status {
                JobStatus::Pending => &mut counts.pending,
                JobStatus::Running => &mut counts.running,
                JobStatus::Stopped => &mut counts.stopped,
                JobStatus::Succeeded => &mut counts.succeeded,
                JobStatus::Failed => &mut counts.failed,
                JobStatus::Unknown => continue,
            };
            *count += 1;
            let ended = job.ended_ms.map_or(0.0, |ms| ms as f64 / 1000.0);
            if job.status == JobStatus::Failed && now - ended < OF_LATE {
                counts.failed_of_late += 1;
            }
        }
        counts
    }
}

impl Row {
    pub(super) fn new(job: JobView) -> Row {
        Row {
            id: job.id,
            number: job.number,
            user: job.user,
            status: job.status,
            message: job.message,
            entrypoint: job.entrypoint,
            submitted_ms: job.submitted_ms,
            started_ms: job.started_ms,
            ended_ms: job.ended_ms,
            exit_code: job.exit_code,
            attempt: job.attempt,
            attempts: job.attempts,
            priority: job.priority,
            needs: job.needs,
            gpus: job.gpus,
            after: job.after,
            stopping: job.stopping,
            position: job.position,
            metadata: job.metadata,
        }
    }
}

impl JobListQuery {
    fn holds(&self, job: &JobView) -> bool {
        if !self.status.is_empty() && job.status.in_capitals() != self.status {
            return false;
        }
        let mut words = self.text.split_whitespace().map(str::to_lowercase);
        words.all(|word| {
            let has = |text: &str| text.to_lowercase().contains(&word);
            has(&job.entrypoint)
                || has(&job.id)
                || has(&job.user)
                || job.metadata.values().any(|value| has(value))
        })
    }
}

pub(super) async fn list(
    State(server): State<Server>,
    Query(asked): Query<JobListQuery>,
) -> Result<Json<List>, Refusal> {
    blocking(move || {
        let mut jobs = server.queue().list();
        let counts = Counts::of(&jobs, now());
        jobs.retain(|job| asked.holds(job));
        jobs.reverse();
        let chosen = jobs.len();
        let limit = asked.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
        let page = jobs.into_iter().skip(asked.offset).take(limit);
        Ok(Json(List {
            counts,
            chosen,
            offset: asked.offset,
            jobs: page.map(Row::new).collect(),
        }))
    })
    .await
}

pub(super) async fn show(
    State(server): State<Server>,
    Path(id): Path<String>,
) -> Result<Json<Details>, Refusal> {
    blocking(move || {
        let job = server.queue().get(&id).ok_or_else(|| no_job(&id))?;
        let log = server.queue().log(&id).map_err(Refusal::internal)?;
        let runs = server
            .view()
            .store
            .read(|index| index.submitted_by(&job.id))?;
        Ok(Json(Details {
            error_type: job.error_type.clone(),
            runtime_env: without_secrets(&job.runtime_env),
            pid: job.pid,
            log: log.bounds().map_err(Refusal::internal)?,
            runs,
            row: Row::new(job),
        }))
    })
    .await
}

pub(super) async fn log(
    State(server): State<Server>,
    Path(id): Path<String>,
    Query(asked): Query<AskedLog>,
) -> Result<Json<Part>, Refusal> {
    blocking(move || {
        let log = server.queue().log(&id).map_err(|_| no_job(&id))?;
        let (begin, end) = log.bounds().map_err(Refusal::internal)?;
        let read = |from: u64, most: usize| log.read(from, most).map_err(Refusal::internal);
        part(&asked, (begin, end), read).map(Json)
    })
    .await
}

/// The part of a log that is asked for. `read` gives what there is at a place, and where that begins.
pub(super) fn part(
    asked: &AskedLog,
    (begin, end): (u64, u64),
    read: impl Fn(u64, usize) -> Result<(u64, Vec<u8>), Refusal>,
) -> Result<Part, Refusal> {
    let most = asked.most.unwrap_or(PIECE).min(PIECE) as u64;
    let to = asked.to.unwrap_or(end).min(end);
    let from = asked.from.unwrap_or(to.saturating_sub(most)).max(begin);
    let to = to.min(from.saturating_add(most));
    let (mut first, mut at) = (from, from);
    let mut bytes: Vec<u8> = Vec::new();
    while at < to {
        let (found, more) = read(at, (to - at) as usize)?;
        if more.is_empty() {
            break;
        }
        if found != at {
            // What was between was dropped meanwhile.
            bytes.clear();
            first = found;
        }
        at = found + more.len() as u64;
        bytes.extend(more);
    }
    let mut skipped = 0;
    if asked.from.is_none() && first > begin {
        // It begins with a whole line.
        let line = bytes.iter().position(|byte| *byte == b'\n');
        skipped = line.map_or(0, |line| line + 1);
    }
    let whole = skipped + whole_letters(&bytes[skipped..]);
    Ok(Part {
        from: first + skipped as u64,
        to: first + whole as u64,
        begin,
        end,
        text: String::from_utf8_lossy(&bytes[skipped..whole]).into_owned(),
    })
}

/// There is no such job.
pub(super) fn no_job(id: &str) -> Refusal {
    Refusal::missing(format!("there is no job {id:?}"))
}

fn without_secrets(found: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut shown = found.clone();
    if let Some(Value::Object(variables)) = shown.get_mut("env_vars") {
        for value in variables.values_mut() {
            *value = Value::String("…".to_owned());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(asked: &AskedLog, text: &[u8]) -> Part {
        let read = |from: u64, most: usize| {
            let rest = &text[from as usize..];
            // Pieces are small.
            Ok((from, rest[..most.min(rest.len()).min(3)].to_vec()))
        };
        part(asked, (0, text.len() as u64), read).unwrap()
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line_and_what_is_before_it_fits() {
        let text = "first\nsecond é\nthird".as_bytes();
        let all = ask(&AskedLog::default(), text);
        assert_eq!((all.from, all.to), (0, text.len() as u64));
        let end = AskedLog {
            most: Some(9),
            ..AskedLog::default()
        };
        let end = ask(&end, text);
        assert_eq!(end.text, "third");
        let before = AskedLog {
            from: Some(0),
            to: Some(end.from),
            most: None,
        };
        assert_eq!(ask(&before, text).text, "first\nsecond é\n");
        let cut = AskedLog {
            from: Some(6),
            to: Some(14),
            most: None,
        };
        assert_eq!(ask(&cut, text).text, "second ");
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        let found = BTreeMap::from([(
            "env_vars".to_owned(),
            serde_json::json!({"TOKEN": "hunter2"}),
        )]);
        let shown = serde_json::to_string(&without_secrets(&found)).unwrap();
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
