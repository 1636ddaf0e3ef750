//! A server of a tracker: asked within its time, and away when it does not answer or cannot.

use crate::SinkError;
use futures_util::{StreamExt, TryStreamExt};
use lockstep_job::without_secrets;
use lockstep_place::http::{
    Client, HttpError, Method, Reply, RequestBuilder, Roots, Settings, StatusCode, with_login,
};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection is kept for the next request. Servers close idle ones after some seconds (MLflow's after
/// five), and one that is closed while it is used again looks like a server that is away.
const IDLE: Duration = Duration::from_secs(1);
/// Requests that are on their way at a time, of those that do not need each other.
const AT_ONCE: usize = 6;
/// How much of an answer is read.
const MOST: usize = 64 << 20;

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

/// A client of one server.
pub(crate) struct Http {
    client: Client,
    credentials: Credentials,
    /// Where the server is, without secrets: for words.
    address: String,
}

impl Http {
    pub(crate) fn new(address: &str, credentials: Credentials) -> Result<Self, SinkError> {
        let path = credentials.certificates.clone().unwrap_or_default();
        let unusable = |why: String| SinkError::Failed(format!("{}: {why}", path.display()));
        let roots = match &credentials.certificates {
            Some(path) => match std::fs::read(path) {
                Ok(pem) => Roots::Beside(pem),
                Err(error) => return Err(unusable(error.to_string())),
            },
            None => Roots::System,
        };
        let settings = Settings {
            connect: CONNECT,
            idle: Some(IDLE),
            roots,
            insecure: credentials.insecure,
            most: MOST,
            ..Settings::default()
        };
        let client = Client::new(settings).map_err(|error| match error {
            HttpError::Roots(why) => unusable(why),
            error => SinkError::Failed(format!("cannot use the network: {error}")),
        })?;
        Ok(Self {
            client,
            credentials,
            address: without_secrets(address).into_owned(),
        })
    }

    /// A request with who we are.
    pub(crate) fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        let Credentials { token, user, .. } = &self.credentials;
        let request = self.client.request(method, url);
        with_login(request, token.as_deref(), user.as_ref())
    }

    /// Sends a request and reads the answer, whatever its status. A server that is busy or broken counts as away.
    pub(crate) fn send(
        &self,
        doing: &str,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Reply, SinkError> {
        self.client.block(self.exchange(doing, request, limit))
    }

    /// The same with several, some at a time. The answers come in the order of the requests.
    pub(crate) fn send_all(
        &self,
        doing: &str,
        requests: impl Iterator<Item = RequestBuilder>,
        limit: Duration,
    ) -> Result<Vec<Reply>, SinkError> {
        let answers = requests.map(|request| self.exchange(doing, request, limit));
        let answers = futures_util::stream::iter(answers).buffered(AT_ONCE);
        self.client.block(answers.try_collect())
    }

    async fn exchange(
        &self,
        doing: &str,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Reply, SinkError> {
        let away = |cause: String| SinkError::Away {
            doing: doing.to_owned(),
            address: self.address.clone(),
            cause,
        };
        let reply = match self.client.exchange(request, limit).await {
            Ok(reply) => reply,
            // It would be as long when it is asked for again.
            Err(error @ HttpError::TooLong(_)) => {
                let address = &self.address;
                return Err(SinkError::Failed(format!(
                    "the answer of {address}: {error}"
                )));
            }
            Err(error) => return Err(away(error.to_string())),
        };
        if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
            let (status, said) = (reply.status, reply.said());
            return Err(away(format!("it answers {status}: {said}")));
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
