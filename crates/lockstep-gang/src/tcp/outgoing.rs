//! The sending half of a connection, which a loop and the rank's own thread take turns with.
//!
//! Mostly the loop sends what is queued. But where the rank computes on all cores, it gets far ahead of the loop, and what it
//! queued leaves the caches before it is sealed. So a rank that is too far ahead sends a part of it itself.

use super::frame::FrameKind;
use super::receiver::PeerEvent;
use super::sender::{Frame, Numbers, Patience};
use super::writer::FrameWriter;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Channel, SyncSender, TryRecvError, TrySendError};
use std::time::Instant;

/// Frames that are sent before others have their turn.
const TURN: usize = 16;

/// What is known of a sending half without having it.
#[derive(Debug, Default)]
pub(super) struct SendState {
    /// Frames that were queued and not sent yet. At zero nothing is sent until the rank queues another frame.
    pub(super) queued: AtomicUsize,
    /// Whether the peer has no room for more.
    pub(super) is_full: AtomicBool,
    /// Whether the rank is sending itself.
    pub(super) is_helped: AtomicBool,
    /// Whether all was sent that will be.
    pub(super) is_finished: AtomicBool,
}

impl SendState {
    /// Whether there is something for the loop to send, and room for it as far as is known.
    pub(super) fn can_send(&self) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        let is_queued = self.queued.load(Ordering::SeqCst) > 0;
        is_queued && !is(&self.is_full) && !is(&self.is_helped) && !is(&self.is_finished)
    }
}

/// What is queued for a connection, and what of it is under way.
#[derive(Debug)]
pub(super) struct Outgoing {
    stream: Arc<TcpStream>,
    peer: usize,
    writer: FrameWriter,
    frames: Channel<Frame>,
    /// The frame that is being sent, and since when.
    sending: Option<(Frame, Instant)>,
    state: Arc<SendState>,
    /// Takes buffers back to the rank.
    spent: SyncSender<Vec<f32>>,
    events: SyncSender<(usize, PeerEvent)>,
    /// How the sending ended, while the rank has no room for it.
    held: Option<PeerEvent>,
}

impl Outgoing {
    /// What is sent to `peer` through `writer`.
    pub(super) fn new(
        (peer, stream): (usize, Arc<TcpStream>),
        writer: FrameWriter,
        (frames, state): (Channel<Frame>, Arc<SendState>),
        spent: SyncSender<Vec<f32>>,
        events: SyncSender<(usize, PeerEvent)>,
    ) -> Self {
        Self {
            stream,
            peer,
            writer,
            frames,
            sending: None,
            state,
            spent,
            events,
            held: None,
        }
    }

    /// Whether something is to be looked at soon again, though nothing may happen to the connection.
    pub(super) fn is_held_up(&self) -> bool {
        self.held.is_some() || self.sending.is_some()
    }

    /// Sends what is queued, as far as there is room, until no more than `left` frames are, or others have their turn.
    pub(super) fn send(&mut self, patience: &Patience, left: usize) {
        if let Some(end) = self.held.take() {
            self.tell(end);
        }
        for _ in 0..TURN {
            if self.state.is_finished.load(Ordering::Acquire)
                || self.state.is_full.load(Ordering::SeqCst)
                || (left > 0 && self.state.queued.load(Ordering::SeqCst) <= left)
            {
                break;
            }
            let Some((mut frame, since)) = self.sending.take().or_else(|| self.next()) else {
                return;
            };
            // Half a frame can be followed by nothing but its other half.
            let must = frame.header.kind == FrameKind::Goodbye || frame.sent > 0;
            if !must && patience.is_given_up() {
                self.done(frame);
                continue;
            }
            match self.writer.send(&self.stream, &mut frame) {
                Ok(true) => self.done(frame),
                Ok(false) => {
                    self.sending = Some((frame, since));
                    self.state.is_full.store(true, Ordering::SeqCst);
                }
                Err(error) => {
                    let reason = format!("its connection ended: {error}");
                    self.stop(Some(PeerEvent::Lost(reason)));
                }
            }
        }
        if let Some((_, since)) = &self.sending {
            if patience.is_given_up() {
                self.stop(None);
            } else if patience.is_over(*since) {
                self.stop(Some(PeerEvent::Stuck));
            }
        }
    }

    /// The next frame; none when there is none for now, or ever: then all is sent.
    fn next(&self) -> Option<(Frame, Instant)> {
        match self.frames.try_recv() {
            Ok(frame) => Some((frame, Instant::now())),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.state.is_finished.store(true, Ordering::Release);
                None
            }
        }
    }

    /// A frame is done with: it was sent, or will never be. Its numbers can be used again.
    fn done(&self, frame: Frame) {
        if let Numbers::Piece(buffer) = frame.numbers {
            // There is room for all buffers. A rank that is gone does not need them.
            let _ = self.spent.try_send(buffer);
        }
        self.state.queued.fetch_sub(1, Ordering::SeqCst);
    }

    fn stop(&mut self, why: Option<PeerEvent>) {
        self.sending = None;
        self.state.is_finished.store(true, Ordering::Release);
        if let Some(why) = why {
            self.tell(why);
        }
    }

    fn tell(&mut self, end: PeerEvent) {
        if let Err(TrySendError::Full((_, end))) = self.events.try_send((self.peer, end)) {
            self.held = Some(end);
        }
    }
}
