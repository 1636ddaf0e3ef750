//! An object that is sent in pieces and seen when all have come.
//!
//! Pieces are gathered to the size that stores want. Each is an operation of its own, with its own time and
//! attempts, so that a long file needs no more of either than a short one, and a connection that is cut
//! costs one piece. What fits into one piece is sent as one request.

use super::Remote;
use super::failure::AttemptFailure;
use crate::PlaceError;
use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Bytes of a piece; all but the last have as many. Stores take 10,000 of them: 160 GB.
const PIECE: usize = 16 << 20;

/// An object that is being sent.
pub(crate) struct Upload {
    remote: Remote,
    store: Arc<dyn MultipartStore>,
    /// What was not sent yet: less than a piece.
    buffer: Vec<u8>,
    /// The store's name for the whole, once there is more than a piece.
    id: Option<String>,
    sent: Vec<PartId>,
    length: u64,
}

impl Remote {
    /// Begins to write.
    pub(crate) fn upload(&self) -> Result<Upload, PlaceError> {
        self.not_on_the_web("write")?;
        let store = self.store.opened.pieces.clone();
        let store = store.ok_or_else(|| PlaceError::ReadOnly {
            doing: "write",
            place: self.to_string(),
        })?;
        Ok(Upload {
            remote: self.clone(),
            store,
            buffer: Vec::new(),
            id: None,
            sent: Vec::new(),
            length: 0,
        })
    }
}

impl Upload {
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), PlaceError> {
        while self.buffer.len() + bytes.len() > PIECE {
            let (now, later) = bytes.split_at(PIECE - self.buffer.len());
            self.buffer.extend_from_slice(now);
            bytes = later;
            let piece = std::mem::take(&mut self.buffer);
            self.send(piece.into())?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn commit(mut self) -> Result<(), PlaceError> {
        let last = Bytes::from(std::mem::take(&mut self.buffer));
        if self.id.is_none() {
            return self.remote.put(last);
        }
        if !last.is_empty() {
            self.send(last)?;
        }
        let Some(id) = self.id.take() else {
            return Ok(());
        };
        let completed = self.complete(&id);
        if completed.is_err() {
            self.id = Some(id);
        }
        completed
    }

    fn send(&mut self, piece: Bytes) -> Result<(), PlaceError> {
        let (remote, store) = (&self.remote, &self.store);
        let path = &remote.path;
        let id = match &self.id {
            Some(id) => id,
            None => {
                let id =
                    remote.repeat("write", async || Ok(store.create_multipart(path).await?))?;
                self.id.insert(id)
            }
        };
        let number = self.sent.len();
        let part = remote.repeat("write", async || {
            let payload = piece.clone().into();
            Ok(store.put_part(path, id, number, payload).await?)
        })?;
        self.sent.push(part);
        self.length += piece.len() as u64;
        Ok(())
    }

    fn complete(&self, id: &String) -> Result<(), PlaceError> {
        let (remote, tries) = (&self.remote, Cell::new(0));
        let completed = remote.repeat("write", async || {
            tries.set(tries.get() + 1);
            let parts = self.sent.clone();
            let completed = self.store.complete_multipart(&remote.path, id, parts).await;
            completed.map(drop).map_err(AttemptFailure::from)
        });
        match completed {
            // An earlier attempt may have been done without its answer coming back.
            Err(error) if tries.get() > 1 => match remote.entry() {
                Ok(Some(entry)) if entry.size == self.length => Ok(()),
                _ => Err(error),
            },
            completed => completed,
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let (path, store) = (&self.remote.path, &self.store);
            // What cannot be taken back now goes by the bucket's rule for uploads that were not finished.
            let _ = self.remote.repeat("delete", async || {
                Ok(store.abort_multipart(path, &id).await?)
            });
        }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({}, {} bytes sent)", self.remote, self.length)
    }
}
