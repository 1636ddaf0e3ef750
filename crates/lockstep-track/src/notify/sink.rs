//! Delivers notices.

use super::notice::{Notice, Occasion, Writer};
use crate::bounded::{bad_end, run_bounded};
use crate::http::{Credentials, Http};
use crate::{Begun, Sink, SinkError};
use lockstep_events::Recorded;
use lockstep_job::Condition;
use lockstep_place::http::{Method, header};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How much of a command's output is read, and thrown away.
const OUTPUT: usize = 1 << 16;

/// Who is told, of what.
#[derive(Clone)]
pub struct NotifySettings {
    /// The job's name.
    pub job: String,
    /// The job file's folder, where the command starts.
    pub folder: PathBuf,
    /// The address that gets messages: a secret.
    pub webhook: Option<String>,
    /// The same, as it may be shown.
    pub shown: String,
    /// The command, with its arguments.
    pub command: Vec<String>,
    /// What is told of.
    pub on: Vec<Occasion>,
    /// Lines that metrics may cross.
    pub when: Vec<Condition>,
    /// How long one delivery may take.
    pub timeout: Duration,
}

impl fmt::Debug for NotifySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NotifySettings({}, {:?})", self.shown, self.command)
    }
}

/// The sink that delivers notices.
pub struct Notices {
    settings: NotifySettings,
    writer: Writer,
    http: Option<Http>,
}

impl Notices {
    /// For one run.
    pub fn new(settings: NotifySettings) -> Self {
        let writer = Writer::new(
            settings.job.clone(),
            settings.on.clone(),
            settings.when.clone(),
        );
        Self {
            settings,
            writer,
            http: None,
        }
    }

    fn hear(&mut self, event: &Recorded) -> Result<(), SinkError> {
        let mut first = Ok(());
        for notice in self.writer.hear(event) {
            first = first.and(self.deliver(&notice));
        }
        first
    }

    fn deliver(&mut self, notice: &Notice) -> Result<(), SinkError> {
        let text = serde_json::to_vec(notice).unwrap_or_default();
        let posted = self.post(&text);
        let started = self.start(notice, text);
        posted.and(started)
    }

    fn post(&mut self, text: &[u8]) -> Result<(), SinkError> {
        let Some(url) = &self.settings.webhook else {
            return Ok(());
        };
        let http = match self.http.take() {
            Some(http) => http,
            None => Http::new(&self.settings.shown, Credentials::default())?,
        };
        let http = self.http.insert(http);
        let doing = "send a notice";
        let request = http
            .request(Method::POST, url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(text.to_vec());
        let reply = http.send(doing, request, self.settings.timeout)?;
        match reply.status.is_success() {
            true => Ok(()),
            false => Err(http.refused(doing, &reply)),
        }
    }

    fn start(&self, notice: &Notice, text: Vec<u8>) -> Result<(), SinkError> {
        let [program, arguments @ ..] = self.settings.command.as_slice() else {
            return Ok(());
        };
        let occasion = serde_json::to_value(notice.occasion).unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.settings.folder)
            .env("LOCKSTEP_OCCASION", occasion.as_str().unwrap_or_default())
            .env("LOCKSTEP_TEXT", &notice.text)
            .env("LOCKSTEP_JOB", &notice.job)
            .env("LOCKSTEP_RUN", notice.run.as_deref().unwrap_or_default())
            .env(
                "LOCKSTEP_RUN_DIR",
                notice.run_dir.as_deref().unwrap_or_default(),
            );
        let deadline = Instant::now() + self.settings.timeout;
        let failed = |why: String| SinkError::Failed(format!("cannot run {program:?}: {why}"));
        let said = run_bounded(&mut command, text, OUTPUT, deadline);
        let said = said.map_err(|error| failed(error.to_string()))?;
        match bad_end(said.status) {
            None => Ok(()),
            Some(why) => Err(failed(why)),
        }
    }
}

impl Sink for Notices {
    fn name(&self) -> &str {
        "notices"
    }

    fn begin(&mut self, _begun: &Begun) -> Result<(), SinkError> {
        Ok(())
    }

    fn event(&mut self, event: &Recorded) -> Result<(), SinkError> {
        self.hear(event)
    }

    fn finish(&mut self, _deadline: Instant) -> Result<(), SinkError> {
        Ok(())
    }

    fn never_began(&mut self, last: &Recorded, _deadline: Instant) -> Result<(), SinkError> {
        self.hear(last)
    }
}
