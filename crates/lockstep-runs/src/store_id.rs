//! Which store a store is, whatever the path that leads to it: some random letters in a file of its own.
//!
//! A server tells them to whoever asks, so that a run that is written into a store can find out that a server shows this
//! very store, also if that runs on another machine or in a container.

use crate::RunsError;
use lockstep_base::fs::random_letters;
use lockstep_place::{Place, PlaceError};

/// The file, in the store's folder.
const FILE: &str = ".store-id";
/// The largest that is read, in bytes.
const LARGEST: u64 = 1024;

/// The id of a store; nothing if nobody has asked its server for one yet.
///
/// # Errors
/// When the store cannot be read.
pub fn store_id(store: &Place) -> Result<Option<String>, RunsError> {
    match store.join(FILE)?.read_at_most(LARGEST) {
        Ok(bytes) => {
            let id = String::from_utf8_lossy(&bytes).trim().to_owned();
            // Two files that say nothing do not say the same.
            Ok(Some(id).filter(|id| !id.is_empty()))
        }
        Err(PlaceError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The id of a store, which is made if there is none. Of two who make it at once, both get the same.
///
/// # Errors
/// When the store cannot be read or written.
pub fn make_store_id(store: &Place) -> Result<String, RunsError> {
    if let Some(id) = store_id(store)? {
        return Ok(id);
    }
    let made = random_letters::<24>()?;
    let line = format!("{made}\n");
    match store.join(FILE)?.create_new(line.as_bytes())? {
        Some(_) => Ok(made),
        None => Ok(store_id(store)?.unwrap_or(made)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    #[test]
    fn a_store_keeps_its_id_and_another_has_another() {
        let folder = tempfile::tempdir().unwrap();
        let store = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
        };
        assert_eq!(store_id(&store("a")).unwrap(), None);
        let id = make_store_id(&store("a")).unwrap();
        assert_eq!(make_store_id(&store("a")).unwrap(), id);
        assert_eq!(store_id(&store("a")).unwrap().as_ref(), Some(&id));
        assert_ne!(make_store_id(&store("b")).unwrap(), id);
    }
}
