//! A request that becomes a websocket.

use crate::Refusal;
use crate::listen::Connection;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderName, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// The largest message that a client may send: those of ours have nothing to say.
const LARGEST: usize = 64 << 10;

/// The connection once it is one.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers a request to become a websocket, and does `work` with it once it is one.
///
/// Browsers let pages open websockets to anywhere; the guard has refused those of other sites.
///
/// # Errors
/// When it is no such request.
pub(super) fn accept<F: Future<Output = ()> + Send + 'static>(
    mut request: Request,
    work: impl FnOnce(Socket) -> F + Send + 'static,
) -> Result<Response, Refusal> {
    let headers = request.headers();
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let asked = says(headers, header::UPGRADE, "websocket")
        && says(headers, header::CONNECTION, "upgrade")
        && says(headers, header::SEC_WEBSOCKET_VERSION, "13");
    let (true, Some(key)) = (asked, key) else {
        return Err(Refusal::bad(
            "this is a websocket: ask for it with `Upgrade: websocket`, version 13",
        ));
    };
    let lasting = request.extensions().get::<Connection>();
    let lasting = lasting.map(Connection::last).transpose()?;
    let accepted = derive_accept_key(key.as_bytes());
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // If the connection breaks before, nobody waits for this.
        let Ok(upgraded) = upgrade.await else { return };
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(LARGEST);
        config.max_frame_size = Some(LARGEST);
        let io = TokioIo::new(upgraded);
        work(WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await).await;
        // It counts as a connection until here.
        drop(lasting);
    });
    let answer = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, accepted)
        .body(Body::empty());
    answer.map_err(Refusal::internal)
}

/// Whether one of a header's words is this.
fn says(headers: &HeaderMap, name: HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    let mut words = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','));
    words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
}
