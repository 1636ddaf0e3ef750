//! Pictures' bytes, read ahead of the one who needs them.
//!
//! Object stores answer late and many at a time, so pictures are read in bunches, several at once, while
//! the bunch before is encoded. How much lies in memory is bounded in bytes, whatever the pictures' sizes.

use crate::skipped::{TOO_LARGE, UNREADABLE};
use crate::{EmbedError, ListedPicture};
use lockstep_place::{Place, PlaceError};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

/// Requests under way at once, where each is answered late.
const AT_ONCE: usize = 8;

/// What is wrong with a picture that cannot be read: in a word, and in a sentence.
pub(crate) type Unreadable = (&'static str, String);

/// The bytes of one picture; what is wrong with it, if it alone cannot be read.
pub(crate) type PictureBytes = Result<Vec<u8>, Unreadable>;

/// Some pictures, one after the other in the part, with their bytes.
pub(crate) struct Bunch {
    pub(crate) pictures: Range<usize>,
    pub(crate) bytes: Vec<PictureBytes>,
}

/// Reads `pictures` of `folder` in the background, in their order. One bunch is at most `most` pictures and
/// `room` bytes; two are in memory at a time, and the one that the caller holds.
pub(crate) fn ahead<'scope>(
    scope: &'scope Scope<'scope, '_>,
    folder: &'scope Place,
    pictures: &'scope [ListedPicture],
    most: usize,
    room: u64,
) -> Receiver<Result<Bunch, EmbedError>> {
    let (sender, receiver) = sync_channel(1);
    scope.spawn(move || send_all(folder, pictures, most, room, &sender));
    receiver
}

fn send_all(
    folder: &Place,
    pictures: &[ListedPicture],
    most: usize,
    room: u64,
    sender: &SyncSender<Result<Bunch, EmbedError>>,
) {
    for range in bunches(pictures, most, room) {
        let bytes = read_bunch(folder, &pictures[range.clone()], room);
        let failed = bytes.is_err();
        let bunch = bytes.map(|bytes| Bunch {
            pictures: range,
            bytes,
        });
        // Nobody listens any more when something else failed.
        if sender.send(bunch).is_err() || failed {
            return;
        }
    }
}

/// Cuts the pictures into bunches. One that is larger than the room is alone, and is not read.
fn bunches(pictures: &[ListedPicture], most: usize, room: u64) -> Vec<Range<usize>> {
    let mut bunches = Vec::new();
    let (mut start, mut bytes) = (0, 0u64);
    for (i, picture) in pictures.iter().enumerate() {
        let full = i - start == most || bytes.saturating_add(picture.size) > room;
        if full && i > start {
            bunches.push(start..i);
            (start, bytes) = (i, 0);
        }
        bytes = bytes.saturating_add(picture.size);
    }
    bunches.push(start..pictures.len());
    bunches
}

fn read_bunch(
    folder: &Place,
    pictures: &[ListedPicture],
    room: u64,
) -> Result<Vec<PictureBytes>, EmbedError> {
    if folder.local().is_some() || pictures.len() == 1 {
        return pictures
            .iter()
            .map(|picture| read(folder, picture, room))
            .collect();
    }
    thread::scope(|scope| {
        let share = pictures.len().div_ceil(AT_ONCE);
        let readers: Vec<_> = pictures
            .chunks(share)
            .map(|some| {
                scope.spawn(move || -> Result<Vec<PictureBytes>, EmbedError> {
                    some.iter()
                        .map(|picture| read(folder, picture, room))
                        .collect()
                })
            })
            .collect();
        let mut all = Vec::with_capacity(pictures.len());
        for reader in readers {
            match reader.join() {
                Ok(bytes) => all.extend(bytes?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}

/// A picture that is gone, or that this user may not read, is that picture's matter alone; a store that does
/// not answer is everybody's.
fn read(folder: &Place, picture: &ListedPicture, room: u64) -> Result<PictureBytes, EmbedError> {
    if picture.size > room {
        let reason = format!(
            "its {} bytes are more than data.memory leaves for one picture ({room})",
            picture.size
        );
        return Ok(Err((TOO_LARGE, reason)));
    }
    match folder.join(&picture.path)?.read() {
        Ok(bytes) if bytes.len() as u64 == picture.size => Ok(Ok(bytes)),
        Ok(_) => Err(EmbedError::Changed {
            path: format!("{folder}/{}", picture.path),
        }),
        Err(PlaceError::NotFound { .. }) => Ok(Err(("missing", "it is gone".to_owned()))),
        Err(PlaceError::Io { source, .. }) => Ok(Err((UNREADABLE, source.to_string()))),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(size: u64) -> ListedPicture {
        ListedPicture {
            path: "class/a.jpg".into(),
            size,
            version: String::new(),
        }
    }

    #[test]
    fn a_bunch_is_bounded_in_pictures_and_in_bytes() {
        let sizes = |sizes: &[u64]| -> Vec<ListedPicture> {
            sizes.iter().map(|&size| picture(size)).collect()
        };
        assert_eq!(
            bunches(&sizes(&[1, 1, 1, 1, 1]), 2, 100),
            [0..2, 2..4, 4..5]
        );
        assert_eq!(
            bunches(&sizes(&[60, 60, 30, 500, 1]), 9, 100),
            [0..1, 1..3, 3..4, 4..5]
        );
        assert_eq!(bunches(&sizes(&[u64::MAX, u64::MAX]), 9, 100), [0..1, 1..2]);
    }
}
