//! What every request passes before a route sees it: where it comes from, who asks, what that one may do, and how large
//! and how slow it may be.
//!
//! On loopback anybody who can reach the server may do everything, as with Ray's and MLflow's: that is this machine's
//! user, as a rule. Everywhere else, and on loopback with `--require-token`, a token is needed. What is not known to be
//! harmless is refused: a route that says nothing about roles needs [`Role::Submit`] for everything but reading.

mod audit;
mod behind;
mod headers;
mod held;
mod limits;
mod login;
mod origin;
mod refusals;
mod tokens;

pub(crate) use audit::AuditAction;
pub(crate) use behind::Behind;
pub(crate) use login::endpoints;
pub use tokens::{Token, Tokens};

use crate::caller::LOCAL;
use crate::metrics::Counters;
use crate::{Caller, Refusal, Role, ServerError};
use audit::{Audit, Entry};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use limits::Watch;
use origin::Names;
use refusals::Refusals;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::task::spawn_blocking;

/// The name of the token that is made at the first start.
const FIRST: &str = "admin";

/// How the server protects itself.
#[derive(Debug, Clone)]
pub struct GuardSettings {
    /// Whether a token is needed on loopback too.
    pub require_token: bool,
    /// Names that the server is called by, beside its addresses and the machine's own name.
    pub hosts: Vec<String>,
    /// The certificates and the private key of TLS, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The largest file that may be sent as an artifact of a run, in bytes.
    pub upload_limit: u64,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            require_token: false,
            hosts: Vec::new(),
            tls: None,
            upload_limit: 4 << 30,
        }
    }
}

/// What the guard knows.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Nothing where no token is needed.
    tokens: Option<Arc<Tokens>>,
    names: Names,
    encrypted: bool,
    deeds: Arc<Audit>,
    refused: Arc<Audit>,
    refusals: Refusals,
    behind: Behind,
    answers: Counters,
}

/// The address that a connection came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What a request has to show.
#[derive(Debug, Clone, Copy)]
enum Credential<'a> {
    Nothing,
    /// Something that is no token.
    Nonsense,
    Token(&'a str),
}

impl Guard {
    /// Opens what it needs. Where a token is needed and there is none, one is made, and comes with it.
    pub(crate) fn open(
        settings: &GuardSettings,
        listen: SocketAddr,
        folder: &Path,
        behind: Behind,
    ) -> Result<(Guard, Option<String>), ServerError> {
        let loopback = listen.ip().to_canonical().is_loopback();
        let needed = settings.require_token || !loopback;
        let tokens = needed.then(|| Arc::new(Tokens::of(folder)));
        let first = match &tokens {
            Some(tokens) if tokens.list()?.is_empty() => Some(tokens.add(FIRST, Role::Admin)?),
            _ => None,
        };
        let mut names = settings.hosts.clone();
        if !loopback && let Ok(own) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            names.push(own.trim().to_owned());
        }
        let guard = Guard {
            tokens,
            names: Names {
                any_address: !loopback,
                names,
            },
            encrypted: settings.tls.is_some(),
            deeds: Arc::new(Audit::of_deeds(folder)),
            refused: Arc::new(Audit::of_refusals(folder)),
            refusals: Refusals::default(),
            behind,
            answers: Counters::default(),
        };
        Ok((guard, first))
    }

    /// Whether a token is needed.
    pub(crate) fn needs_token(&self) -> bool {
        self.tokens.is_some()
    }

    /// How requests were answered so far.
    pub(crate) fn answers(&self) -> &Counters {
        &self.answers
    }

    /// Who shows this.
    async fn caller_of(&self, given: Credential<'_>) -> Result<Caller, Refusal> {
        let Some(tokens) = &self.tokens else {
            return Ok(Caller {
                name: LOCAL.to_owned(),
                role: Role::Admin,
            });
        };
        let found = match given {
            Credential::Nothing => {
                return Err(Refusal::unauthorised(
                    "Unauthorized: Missing authentication token",
                ));
            }
            Credential::Nonsense => None,
            Credential::Token(token) => {
                // The file may lie on a disk that takes its time.
                let (tokens, token) = (tokens.clone(), token.to_owned());
                let found = spawn_blocking(move || tokens.find(&token)).await;
                found
                    .map_err(Refusal::internal)?
                    .map_err(Refusal::internal)?
            }
        };
        match found {
            Some(token) => Ok(Caller {
                name: token.name,
                role: token.role,
            }),
            None => Err(Refusal::forbidden(
                "Forbidden: Invalid authentication token",
            )),
        }
    }

    /// Lets a request in, or not, and says whose it is, also of one that is refused. Open paths are let in without a
    /// caller.
    async fn admit(&self, asked: &Head) -> (Option<Caller>, Result<(), Refusal>) {
        let from_header = header_token(asked.headers());
        let given = from_header.unwrap_or_else(|| cookie_token(asked.headers()));
        let caller = self.caller_of(given).await;
        // Who knows a token and puts it into a header is no page of another site.
        let proven = self.tokens.is_some() && from_header.is_some() && caller.is_ok();
        let known = caller.as_ref().ok().cloned();
        (known, self.may_pass(asked, proven, caller))
    }

    fn may_pass(
        &self,
        asked: &Head,
        proven: bool,
        caller: Result<Caller, Refusal>,
    ) -> Result<(), Refusal> {
        if !proven {
            self.names.check(asked)?;
        }
        let path = asked.uri().path();
        origin::check_page(asked, self.encrypted, login::is_form(path))?;
        if self.behind.is_open(path) {
            return Ok(());
        }
        caller?.needs(self.behind.role(asked.method(), path))
    }

    /// Writes down what came of a request, if that is to be: what changes something, and what was refused.
    async fn note(&self, denied: bool, mut entry: Entry) {
        // A stranger does nothing that matters to others, and without a token everybody is somebody.
        let refused = denied || entry.who.is_none();
        if refused {
            match self.refusals.one_more(entry.who.as_deref(), Instant::now()) {
                Some(left_out) => entry.left_out = left_out,
                None => return,
            }
        }
        let file = if refused { &self.refused } else { &self.deeds };
        let file = file.clone();
        // Its line is there before the answer is.
        let noted = spawn_blocking(move || file.note(&entry)).await;
        if let Err(error) = noted.map_err(std::io::Error::other).flatten() {
            eprintln!("error: the audit log cannot be written: {error}");
        }
    }
}

/// `Authorization: Bearer TOKEN`; only if that is not there, `X-Ray-Authorization`, which proxies leave alone.
fn header_token(headers: &HeaderMap) -> Option<Credential<'_>> {
    let own = header::AUTHORIZATION.as_str();
    let said =
        origin::text(headers, own).or_else(|| origin::text(headers, "x-ray-authorization"))?;
    Some(match said.strip_prefix("Bearer ") {
        Some(token) => Credential::Token(token),
        None => Credential::Nonsense,
    })
}

fn cookie_token(headers: &HeaderMap) -> Credential<'_> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut cookies = all
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let found = cookies.find_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == login::COOKIE).then_some(value)
    });
    found.map_or(Credential::Nothing, Credential::Token)
}

/// Lets through who may ask, says to the routes who it is, and writes down what came of it.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let behind = guard.behind;
    let asked = head(&request);
    let path: String = asked.uri().path().chars().take(500).collect();
    let peer = request.extensions().get::<Peer>();
    let from = peer.map_or_else(String::new, |Peer(address)| address.to_string());
    let limit = behind.body_limit(&path);
    let (caller, admitted) = guard.admit(&asked).await;
    let admitted = admitted.and_then(|()| limits::check(asked.headers(), limit));
    let (refusal, answer) = match admitted {
        Ok(()) => pass(request, caller.clone(), limit, next).await,
        Err(refusal) => (
            Some(refusal.message.clone()),
            refuse(&asked, refusal, behind),
        ),
    };
    let mut answer = held::counted(answer).unwrap_or_else(|| limits::busy().into_response());
    headers::add(answer.headers_mut());
    let status = answer.status();
    guard.answers.count(status);
    let denied = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST
    );
    if denied || behind.role(asked.method(), &path) != Role::Read {
        let deed = answer.extensions().get::<AuditAction>();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let entry = Entry {
            time: now.unwrap_or_default().as_secs_f64(),
            who: caller.as_ref().map(|caller| caller.name.clone()),
            role: caller.as_ref().map(|caller| caller.role),
            from,
            method: asked.method().to_string(),
            path,
            status: status.as_u16(),
            what: deed.map(|deed| deed.0.clone()).or(refusal),
            left_out: 0,
        };
        guard.note(denied, entry).await;
    }
    answer
}

/// The head of a request, which stays when its body is read.
type Head = http::Request<()>;

fn head(request: &Request) -> Head {
    let mut head = Head::default();
    head.method_mut().clone_from(request.method());
    head.uri_mut().clone_from(request.uri());
    head.headers_mut().clone_from(request.headers());
    head
}

/// Hands a request to its route, within the limits. If it is the guard that cut it short, its words come too.
async fn pass(
    mut request: Request,
    caller: Option<Caller>,
    limit: u64,
    next: Next,
) -> (Option<String>, Response) {
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let time = limits::time(request.headers(), limit);
    let watch = Watch::default();
    let request = limits::bound(request, limit, watch.clone());
    let answer = tokio::time::timeout(time, next.run(request)).await;
    let refusal = watch.refusal(limit);
    let refusal = refusal.or_else(|| answer.is_err().then(too_long));
    match (refusal, answer) {
        (None, Ok(answer)) => (None, answer),
        (refusal, _) => {
            let refusal = refusal.unwrap_or_else(too_long);
            (Some(refusal.message.clone()), refusal.into_response())
        }
    }
}

fn too_long() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "this took too long")
}

/// Says no: to a browser that has no token with a page that asks for one.
fn refuse(asked: &Head, refusal: Refusal, behind: Behind) -> Response {
    let asks_for = origin::text(asked.headers(), header::ACCEPT.as_str()).unwrap_or_default();
    let missing = refusal.status == StatusCode::UNAUTHORIZED;
    let token_is_wrong = refusal.message.ends_with("Invalid authentication token");
    if behind.has_pages()
        && asked.method() == Method::GET
        && asks_for.contains("text/html")
        && (missing || token_is_wrong)
    {
        let next = asked.uri().path_and_query();
        let next = next.map_or("/", |next| next.as_str());
        return login::page(asked.headers(), next, "", StatusCode::UNAUTHORIZED);
    }
    let mut answer = refusal.into_response();
    if missing {
        let way = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, way);
    }
    answer
}
