//! A head that answers and accepts us, and what can be asked of it.

use crate::jobs::credentials::Token;
use crate::jobs::package::Package;
use crate::jobs::request::{LONG, SOON};
use crate::jobs::{Address, Credentials, JobInfo, JobsError, Submission, Tail};
use lockstep_place::http::{
    Method, Reply, RequestBuilder, Settings, StatusCode, encode_part, header,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A head that answers and accepts us.
pub struct Client {
    pub(crate) address: Address,
    pub(crate) http: lockstep_place::http::Client,
    /// Sent with every request, once the head has asked for it.
    token: Option<Token>,
    version: Version,
}

#[derive(Deserialize, Default)]
struct Version {
    ray_version: String,
    /// Of a server of ours, which is like Ray of that version.
    lockstep_version: Option<String>,
    lockstep_store: Option<String>,
}

#[derive(Deserialize)]
struct Submitted {
    submission_id: String,
}

#[derive(Deserialize)]
struct Stopped {
    stopped: bool,
}

#[derive(Deserialize)]
struct Logs {
    logs: String,
}

/// Finds the head that `to` or the environment means, with headers as a JSON object or those of the environment, and
/// whether it lets us in.
///
/// # Errors
/// When there is no such head, and when it does not let us in.
pub fn connect(to: Option<&str>, headers: Option<&str>) -> Result<Client, JobsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = Address::find(to, variable)?;
    let credentials = Credentials::find(headers, variable)?;
    Client::connect(address, credentials)
}

impl Client {
    /// Finds out whether a head answers at `address` and lets us in.
    ///
    /// # Errors
    /// When nothing answers, when it is no head, and when it wants a token that is not there or wrong.
    pub fn connect(address: Address, credentials: Credentials) -> Result<Client, JobsError> {
        let Credentials {
            headers,
            token,
            at_once,
        } = credentials;
        let (at_first, later) = match at_once {
            true => (token, None),
            false => (None, token),
        };
        let settings = Settings {
            headers,
            ..Settings::default()
        };
        let mut client = Client {
            http: lockstep_place::http::Client::new(settings)
                .map_err(|error| JobsError::Setup(error.to_string()))?,
            address,
            token: at_first,
            version: Version::default(),
        };
        let mut reply = client.ask_version()?;
        if reply.status == StatusCode::UNAUTHORIZED {
            client.token = later;
            if client.token.is_none() {
                return Err(client.kept_out(&reply));
            }
            reply = client.ask_version()?;
        }
        client.version = client.understand_version(&reply)?;
        Ok(client)
    }

    fn ask_version(&self) -> Result<Reply, JobsError> {
        self.send(
            SOON,
            "ask for the version",
            Method::GET,
            "/api/version",
            |r| r,
        )
    }

    fn understand_version(&self, reply: &Reply) -> Result<Version, JobsError> {
        let address = self.address.to_string();
        let nothing = |found: String| {
            Err(JobsError::NoJobsApi {
                address: address.clone(),
                found,
            })
        };
        if reply.status.is_redirection() {
            let to = reply.headers.get(header::LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            return nothing(format!("it leads on to {to}"));
        }
        if reply.status.is_server_error() {
            return Err(self.refused("ask for the version", reply));
        }
        if reply.status != StatusCode::OK {
            let status = reply.status.as_u16();
            return nothing(format!("GET /api/version is answered with {status}"));
        }
        let Ok(version) = reply.json::<Version>() else {
            return nothing("GET /api/version is answered, but not with Ray's version".to_owned());
        };
        let found = version.ray_version.clone();
        let major = found.split('.').next().unwrap_or_default();
        match major.parse::<u32>() {
            Ok(0 | 1) => Err(JobsError::TooOld { address, found }),
            Ok(_) => Ok(version),
            Err(_) => nothing(format!("{found:?} is not a version of Ray")),
        }
    }

    /// Where the head is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The version of Ray that the head runs.
    pub fn ray_version(&self) -> &str {
        &self.version.ray_version
    }

    /// The version of Lockstep that answers, if it is `lockstep serve` and no Ray head.
    pub fn lockstep_version(&self) -> Option<&str> {
        self.version.lockstep_version.as_deref()
    }

    /// The store of runs that a `lockstep serve` shows.
    pub fn lockstep_store(&self) -> Option<&str> {
        self.version.lockstep_store.as_deref()
    }

    /// Brings a package to the head, unless it has it. Returns its address for a [`Submission`].
    ///
    /// # Errors
    /// When it is over the limit, which is found before anything is sent, or cannot be read or sent.
    pub fn upload(&self, package: &Package) -> Result<String, JobsError> {
        let name = package.name()?;
        let path = format!("/api/packages/gcs/{name}");
        let uri = format!("gcs://{name}");
        let doing = "look for the package";
        let reply = self.send(SOON, doing, Method::GET, &path, |r| r)?;
        match reply.status {
            StatusCode::OK => return Ok(uri),
            StatusCode::NOT_FOUND => (),
            _ => return Err(self.refused(doing, &reply)),
        }
        let zip = bytes::Bytes::from(package.zip()?);
        let doing = "send the package";
        let reply = self.send(LONG, doing, Method::PUT, &path, |r| r.body(zip))?;
        match reply.status {
            StatusCode::OK => Ok(uri),
            StatusCode::PAYLOAD_TOO_LARGE => Err(JobsError::TooLarge {
                what: format!("the head refuses the package: {}", reply.said()),
            }),
            _ => Err(self.refused(doing, &reply)),
        }
    }

    /// Submits a job and returns its id.
    ///
    /// If the answer is lost, the head is asked whether it has the job: so a job is never submitted twice.
    ///
    /// # Errors
    /// When the head refuses it, as when there is a job of that id, or cannot be reached.
    pub fn submit(&self, submission: &Submission) -> Result<String, JobsError> {
        let doing = "submit the job";
        let body = serde_json::to_vec(submission).map_err(|error| JobsError::Answer {
            doing: doing.to_owned(),
            address: self.address.to_string(),
            why: error.to_string(),
        })?;
        let sent = self.send(SOON, doing, Method::POST, "/api/jobs/", |request| {
            request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body)
        });
        let id = &submission.submission_id;
        let reply = match sent {
            Ok(reply) => reply,
            Err(error @ JobsError::Broken { .. }) => {
                return match self.job(id) {
                    Ok(_) => Ok(id.clone()),
                    Err(_) => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        if reply.status != StatusCode::OK {
            let text = String::from_utf8_lossy(&reply.body);
            let said = match text.contains("already exists") {
                true => format!("there is a job `{id}` already; give it another name with --id"),
                false => reply.said(),
            };
            return Err(JobsError::Refused {
                doing: doing.to_owned(),
                address: self.address.to_string(),
                status: reply.status.as_u16(),
                said,
            });
        }
        let submitted: Submitted = self.json(doing, &reply)?;
        Ok(submitted.submission_id)
    }

    /// What the head knows of a job.
    ///
    /// # Errors
    /// When there is none, or the head cannot be reached.
    pub fn job(&self, id: &str) -> Result<JobInfo, JobsError> {
        let doing = "ask for the job";
        let reply = self.of_job(SOON, doing, Method::GET, id, "")?;
        self.json(doing, &reply)
    }

    /// All jobs, in the head's order.
    ///
    /// # Errors
    /// When the head cannot be reached.
    pub fn jobs(&self) -> Result<Vec<JobInfo>, JobsError> {
        let doing = "list the jobs";
        self.get_json(doing, "/api/jobs/")
    }

    /// Asks a job to stop. Whether there was anything to stop.
    ///
    /// # Errors
    /// When there is no such job, or the head cannot be reached.
    pub fn stop(&self, id: &str) -> Result<bool, JobsError> {
        let doing = "stop the job";
        let reply = self.of_job(SOON, doing, Method::POST, id, "/stop")?;
        Ok(self.json::<Stopped>(doing, &reply)?.stopped)
    }

    /// Removes a job that has ended from the head's memory, with its log.
    ///
    /// # Errors
    /// When there is no such job, when it has not ended, or when the head cannot be reached.
    pub fn delete(&self, id: &str) -> Result<(), JobsError> {
        self.of_job(SOON, "remove the job", Method::DELETE, id, "")?;
        Ok(())
    }

    /// A job's whole log as it is now.
    ///
    /// # Errors
    /// When there is no such job, or the head cannot be reached.
    pub fn logs(&self, id: &str) -> Result<String, JobsError> {
        self.logs_within(LONG, id)
    }

    /// A job's whole log, if it comes soon enough.
    pub(crate) fn logs_within(&self, limit: Duration, id: &str) -> Result<String, JobsError> {
        let doing = "read the log";
        let reply = self.of_job(limit, doing, Method::GET, id, "/logs")?;
        Ok(self.json::<Logs>(doing, &reply)?.logs)
    }

    /// A job's log from its beginning, as it grows. A connection that breaks is made again for as long as
    /// `patience`.
    pub fn tail(&self, id: &str, patience: Duration) -> Tail<'_> {
        Tail::new(self, id.to_owned(), patience)
    }

    /// Asks for JSON.
    pub(crate) fn get_json<T: DeserializeOwned>(
        &self,
        doing: &str,
        path: &str,
    ) -> Result<T, JobsError> {
        let reply = self.send(SOON, doing, Method::GET, path, |r| r)?;
        match reply.status {
            StatusCode::OK => self.json(doing, &reply),
            _ => Err(self.refused(doing, &reply)),
        }
    }

    /// Something about a job, which must be there.
    fn of_job(
        &self,
        limit: Duration,
        doing: &str,
        method: Method,
        id: &str,
        rest: &str,
    ) -> Result<Reply, JobsError> {
        let path = job_path(id, rest).ok_or_else(|| self.no_such_job(id))?;
        let reply = self.send(limit, doing, method, &path, |r| r)?;
        match reply.status {
            StatusCode::OK => Ok(reply),
            StatusCode::NOT_FOUND => Err(self.no_such_job(id)),
            _ => Err(self.refused(doing, &reply)),
        }
    }

    pub(crate) fn no_such_job(&self, id: &str) -> JobsError {
        JobsError::NoSuchJob {
            id: id.to_owned(),
            address: self.address.to_string(),
        }
    }

    fn send(
        &self,
        limit: Duration,
        doing: &str,
        method: Method,
        path: &str,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Reply, JobsError> {
        let request = with(self.request(method, path));
        let reply = self.http.send(request, limit);
        self.let_in(reply.map_err(|error| self.explain(doing, &error))?)
    }

    /// A request with the token, if the head has asked for one.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, self.address.at(path));
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, token.header.clone()),
            None => request,
        }
    }

    /// Passes an answer on, unless it says that we may not come in.
    fn let_in(&self, reply: Reply) -> Result<Reply, JobsError> {
        match (reply.status, &self.token) {
            // Before the token was tried, this is only a question for it.
            (StatusCode::UNAUTHORIZED, None) if self.version.ray_version.is_empty() => Ok(reply),
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => Err(self.kept_out(&reply)),
            _ => Ok(reply),
        }
    }

    /// Why we may not come in.
    fn kept_out(&self, reply: &Reply) -> JobsError {
        let address = self.address.to_string();
        match (&self.token, reply.status) {
            (None, StatusCode::UNAUTHORIZED) => JobsError::TokenMissing { address },
            (token, _) => JobsError::TokenWrong {
                address,
                from: token
                    .as_ref()
                    .map_or("the headers", |token| &token.from)
                    .to_owned(),
                said: reply.said(),
            },
        }
    }
}

/// The path of a job. An id is a name, never a path of its own: what would be one names no job.
pub(crate) fn job_path(id: &str, rest: &str) -> Option<String> {
    if matches!(id, "" | "." | "..") {
        return None;
    }
    Some(format!("/api/jobs/{}{rest}", encode_part(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_never_leads_out_of_its_place() {
        let path = |id| job_path(id, "/stop");
        assert_eq!(path("a-b_1.2").unwrap(), "/api/jobs/a-b_1.2/stop");
        assert_eq!(path("../x?y").unwrap(), "/api/jobs/..%2Fx%3Fy/stop");
        for id in ["", ".", ".."] {
            assert_eq!(path(id), None, "{id}");
        }
    }
}
