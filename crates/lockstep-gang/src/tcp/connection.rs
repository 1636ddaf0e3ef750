//! One TCP connection to a peer, as the loop sees it that reads and writes it.

use super::outgoing::{Outgoing, SendState};
use super::reader::FrameReader;
use super::receiver::{PeerEvent, Receiver};
use super::sender::Patience;
use rustix::event::PollFlags;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};

/// A connection and all that is under way on it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    peer: usize,
    reader: FrameReader,
    receiver: Receiver,
    /// Whether anything more can be read.
    reads: bool,
    outgoing: Arc<Mutex<Outgoing>>,
    sending: Arc<SendState>,
    /// Whether what is sent has to be looked at soon again, though nothing may happen.
    is_held_up: bool,
    events: SyncSender<(usize, PeerEvent)>,
    /// How the reading ended, while the rank has no room for it. It has room for all that a peer may send.
    held: Option<PeerEvent>,
}

impl Connection {
    /// A connection to `peer` whose events go to a rank.
    pub(super) fn new(
        stream: Arc<TcpStream>,
        (peer, receiver): (usize, Receiver),
        reader: FrameReader,
        (outgoing, sending): (Arc<Mutex<Outgoing>>, Arc<SendState>),
        events: SyncSender<(usize, PeerEvent)>,
    ) -> Self {
        Self {
            stream,
            peer,
            reader,
            receiver,
            reads: true,
            outgoing,
            sending,
            is_held_up: false,
            events,
            held: None,
        }
    }

    /// What is to be waited for.
    pub(super) fn wants(&self) -> PollFlags {
        let is = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        let mut wants = PollFlags::empty();
        wants.set(PollFlags::IN, self.reads);
        let waits_for_room = is(&self.sending.is_full) && !is(&self.sending.is_finished);
        wants.set(PollFlags::OUT, waits_for_room);
        wants
    }

    /// Whether something is to be looked at soon again, though nothing may happen to the connection.
    pub(super) fn is_held_up(&self) -> bool {
        self.held.is_some() || self.is_held_up || self.sending.is_full.load(Ordering::SeqCst)
    }

    /// Whether there is something to send, and room for it as far as is known.
    pub(super) fn can_send(&self) -> bool {
        self.sending.can_send()
    }

    /// Does what can be done now.
    pub(super) fn happened(&mut self, what: PollFlags) {
        let end = PollFlags::HUP | PollFlags::ERR;
        if self.reads && !(what & (PollFlags::IN | end)).is_empty() {
            self.read();
        }
        if !(what & (PollFlags::OUT | end)).is_empty() {
            self.sending.is_full.store(false, Ordering::SeqCst);
        }
    }

    fn read(&mut self) {
        let mut has_room = true;
        let (peer, events) = (self.peer, &self.events);
        let mut note = |event| {
            let told = events.try_send((peer, event));
            has_room &= !matches!(told, Err(TrySendError::Full(_)));
            has_room
        };
        let ended = self
            .reader
            .read(&self.stream, &mut self.receiver, &mut note);
        if !has_room {
            let what = "it sent more than it may before any of it was used";
            self.reads = false;
            self.held.get_or_insert(PeerEvent::Broken(what.to_owned()));
        } else if let Err(end) = ended {
            self.reads = false;
            self.tell(end);
        }
    }

    /// Tells the rank of the end of something, now or as soon as it has room for it.
    fn tell(&mut self, end: PeerEvent) {
        if let Err(TrySendError::Full((_, end))) = self.events.try_send((self.peer, end)) {
            self.held.get_or_insert(end);
        }
    }

    /// Sends what is queued, as far as there is room, unless the rank is doing that itself.
    pub(super) fn send(&mut self, patience: &Patience) {
        if let Some(end) = self.held.take() {
            self.tell(end);
        }
        if let Ok(mut outgoing) = self.outgoing.try_lock() {
            outgoing.send(patience, 0);
            self.is_held_up = outgoing.is_held_up();
        }
    }
}
