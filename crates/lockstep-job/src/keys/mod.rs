//! Every key of the job file is declared once.
//!
//! [`keys!`] takes a table of the job file as the list of its keys. Each entry has the sentence that
//! explains the key, its name and type, what holds when it is left out, and what its value must satisfy:
//!
//! ```text
//! /// Seconds that a worker waits for another before it gives it up.
//! deadline_s: f64 = default(30.0) => Rule::SECONDS;
//! ```
//!
//! From that come the field of the struct, the reader that reports every mistake at its spot, what serde
//! writes and the JSON Schema, so that they cannot differ. [`kinds!`] does the same for a table whose
//! `kind` decides which other keys it has, and [`words!`] for a value that is one of several words.
//!
//! What holds when a key is left out:
//!
//! | written | meaning |
//! |---|---|
//! | `need("add ...")` | a mistake; the text says how to mend it |
//! | `default(value)` | the value |
//! | `hidden(value)` | the value, which is not written when the job is shown; needs `#[serde(default)]` |
//! | `optional` | nothing: the field is an `Option` |
//! | `shown(a, b)` | the value `b`; the schema, which knows no folder, says `a` |
//! | `flat(read)` | nothing itself: its own keys, which `read` reads, stand beside the others |
//! | `otherwise(value)` | what follows from keys above it, each an `Option` that is `None` after a mistake |
//!
//! Where the file writes a value in other forms than its type has, `as` names a type with their schema.
//! After `=>` stands a [`Check`], which knows no other key. What a value must satisfy beside that follows
//! as a closure of the field and the value, which sees the keys above.

mod check;
mod declare;
mod declare_kinds;
mod schema;
mod text;
mod write;

pub(crate) use check::{
    Any, By, Check, Each, FromField, NotEmpty, SchemaLimits, Table, Within, read_and, read_flat,
};
pub(crate) use declare::{key, keys, words};
pub(crate) use declare_kinds::kinds;
pub(crate) use schema::{LeftOut, OfKinds, TableSchema, WordOr, sentences};
pub(crate) use text::as_text;
pub(crate) use write::{WriteKeys, write_table};
