//! Where an index lies, and how it is opened there.
//!
//! The index of a local store lies in it, beside the runs, so that all who use the store share it. Where that cannot be
//! (a bucket, a folder that cannot be written, a full disk, an index of a later version) it lies in the cache folder, and
//! where even that cannot be, in memory: then it is made from the folders each time, which takes longer and says the
//! same.

use crate::IndexError;
use crate::file_system::is_shared;
use crate::schema::{self, SchemaState};
use lockstep_base::fs::{CacheDir, sha256};
use lockstep_place::Place;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in a local store.
pub(crate) const FILE: &str = "index.sqlite";
/// How long one waits for others that write.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where an index lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In a file.
    File(PathBuf),
    /// Nowhere: it ends with this process.
    Memory,
}

impl Location {
    /// Where an index of `store` may lie, the best first.
    pub(crate) fn candidates(store: &Place, cache: Option<&CacheDir>) -> Vec<Location> {
        let mut all = Vec::new();
        // A store that is not there yet is not made by looking at it.
        if let Some(path) = store.local().filter(|path| path.is_dir()) {
            all.push(Location::File(path.join(FILE)));
        }
        if store.local().is_none_or(|path| path.is_dir())
            && let Some(folder) = cache.and_then(|cache| cache.folder("index").ok())
        {
            let whole = store.local().and_then(|path| path.canonicalize().ok());
            let named = whole.map_or(store.to_string(), |path| path.display().to_string());
            let hash = sha256(named.as_bytes());
            all.push(Location::File(
                folder.join(format!("{}.sqlite", &hash[..16])),
            ));
        }
        all.push(Location::Memory);
        all
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Location::File(path) => path.display().to_string(),
            Location::Memory => "in memory".to_owned(),
        }
    }

    /// Opens it, and makes it if need be. One that is damaged or of an earlier version is made again.
    pub(crate) fn open(&self) -> Result<Connection, IndexError> {
        match self.try_open() {
            Err(error) if error.is_damage() => {
                self.remove()?;
                self.try_open()
            }
            opened => opened,
        }
    }

    fn try_open(&self) -> Result<Connection, IndexError> {
        let failed = IndexError::sqlite(self.name());
        let mut connection = match self {
            Location::Memory => Connection::open_in_memory().map_err(&failed)?,
            Location::File(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                    | OpenFlags::SQLITE_OPEN_CREATE
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_NOFOLLOW;
                // Links on the way to the store are whoever's who names it; one in the store may be anybody's.
                let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
                let whole = folder
                    .zip(path.file_name())
                    .map(|(folder, name)| folder.join(name));
                let whole = whole.as_ref().unwrap_or(path);
                let connection = Connection::open_with_flags(whole, flags).map_err(&failed)?;
                connection.busy_timeout(PATIENCE).map_err(&failed)?;
                settle(&connection, path).map_err(&failed)?;
                connection
            }
        };
        match schema::look(&connection).map_err(&failed)? {
            SchemaState::Ours => {}
            SchemaState::Newer(found) => {
                return Err(IndexError::Newer {
                    path: self.name(),
                    found,
                    known: schema::VERSION,
                });
            }
            SchemaState::Empty | SchemaState::Older => {
                let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
                let transaction = begun.map_err(&failed)?;
                // Another may have made it meanwhile.
                let found = schema::look(&transaction).map_err(&failed)?;
                if matches!(found, SchemaState::Empty | SchemaState::Older) {
                    schema::make(&transaction).map_err(&failed)?;
                }
                transaction.commit().map_err(&failed)?;
            }
        }
        Ok(connection)
    }

    /// Removes the file with what SQLite has put beside it.
    pub(crate) fn remove(&self) -> Result<(), IndexError> {
        let Location::File(path) = self else {
            return Ok(());
        };
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            match fs::remove_file(&name) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    return Err(IndexError::Io {
                        path: self.name(),
                        source,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// How SQLite keeps a transaction whole: by its write-ahead log, and where other machines may come by, by a journal.
fn settle(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mode = match is_shared(folder) {
        true => "DELETE",
        false => "WAL",
    };
    // It stays in the file, and changing it needs the file alone: so only if need be.
    let now: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if !now.eq_ignore_ascii_case(mode) {
        connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))?;
    }
    // What a power cut takes can be read again, so no transaction waits for the disk.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY")
}
