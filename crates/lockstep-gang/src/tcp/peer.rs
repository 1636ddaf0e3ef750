//! What a rank knows of one of its peers over TCP: the connection, and all that came over it.

use super::receiver::{PeerEvent, Receiver, Used};
use super::sender::{Patience, Sender};
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

/// What both ends of every connection of a rank have in common.
pub(super) struct Ends<'a> {
    pub(super) encrypt: bool,
    pub(super) rank: usize,
    pub(super) generation: u16,
    pub(super) plan: &'a Arc<Plan>,
    pub(super) patience: &'a Patience,
}

/// One peer.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    pub(super) sender: Sender,
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
    /// Starts to receive what `peer` sends to a rank over `channel`, and to send what it is sent, sealed
    /// or as it is.
    pub(super) fn start(
        channel: SecureChannel,
        peer: usize,
        ends: &Ends<'_>,
        events: &SyncSender<(usize, PeerEvent)>,
    ) -> Result<Self, GangError> {
        let &Ends {
            encrypt,
            rank,
            generation,
            plan,
            patience,
        } = ends;
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
        let sender = Sender::start(writer, peer, plan, patience.clone(), events.clone())?;
        Ok(Self {
            stream,
            sender,
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

    /// Waits for both threads to end; the connection is shut down.
    pub(crate) fn join(&mut self) {
        self.sender.join();
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}
