//! The log of a job as it grows, whatever happens to connections and pods.
//!
//! Every line comes with the time at which it was written. A connection that is made again asks for what was written
//! since the last line, and passes over what was heard. A pod that was replaced is followed by the one that came in its
//! place. The end of a connection says nothing of the job: the job itself is asked.

use crate::kube::client::Client;
use crate::kube::job::{JobName, JobState};
use crate::kube::manifest::ManifestKind;
use crate::kube::request::About;
use crate::kube::{KubeError, first_reason};
use crate::log::{LogEvent, Retry};
use lockstep_place::http::{Method, Response, root_cause};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Pauses between two attempts, the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// After so long without a word of the log, the job is asked whether it still runs.
const QUIET: Duration = Duration::from_secs(10);

/// The log of a job, from its beginning.
pub struct Tail<'c> {
    client: &'c Client,
    job: JobName,
    retry: Retry,
    /// The pod that is heard, and the moment up to which it was.
    pod: Option<Place>,
    stream: Option<Response>,
    /// The beginning of a line.
    rest: Vec<u8>,
    stirred: Instant,
    ended: Option<Box<JobState>>,
}

/// A place in the log of a pod.
struct Place {
    pod: String,
    uid: String,
    /// When the last line was written, and how many lines of that moment were heard.
    at: Option<(String, usize)>,
    /// Lines of that moment that are to be passed over on this connection.
    skip: usize,
    /// Whether its log was read to the end after it had ended.
    done: bool,
}

impl<'c> Tail<'c> {
    pub(crate) fn new(client: &'c Client, job: JobName, patience: Duration) -> Self {
        Self {
            client,
            job,
            retry: Retry::new(patience, PAUSES),
            pod: None,
            stream: None,
            rest: Vec::new(),
            stirred: Instant::now(),
            ended: None,
        }
    }

    /// Waits for more of the log, about as long as `wait`.
    ///
    /// # Errors
    /// When there is no such job, when the server does not let us in any more, and when it could not be reached for
    /// longer than the patience.
    pub fn next(&mut self, wait: Duration) -> Result<LogEvent<JobState>, KubeError> {
        if let Some(state) = &self.ended {
            return Ok(LogEvent::Ended(state.clone()));
        }
        if self.stream.is_some() {
            return self.receive(wait);
        }
        if !self.retry.is_due(wait) {
            return Ok(LogEvent::Nothing);
        }
        match self.connect() {
            Ok(true) => Ok(LogEvent::Nothing),
            Ok(false) => self.idle(),
            Err(error) => self.lost(error),
        }
    }

    /// Why the job does not run yet.
    pub fn why_not_yet(&self) -> Option<String> {
        let (kind, namespace, name) = self.job.parts();
        let job = self.client.get(kind, namespace, name).ok()?;
        let pods = self.client.pods(namespace, name).ok()?;
        let events = self.client.events(namespace, name);
        first_reason(&job, &pods, &events)
    }

    /// Opens the log of the pod that is to be heard. Says whether there is one.
    fn connect(&mut self) -> Result<bool, KubeError> {
        let pods = self.client.pods(&self.job.namespace, &self.job.name)?;
        let Some(newest) = teller(self.job.kind, &pods) else {
            return Ok(false);
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let uid = text(&newest["metadata"]["uid"]);
        let known = self.pod.as_ref().is_some_and(|place| place.uid == uid);
        if known && self.pod.as_ref().is_some_and(|place| place.done) {
            return Ok(false);
        }
        if text(&newest["status"]["phase"]) == "Pending" {
            return Ok(false);
        }
        if !known {
            self.pod = Some(Place {
                pod: text(&newest["metadata"]["name"]),
                uid,
                at: None,
                skip: 0,
                done: false,
            });
            self.rest.clear();
        }
        let Some(place) = &mut self.pod else {
            return Ok(false);
        };
        let container = container(self.job.kind);
        let mut path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={container}&follow=true&timestamps=true",
            self.job.namespace, place.pod
        );
        if let Some((at, heard)) = &place.at {
            // The server takes whole seconds.
            let second = at.split(['.', 'Z', '+']).next().unwrap_or_default();
            path += &format!("&sinceTime={second}Z");
            place.skip = *heard;
        }
        let about = About::new("get", "pods/log", &self.job.name, &self.job.namespace);
        let answer = self.client.open(about, Method::GET, &path, &|r| r)?;
        if answer.status().is_success() {
            self.rest.clear();
            self.stream = Some(answer);
            self.retry.back();
            self.stirred = Instant::now();
            return Ok(true);
        }
        match self.client.read(about, answer) {
            // The container has not begun, or the pod has just gone.
            Err(KubeError::Invalid { .. } | KubeError::NoSuchJob { .. }) => Ok(false),
            Err(error) => Err(error),
            Ok(_) => Ok(false),
        }
    }

    fn receive(&mut self, wait: Duration) -> Result<LogEvent<JobState>, KubeError> {
        let Some(stream) = &mut self.stream else {
            return Ok(LogEvent::Nothing);
        };
        match self
            .client
            .block(async { timeout(wait, stream.chunk()).await })
        {
            Err(_) if self.stirred.elapsed() < QUIET => Ok(LogEvent::Nothing),
            Err(_) => {
                self.stirred = Instant::now();
                // The end should have come through here: something between us may have swallowed it.
                let state = self.client.state(&self.job);
                if state.is_ok_and(|state| state.ended.is_some()) {
                    self.stream = None;
                }
                Ok(LogEvent::Nothing)
            }
            Ok(Ok(Some(piece))) => {
                self.stirred = Instant::now();
                Ok(match self.heard(&piece) {
                    text if text.is_empty() => LogEvent::Nothing,
                    text => LogEvent::Text(text),
                })
            }
            Ok(Ok(None)) => {
                self.stream = None;
                self.is_done()
            }
            Ok(Err(error)) => {
                self.stream = None;
                self.lost(KubeError::Broken {
                    doing: "follow the log".to_owned(),
                    server: self.client.server().to_owned(),
                    cause: root_cause(&error),
                })
            }
        }
    }

    /// A log's connection was closed in good order: it is the log's end if its pod has ended.
    fn is_done(&mut self) -> Result<LogEvent<JobState>, KubeError> {
        let pods = match self.client.pods(&self.job.namespace, &self.job.name) {
            Ok(pods) => pods,
            Err(error) => return self.lost(error),
        };
        if let Some(place) = &mut self.pod {
            let pod = pods
                .iter()
                .find(|pod| pod["metadata"]["uid"] == place.uid.as_str());
            let phase = pod.and_then(|pod| pod["status"]["phase"].as_str());
            place.done = matches!(phase, None | Some("Succeeded" | "Failed"));
        }
        Ok(LogEvent::Nothing)
    }

    /// There is nothing to hear now: the job has ended, or its pod is still to come.
    fn idle(&mut self) -> Result<LogEvent<JobState>, KubeError> {
        match self.client.state(&self.job) {
            Ok(state) if state.ended.is_some() => {
                self.ended = Some(Box::new(state.clone()));
                return Ok(LogEvent::Ended(Box::new(state)));
            }
            Ok(_) => self.retry.lost = None,
            Err(error) => return self.lost(error),
        }
        // Pods come and go within seconds: a longer pause would only be seen as one.
        self.retry.put_off_at_most(PAUSES.1 / 6);
        Ok(LogEvent::Nothing)
    }

    fn lost(&mut self, error: KubeError) -> Result<LogEvent<JobState>, KubeError> {
        if !error.is_passing() {
            return Err(error);
        }
        if let Some(for_) = self.retry.out_of_patience() {
            return Err(KubeError::Lost {
                name: self.job.name.clone(),
                for_,
                cause: error.to_string(),
            });
        }
        self.retry.put_off();
        Ok(LogEvent::Lost(error.to_string()))
    }

    /// What of a piece of the log is new.
    fn heard(&mut self, piece: &[u8]) -> String {
        self.rest.extend_from_slice(piece);
        let mut new = String::new();
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return new;
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let whole = String::from_utf8_lossy(&whole);
        let Some(place) = &mut self.pod else {
            return new;
        };
        for line in whole.lines() {
            let (at, words) = line.split_once(' ').unwrap_or((line, ""));
            if place.is_new(at) {
                new.push_str(words);
                new.push('\n');
            }
        }
        new
    }
}

impl Place {
    /// Whether a line that was written at `at` was not heard before.
    fn is_new(&mut self, at: &str) -> bool {
        match &mut self.at {
            Some((last, heard)) if last == at => {
                if self.skip > 0 {
                    self.skip -= 1;
                    return false;
                }
                *heard += 1;
                true
            }
            Some((last, _)) if moment(at) < moment(last) => false,
            _ => {
                self.at = Some((at.to_owned(), 1));
                self.skip = 0;
                true
            }
        }
    }
}

/// A moment, so that moments can be compared: fractions of a second are written without zeros at their end.
fn moment(at: &str) -> (&str, String) {
    let (second, fraction) = at.trim_end_matches('Z').split_once('.').unwrap_or((at, ""));
    (second.trim_end_matches('Z'), format!("{fraction:0<9}"))
}

/// The container of that pod which tells it.
pub(crate) fn container(kind: ManifestKind) -> &'static str {
    match kind {
        ManifestKind::Job => "lockstep",
        _ => "ray-job-submitter",
    }
}

/// The pod whose log tells of the run: that of index 0, or the one that brings the job to Ray; the newest of them.
pub(crate) fn teller(kind: ManifestKind, pods: &[Value]) -> Option<&Value> {
    let tells = |pod: &&Value| {
        let labels = &pod["metadata"]["labels"];
        match kind {
            ManifestKind::Job => labels["batch.kubernetes.io/job-completion-index"] == "0",
            _ => {
                labels["batch.kubernetes.io/job-name"].is_string() || labels["job-name"].is_string()
            }
        }
    };
    let age = |pod: &&Value| {
        let meta = &pod["metadata"];
        let going = meta["deletionTimestamp"].is_string();
        (
            !going,
            meta["creationTimestamp"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    pods.iter().filter(tells).max_by_key(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_heard_are_passed_over_after_a_connection_was_made_again() {
        let mut place = Place {
            pod: String::new(),
            uid: String::new(),
            at: None,
            skip: 0,
            done: false,
        };
        assert!(place.is_new("2026-01-01T00:00:01.5Z"));
        assert!(place.is_new("2026-01-01T00:00:01.75Z"));
        assert!(place.is_new("2026-01-01T00:00:01.75Z"));
        // Asked for again from the second on.
        place.skip = place.at.as_ref().unwrap().1;
        assert!(!place.is_new("2026-01-01T00:00:01.5Z"));
        assert!(!place.is_new("2026-01-01T00:00:01.75Z"));
        assert!(!place.is_new("2026-01-01T00:00:01.75Z"));
        assert!(place.is_new("2026-01-01T00:00:01.75Z"));
        assert!(place.is_new("2026-01-01T00:00:02Z"));
    }
}
