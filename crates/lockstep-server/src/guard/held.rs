//! Bytes of requests and answers that are in memory at a time, over all connections.
//!
//! Small ones are not counted: there are only so many connections. Of larger ones there may be so much at a time; who comes
//! then is told to come again.

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// What is not counted of each.
pub(super) const SMALL: u64 = 64 << 10;
/// The most bytes of requests, and of answers.
const MOST: u64 = 48 << 20;

/// Bytes that are in memory.
#[derive(Debug, Default)]
pub(super) struct Pool(AtomicU64);

/// Of requests that are being read.
pub(super) static REQUESTS: Pool = Pool(AtomicU64::new(0));
/// Of answers that are being sent.
static ANSWERS: Pool = Pool(AtomicU64::new(0));

/// A part of a pool, which is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    pool: &'static Pool,
    bytes: AtomicU64,
}

impl Pool {
    /// Nothing of it yet.
    pub(super) const fn hold(&'static self) -> Held {
        Held {
            pool: self,
            bytes: AtomicU64::new(0),
        }
    }
}

impl Held {
    /// Takes more; whether there was so much.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let before = self.pool.0.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > MOST {
            self.pool.0.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.pool.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The same answer, which counts until it is sent; nothing if there are too many. One that comes in pieces is small at any
/// time.
pub(super) fn counted(answer: Response) -> Option<Response> {
    let size = answer.body().size_hint().exact().unwrap_or(0);
    if size <= SMALL {
        return Some(answer);
    }
    let held = ANSWERS.hold();
    held.take(size)
        .then(|| answer.map(|body| Body::new(Counted { body, _held: held })))
}

/// A body that counts.
struct Counted {
    body: Body,
    _held: Held,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_in_memory_at_a_time_and_no_more() {
        static POOL: Pool = Pool(AtomicU64::new(0));
        let one = POOL.hold();
        assert!(one.take(MOST - 10) && one.take(10) && !one.take(1));
        let other = POOL.hold();
        assert!(!other.take(1));
        drop(one);
        assert!(other.take(MOST));
        drop(other);
        assert_eq!(POOL.0.load(Ordering::Relaxed), 0);
    }
}
