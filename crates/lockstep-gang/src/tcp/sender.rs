//! The sending end of one TCP connection: a thread that writes what a rank hands to one peer.
//!
//! The rank's own thread writes what the connection takes at once, if nothing is queued; that costs less
//! than waking another thread. The rest goes into a queue, and the rank goes on computing. So a peer
//! that reads slowly, or not at all, delays neither what other peers get nor the backward pass. The
//! queue has room for all that the protocol lets be under way, each piece once, so putting a frame there
//! does not wait. Sealed frames are always queued: sealing is work that another core can do.

use super::frame::{FrameHeader, FrameKind};
use super::receiver::PeerEvent;
use super::wire::{self, FrameWriter};
use crate::{AbortSwitch, Deadline, GangError, Plan};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Channel, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Frames that can be under way to one peer: each piece, two votes, two gatherings, a goodbye.
fn frames_to_a_peer(plan: &Plan) -> usize {
    plan.pieces() + 5
}

/// A frame to be sent.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) header: FrameHeader,
    pub(super) numbers: Numbers,
    /// Bytes of both that the peer was sent already.
    pub(super) sent: usize,
}

/// What follows a header.
#[derive(Debug, Clone)]
pub(super) enum Numbers {
    /// Nothing.
    None,
    /// Partial sums, or new values.
    Piece(Arc<Vec<f32>>),
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

/// What ends the waits of all senders of a rank.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    pub(super) deadline: Deadline,
    pub(super) abort: AbortSwitch,
    /// Set when nothing but goodbyes is worth sending any more.
    pub(super) given_up: Arc<AtomicBool>,
}

/// The rank's handle on one peer's sender.
#[derive(Debug)]
pub(super) struct Sender {
    /// Taken away when the last frame was queued.
    queue: Option<SyncSender<Frame>>,
    /// Frames that were queued and not sent yet. At zero the thread does nothing until the rank queues
    /// another frame.
    queued: Arc<AtomicUsize>,
    /// Where the rank writes itself, unless frames are sealed.
    direct: Option<TcpStream>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Starts to send to `peer` what is queued, until the queue is closed or the connection fails,
    /// which `events` are told.
    pub(super) fn start(
        writer: FrameWriter,
        peer: usize,
        plan: &Plan,
        patience: Patience,
        events: SyncSender<(usize, PeerEvent)>,
    ) -> Result<Self, GangError> {
        let (queue, frames) = sync_channel(frames_to_a_peer(plan));
        let direct = writer.unsealed();
        let direct = direct.map_err(GangError::io(format!("set up rank {peer}'s connection")))?;
        let queued = Arc::new(AtomicUsize::new(0));
        let left = queued.clone();
        let thread = std::thread::Builder::new()
            .name(format!("to-rank-{peer}"))
            .spawn(move || {
                if let Some(end) = run(writer, &frames, &left, &patience) {
                    // Nobody listens any more when the rank itself has left.
                    let _ = events.send((peer, end));
                }
            })
            .map_err(GangError::io("start a thread to send"))?;
        Ok(Self {
            queue: Some(queue),
            queued,
            direct,
            thread: Some(thread),
        })
    }

    /// Sends what the connection takes of a frame without waiting; returns how many bytes that is.
    pub(super) fn send_now(&self, header: &FrameHeader, numbers: &[u8]) -> usize {
        match &self.direct {
            // Acquire: what the thread has written comes before this.
            Some(stream) if self.queued.load(Ordering::Acquire) == 0 => {
                // An error comes again when the thread goes on with the frame, and is reported there.
                wire::send_now(stream, &header.encode(), numbers).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Queues a frame; gives it back when there is no room, `None` when the sender has ended.
    pub(super) fn queue(&self, frame: Frame) -> Result<(), Option<Frame>> {
        let queue = self.queue.as_ref().ok_or(None)?;
        self.queued.fetch_add(1, Ordering::Relaxed);
        queue.try_send(frame).map_err(|error| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(frame) => Some(frame),
                TrySendError::Disconnected(_) => None,
            }
        })
    }

    /// Queues a last frame, if there is room for it, and nothing after.
    pub(super) fn close(&mut self, last: Option<Frame>) {
        if let Some(last) = last {
            let _ = self.queue(last);
        }
        self.queue = None;
    }

    /// Whether all was sent that will be.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread to end; its queue is closed and its connection shut down.
    pub(super) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends what comes through the queue. Returns what became of the connection, if it ended.
fn run(
    mut writer: FrameWriter,
    frames: &Channel<Frame>,
    queued: &AtomicUsize,
    patience: &Patience,
) -> Option<PeerEvent> {
    for frame in frames {
        let Frame { header, sent, .. } = frame;
        // Half a frame can be followed by nothing but its other half.
        let must = header.kind == FrameKind::Goodbye || sent > 0;
        if must || !patience.given_up.load(Ordering::Acquire) {
            let begin = Instant::now();
            let wait = |error| patience.wait(begin, &error);
            let bytes = frame.numbers.bytes();
            if let Err(end) = writer.send(&header.encode(), bytes, sent, wait) {
                return end;
            }
        }
        drop(frame);
        queued.fetch_sub(1, Ordering::Release);
    }
    None
}

impl Patience {
    /// Whether to go on with a frame that could not be sent whole for now. If not, why; nothing when
    /// this rank itself gave up.
    fn wait(&self, begin: Instant, error: &io::Error) -> Result<(), Option<PeerEvent>> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                if self.abort.is_aborted() || self.given_up.load(Ordering::Acquire) {
                    return Err(None);
                }
                match self.abort.in_vain(begin.elapsed()) > self.deadline.0 {
                    false => Ok(()),
                    true => Err(Some(PeerEvent::Stuck)),
                }
            }
            _ => {
                let reason = format!("its connection ended: {error}");
                Err(Some(PeerEvent::Lost(reason)))
            }
        }
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
