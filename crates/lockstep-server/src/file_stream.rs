//! A file of a run as an answer: one version of it, of which only a piece is in memory at a time.

use axum::body::{Body, Bytes};
use futures_util::stream;
use lockstep_base::fs::beneath::Purpose;
use lockstep_place::{FileEntry, Place, PlaceError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How many bytes are read at a time.
const PIECE: u64 = 64 << 10;

/// A file that is open.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    content: Content,
    size: u64,
}

#[derive(Debug, Clone)]
enum Content {
    /// Whatever takes the file's name meanwhile, this one stays what it is.
    Local(Arc<File>),
    /// A store says so if it has another version by now.
    Remote(Place, FileEntry),
}

impl OpenFile {
    /// Opens a file; nothing if there is none, or a folder, or a link below a store.
    pub(crate) fn open(place: &Place) -> Result<Option<OpenFile>, PlaceError> {
        let Some(entry) = place.entry()? else {
            return Ok(None);
        };
        let (content, size) = match (place.open_local(Purpose::Read), place.local()) {
            (Some(opened), Some(path)) => {
                let failed = |source| PlaceError::io("read", path, source);
                let file = opened.map_err(failed)?;
                let size = file.metadata().map_err(failed)?.len();
                (Content::Local(Arc::new(file)), size)
            }
            _ => {
                let size = entry.size;
                (Content::Remote(place.clone(), entry), size)
            }
        };
        Ok(Some(OpenFile { content, size }))
    }

    /// How many bytes it has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// All of it, piece by piece.
    pub(crate) fn stream(self) -> Body {
        Body::from_stream(stream::try_unfold(0, move |from| {
            let file = self.clone();
            async move {
                if from >= file.size {
                    return Ok::<_, io::Error>(None);
                }
                let end = file.size.min(from + PIECE);
                let read = tokio::task::spawn_blocking(move || file.read(from, end));
                Ok(Some((Bytes::from(read.await??), end)))
            }
        }))
    }

    fn read(&self, from: u64, end: u64) -> io::Result<Vec<u8>> {
        match &self.content {
            Content::Local(file) => {
                let mut piece = vec![0; (end - from) as usize];
                file.read_exact_at(&mut piece, from)?;
                Ok(piece)
            }
            Content::Remote(place, entry) => place
                .read_range_of(entry, from..end)
                .map_err(io::Error::other),
        }
    }
}
