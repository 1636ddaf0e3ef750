//! Requests as MLflow's scoring server takes them, so that its clients need not be changed.
//!
//! A body of JSON has one of `dataframe_split`, `dataframe_records`, `inputs` and `instances`, and perhaps `params`. Other
//! bodies are tables (`text/csv`) and the files of pictures (`multipart/form-data`).

use crate::content::{Asked, Content};
use crate::json::Json;
use crate::{Refusal, csv_body, multipart};

/// The ways in which JSON may bring rows.
const WAYS: &str = "`dataframe_split`, `dataframe_records`, `inputs` or `instances`";

/// Reads a body of this type, the words of the header `Content-Type`.
///
/// # Errors
/// When it does not hold rows.
pub(crate) fn read(kind: &str, body: &[u8]) -> Result<Asked, Refusal> {
    let bare = kind.split(';').next().unwrap_or_default().trim();
    let plain = |content| Asked {
        content,
        probabilities: false,
    };
    match bare.to_ascii_lowercase().as_str() {
        "" | "application/json" => of_json(Json::read(body)?),
        "text/csv" => csv_body::read(body).map(plain),
        "multipart/form-data" => of_form(kind, body),
        kind if kind.starts_with("image/") => Ok(plain(Content::Pictures(vec![body.to_vec()]))),
        other => Err(Refusal::type_of(format!(
            "nothing here reads the type {other:?}; send application/json, text/csv, multipart/form-data, or one picture"
        ))),
    }
}

fn of_form(kind: &str, body: &[u8]) -> Result<Asked, Refusal> {
    let mut pictures = Vec::new();
    let mut probabilities = false;
    for part in multipart::parts(kind, body)? {
        match part.name.as_str() {
            "params" => probabilities = params(Json::read(part.bytes)?)?,
            _ => pictures.push(part.bytes.to_vec()),
        }
    }
    Ok(Asked {
        content: Content::Pictures(pictures),
        probabilities,
    })
}

fn of_json(body: Json) -> Result<Asked, Refusal> {
    let Json::Object(keys) = body else {
        let found = body.words();
        return Err(Refusal::bad(format!(
            "the body is {found}; it must be an object with one of {WAYS}"
        )));
    };
    let mut content = None;
    let mut probabilities = false;
    for (key, value) in keys {
        let read = match key.as_str() {
            "dataframe_split" => split(value)?,
            "dataframe_records" => Content::Rows(list(&key, value)?),
            "inputs" => inputs(value)?,
            "instances" => Content::Rows(list(&key, value)?),
            "params" => {
                probabilities = params(value)?;
                continue;
            }
            // TensorFlow Serving's clients name the function that they call.
            "signature_name" => continue,
            _ => {
                return Err(Refusal::bad(format!(
                    "the key `{}` is not known; rows come as {WAYS}, and `params` beside them",
                    shown(&key)
                )));
            }
        };
        if content.replace(read).is_some() {
            return Err(Refusal::bad(format!(
                "rows come only once, as one of {WAYS}"
            )));
        }
    }
    let content = content.ok_or_else(|| Refusal::bad(format!("the body has none of {WAYS}")))?;
    Ok(Asked {
        content,
        probabilities,
    })
}

/// `{"columns": [...], "data": [[...], ...]}`, as pandas writes it with `orient="split"`.
fn split(value: Json) -> Result<Content, Refusal> {
    let wrong = |what: String| Refusal::bad(format!("`dataframe_split` {what}"));
    let Json::Object(keys) = value else {
        return Err(wrong(format!(
            "is {}; it must be an object with `columns` and `data`",
            value.words()
        )));
    };
    let (mut columns, mut data) = (None, None);
    for (key, value) in keys {
        match key.as_str() {
            "columns" => columns = Some(value),
            "data" => data = Some(value),
            // The numbers or names of rows.
            "index" => (),
            _ => {
                return Err(wrong(format!(
                    "has a key `{}`, which is not known",
                    shown(&key)
                )));
            }
        }
    }
    let data = data.ok_or_else(|| wrong("has no `data`".to_owned()))?;
    let rows = list("data", data)?;
    let Some(columns) = columns else {
        return Ok(Content::Rows(rows));
    };
    let columns = columns.into_names();
    let columns = columns.ok_or_else(|| wrong("has `columns` that are no list of names".into()))?;
    Ok(Content::Table { columns, rows })
}

/// Rows as lists, or columns by their names.
fn inputs(value: Json) -> Result<Content, Refusal> {
    match value {
        Json::Object(columns) => Ok(Content::Columns(columns)),
        value => list("inputs", value).map(Content::Rows),
    }
}

fn list(key: &str, value: Json) -> Result<Vec<Json>, Refusal> {
    let found = value.words();
    let wrong = || Refusal::bad(format!("`{key}` is {found}; it must be a list of rows"));
    value.into_items().ok_or_else(wrong)
}

/// Whether the probabilities of all classes are wanted.
pub(crate) fn params(value: Json) -> Result<bool, Refusal> {
    let known = "the only one is `probabilities`, true or false";
    let keys = match value {
        Json::Null => Vec::new(),
        Json::Object(keys) => keys,
        other => {
            let found = other.words();
            return Err(Refusal::bad(format!(
                "`params` is {found}; it must be an object: {known}"
            )));
        }
    };
    let mut probabilities = false;
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("probabilities", Json::Truth(wanted)) => probabilities = wanted,
            ("probabilities", other) => {
                let found = other.words();
                return Err(Refusal::bad(format!(
                    "`params.probabilities` is {found}; {known}"
                )));
            }
            _ => {
                let key = shown(&key);
                return Err(Refusal::bad(format!(
                    "the parameter `{key}` is not known; {known}"
                )));
            }
        }
    }
    Ok(probabilities)
}

/// A key of a stranger, for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        read("application/json", text.as_bytes()).unwrap()
    }

    fn refused(text: &str) -> String {
        read("application/json; charset=utf-8", text.as_bytes())
            .unwrap_err()
            .message
    }

    #[test]
    fn all_four_ways_bring_their_rows() {
        let split = asked(
            r#"{"dataframe_split": {"columns": ["a", 1], "index": [0], "data": [[1, "x"]]}}"#,
        );
        let row = Json::List(vec![Json::Number(1.0), Json::Text("x".into())]);
        let columns = vec!["a".to_owned(), "1".to_owned()];
        let rows = vec![row];
        assert_eq!(split.content, Content::Table { columns, rows });
        let object = || Json::Object(vec![("a".to_owned(), Json::Number(2.0))]);
        for way in ["dataframe_records", "instances"] {
            let records = asked(&format!(
                r#"{{"{way}": [{{"a": 2}}], "params": {{"probabilities": true}}}}"#
            ));
            assert_eq!(records.content, Content::Rows(vec![object()]));
            assert!(records.probabilities);
        }
        let lists = asked(r#"{"inputs": [[1, 2], [3, 4]], "params": null}"#);
        let rows = [vec![1.0, 2.0], vec![3.0, 4.0]].map(Json::Numbers).to_vec();
        assert_eq!(lists.content, Content::Rows(rows));
        assert!(!lists.probabilities);
        let columns = asked(r#"{"inputs": {"a": [1, 2]}}"#);
        let column = ("a".to_owned(), Json::Numbers(vec![1.0, 2.0]));
        assert_eq!(columns.content, Content::Columns(vec![column]));
    }

    #[test]
    fn bodies_that_bring_no_rows_are_told_what_would() {
        for (text, expected) in [
            (
                "[1]",
                "the body is a list; it must be an object with one of `dataframe_split`",
            ),
            ("{}", "the body has none of `dataframe_split`"),
            (r#"{"data": []}"#, "the key `data` is not known"),
            (r#"{"inputs": [], "instances": []}"#, "rows come only once"),
            (
                r#"{"inputs": 3}"#,
                "`inputs` is a number; it must be a list of rows",
            ),
            (r#"{"dataframe_split": []}"#, "`dataframe_split` is a list"),
            (
                r#"{"dataframe_split": {"columns": ["a"]}}"#,
                "has no `data`",
            ),
            (
                r#"{"dataframe_split": {"columns": [[]], "data": []}}"#,
                "no list of names",
            ),
            (r#"{"dataframe_split": {"rows": 1}}"#, "a key `rows`"),
            (
                r#"{"inputs": [], "params": {"top": 1}}"#,
                "the parameter `top` is not known",
            ),
            (
                r#"{"inputs": [], "params": {"probabilities": 1}}"#,
                "is a number; the only one",
            ),
        ] {
            let said = refused(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
        let other = read("application/xml", b"").unwrap_err();
        assert_eq!(other.status, http::StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
