//! Manifests as YAML that people read: one way to write each value, `name` first among the keys
//! of a table and the others in alphabetical order.
//!
//! Strings that YAML would take for something else are quoted as JSON does it, which YAML reads the same; those with
//! line ends become blocks.

use serde_json::Value;
use std::fmt::Write;

/// One value as a YAML document.
pub fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0, Place::Top);
    text
}

/// Several documents in one text.
pub fn documents<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let texts: Vec<String> = values.into_iter().map(yaml).collect();
    texts.join("---\n")
}

/// What stands before a value.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Nothing.
    Top,
    /// `key:`
    Key,
    /// `-`
    Item,
}

fn write(text: &mut String, value: &Value, depth: usize, place: Place) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            if place == Place::Key {
                text.push('\n');
            }
            let (names, others): (Vec<_>, Vec<_>) = map.iter().partition(|(key, _)| *key == "name");
            for (i, (key, value)) in names.into_iter().chain(others).enumerate() {
                // The first key of an item stands beside its dash.
                match place == Place::Item && i == 0 {
                    true => text.push(' '),
                    false => indent(text, depth),
                }
                push(text, format_args!("{}:", scalar(key)));
                write(text, value, depth + 1, Place::Key);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            if place != Place::Top {
                text.push('\n');
            }
            // Lists stand below their key, as kubectl writes them.
            let depth = match place {
                Place::Key => depth.saturating_sub(1),
                _ => depth,
            };
            for item in items {
                indent(text, depth);
                text.push('-');
                write(text, item, depth + 1, Place::Item);
            }
        }
        Value::String(words) if is_block(words) => {
            let keep = match (words.ends_with("\n\n"), words.ends_with('\n')) {
                (true, _) => "+",
                (false, true) => "",
                (false, false) => "-",
            };
            push(text, format_args!(" |{keep}\n"));
            for line in words.strip_suffix('\n').unwrap_or(words).split('\n') {
                if !line.is_empty() {
                    indent(text, depth.max(1));
                }
                push(text, format_args!("{line}\n"));
            }
        }
        value => {
            let words = match value {
                Value::String(words) => scalar(words),
                Value::Object(_) => "{}".to_owned(),
                Value::Array(_) => "[]".to_owned(),
                other => other.to_string(),
            };
            let before = if place == Place::Top { "" } else { " " };
            push(text, format_args!("{before}{words}\n"));
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Whether a text can be a block: a first line that begins with a space would be taken for its indent.
fn is_block(words: &str) -> bool {
    words.contains('\n')
        && !words.starts_with([' ', '\n', '\t'])
        && !words.contains(|c: char| c.is_control() && c != '\n' && c != '\t')
}

/// A string as it stands on one line: bare where YAML cannot take it for something else.
fn scalar(words: &str) -> String {
    let first = words.chars().next();
    let bare = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '_')
        && words
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./=+@, ()".contains(c) || c == ':')
        && !words.contains(": ")
        && !words.ends_with([':', ' '])
        && !is_word(words);
    match bare {
        true => words.to_owned(),
        false => Value::from(words).to_string(),
    }
}

/// Whether YAML 1.1 or 1.2 takes it for a boolean or nothing.
fn is_word(words: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    WORDS.contains(&words.to_ascii_lowercase().as_str())
}

fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    // A string takes any text.
    let _ = text.write_fmt(words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back_as_itself() {
        let value = json!({
            "apiVersion": "v1", "empty": {}, "none": [], "list": ["a", 1, true, null, {"x": 1, "y": ["z"]}, [1, [2]]],
            "tricky": ["true", "1.5", "", "- a", "a: b", "#c", "a #b", "on", "0x1F", "~", "é", "a\"b", "\t"],
            "text": "one\n  two\n\nthree\n", "no end": "one\ntwo", "more": "one\n\n", "blank": " one\ntwo\n",
            "deep": {"er": {"text": "a\nb\n"}}, "key with: colon": "C:\\x", "1": 2.5,
        });
        let text = yaml(&value);
        let again: Value = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, value, "{text}");
    }

    #[test]
    fn lists_and_texts_look_as_people_write_them() {
        let value = json!({"args": ["a", {"a": 1, "name": "b"}], "file": "x = 1\ny = 2\n"});
        let wanted = "args:\n- a\n- name: b\n  a: 1\nfile: |\n  x = 1\n  y = 2\n";
        assert_eq!(yaml(&value), wanted);
    }
}
