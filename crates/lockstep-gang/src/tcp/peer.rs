//! What a rank knows of one of its peers over TCP: the connection, and all that came over it.

use super::receiver::{PeerEvent, Receiver, Used};
use super::wire::{FrameReader, FrameWriter};
use crate::secure::handshake::SecureChannel;
use crate::{GangError, Plan};
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a rank that waits, to receive or to send, looks whether it was called off.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// One peer.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    /// Steps aside for the time of a frame, since sending also takes in what comes; does not come
    /// back when the frame breaks off.
    pub(crate) writer: Option<FrameWriter>,
    receiver: Option<JoinHandle<()>>,
    /// Takes used buffers back to the receiver.
    returns: SyncSender<Used>,
    /// What has arrived of each chunk and waits to be used.
    pub(crate) chunks: Vec<Option<Vec<f32>>>,
    pub(crate) votes: VecDeque<u64>,
    pub(crate) gathered: VecDeque<Vec<f64>>,
    pub(crate) left: bool,
}

impl Peer {
    /// Starts to receive what `peer` sends to `rank` over `channel`, sealed or as it is.
    pub(crate) fn start(
        channel: SecureChannel,
        encrypt: bool,
        peer: usize,
        rank: usize,
        generation: u16,
        plan: &Arc<Plan>,
        events: &SyncSender<(usize, PeerEvent)>,
    ) -> Result<Self, GangError> {
        let SecureChannel {
            stream,
            sealer,
            opener,
        } = channel;
        let set_up = || {
            stream.set_write_timeout(Some(LOOK))?;
            Ok((stream.try_clone()?, stream.try_clone()?))
        };
        let (reading, writing) =
            set_up().map_err(GangError::io(format!("set up rank {peer}'s connection")))?;
        let reader = FrameReader::new(reading, encrypt.then_some(opener));
        let writer = FrameWriter::new(writing, encrypt.then_some(sealer));
        let (receiver, returns) =
            Receiver::new(reader, peer, rank, generation, plan, events.clone());
        let receiver = std::thread::Builder::new()
            .name(format!("from-rank-{peer}"))
            .spawn(move || receiver.run())
            .map_err(GangError::io("start a thread to receive"))?;
        Ok(Self {
            stream,
            writer: Some(writer),
            receiver: Some(receiver),
            returns,
            chunks: vec![None; plan.pieces()],
            votes: VecDeque::with_capacity(2),
            gathered: VecDeque::with_capacity(2),
            left: false,
        })
    }

    /// Gives a used buffer back to the receiver.
    pub(crate) fn give_back(&self, used: Used) {
        // There is room for every buffer. A receiver that is gone does not need its buffers.
        let _ = self.returns.try_send(used);
    }

    /// Ends both directions.
    pub(crate) fn shut_down(&self) {
        // It fails only for a connection that has ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Waits for the receiver to end; its connection is shut down.
    pub(crate) fn join(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}
