//! The tables of the index, and the version of their shape.
//!
//! A run is one row of facts that lists need, as JSON. What only a closer look needs lies in tables of its own:
//! parameters, points of its metrics, files. Points are packed, some thousand to a row (see [`crate::points`]).

use rusqlite::Connection;

/// The version of the tables. An index of an earlier one is made again.
pub(crate) const VERSION: u32 = 3;

/// What marks a file as ours: `lsix`.
pub(crate) const APPLICATION: u32 = 0x6c73_6978;

const TABLES: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- Grows with every change, so that of two who read the same folder at once one writes.
    revision INTEGER NOT NULL,
    -- What the folder looked like when it was read.
    stamp TEXT NOT NULL,
    -- What lists need: crate::run::Facts.
    facts TEXT NOT NULL,
    -- origin.json and result.json as they are, or nothing.
    origin TEXT,
    result TEXT
);
CREATE TABLE key (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE param (
    run INTEGER NOT NULL,
    key INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX param_key ON param (key);
CREATE TABLE artifact (
    run INTEGER NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (run, kind, name)
);
CREATE TABLE points (
    series INTEGER NOT NULL,
    first INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (series, first)
);
";

/// The names of all tables.
const NAMES: [&str; 6] = ["run", "key", "param", "artifact", "series", "points"];

/// What a file holds.
pub(crate) enum SchemaState {
    /// Nothing yet.
    Empty,
    /// Our tables.
    Ours,
    /// Tables of an earlier version.
    Older,
    /// Tables of a later version.
    Newer(u32),
}

/// Looks at what a file holds.
pub(crate) fn look(connection: &Connection) -> rusqlite::Result<SchemaState> {
    let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
    let version: u32 = number("user_version")?;
    Ok(match (number("application_id")?, version) {
        (0u32, 0) => SchemaState::Empty,
        (APPLICATION, VERSION) => SchemaState::Ours,
        (APPLICATION, later) if later > VERSION => SchemaState::Newer(later),
        _ => SchemaState::Older,
    })
}

/// Makes the tables, in place of those that are there. To be called in a transaction.
pub(crate) fn make(connection: &Connection) -> rusqlite::Result<()> {
    for name in NAMES {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {name}"))?;
    }
    connection.execute_batch(TABLES)?;
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
    ))
}
