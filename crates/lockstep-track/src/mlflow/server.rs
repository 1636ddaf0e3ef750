//! MLflow's REST calls, as this crate needs them.

use super::settings::MlflowSettings;
use crate::SinkError;
use crate::http::Http;
use lockstep_place::http::{Method, Reply, StatusCode, encode_part, header};
use serde_json::{Value, json};
use std::time::Duration;

/// How long an answer to something small may take.
const SOON: Duration = Duration::from_secs(30);
/// How long a file may take.
const LONG: Duration = Duration::from_secs(600);
/// Where the calls are.
const API: &str = "/api/2.0/mlflow/";

/// Asks a server for something small: whether it is there, and lets us in.
///
/// # Errors
/// When it does not answer, or refuses.
pub fn reach(settings: &MlflowSettings) -> Result<(), SinkError> {
    let query = [("max_results", "1")];
    let server = Server::new(settings)?;
    server.get("list experiments", "experiments/search", &query)?;
    Ok(())
}

/// An MLflow server.
pub(super) struct Server {
    http: Http,
    base: String,
}

impl Server {
    pub(super) fn new(settings: &MlflowSettings) -> Result<Self, SinkError> {
        Ok(Self {
            http: Http::new(&settings.server, settings.credentials.clone())?,
            base: settings.server.clone(),
        })
    }

    /// The id of the store of runs that a server of Lockstep shows; nothing of any other server.
    pub(super) fn store_id(&self) -> Result<Option<String>, SinkError> {
        let url = format!("{}/api/version", self.base);
        let request = self.http.request(Method::GET, url);
        let reply = self.http.send("look for a server", request, SOON)?;
        let said: Option<Value> = reply.json().ok();
        let id = said.and_then(|said| said["lockstep_store_id"].as_str().map(str::to_owned));
        Ok(id.filter(|_| reply.status.is_success()))
    }

    fn call(
        &self,
        doing: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, SinkError> {
        let url = format!("{}{API}{path}", self.base);
        let request = self.http.request(method, url);
        let request = match body {
            Some(json) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(json.to_string()),
            None => request,
        };
        self.http.send(doing, request, SOON)
    }

    fn understand(&self, doing: &str, reply: &Reply) -> Result<Value, SinkError> {
        if !reply.status.is_success() {
            return Err(self.http.refused(doing, reply));
        }
        reply.json().map_err(|_| self.http.refused(doing, reply))
    }

    /// A call that only asks.
    pub(super) fn get(
        &self,
        doing: &str,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Value, SinkError> {
        let reply = self.call(doing, Method::GET, &with_query(path, query), None)?;
        self.understand(doing, &reply)
    }

    /// A call that changes something.
    pub(super) fn post(&self, doing: &str, path: &str, body: &Value) -> Result<Value, SinkError> {
        let reply = self.call(doing, Method::POST, path, Some(body))?;
        self.understand(doing, &reply)
    }

    /// The same, where it is as good that it was there already.
    pub(super) fn post_once(&self, doing: &str, path: &str, body: &Value) -> Result<(), SinkError> {
        let reply = self.call(doing, Method::POST, path, Some(body))?;
        match is_code(&reply, "RESOURCE_ALREADY_EXISTS") {
            true => Ok(()),
            false => self.understand(doing, &reply).map(drop),
        }
    }

    /// The same, where what it is about may be missing: then nothing.
    pub(super) fn post_if_there(
        &self,
        doing: &str,
        path: &str,
        body: &Value,
    ) -> Result<Option<Value>, SinkError> {
        let reply = self.call(doing, Method::POST, path, Some(body))?;
        match is_code(&reply, "RESOURCE_DOES_NOT_EXIST") {
            true => Ok(None),
            false => self.understand(doing, &reply).map(Some),
        }
    }

    /// The experiment of this name, which is made if need be.
    pub(super) fn experiment(&self, name: &str) -> Result<String, SinkError> {
        let doing = "find the experiment";
        // Two who make it at once: one of them is told that it is there, and finds it.
        for _ in 0..3 {
            let path = with_query("experiments/get-by-name", &[("experiment_name", name)]);
            let reply = self.call(doing, Method::GET, &path, None)?;
            if reply.status != StatusCode::NOT_FOUND || !is_code(&reply, "RESOURCE_DOES_NOT_EXIST")
            {
                let found = self.understand(doing, &reply)?;
                let experiment = &found["experiment"];
                if experiment["lifecycle_stage"] == "deleted" {
                    return Err(SinkError::Failed(format!(
                        "the experiment {name:?} is deleted in {}; restore it, or choose another with track.experiment",
                        self.base
                    )));
                }
                return text(&experiment["experiment_id"], doing);
            }
            let made = self.call(
                "make the experiment",
                Method::POST,
                "experiments/create",
                Some(&json!({ "name": name })),
            )?;
            if !is_code(&made, "RESOURCE_ALREADY_EXISTS") {
                let made = self.understand("make the experiment", &made)?;
                return text(&made["experiment_id"], doing);
            }
        }
        Err(SinkError::Failed(format!(
            "the experiment {name:?} comes and goes"
        )))
    }

    /// A change of something that is there.
    pub(super) fn patch(&self, doing: &str, path: &str, body: &Value) -> Result<Value, SinkError> {
        let reply = self.call(doing, Method::PATCH, path, Some(body))?;
        self.understand(doing, &reply)
    }

    /// Sends files through the server, to where it keeps artifacts, some at a time.
    pub(super) fn put_artifacts(
        &self,
        folder: &str,
        files: Vec<(String, Vec<u8>)>,
    ) -> Result<(), SinkError> {
        let doing = "send a file";
        let request = |(name, bytes): (String, Vec<u8>)| {
            let path = format!("{folder}/{name}");
            let encoded: Vec<String> = path.split('/').map(encode_part).collect();
            let path = encoded.join("/");
            let url = format!("{}/api/2.0/mlflow-artifacts/artifacts/{path}", self.base);
            self.http
                .request(Method::PUT, url)
                .header(header::CONTENT_TYPE, "application/octet-stream")
                .body(bytes)
        };
        let requests = files.into_iter().map(request);
        let replies = self.http.send_all(doing, requests, LONG)?;
        match replies.iter().find(|reply| !reply.status.is_success()) {
            None => Ok(()),
            Some(reply) => Err(self.http.refused(doing, reply)),
        }
    }
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    format!("{path}?{}", pairs.extend_pairs(query).finish())
}

/// A text that an answer must have.
pub(super) fn text(value: &Value, doing: &str) -> Result<String, SinkError> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(SinkError::Failed(format!(
            "MLflow's answer is not what it should be, when asked to {doing}"
        ))),
    }
}

fn is_code(reply: &Reply, code: &str) -> bool {
    let body: Option<Value> = reply.json().ok();
    body.is_some_and(|body| body["error_code"] == code)
}
