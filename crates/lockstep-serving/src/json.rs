//! JSON from a stranger: small in memory, and bounded.
//!
//! Requests are mostly numbers, so a list of nothing else takes eight bytes for each. Values are counted while they are
//! read, and reading ends at the first one too many. `NaN` and `Infinity`, which Python writes though JSON has no such
//! words, are read as nulls.

use crate::Refusal;
use crate::json_reader::Counted;
use lockstep_data::Cell;
use serde::de::DeserializeSeed;
use std::borrow::Cow;

/// The most values that a request may have: each number, text, list and object, and each key.
pub(crate) const MOST_VALUES: usize = 4 << 20;
/// Whole numbers up to this are the same as a number with a fraction.
pub(crate) const EXACT: u64 = 1 << 53;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    /// `null`, and what Python writes for no number.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A number. Whole ones that are too large for this are [texts](Json::Text).
    Number(f64),
    /// A text.
    Text(String),
    /// A list of numbers only, or an empty one.
    Numbers(Vec<f64>),
    /// Any other list.
    List(Vec<Json>),
    /// An object, in the order of its keys.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// When it is no JSON, or too much.
    pub(crate) fn read(text: &[u8]) -> Result<Self, Refusal> {
        let text = without_nan(text);
        let mut reader = serde_json::Deserializer::from_slice(&text);
        let value = Counted::new(MOST_VALUES).deserialize(&mut reader);
        let value = value.and_then(|value| reader.end().map(|()| value));
        value.map_err(|error| Refusal::bad(format!("the body is not JSON as expected: {error}")))
    }

    /// What it is, in words.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Truth(_) => "a truth",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::Numbers(_) | Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Its items, if it is a list.
    pub(crate) fn into_items(self) -> Option<Vec<Json>> {
        match self {
            Self::Numbers(numbers) => Some(numbers.into_iter().map(Json::Number).collect()),
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Its texts, if it is a list of texts. Numbers are names too where a table has them for columns.
    pub(crate) fn into_names(self) -> Option<Vec<String>> {
        let name = |item| match item {
            Json::Text(text) => Some(text),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        };
        self.into_items()?.into_iter().map(name).collect()
    }

    /// How many items it has, if it is a list.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Numbers(numbers) => Some(numbers.len()),
            Self::List(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The cell of a table that it stands for, if it is a single value.
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        Some(match self {
            Self::Null => Cell::Gap,
            Self::Truth(truth) => Cell::Truth(*truth),
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text),
            Self::Numbers(_) | Self::List(_) | Self::Object(_) => return None,
        })
    }
}

/// The text with nulls where Python wrote that something is no number.
fn without_nan(text: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    if !text.contains(&b'N') && !text.contains(&b'I') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    let (mut quoted, mut escaped) = (false, false);
    while let Some((&first, more)) = rest.split_first() {
        let word = WORDS.iter().find(|word| rest.starts_with(word));
        if let Some(word) = word.filter(|_| !quoted) {
            out.extend_from_slice(b"null");
            rest = &rest[word.len()..];
            continue;
        }
        match first {
            b'"' if !escaped => quoted = !quoted,
            _ => (),
        }
        escaped = quoted && first == b'\\' && !escaped;
        out.push(first);
        rest = more;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        Json::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_are_kept_small_and_everything_else_as_it_is() {
        assert_eq!(
            read("[1, -2.5, 1e3]"),
            Json::Numbers(vec![1.0, -2.5, 1000.0])
        );
        assert_eq!(
            read(r#"[1, "a", null, true]"#),
            Json::List(vec![
                Json::Number(1.0),
                Json::Text("a".into()),
                Json::Null,
                Json::Truth(true)
            ])
        );
        let whole = read("[9007199254740993]");
        assert_eq!(
            whole,
            Json::List(vec![Json::Text("9007199254740993".into())])
        );
        let object = read(r#"{"b": 1, "a": []}"#);
        let expected = vec![
            ("b".to_owned(), Json::Number(1.0)),
            ("a".to_owned(), Json::Numbers(vec![])),
        ];
        assert_eq!(object, Json::Object(expected));
    }

    #[test]
    fn what_python_writes_for_no_number_is_null() {
        let text = r#"{"a": [NaN, 1], "NaN \" NaN": -Infinity, "b": "NaN"}"#;
        let expected = r#"{"a": [null, 1], "NaN \" NaN": null, "b": "NaN"}"#;
        assert_eq!(read(text), read(expected));
        assert!(Json::read(b"{NaN}").is_err());
    }

    #[test]
    fn what_is_no_json_or_too_deep_or_too_much_is_refused() {
        for wrong in ["", "{", "[1] 2", "nan", "[1,]"] {
            let refusal = Json::read(wrong.as_bytes()).unwrap_err();
            assert!(refusal.message.contains("not JSON"), "{wrong:?}");
        }
        assert!(Json::read("[".repeat(100_000).as_bytes()).is_err());
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        let refusal = Json::read(many.as_bytes()).unwrap_err();
        assert!(
            refusal.message.contains("more than 4194304 values"),
            "{}",
            refusal.message
        );
    }
}
