//! One TCP connection to a peer, as the loop sees it that reads and writes it.

use super::frame::FrameKind;
use super::receiver::{PeerEvent, Receiver};
use super::sender::{Frame, Patience, SendQueue};
use super::wire::{FrameReader, FrameWriter};
use rustix::event::PollFlags;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Instant;

/// A connection and all that is under way on it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    peer: usize,
    reader: FrameReader,
    receiver: Receiver,
    writer: FrameWriter,
    queue: SendQueue,
    /// The frame that is being sent, and since when.
    sending: Option<(Frame, Instant)>,
    /// Whether the peer has no room for more.
    is_full: bool,
    /// Whether anything more can be read, or sent.
    reads: bool,
    sends: bool,
    events: SyncSender<(usize, PeerEvent)>,
    /// How the connection ended, while the rank has no room for it. It has room for all that a peer may send.
    held: Option<PeerEvent>,
}

impl Connection {
    /// A connection to `peer` whose events go to a rank.
    pub(super) fn new(
        stream: Arc<TcpStream>,
        (peer, receiver): (usize, Receiver),
        (reader, writer): (FrameReader, FrameWriter),
        queue: SendQueue,
        events: SyncSender<(usize, PeerEvent)>,
    ) -> Self {
        Self {
            stream,
            peer,
            reader,
            receiver,
            writer,
            queue,
            sending: None,
            is_full: false,
            reads: true,
            sends: true,
            events,
            held: None,
        }
    }

    /// What is to be waited for.
    pub(super) fn wants(&self) -> PollFlags {
        let mut wants = PollFlags::empty();
        wants.set(PollFlags::IN, self.reads);
        wants.set(PollFlags::OUT, self.sends && self.is_full);
        wants
    }

    /// Whether something is to be looked at soon again, though nothing may happen to the connection.
    pub(super) fn is_held_up(&self) -> bool {
        self.held.is_some() || (self.sends && self.is_full)
    }

    /// Whether there is something to send, and room for it as far as is known.
    pub(super) fn can_send(&self) -> bool {
        self.sends && !self.is_full && (self.sending.is_some() || self.queue.has_frames())
    }

    /// Does what can be done now.
    pub(super) fn happened(&mut self, what: PollFlags) {
        if !(what & PollFlags::OUT).is_empty() {
            self.is_full = false;
        }
        let end = PollFlags::HUP | PollFlags::ERR;
        if self.reads && !(what & (PollFlags::IN | end)).is_empty() {
            self.read();
        }
        if !(what & end).is_empty() {
            self.is_full = false;
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

    /// Sends what is queued, as far as there is room.
    pub(super) fn send(&mut self, patience: &Patience) {
        if let Some(end) = self.held.take() {
            self.tell(end);
        }
        while self.sends && !self.is_full {
            let next = || self.queue.next().map(|frame| (frame, Instant::now()));
            let Some((mut frame, since)) = self.sending.take().or_else(next) else {
                return;
            };
            // Half a frame can be followed by nothing but its other half.
            let must = frame.header.kind == FrameKind::Goodbye || frame.sent > 0;
            if !must && patience.is_given_up() {
                self.queue.done(frame);
                continue;
            }
            match self.writer.send(&self.stream, &mut frame) {
                Ok(true) => self.queue.done(frame),
                Ok(false) => {
                    self.sending = Some((frame, since));
                    self.is_full = true;
                }
                Err(error) => {
                    let reason = format!("its connection ended: {error}");
                    self.stop_sending(Some(PeerEvent::Lost(reason)));
                }
            }
        }
        if let Some((_, since)) = &self.sending {
            if patience.is_given_up() {
                self.stop_sending(None);
            } else if patience.is_over(*since) {
                self.stop_sending(Some(PeerEvent::Stuck));
            }
        }
    }

    fn stop_sending(&mut self, why: Option<PeerEvent>) {
        (self.sends, self.sending) = (false, None);
        self.queue.finish();
        if let Some(why) = why {
            self.tell(why);
        }
    }
}
