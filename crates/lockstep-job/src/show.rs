//! A job as text again: the effective configuration, with every default visible.

use crate::secrets::{LEFT_OUT, is_secret_name};
use crate::{Job, masked_words, without_secrets};
use std::fmt::Write;
use toml::{Table, Value};

impl Job {
    /// The job as a job file in which every default is written out. Reads back as the same job.
    ///
    /// # Panics
    ///
    /// If the job was not read from a file and holds what TOML cannot: a seed beyond 63 bits or a path
    /// that is not UTF-8.
    pub fn to_toml(&self) -> String {
        text(table(self))
    }

    /// Every key with its value, in the file's order, for display. Keys are paths as `--set` takes
    /// them, except that the layers of a stack are numbered.
    ///
    /// # Panics
    ///
    /// As `to_toml`.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for (key, value) in table(self) {
            flatten(key, value, &mut rows);
        }
        rows
    }
}

fn table(job: &Job) -> Table {
    let mut table = Table::try_from(job).expect("a loaded job holds only what TOML can");
    table.iter_mut().for_each(|(_, value)| hide_secrets(value));
    table
}

fn text(table: Table) -> String {
    let mut text = String::new();
    for (key, value) in table {
        match value {
            Value::Table(section) => {
                push(&mut text, format_args!("\n[{key}]\n"));
                for (key, value) in section {
                    push(&mut text, format_args!("{key} = {value}\n"));
                }
            }
            value => push(&mut text, format_args!("{key} = {value}\n")),
        }
    }
    text
}

/// Leaves out what only the one who started the job should know.
fn hide_secrets(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_secrets(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                match (key.as_str(), value) {
                    ("env", Value::Table(variables)) => hide_variables(variables),
                    ("command", Value::Array(words)) => hide_words(words),
                    (_, value) => hide_secrets(value),
                }
            }
        }
        _ => {}
    }
}

/// Leaves out the values of variables whose names say that they are secrets.
fn hide_variables(variables: &mut Table) {
    for (name, value) in variables.iter_mut() {
        match is_secret_name(name) {
            true => *value = LEFT_OUT.into(),
            false => hide_secrets(value),
        }
    }
}

/// Masks the words of a command.
fn hide_words(words: &mut [Value]) {
    let texts = words.iter().map(|word| word.as_str().unwrap_or_default());
    let masked = masked_words(texts);
    for (word, masked) in words.iter_mut().zip(masked) {
        *word = masked.into();
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a string takes any text");
}

fn flatten(path: String, value: Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(format!("{path}.{key}"), value, rows);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_table) => {
            for (i, item) in items.into_iter().enumerate() {
                rows.push((format!("{path}[{i}]"), item.to_string()));
            }
        }
        Value::String(text) => rows.push((path, text)),
        value => rows.push((path, value.to_string())),
    }
}
