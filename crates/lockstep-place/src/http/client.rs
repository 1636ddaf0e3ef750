//! A client with a runtime of its own.

use super::{HttpError, Reply, root_cause, use_ring};
use http::{HeaderMap, Method};
use reqwest::{RequestBuilder, Response};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// After so long without a sign of life of the other side, a connection counts as broken.
const SILENCE: Duration = Duration::from_secs(15);

/// Who is trusted to be the server.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Whom this system trusts.
    #[default]
    System,
    /// Also the certificates of this PEM text.
    Beside(Vec<u8>),
    /// The certificates of this PEM text alone.
    Only(Vec<u8>),
}

/// What a client is like.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a connection may take to be there.
    pub connect: Duration,
    /// How long a connection is kept for the next request; without, each request has one of its own.
    pub idle: Option<Duration>,
    /// Sent with every request.
    pub headers: HeaderMap,
    /// Who is trusted to be the server.
    pub roots: Roots,
    /// Whether the server's certificate is not looked at.
    pub insecure: bool,
    /// Our own certificate with its key, as PEM text.
    pub identity: Option<Vec<u8>>,
    /// The way to all servers; without, what the environment says.
    pub proxy: Option<String>,
    /// How many bytes of an answer are read at most.
    pub most: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: None,
            headers: HeaderMap::new(),
            roots: Roots::System,
            insecure: false,
            identity: None,
            proxy: None,
            // More than any log that is worth reading at once.
            most: 512 << 20,
        }
    }
}

/// A client with a runtime of its own, whose connections notice that the other side is gone.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    most: usize,
    runtime: Runtime,
}

impl Client {
    /// Makes ready to ask. Nothing is sent yet.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn new(settings: Settings) -> Result<Self, HttpError> {
        let most = settings.most;
        let http = build(settings)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| HttpError::Setup(error.to_string()))?;
        Ok(Self {
            http,
            most,
            runtime,
        })
    }

    /// Asks with other settings from now on. Answers that are still being read are not disturbed.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub fn renew(&mut self, settings: Settings) -> Result<(), HttpError> {
        self.http = build(settings)?;
        Ok(())
    }

    /// A request that is still to be sent.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        self.http.request(method, url.as_ref())
    }

    /// Waits for `work`.
    pub fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Sends a request and waits for an answer, whatever its status. Its body is not read yet.
    ///
    /// # Errors
    /// When there is none within `limit`.
    pub fn open(&self, request: RequestBuilder, limit: Duration) -> Result<Response, HttpError> {
        self.block(within(limit, async { Ok(request.send().await?) }))
    }

    /// Reads the rest of an answer.
    ///
    /// # Errors
    /// When it is not there within `limit`, or too long.
    pub fn read(&self, answer: Response, limit: Duration) -> Result<Reply, HttpError> {
        self.block(within(limit, read(answer, self.most)))
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// When it is not there within `limit`, or too long.
    pub fn send(&self, request: RequestBuilder, limit: Duration) -> Result<Reply, HttpError> {
        self.block(self.exchange(request, limit))
    }

    /// The same, for callers that wait for several with [`block`](Self::block).
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn exchange(
        &self,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Reply, HttpError> {
        within(limit, async {
            read(request.send().await?, self.most).await
        })
        .await
    }
}

async fn read(mut answer: Response, most: usize) -> Result<Reply, HttpError> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > most {
            return Err(HttpError::TooLong(most));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Reply {
        status,
        headers,
        body,
    })
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, HttpError>>,
) -> Result<T, HttpError> {
    let done = timeout(limit, work).await;
    done.unwrap_or(Err(HttpError::Late(limit)))
}

fn build(settings: Settings) -> Result<reqwest::Client, HttpError> {
    use_ring();
    let unusable = |error: reqwest::Error| HttpError::Setup(root_cause(&error));
    let certificates = |pem: &[u8]| {
        let certificates = reqwest::Certificate::from_pem_bundle(pem);
        certificates.map_err(|error| HttpError::Roots(root_cause(&error)))
    };
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("lockstep/", env!("CARGO_PKG_VERSION")))
        .default_headers(settings.headers)
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .connect_timeout(settings.connect)
        .tcp_keepalive(SILENCE / 3)
        .tcp_keepalive_interval(SILENCE / 3)
        .tcp_keepalive_retries(2);
    builder = match settings.idle {
        Some(idle) => builder.pool_idle_timeout(idle),
        None => builder.pool_max_idle_per_host(0),
    };
    builder = match settings.roots {
        Roots::System => builder,
        Roots::Beside(pem) => builder.tls_certs_merge(certificates(&pem)?),
        Roots::Only(pem) => builder.tls_certs_only(certificates(&pem)?),
    };
    if settings.insecure {
        builder = builder.danger_accept_invalid_certs(true);
    }
    if let Some(pem) = settings.identity {
        builder = builder.identity(reqwest::Identity::from_pem(&pem).map_err(unusable)?);
    }
    if let Some(proxy) = settings.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(unusable)?);
    }
    builder.build().map_err(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    const SOON: Duration = Duration::from_secs(30);

    /// A server that gives one answer, and the address of it.
    fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            // Whoever waits for more is let go when the test ends.
            let _ = stream.read(&mut [0; 4096]);
        });
        format!("http://{address}")
    }

    fn send(url: &str, limit: Duration, most: usize) -> Result<Reply, HttpError> {
        let settings = Settings {
            most,
            ..Settings::default()
        };
        let client = Client::new(settings).unwrap();
        client.send(client.request(Method::GET, url), limit)
    }

    #[test]
    fn no_more_of_an_answer_is_read_than_is_allowed() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(send(&server(answer), SOON, 5).unwrap().body, b"hello");
        let error = send(&server(answer), SOON, 4).unwrap_err();
        assert!(matches!(error, HttpError::TooLong(4)), "{error}");
    }

    #[test]
    fn a_redirection_is_told_and_not_followed() {
        let answer =
            "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n";
        let reply = send(&server(answer), SOON, 0).unwrap();
        assert_eq!(reply.status.as_u16(), 302);
    }

    #[test]
    fn silence_and_a_closed_port_are_told_apart() {
        let limit = Duration::from_millis(50);
        let error = send(&server(""), limit, 0).unwrap_err();
        assert!(matches!(error, HttpError::Late(_)), "{error}");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let error = send(&format!("http://{}", closed.unwrap()), SOON, 0).unwrap_err();
        assert!(matches!(error, HttpError::Unreachable(_)), "{error}");
    }
}
