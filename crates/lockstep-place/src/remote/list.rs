//! Listing what lies below a place, over as many pages as it takes.

use super::failure::AttemptFailure;
use super::patience::Patience;
use super::{Remote, StoreKind, describe};
use crate::{FileEntry, PlaceError};
use futures_util::StreamExt;
use object_store::ObjectMeta;
use std::collections::HashSet;
use tokio::time::timeout;

impl Remote {
    /// All objects below, in no particular order.
    pub(crate) fn list(&self) -> Result<Vec<FileEntry>, PlaceError> {
        if self.store.kind == StoreKind::Web {
            let place = self.to_string();
            return Err(PlaceError::NoListing { place });
        }
        self.block("list", async {
            let mut patience = Patience::new(&self.store.access);
            let mut found = Vec::new();
            loop {
                let failure = match patience.attempt(self.gather(&mut found)).await {
                    Ok(()) => return Ok(self.entries(found)),
                    Err(failure) => failure,
                };
                let progress = format!("{} names came", found.len());
                let paused = patience.pause(failure).await;
                paused.map_err(|failure| self.explain("list", failure, &patience, progress))?;
            }
        })
    }

    /// Adds the objects that `found` does not have yet.
    async fn gather(&self, found: &mut Vec<ObjectMeta>) -> Result<(), AttemptFailure> {
        // Only where names come in the order of their bytes is all before the last one known.
        if !matches!(self.store.kind, StoreKind::S3 | StoreKind::Gcs) {
            found.clear();
        }
        let mut stream = match found.last() {
            None => self.objects().list(Some(&self.path)),
            Some(last) => self
                .objects()
                .list_with_offset(Some(&self.path), &last.location),
        };
        let stall = self.store.access.stall();
        loop {
            match timeout(stall, stream.next()).await {
                Ok(Some(object)) => found.push(object?),
                Ok(None) => return Ok(()),
                Err(_) => return Err(AttemptFailure::Stalled(stall)),
            }
        }
    }

    /// The objects as entries, without the markers that some tools leave for folders.
    fn entries(&self, found: Vec<ObjectMeta>) -> Vec<FileEntry> {
        let below = match self.path.as_ref() {
            "" => 0,
            above => above.len() + 1,
        };
        let mut entries: Vec<FileEntry> = found
            .iter()
            .filter_map(|object| Some(describe(object.location.as_ref().get(below..)?, object)))
            .filter(|entry| !entry.path.is_empty())
            .collect();
        entries.sort_unstable();
        entries.dedup();
        let folders: HashSet<String> = entries
            .iter()
            .flat_map(|entry| {
                entry
                    .path
                    .match_indices('/')
                    .map(|(at, _)| entry.path[..at].to_owned())
            })
            .collect();
        entries.retain(|entry| entry.size > 0 || !folders.contains(&entry.path));
        entries
    }
}
