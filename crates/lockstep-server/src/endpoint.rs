//! One route of the server, declared once: its method and path, what answers it, what it is for, what it takes, and what
//! a caller needs. The router, the guard and the description at `/api/openapi.json` are all made from this.

use crate::{Role, Server};
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use http::Method;

/// The media types of answers.
pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain";
pub(crate) const BYTES: &str = "application/octet-stream";

/// The longest body of a request, unless its route says otherwise; and of one that needs no token.
pub(crate) const SMALL: u64 = 64 << 10;
const TINY: u64 = 4 << 10;

/// One route for one method.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// With names in braces, as the router takes it.
    pub(crate) path: String,
    pub(crate) handler: MethodRouter<Server>,
    /// What it does.
    pub(crate) summary: &'static str,
    /// What the caller must be allowed to do; none where no token is needed.
    pub(crate) role: Option<Role>,
    /// What follows the question mark: names with blanks between them, each with `!` if it is needed, and with `:` and its
    /// type if that is not a string.
    pub(crate) query: &'static str,
    /// The keys of a JSON body, in the same way; nothing for bodies of other kinds.
    pub(crate) body: &'static str,
    /// How many bytes its body may have.
    pub(crate) takes: u64,
    /// The media type of what comes back.
    pub(crate) answer: &'static str,
    /// Whether the description has it. Pages, and second names of routes, are left out.
    pub(crate) described: bool,
}

/// The role that a request needs of which no route says another: reading is harmless, nothing else is known to be.
pub(crate) fn role_of(method: &Method) -> Role {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => Role::Read,
        _ => Role::Submit,
    }
}

impl Endpoint {
    fn new(
        method: Method,
        path: &str,
        handler: MethodRouter<Server>,
        summary: &'static str,
    ) -> Endpoint {
        Endpoint {
            role: Some(role_of(&method)),
            method,
            path: path.to_owned(),
            handler,
            summary,
            query: "",
            body: "",
            takes: SMALL,
            answer: JSON,
            described: true,
        }
    }

    pub(crate) fn get<H, T>(path: &str, handler: H, summary: &'static str) -> Endpoint
    where
        H: Handler<T, Server>,
        T: 'static,
    {
        Endpoint::new(Method::GET, path, routing::get(handler), summary)
    }

    pub(crate) fn post<H, T>(path: &str, handler: H, summary: &'static str) -> Endpoint
    where
        H: Handler<T, Server>,
        T: 'static,
    {
        Endpoint::new(Method::POST, path, routing::post(handler), summary)
    }

    pub(crate) fn put<H, T>(path: &str, handler: H, summary: &'static str) -> Endpoint
    where
        H: Handler<T, Server>,
        T: 'static,
    {
        Endpoint::new(Method::PUT, path, routing::put(handler), summary)
    }

    pub(crate) fn patch<H, T>(path: &str, handler: H, summary: &'static str) -> Endpoint
    where
        H: Handler<T, Server>,
        T: 'static,
    {
        Endpoint::new(Method::PATCH, path, routing::patch(handler), summary)
    }

    pub(crate) fn delete<H, T>(path: &str, handler: H, summary: &'static str) -> Endpoint
    where
        H: Handler<T, Server>,
        T: 'static,
    {
        Endpoint::new(Method::DELETE, path, routing::delete(handler), summary)
    }

    pub(crate) fn query(self, query: &'static str) -> Endpoint {
        Endpoint { query, ..self }
    }

    pub(crate) fn body(self, body: &'static str) -> Endpoint {
        Endpoint { body, ..self }
    }

    pub(crate) fn answer(self, answer: &'static str) -> Endpoint {
        Endpoint { answer, ..self }
    }

    /// Needs no token.
    pub(crate) fn open(self) -> Endpoint {
        Endpoint {
            role: None,
            takes: TINY,
            ..self
        }
    }

    /// Takes a larger body.
    pub(crate) fn takes(self, takes: u64) -> Endpoint {
        Endpoint { takes, ..self }
    }

    /// Only reads, though its method does not say so.
    pub(crate) fn reads(self) -> Endpoint {
        let role = Some(Role::Read);
        Endpoint { role, ..self }
    }

    pub(crate) fn undescribed(self) -> Endpoint {
        let described = false;
        Endpoint { described, ..self }
    }

    /// The same below a prefix.
    pub(crate) fn under(self, prefix: &str) -> Endpoint {
        let path = format!("{prefix}{}", self.path);
        Endpoint { path, ..self }
    }

    /// The same with another layer around what answers.
    pub(crate) fn map(
        self,
        wrap: impl FnOnce(MethodRouter<Server>) -> MethodRouter<Server>,
    ) -> Endpoint {
        let handler = wrap(self.handler);
        Endpoint { handler, ..self }
    }
}
