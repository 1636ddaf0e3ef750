//! What every request passes before a route sees it: where it comes from, who asks, what that one may do, and how large
//! and how slow it may be.
//!
//! On loopback anybody who can reach the server may do everything, as with Ray's and MLflow's: that is this machine's
//! user, as a rule. Everywhere else, and on loopback with `--require-token`, a token is needed. What is not known to be
//! harmless is refused: a route that says nothing about roles needs [`Role::Submit`] for everything but reading.

mod audit;
mod headers;
mod limits;
mod login;
mod origin;
mod tokens;

pub(crate) use audit::AuditAction;
pub(crate) use login::endpoints;
pub use tokens::{Token, Tokens};

use crate::{Caller, Refusal, Role, Server, ServerError, Settings, routes};
use audit::{Audit, Entry};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use limits::Watch;
use origin::Names;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

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
    tokens: Option<Tokens>,
    names: Names,
    encrypted: bool,
    audit: Audit,
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
    pub(crate) fn open(settings: &Settings) -> Result<(Guard, Option<String>), ServerError> {
        let loopback = settings.listen.ip().to_canonical().is_loopback();
        let needed = settings.guard.require_token || !loopback;
        let tokens = needed.then(|| Tokens::of(&settings.folder));
        let first = match &tokens {
            Some(tokens) if tokens.list()?.is_empty() => Some(tokens.add(FIRST, Role::Admin)?),
            _ => None,
        };
        let mut names = settings.guard.hosts.clone();
        if !loopback && let Ok(own) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            names.push(own.trim().to_owned());
        }
        let guard = Guard {
            tokens,
            names: Names {
                any_address: !loopback,
                names,
            },
            encrypted: settings.guard.tls.is_some(),
            audit: Audit::of(&settings.folder),
        };
        Ok((guard, first))
    }

    /// Who shows this.
    fn caller_of(&self, given: Credential<'_>) -> Result<Caller, Refusal> {
        let Some(tokens) = &self.tokens else {
            return Ok(Caller {
                name: "local".to_owned(),
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
            Credential::Token(token) => tokens.find(token).map_err(Refusal::internal)?,
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

    /// Lets a request in, or not. Open paths are let in without a caller.
    fn admit(&self, request: &Request) -> Result<Option<Caller>, Refusal> {
        let headers = request.headers();
        let path = request.uri().path();
        let from_header = header_token(headers);
        let given = from_header.unwrap_or_else(|| cookie_token(headers));
        let caller = self.caller_of(given);
        // Who knows a token and puts it into a header is no page of another site.
        let proven = self.tokens.is_some() && from_header.is_some() && caller.is_ok();
        if !proven {
            self.names.check(request)?;
        }
        origin::check_page(request, self.encrypted, login::is_form(path))?;
        if routes::is_open(path) {
            return Ok(caller.ok());
        }
        let caller = caller?;
        caller.needs(routes::role(request.method(), path))?;
        Ok(Some(caller))
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
pub(crate) async fn guard(State(server): State<Server>, request: Request, next: Next) -> Response {
    let guard = server.guard();
    let method = request.method().clone();
    let path: String = request.uri().path().chars().take(500).collect();
    let peer = request.extensions().get::<Peer>();
    let from = peer.map_or_else(String::new, |Peer(address)| address.to_string());
    let limit = limits::limit(server.settings(), &path);
    let admitted = guard.admit(&request).and_then(|caller| {
        limits::check(request.headers(), limit)?;
        Ok(caller)
    });
    let (caller, refusal, mut answer) = match admitted {
        Ok(caller) => {
            let (refusal, answer) = pass(request, caller.clone(), limit, next).await;
            (caller, refusal, answer)
        }
        Err(refusal) => {
            let why = refusal.message.clone();
            (None, Some(why), refuse(&request, refusal))
        }
    };
    headers::add(answer.headers_mut());
    let status = answer.status();
    server.counters().count(status);
    let denied = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST
    );
    if denied || routes::role(&method, &path) != Role::Read {
        let deed = answer
            .extensions()
            .get::<AuditAction>()
            .map(|deed| deed.0.clone());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let noted = guard.audit.note(&Entry {
            time: now.unwrap_or_default().as_secs_f64(),
            who: caller.as_ref().map(|caller| caller.name.as_str()),
            role: caller.as_ref().map(|caller| caller.role),
            from,
            method: method.as_str(),
            path: &path,
            status: status.as_u16(),
            what: deed.as_deref().or(refusal.as_deref()),
        });
        if let Err(error) = noted {
            eprintln!("error: the audit log cannot be written: {error}");
        }
    }
    answer
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
fn refuse(request: &Request, refusal: Refusal) -> Response {
    let asks_for = origin::text(request.headers(), header::ACCEPT.as_str()).unwrap_or_default();
    let missing = refusal.status == StatusCode::UNAUTHORIZED;
    let token_is_wrong = refusal.message.ends_with("Invalid authentication token");
    if request.method() == Method::GET
        && asks_for.contains("text/html")
        && (missing || token_is_wrong)
    {
        let next = request
            .uri()
            .path_and_query()
            .map_or("/", |next| next.as_str());
        return login::page(request.headers(), next, "", StatusCode::UNAUTHORIZED);
    }
    let mut answer = refusal.into_response();
    if missing {
        let way = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, way);
    }
    answer
}
