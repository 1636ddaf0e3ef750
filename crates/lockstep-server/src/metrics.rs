//! `/metrics`: what a monitor such as Prometheus reads, as OpenMetrics text.

use crate::endpoint::{Endpoint, TEXT};
use crate::{Refusal, Server, mlflow};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use lockstep_index::{Keys, State as RunState};
use lockstep_queue::JobStatus;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What the media type of OpenMetrics is called.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The system counts processor time in these parts of a second.
const TICKS: f64 = 100.0;

/// How the server has answered so far.
#[derive(Debug)]
pub(crate) struct Counters {
    began: Instant,
    /// Requests by the status of their answers.
    answered: Mutex<BTreeMap<u16, u64>>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            began: Instant::now(),
            answered: Mutex::default(),
        }
    }
}

impl Counters {
    /// Counts an answer.
    pub(crate) fn count(&self, status: StatusCode) {
        let mut answered = self
            .answered
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        *answered.entry(status.as_u16()).or_default() += 1;
    }
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/healthz", async || "ok\n", "Whether the server answers")
            .answer(TEXT)
            .open(),
        Endpoint::get("/metrics", show, "What a monitor reads, as OpenMetrics").answer(TEXT),
        Endpoint::get(
            "/api/openapi.json",
            async || Json(crate::openapi::document()),
            "This description",
        ),
    ]
}

async fn show(State(server): State<Server>) -> Result<Response, Refusal> {
    let text = tokio::task::spawn_blocking(move || text(&server)).await;
    let kind = [(header::CONTENT_TYPE, KIND)];
    Ok((kind, text.map_err(Refusal::internal)?).into_response())
}

/// One metric after the other.
struct Page(String);

impl Page {
    /// A metric: its kind, what it is, and its samples by their labels.
    fn add(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        let ending = if kind == "counter" { "_total" } else { "" };
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{ending}{labels} {value}");
        }
    }
}

fn text(server: &Server) -> String {
    let mut page = Page(String::new());
    let alone = |value: f64| [(String::new(), value)];
    let jobs = server.queue().list();
    let statuses = [
        JobStatus::Pending,
        JobStatus::Running,
        JobStatus::Stopped,
        JobStatus::Succeeded,
        JobStatus::Failed,
    ];
    let by_status = statuses.map(|status| {
        let count = jobs.iter().filter(|job| job.status == status).count();
        (format!("{{status=\"{status}\"}}"), count as f64)
    });
    page.add(
        "lockstep_jobs",
        "gauge",
        "Jobs that are remembered, by status.",
        by_status,
    );
    let running = || jobs.iter().filter(|job| job.status == JobStatus::Running);
    let machine = &server.queue().settings().machine;
    let cpus = [
        ("{of=\"all\"}".to_owned(), machine.cpus),
        (
            "{of=\"taken\"}".to_owned(),
            running().map(|job| job.needs.cpus()).sum(),
        ),
    ];
    page.add(
        "lockstep_job_cpus",
        "gauge",
        "Processors that jobs share, and what running jobs asked for.",
        cpus,
    );
    let memory = [
        ("{of=\"all\"}".to_owned(), machine.memory as f64),
        (
            "{of=\"taken\"}".to_owned(),
            running().map(|job| job.needs.memory as f64).sum(),
        ),
    ];
    page.add(
        "lockstep_job_memory_bytes",
        "gauge",
        "Memory that jobs share, and what running jobs asked for.",
        memory,
    );
    let gpus = [
        ("{of=\"all\"}".to_owned(), f64::from(machine.gpus)),
        (
            "{of=\"taken\"}".to_owned(),
            running().map(|job| job.needs.gpus).sum(),
        ),
    ];
    page.add(
        "lockstep_job_gpus",
        "gauge",
        "GPUs that jobs share, and what running jobs asked for.",
        gpus,
    );
    let runs = mlflow::ask(server, |index| {
        index.refresh_all()?;
        index.runs(&Keys::Some(Vec::new()))
    });
    // A store that is away for a moment has no numbers; all else has.
    if let Ok(runs) = runs {
        let by_state = RunState::ALL.map(|state| {
            let count = runs.iter().filter(|run| run.state == state).count();
            (format!("{{state=\"{state}\"}}"), count as f64)
        });
        page.add(
            "lockstep_runs",
            "gauge",
            "Runs of the store, by state.",
            by_state,
        );
    }
    let counters = server.counters();
    let answered = counters
        .answered
        .lock()
        .unwrap_or_else(|broken| broken.into_inner())
        .clone();
    let answered = answered
        .into_iter()
        .map(|(status, count)| (format!("{{code=\"{status}\"}}"), count as f64));
    page.add(
        "lockstep_http_requests",
        "counter",
        "Requests, by the status of the answer.",
        answered,
    );
    process(&mut page);
    page.add(
        "lockstep_build",
        "info",
        "The version of the server.",
        std::iter::empty(),
    );
    let _ = writeln!(
        page.0,
        "lockstep_build_info{{version=\"{}\"}} 1",
        env!("CARGO_PKG_VERSION")
    );
    let began = SystemTime::now() - counters.began.elapsed();
    let began = began
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    page.add(
        "process_start_time_seconds",
        "gauge",
        "When the server began, in seconds since 1970.",
        alone(began),
    );
    page.0 + &server.settings().models.metrics() + "# EOF\n"
}

/// What this process uses, as far as the system says it.
fn process(page: &mut Page) {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let status = read("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    if let Some(memory) = memory {
        let memory = [(String::new(), memory * 1024.0)];
        page.add(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the server itself.",
            memory,
        );
    }
    // The name of a process may have spaces and parentheses: what counts comes after the last one.
    let stat = read("stat");
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let numbers: Vec<&str> = rest.split_whitespace().collect();
    if let (Some(user), Some(system)) = (numbers.get(11), numbers.get(12)) {
        let ticks = user.parse::<f64>().unwrap_or(0.0) + system.parse::<f64>().unwrap_or(0.0);
        let seconds = [(String::new(), ticks / TICKS)];
        page.add(
            "process_cpu_seconds",
            "counter",
            "Processor time of the server itself.",
            seconds,
        );
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        let files = [(String::new(), files.count() as f64)];
        page.add(
            "process_open_fds",
            "gauge",
            "Open files of the server.",
            files,
        );
    }
}
