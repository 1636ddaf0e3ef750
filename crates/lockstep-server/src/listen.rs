//! Connections: how many there may be, how long each may keep silent, and how they end.
//!
//! A client that sends its request one byte at a time, or does not read the answer, holds up nobody but itself, and not
//! for long. [`connection`] says how many connections there may be.

mod connection;
mod pace;
mod tls;

pub(crate) use connection::{Connection, Lasting};

use crate::guard::Peer;
use crate::{GuardSettings, ServerError};
use axum::Router;
use connection::{Counts, MOST};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pace::Paced;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long a client may take for the head of a request, for the handshake of TLS, and between two requests.
const SILENCE: Duration = Duration::from_secs(10);
/// How long connections may take to end when the server does.
const FAREWELL: Duration = Duration::from_secs(2);
/// The longest head of a request.
const HEAD: usize = 64 << 10;

/// Takes connections until `stop` is done, then lets those that are in the middle of an answer finish it.
pub(crate) async fn answer(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    stop: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(MOST));
    let counts = Counts::default();
    let (stopping, stopped) = watch::channel(false);
    let take = async {
        loop {
            let Ok(place) = room.clone().acquire_owned().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(_) => {
                    // Files ran out, or the client is gone already. Others may end meanwhile.
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(held) = counts.one_more(peer.ip(), place) else {
                continue;
            };
            let (tls, routes, stopped) = (tls.clone(), routes.clone(), stopped.clone());
            tokio::spawn(async move {
                connection(stream, (peer, held), tls, routes, stopped).await;
            });
        }
    };
    tokio::select! {
        () = take => (),
        () = stop => (),
    }
    drop(listener);
    drop(stopped);
    // Nobody listens any more if all have ended.
    let _ = stopping.send(true);
    let _ = timeout(FAREWELL, stopping.closed()).await;
}

async fn connection(
    stream: TcpStream,
    peer: (SocketAddr, Connection),
    tls: Option<TlsAcceptor>,
    routes: Router,
    stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = Paced::new(stream);
    match tls {
        None => exchange(stream, peer, routes, stopped).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(SILENCE, tls.accept(stream)).await {
                exchange(stream, peer, routes, stopped).await;
            }
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (peer, held): (SocketAddr, Connection),
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        request.extensions_mut().insert(held.clone());
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // A client that breaks off is no fault of ours.
        let _ = connection.await;
    }
}

/// What encrypts, if anything was given.
pub(crate) fn tls(settings: &GuardSettings) -> Result<Option<TlsAcceptor>, ServerError> {
    let files = settings.tls.as_ref();
    files
        .map(|(certificates, key)| tls::acceptor(certificates, key))
        .transpose()
}
