//! What a rank knows of one of its peers over TCP: the connection, and all that came over it.

use super::receiver::{Event, Receiver, Used};
use crate::{GangError, Plan};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a rank that waits, to receive or to send, looks whether it was called off.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// One peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    receiver: Option<JoinHandle<()>>,
    /// The way home for used buffers.
    home: SyncSender<Used>,
    /// What has arrived of each chunk and waits to be used.
    pub(crate) chunks: Vec<Option<Vec<f32>>>,
    pub(crate) votes: VecDeque<u64>,
    pub(crate) gathered: VecDeque<Vec<f64>>,
    pub(crate) left: bool,
}

impl Peer {
    /// Starts to receive what `peer` sends to `rank` over `stream`.
    pub(crate) fn start(
        stream: TcpStream,
        peer: usize,
        rank: usize,
        generation: u16,
        plan: &Arc<Plan>,
        events: &SyncSender<(usize, Event)>,
    ) -> Result<Self, GangError> {
        let set_up = || {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(Some(LOOK))?;
            stream.try_clone()
        };
        let reading =
            set_up().map_err(GangError::io(format!("set up rank {peer}'s connection")))?;
        let (receiver, home) = Receiver::new(reading, peer, rank, generation, plan, events.clone());
        let receiver = std::thread::Builder::new()
            .name(format!("from-rank-{peer}"))
            .spawn(move || receiver.run())
            .map_err(GangError::io("start a thread to receive"))?;
        Ok(Self {
            stream,
            receiver: Some(receiver),
            home,
            chunks: vec![None; plan.pieces()],
            votes: VecDeque::with_capacity(2),
            gathered: VecDeque::with_capacity(2),
            left: false,
        })
    }

    /// Sends a used buffer home.
    pub(crate) fn give_back(&self, used: Used) {
        // There is room for every buffer. A receiver that is gone does not need its buffers.
        let _ = self.home.try_send(used);
    }

    /// Waits for the receiver to end; its connection is shut down.
    pub(crate) fn join(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}
