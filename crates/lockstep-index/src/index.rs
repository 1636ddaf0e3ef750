//! An open index.

use crate::IndexError;
use crate::location::Location;
use lockstep_base::fs::CacheDir;
use lockstep_place::Place;
use rusqlite::Connection;

/// An index of a store. Several processes, and several of these in one, may use the same.
#[derive(Debug)]
pub struct Index {
    pub(crate) connection: Connection,
    pub(crate) store: Place,
    pub(crate) location: Location,
    /// Where it may lie instead if it cannot be used where it is.
    rest: Vec<Location>,
    notes: Vec<String>,
}

impl Index {
    /// Opens the index of `store` to look at runs: in the store, else in the cache folder, else in memory.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn open(store: &Place, cache: Option<&CacheDir>) -> Result<Index, IndexError> {
        Self::open_one_of(store, Location::candidates(store, cache), Vec::new())
    }

    /// Opens the index of `store` to write to it while a run goes on: where all who use the store find it, or not at
    /// all. That of a bucket lies in the cache folder.
    ///
    /// # Errors
    /// When it cannot be opened there.
    pub fn open_shared(store: &Place, cache: Option<&CacheDir>) -> Result<Index, IndexError> {
        let first = Location::candidates(store, cache).into_iter().take(1);
        Self::open_one_of(store, first.collect(), Vec::new())
    }

    fn open_one_of(
        store: &Place,
        mut candidates: Vec<Location>,
        mut notes: Vec<String>,
    ) -> Result<Index, IndexError> {
        loop {
            let location = match candidates.is_empty() {
                true => Location::Memory,
                false => candidates.remove(0),
            };
            match location.open() {
                Ok(connection) => {
                    return Ok(Index {
                        connection,
                        store: store.clone(),
                        location,
                        rest: candidates,
                        notes,
                    });
                }
                Err(error) if error.is_own() && !candidates.is_empty() => {
                    notes.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks the index something. One that turns out to be damaged is made again, and one that cannot be written is
    /// replaced by one elsewhere; then it is asked once more.
    ///
    /// # Errors
    /// Those of the question, and those of folders that cannot be read.
    pub fn ask<T>(
        &mut self,
        question: impl Fn(&mut Index) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let mut repaired = false;
        loop {
            match question(self) {
                Err(error) if error.is_damage() && !repaired => {
                    repaired = true;
                    self.notes.push(format!("{error}; it is made again"));
                    let location = self.location.clone();
                    self.connection = Location::Memory.open()?;
                    // What cannot be removed cannot be repaired either, and is left alone.
                    if location.remove().is_ok() {
                        self.rest.insert(0, location);
                    }
                    self.move_on()?;
                }
                Err(error) if error.is_own() && self.location != Location::Memory => {
                    self.notes.push(error.to_string());
                    self.move_on()?;
                }
                answer => return answer,
            }
        }
    }

    /// Goes on with the next place where the index may lie, and reads the folders there.
    fn move_on(&mut self) -> Result<(), IndexError> {
        let rest = std::mem::take(&mut self.rest);
        let notes = std::mem::take(&mut self.notes);
        *self = Self::open_one_of(&self.store.clone(), rest, notes)?;
        match self.refresh_all() {
            Err(error) if error.is_own() && self.location != Location::Memory => {
                self.notes.push(error.to_string());
                self.move_on()
            }
            done => done.map(drop),
        }
    }

    /// Forgets everything, so that it is made again from the folders.
    ///
    /// # Errors
    /// When a file that is damaged cannot be replaced.
    pub fn clear(store: &Place, cache: Option<&CacheDir>) -> Result<(), IndexError> {
        for location in Location::candidates(store, cache) {
            location.remove()?;
        }
        Ok(())
    }

    /// What a person may want to know of how the index was opened.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where the index lies, in words.
    pub fn place(&self) -> String {
        self.location.name()
    }

    /// The store.
    pub fn store(&self) -> &Place {
        &self.store
    }

    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> IndexError + use<> {
        IndexError::sqlite(self.location.name())
    }
}
