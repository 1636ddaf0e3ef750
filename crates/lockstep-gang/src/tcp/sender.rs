//! What a rank hands to one connection to be sent.
//!
//! The rank's own thread writes what the connection takes at once, if nothing is queued; that costs less
//! than waking another thread. The rest goes into a queue, and the rank goes on computing. So a peer
//! that reads slowly, or not at all, delays neither what other peers get nor the backward pass. The
//! queue has room for all that the protocol lets be under way, each piece once, so putting a frame there
//! does not wait. Sealed frames are always queued, since sealing is work that another core can do; but a rank that
//! gets ahead of the other cores [helps](super::outgoing).

use super::event_loop::Waker;
use super::frame::{FrameHeader, HEADER};
use super::outgoing::{Outgoing, SendState};
use super::writer;
use crate::{AbortSwitch, Deadline, Plan};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Frames that can be under way over one connection: each piece, two votes, two gatherings, a goodbye.
fn frames_under_way(plan: &Plan) -> usize {
    plan.pieces() + 5
}

/// A frame to be sent.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) header: FrameHeader,
    pub(super) numbers: Numbers,
    /// Bytes of both that were sent already, or sealed to be sent.
    pub(super) sent: usize,
}

/// What follows a header.
#[derive(Debug, Clone)]
pub(super) enum Numbers {
    /// Nothing.
    None,
    /// Partial sums, or new values, that nobody else reads: they may be sealed where they are.
    Piece(Vec<f32>),
    /// A rank's part of a gathering.
    Gathered(Arc<Vec<f64>>),
}

impl Numbers {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Piece(numbers) => bytemuck::cast_slice(numbers),
            Self::Gathered(numbers) => bytemuck::cast_slice(numbers),
        }
    }
}

/// What ends the waits of all connections of a rank.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    pub(super) deadline: Deadline,
    pub(super) abort: AbortSwitch,
    /// Set when nothing but goodbyes is worth sending any more.
    pub(super) given_up: Arc<AtomicBool>,
}

impl Patience {
    /// Whether a peer that has taken nothing in since then is waited for too long.
    pub(super) fn is_over(&self, since: Instant) -> bool {
        self.abort.in_vain(since.elapsed()) > self.deadline.0
    }

    /// Whether nothing more is worth sending to a peer that has no room.
    pub(super) fn is_given_up(&self) -> bool {
        self.abort.is_aborted() || self.given_up.load(Ordering::Acquire)
    }
}

/// Sealed frames that a rank may be ahead of those who send: so many are in its caches.
const AHEAD: usize = 4;

/// The rank's handle on the sending half of one connection.
#[derive(Debug)]
pub(super) struct Sender {
    /// Taken away when the last frame was queued.
    queue: Option<SyncSender<Frame>>,
    state: Arc<SendState>,
    outgoing: Arc<Mutex<Outgoing>>,
    /// Where the rank writes itself at once, unless frames are sealed.
    direct: Option<Arc<TcpStream>>,
    /// Wakes the loop that the connection belongs to.
    waker: Arc<Waker>,
    patience: Patience,
}

/// The queue of a connection that carries this plan, and what is known of it.
pub(super) fn queue_of_frames(plan: &Plan) -> (SyncSender<Frame>, Receiver<Frame>, Arc<SendState>) {
    let (queue, frames) = sync_channel(frames_under_way(plan));
    (queue, frames, Arc::default())
}

impl Sender {
    /// Hands what is queued to `outgoing`, which the loop that `waker` wakes sends, but for what the rank writes
    /// to `direct`.
    pub(super) fn new(
        (queue, state): (SyncSender<Frame>, Arc<SendState>),
        outgoing: Arc<Mutex<Outgoing>>,
        direct: Option<Arc<TcpStream>>,
        waker: Arc<Waker>,
        patience: Patience,
    ) -> Self {
        Self {
            queue: Some(queue),
            state,
            outgoing,
            direct,
            waker,
            patience,
        }
    }

    /// Sends what the connection takes of a frame without waiting; returns how many bytes that is.
    pub(super) fn send_now(&self, header: &FrameHeader, numbers: &[u8]) -> usize {
        match &self.direct {
            // Whatever was written before comes before this.
            Some(stream) if self.state.queued.load(Ordering::SeqCst) == 0 => {
                let header = header.encode();
                let mut sent = 0;
                while sent < HEADER + numbers.len() {
                    // An error comes again when the loop goes on with the frame, and is reported there.
                    match writer::send_now(stream, &header, numbers, sent) {
                        Ok(more) if more > 0 => sent += more,
                        _ => break,
                    }
                }
                sent
            }
            _ => 0,
        }
    }

    /// Queues a frame; gives it back when there is no room, `None` when the connection has ended.
    pub(super) fn queue(&self, frame: Frame) -> Result<(), Option<Frame>> {
        if self.is_finished() {
            return Err(None);
        }
        let queue = self.queue.as_ref().ok_or(None)?;
        // Before it is there: whoever sees the frame knows of it.
        let before = self.state.queued.fetch_add(1, Ordering::SeqCst);
        let queued = queue.try_send(frame).map_err(|error| {
            self.state.queued.fetch_sub(1, Ordering::SeqCst);
            match error {
                TrySendError::Full(frame) => Some(frame),
                TrySendError::Disconnected(_) => None,
            }
        });
        if before >= AHEAD && self.direct.is_none() {
            self.help();
        }
        self.waker.wake();
        queued
    }

    /// Sends a part of what is queued, if nobody else does.
    fn help(&self) {
        self.state.is_helped.store(true, Ordering::SeqCst);
        if let Ok(mut outgoing) = self.outgoing.try_lock() {
            outgoing.send(&self.patience, AHEAD / 2);
        }
        self.state.is_helped.store(false, Ordering::SeqCst);
    }

    /// Queues a last frame, if there is room for it, and nothing after.
    pub(super) fn close(&mut self, last: Option<Frame>) {
        if let Some(last) = last {
            let _ = self.queue(last);
        }
        self.queue = None;
        self.waker.call();
    }

    /// Whether all was sent that will be.
    pub(super) fn is_finished(&self) -> bool {
        self.state.is_finished.load(Ordering::Acquire)
    }
}

/// How long a rank waits for a sender to let go of numbers that the peer has got already.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Lets the rank write where a sender may still be on its way out of its last call: the protocol says
/// that the peer has got the numbers. Should a sender keep them in spite of that, the rank goes on with
/// a copy.
pub(super) fn writable<T: Clone>(numbers: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    let begin = Instant::now();
    while Arc::strong_count(numbers) > 1 && begin.elapsed() < LETTING_GO {
        std::thread::yield_now();
    }
    Arc::make_mut(numbers)
}
