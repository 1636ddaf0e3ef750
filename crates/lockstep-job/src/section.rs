//! Reading the keys of a table.
//!
//! A [`Section`] hands out the [`Field`]s of a table and remembers which keys were asked for: what is
//! left over when it is finished is an unknown key.

use crate::Diagnostic;
use crate::field::{Field, Report};
use crate::nearest::{key_instead, meant};
use crate::source::Spot;
use crate::tree::Entry;
use std::path::Path;

/// A table that is being read.
pub(crate) struct Section<'a> {
    entries: &'a [Entry],
    spot: &'a Spot,
    path: String,
    report: &'a Report<'a>,
    kind: Option<&'static str>,
    asked: Vec<&'static str>,
    missing: Vec<(&'static str, &'static str)>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        entries: &'a [Entry],
        spot: &'a Spot,
        path: String,
        report: &'a Report<'a>,
    ) -> Self {
        Section {
            entries,
            spot,
            path,
            report,
            kind: None,
            asked: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Says of which kind the table is, where its keys depend on that.
    pub(crate) fn is_of_kind(&mut self, kind: &'static str) {
        self.kind = Some(kind);
    }

    fn title(&self) -> String {
        let name = match self.path.as_str() {
            "" => "the job file".to_owned(),
            path if path.contains(['.', '[']) => format!("`{path}`"),
            path => format!("[{path}]"),
        };
        match self.kind {
            Some(kind) => format!("{name} of kind `{kind}`"),
            None => name,
        }
    }

    /// The job file's folder.
    pub(crate) fn folder(&self) -> &'a Path {
        self.report.folder
    }

    /// Whether the table has a key, without asking for its value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.name == key)
    }

    /// The value of a key that may be left out.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Field<'a>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let entry = self.entries.iter().find(|entry| entry.key.name == key)?;
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        Some(Field::new(&entry.node, path, self.report))
    }

    /// The value of a key that must be there; `fix` says what to write if it is not.
    pub(crate) fn need(&mut self, key: &'static str, fix: &'static str) -> Option<Field<'a>> {
        let field = self.get(key);
        if field.is_none() {
            self.missing.push((key, fix));
        }
        field
    }

    /// A key that may be left out, with its default. `None` only if its value is wrong.
    pub(crate) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(Field<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).map_or(Some(default), read)
    }

    /// A key that may be left out and has no default. `None` only if its value is wrong.
    pub(crate) fn maybe<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Field<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        self.get(key)
            .map_or(Some(None), |field| read(field).map(Some))
    }

    /// All keys with their values, where any key is right.
    pub(crate) fn into_fields(self) -> Vec<(&'a str, Field<'a>)> {
        let field = |entry: &'a Entry| {
            let path = format!("{}.{}", self.path, entry.key.name);
            let field = Field::new(&entry.node, path, self.report);
            (entry.key.name.as_str(), field)
        };
        self.entries.iter().map(field).collect()
    }

    /// Reads a table whose `kind` is one of several words and says which other keys there are; `fix` says
    /// what to write if it is missing.
    pub(crate) fn of_kind<T>(
        mut self,
        fix: &'static str,
        kinds: &[&'static str],
        read: impl FnOnce(&'static str, &mut Section<'a>) -> Option<T>,
    ) -> Option<T> {
        let kind = self.need("kind", fix);
        let Some(kind) = kind.and_then(|field| field.one_of(kinds)) else {
            self.give_up();
            return None;
        };
        self.is_of_kind(kind);
        let table = read(kind, &mut self);
        self.finish();
        table
    }

    /// Reports the keys that are missing and those that nobody asked for.
    pub(crate) fn finish(self) {
        self.close(true);
    }

    /// Like [`Section::finish`] for a reader that could not find out which keys belong here: a key
    /// is only reported if it looks like a missing one.
    pub(crate) fn give_up(self) {
        self.close(false);
    }

    fn close(self, all_known: bool) {
        let title = self.title();
        let mut misspelt = Vec::new();
        for Entry { key, .. } in self.entries {
            if self.asked.contains(&key.name.as_str()) {
                continue;
            }
            let meant = meant(&key.name, &self.asked);
            if meant.is_none() && !all_known {
                continue;
            }
            misspelt.extend(meant);
            self.report.add(Diagnostic::at(
                &key.spot,
                format!("unknown key `{}` in {title}", key.name),
                key_instead(&key.name, &self.path, &self.asked),
            ));
        }
        for (key, fix) in self.missing {
            if misspelt.contains(&key) {
                continue;
            }
            let message = format!("missing key `{key}` in {title}");
            self.report.add(if self.path.is_empty() {
                Diagnostic::of_file(self.report.file, message, fix)
            } else {
                Diagnostic::at(self.spot, message, fix)
            });
        }
    }
}
