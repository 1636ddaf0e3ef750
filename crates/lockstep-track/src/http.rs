//! One request to a server: sent, answered within its time, and told in words when it fails.

use crate::SinkError;
use futures_util::{StreamExt, TryStreamExt};
use lockstep_job::without_secrets;
use reqwest::{Client, Method, StatusCode};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection is kept for the next request. Servers close idle ones after some seconds (MLflow's after
/// five), and one that is closed while it is used again looks like a server that is away.
const IDLE: Duration = Duration::from_secs(1);
/// Requests that are on their way at a time, of those that do not need each other.
const AT_ONCE: usize = 6;
/// How much of an answer is read.
const MOST: usize = 64 << 20;
/// How much of a server's words is told.
const TOLD: usize = 300;

/// Who we are to a server, and whom we trust. Shown without secrets.
#[derive(Clone, Default)]
pub struct Credentials {
    /// A token that is sent with every request.
    pub token: Option<String>,
    /// A user with a password, where there is no token.
    pub user: Option<(String, String)>,
    /// Whether the server's certificate is not looked at.
    pub insecure: bool,
    /// A file of certificates that are trusted beside those of the system.
    pub certificates: Option<PathBuf>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match (&self.token, &self.user) {
            (Some(_), _) => "a token",
            (None, Some(_)) => "a user with a password",
            (None, None) => "nobody",
        };
        write!(f, "Credentials({who})")
    }
}

/// What a request carries.
pub(crate) enum Body {
    Nothing,
    Json(Vec<u8>),
    Bytes(Vec<u8>),
}

/// Something that is asked of a server.
pub(crate) struct Request<'a> {
    /// What it is for, in words.
    pub(crate) doing: &'a str,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) body: Body,
    /// How long the answer may take.
    pub(crate) limit: Duration,
}

/// What a server answered.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

/// A client of one server.
pub(crate) struct Http {
    client: Client,
    runtime: Runtime,
    credentials: Credentials,
    /// Where the server is, without secrets: for words.
    address: String,
}

impl Http {
    pub(crate) fn new(address: &str, credentials: Credentials) -> Result<Self, SinkError> {
        // An error says that the process has chosen a provider before, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let setup = |what: String| SinkError::Failed(format!("cannot use the network: {what}"));
        let mut builder = Client::builder()
            .user_agent(concat!("lockstep/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true);
        if let Some(path) = &credentials.certificates {
            let unusable = |why: String| SinkError::Failed(format!("{}: {why}", path.display()));
            let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|error| unusable(root_cause(&error)))?;
            builder = builder.tls_certs_merge(certificates);
        }
        if credentials.insecure {
            builder = builder.danger_accept_invalid_certs(true);
        }
        Ok(Self {
            client: builder.build().map_err(|error| setup(root_cause(&error)))?,
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| setup(error.to_string()))?,
            credentials,
            address: without_secrets(address).into_owned(),
        })
    }

    /// Sends a request and reads the answer, whatever its status. A server that is busy or broken counts as away.
    pub(crate) fn send(&self, request: Request<'_>) -> Result<Reply, SinkError> {
        self.runtime.block_on(self.exchange(request))
    }

    /// The same with several, some at a time. The answers come in the order of the requests.
    pub(crate) fn send_all(&self, requests: Vec<Request<'_>>) -> Result<Vec<Reply>, SinkError> {
        let answers = requests.into_iter().map(|request| self.exchange(request));
        let answers = futures_util::stream::iter(answers).buffered(AT_ONCE);
        self.runtime.block_on(answers.try_collect())
    }

    async fn exchange(&self, request: Request<'_>) -> Result<Reply, SinkError> {
        let Request {
            doing,
            method,
            url,
            body,
            limit,
        } = request;
        let mut request = self.client.request(method, url);
        request = match (&self.credentials.token, &self.credentials.user) {
            (Some(token), _) => request.bearer_auth(token),
            (None, Some((user, password))) => request.basic_auth(user, Some(password)),
            (None, None) => request,
        };
        request = match body {
            Body::Nothing => request,
            Body::Json(json) => request
                .header("content-type", "application/json")
                .body(json),
            Body::Bytes(bytes) => request
                .header("content-type", "application/octet-stream")
                .body(bytes),
        };
        let away = |cause: String| SinkError::Away {
            doing: doing.to_owned(),
            address: self.address.clone(),
            cause,
        };
        let read = async {
            let mut answer = request.send().await?;
            let status = answer.status();
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await? {
                body.extend_from_slice(&piece);
                if body.len() > MOST {
                    break;
                }
            }
            Ok::<_, reqwest::Error>(Reply { status, body })
        };
        let reply = match tokio::time::timeout(limit, read).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return Err(away(root_cause(&error))),
            Err(_) => {
                return Err(away(format!(
                    "no answer within {:.0} s",
                    limit.as_secs_f64()
                )));
            }
        };
        if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(away(format!(
                "it answers {}: {}",
                reply.status,
                reply.said()
            )));
        }
        Ok(reply)
    }

    /// What it means that this is not the answer that was hoped for.
    pub(crate) fn refused(&self, doing: &str, reply: &Reply) -> SinkError {
        SinkError::Refused {
            doing: doing.to_owned(),
            address: self.address.clone(),
            status: reply.status.as_u16(),
            said: reply.said(),
        }
    }
}

impl Reply {
    /// What the server said, in short and without control characters.
    pub(crate) fn said(&self) -> String {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let message = json.as_ref().and_then(|json| json["message"].as_str());
        let text = String::from_utf8_lossy(&self.body);
        let told = message.unwrap_or(&text).trim();
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        match told.is_empty() {
            true => "nothing".to_owned(),
            false => told.chars().take(TOLD).map(plain).collect(),
        }
    }
}

/// The innermost reason, which is the one that people know: `Connection refused`.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
