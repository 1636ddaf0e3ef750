//! The dashboard's pages: files that are part of the program.
//!
//! There is one document. Its script shows the page that the address names, and asks the [view](crate::view) for what is
//! on it. So nothing is loaded from elsewhere, and a page works on a machine without a network.
//!
//! Files are compressed once, when the first is asked for, and carry the hash of their content: a browser that has the
//! same asks and is told so in a few bytes.

mod files;

use crate::Server;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use files::FILES;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use lockstep_base::fs::sha256;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;

/// The addresses at which the document is.
const PAGES: [&str; 11] = [
    "/",
    "/jobs",
    "/jobs/{id}",
    "/runs",
    "/runs/{name}",
    "/compare",
    "/models",
    "/models/{name}",
    "/cluster",
    "/benchmarks",
    "/benchmarks/{name}",
];

/// What a browser may do with a page: nothing that does not come from here, no text becomes a script, nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

/// A file as it is sent.
struct File {
    kind: &'static str,
    tag: HeaderValue,
    plain: &'static [u8],
    gzip: Bytes,
}

static BY_NAME: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(|| {
    let file = |(name, plain): &(&'static str, &'static [u8])| (*name, File::new(name, plain));
    FILES.iter().map(file).collect()
});

pub(crate) fn routes() -> Router<Server> {
    let mut routes = Router::new().route("/assets/{*path}", get(asset));
    for page in PAGES {
        routes = routes.route(page, get(document));
    }
    routes.fallback(unknown)
}

/// An address that nothing is at: for a browser the document, whose script says so, for programs a sentence.
async fn unknown(method: Method, mut headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT);
    let is_browser = accepted.is_some_and(|kinds| {
        kinds
            .to_str()
            .is_ok_and(|kinds| kinds.contains("text/html"))
    });
    if method != Method::GET || !is_browser {
        return (StatusCode::NOT_FOUND, "there is no such address\n").into_response();
    }
    headers.remove(header::IF_NONE_MATCH);
    let mut page = send("index.html", &headers);
    *page.status_mut() = StatusCode::NOT_FOUND;
    page
}

async fn document(headers: HeaderMap) -> Response {
    send("index.html", &headers)
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    match path.as_str() {
        // It has addresses of its own.
        "index.html" => StatusCode::NOT_FOUND.into_response(),
        path => send(path, &headers),
    }
}

fn send(name: &str, asked: &HeaderMap) -> Response {
    let Some(file) = BY_NAME.get(name) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, file.tag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let policy = HeaderValue::from_static(POLICY);
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    if asked.get(header::IF_NONE_MATCH) == Some(&file.tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    match takes_gzip(asked) {
        true => {
            let gzip = HeaderValue::from_static("gzip");
            headers.insert(header::CONTENT_ENCODING, gzip);
            (headers, file.gzip.clone()).into_response()
        }
        false => (headers, file.plain).into_response(),
    }
}

/// Whether whoever asks understands gzip.
pub(crate) fn takes_gzip(asked: &HeaderMap) -> bool {
    let accepted = asked.get(header::ACCEPT_ENCODING);
    accepted.is_some_and(|value| value.to_str().is_ok_and(|value| value.contains("gzip")))
}

/// These bytes, compressed.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

impl File {
    fn new(name: &str, plain: &'static [u8]) -> File {
        let kind = match name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        let hash = sha256(plain);
        let tag = format!("\"{}\"", &hash[..16]);
        File {
            kind,
            tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")),
            plain,
            gzip: gzip(plain, Compression::best()),
        }
    }
}
