//! A port of a pod, brought to this machine through the API server.
//!
//! The pod needs no address that can be reached from here, and nobody but this machine reaches it. Each connection has
//! a websocket of its own. Its messages begin with a byte that says what they are: bytes of the connection, or words
//! about what went wrong; the first of each kind names the port and is passed over. The pod is looked for anew for
//! every connection, so one that was replaced is found again.

use crate::kube::client::Client;
use crate::kube::config::Config;
use crate::kube::request::{About, refusal};
use crate::kube::{KubeError, Target};
use futures_util::future::select;
use futures_util::{SinkExt, StreamExt};
use lockstep_place::http::{
    Handshake, Message, Method, StatusCode, Websocket, header, in_short, root_cause,
};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The protocol of the websocket.
const PROTOCOL: &str = "v4.channel.k8s.io";
/// What messages with bytes of the connection begin with.
const DATA: u8 = 0;
/// What messages with words about a failure begin with.
const FAILURE: u8 = 1;
/// How many bytes travel in one message at most.
const PIECE: usize = 32 << 10;
/// How many connections there are at a time at most.
const CONNECTIONS: usize = 128;
/// How long the pod is still listened to when whoever connected has said all: this protocol cannot pass that on.
const LINGER: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// A port of this machine that leads to a pod.
pub struct Forward {
    listener: TcpListener,
    way: Arc<Way>,
}

/// Where connections go.
struct Way {
    config: Config,
    namespace: String,
    name: String,
    port: Option<u16>,
    open: AtomicUsize,
}

impl Forward {
    /// Finds what is meant, and listens on 127.0.0.1: on the port `local`, or on the number that the pod's port has.
    ///
    /// # Errors
    /// As [`Client::target`], and when the port here cannot be had.
    pub fn bind(
        config: Config,
        name: &str,
        port: Option<u16>,
        local: Option<u16>,
    ) -> Result<(Forward, Target), KubeError> {
        let client = Client::new(config.clone())?;
        let namespace = client.namespace();
        let target = client.target(&namespace, name, port)?;
        let local = local.unwrap_or(target.port);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, local)).map_err(|error| {
            let cause = error.to_string();
            KubeError::Listen { port: local, cause }
        })?;
        let way = Arc::new(Way {
            config,
            namespace,
            name: name.to_owned(),
            port,
            open: AtomicUsize::new(0),
        });
        Ok((Forward { listener, way }, target))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Connects whoever comes, and never returns. `failed` hears of connections that came to nothing.
    pub fn serve(&self, failed: impl Fn(&KubeError) + Send + Sync + 'static) -> ! {
        let failed = Arc::new(failed);
        loop {
            let Ok((local, _)) = self.listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            let (way, failed) = (self.way.clone(), failed.clone());
            if way.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                // It is closed by being let go: the client sees that at once, and may try again.
                way.open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            thread::spawn(move || {
                if let Err(error) = way.connect(local) {
                    failed(&error);
                }
                way.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

impl Way {
    /// Connects one to the pod, until either ends.
    fn connect(&self, local: TcpStream) -> Result<(), KubeError> {
        let client = Client::new(self.config.clone())?;
        let target = client.target(&self.namespace, &self.name, self.port)?;
        let socket = client.open_port(&self.namespace, &target)?;
        let failed = |cause: String| broken(&target, cause);
        local
            .set_nonblocking(true)
            .map_err(|error| failed(error.to_string()))?;
        client.block(carry(socket, local)).map_err(failed)
    }
}

fn broken(target: &Target, cause: String) -> KubeError {
    KubeError::Forward {
        pod: target.pod.clone(),
        port: target.port,
        cause,
    }
}

impl Client {
    /// Opens a connection to a pod's port.
    fn open_port(&self, namespace: &str, target: &Target) -> Result<Websocket, KubeError> {
        let Target { pod, port } = target;
        let about = About::new("get", "pods/portforward", pod, namespace);
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}");
        let handshake = Handshake::default();
        let answer = self.open(about, Method::GET, &path, &|request| {
            let request = handshake.ask(request);
            request.header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        })?;
        let status = answer.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            if status.is_success() {
                let cause = format!("{} does not change over to a websocket", self.server());
                return Err(broken(target, cause));
            }
            // What the server refuses, it says in its body.
            return match self.read(about, answer) {
                Ok(body) => Err(refusal(self.server(), about, status, &body)),
                Err(error) => Err(error),
            };
        }
        self.block(handshake.take_over(answer))
            .map_err(|error| broken(target, error.to_string()))
    }
}

/// Carries bytes both ways until either side ends.
async fn carry(socket: Websocket, local: TcpStream) -> Result<(), String> {
    let local = tokio::net::TcpStream::from_std(local).map_err(|error| error.to_string())?;
    let (mut from_here, mut to_here) = local.into_split();
    let (mut to_pod, mut from_pod) = socket.split();
    let up = async {
        let mut piece = vec![0; 1 + PIECE];
        piece[0] = DATA;
        loop {
            // One who is gone is no failure.
            let read = from_here.read(&mut piece[1..]).await.unwrap_or(0);
            if read == 0 {
                break;
            }
            let message = Message::binary(piece[..=read].to_vec());
            if to_pod.send(message).await.is_err() {
                break;
            }
        }
        tokio::time::sleep(LINGER).await;
        Ok(())
    };
    let down = async {
        let mut named = [false; 2];
        while let Some(message) = from_pod.next().await {
            let message = message.map_err(|error| root_cause(&error))?;
            let data = match &message {
                Message::Binary(data) => data,
                Message::Close(_) => break,
                _ => continue,
            };
            let Some((&kind, data)) = data.split_first() else {
                continue;
            };
            let Some(named) = named.get_mut(usize::from(kind)) else {
                continue;
            };
            if !std::mem::replace(named, true) {
                continue;
            }
            if kind == FAILURE {
                return Err(in_short(&String::from_utf8_lossy(data)));
            }
            if to_here.write_all(data).await.is_err() {
                break;
            }
        }
        let _ = to_here.shutdown().await;
        Ok(())
    };
    let (up, down) = (pin!(up), pin!(down));
    select(up, down).await.factor_first().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::Wanted;
    use std::io::{BufRead, BufReader, Read, Write};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
    use tokio_tungstenite::tungstenite::protocol::Role;

    /// An API server with the Service `server`, whose pod answers every line of its port 8265 with the same in
    /// capitals, and says of port 1 that nobody listens there.
    fn api_server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream));
            }
        });
        address
    }

    fn answer(mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut first, mut key) = (String::new(), String::new());
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("sec-websocket-key")
            {
                key = value.trim().to_owned();
            }
        }
        let service = r#"{"spec":{"selector":{"app":"s"},"ports":[{"port":80,"targetPort":8265},{"port":1}]}}"#;
        let pods = r#"{"items":[{"metadata":{"name":"server-0"},"status":{"phase":"Running"}}]}"#;
        let (status, body) = match first.split(' ').nth(1).unwrap() {
            path if path.contains("/portforward?ports=") => {
                let port: u16 = path.rsplit('=').next().unwrap().parse().unwrap();
                return pod(stream, &key, port);
            }
            path if path.ends_with("/services/server") => (200, service),
            path if path.contains("/pods?labelSelector=app%3Ds") => (200, pods),
            _ => (404, r#"{"message":"not found","details":{"kind":"x"}}"#),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
    }

    fn pod(mut stream: TcpStream, key: &str, port: u16) {
        let accepted = derive_accept_key(key.as_bytes());
        write!(
            stream,
            "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accepted}\r\n\
             Sec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
        )
        .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        stream.set_nonblocking(true).unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            let [low, high] = port.to_le_bytes();
            for kind in [DATA, FAILURE] {
                let named = Message::binary(vec![kind, low, high]);
                socket.send(named).await.unwrap();
            }
            if port == 1 {
                let refused = [&[FAILURE][..], b"connection refused"].concat();
                socket.send(Message::binary(refused)).await.unwrap();
            }
            while let Some(Ok(Message::Binary(data))) = socket.next().await {
                let loud = data.to_ascii_uppercase();
                socket.send(Message::binary(loud)).await.unwrap();
                if data.ends_with(b"bye\n") {
                    return;
                }
            }
        });
    }

    fn config(server: SocketAddr) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = format!(
            "current-context: c\nclusters: [{{name: k, cluster: {{server: \"http://{server}\"}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        let wanted = Wanted {
            kubeconfig: Some(path),
            ..Wanted::default()
        };
        Config::find(&wanted).unwrap()
    }

    #[test]
    fn a_connection_here_is_one_to_the_pod_and_what_fails_there_is_told() {
        let server = api_server();
        let (forward, target) = Forward::bind(config(server), "server", None, Some(0)).unwrap();
        assert_eq!((target.pod.as_str(), target.port), ("server-0", 8265));
        let address = forward.address().unwrap();
        thread::spawn(move || forward.serve(|error| panic!("{error}")));
        // Two at a time, each with its own answers, and larger than a message.
        let mut one = TcpStream::connect(address).unwrap();
        let mut two = TcpStream::connect(address).unwrap();
        let long = format!("{}\n", "a".repeat(3 * PIECE));
        one.write_all(long.as_bytes()).unwrap();
        two.write_all(b"two bye\n").unwrap();
        let mut heard = String::new();
        two.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "TWO BYE\n");
        let mut heard = vec![0; long.len()];
        one.read_exact(&mut heard).unwrap();
        assert_eq!(heard, long.to_ascii_uppercase().as_bytes());

        let (forward, _) = Forward::bind(config(server), "server", Some(1), Some(0)).unwrap();
        let address = forward.address().unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        let told = std::sync::Mutex::new(told);
        thread::spawn(move || {
            forward.serve(move |error| told.lock().unwrap().send(error.to_string()).unwrap());
        });
        let mut refused = TcpStream::connect(address).unwrap();
        assert_eq!(refused.read_to_end(&mut Vec::new()).unwrap(), 0);
        let said = heard.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(said, "port 1 of the pod `server-0`: connection refused");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let server = api_server();
        let said = |name: &str, port, local| {
            let bound = Forward::bind(config(server), name, port, local);
            bound.err().unwrap().to_string()
        };
        assert!(said("nobody", None, None).contains("no Service `nobody`"));
        assert!(said("server", Some(81), None).contains("the Service has 80, 1"));
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(said("server", None, Some(port)).contains("--local"));
    }
}
