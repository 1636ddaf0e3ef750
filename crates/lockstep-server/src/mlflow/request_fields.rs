//! What a request says, from its JSON or from its address, with what is missing or wrong in MLflow's words.

use super::MlflowError;
use super::record::{Point, number, shown};
use crate::bounded_json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use http::Method;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use url::form_urlencoded;

/// The longest name of a parameter, a metric or a tag.
const KEY: usize = 250;
/// The longest value of a parameter; MLflow cuts longer ones.
const PARAM: usize = 6000;
/// The longest value of a tag.
const TAG: usize = 8000;
/// The longest value of a tag of a registered model, in bytes.
const MODEL_TAG: usize = 100_000;

/// What was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestFields(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for RequestFields {
    type Rejection = MlflowError;

    async fn from_request(request: Request, state: &S) -> Result<Self, MlflowError> {
        let query = request.uri().query().unwrap_or_default();
        let mut said = Map::new();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = Value::from(value.into_owned());
            // A list is its key several times.
            match said.remove(&*key) {
                None => said.insert(key.into_owned(), value),
                Some(Value::Array(mut all)) => {
                    all.push(value);
                    said.insert(key.into_owned(), all.into())
                }
                Some(first) => said.insert(key.into_owned(), vec![first, value].into()),
            };
        }
        let reads = request.method() == Method::GET;
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| MlflowError::wrong(error.to_string()))?;
        if !reads && !body.is_empty() {
            let body = bounded_json::read(&body)
                .map_err(|error| MlflowError::wrong(format!("the body is not JSON: {error}")))?;
            let Value::Object(body) = body else {
                return Err(MlflowError::wrong("the body is no JSON object"));
            };
            said.extend(body);
        }
        Ok(RequestFields(said))
    }
}

impl RequestFields {
    /// What stands under a key; null is like nothing.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>, MlflowError> {
        let found = self
            .get(key)
            .map(|value| value.as_str().ok_or_else(|| wrong(key, "a text", value)));
        found.transpose()
    }

    /// A text that must be there.
    pub(crate) fn needed(&self, key: &str) -> Result<&str, MlflowError> {
        let text = self.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| {
            MlflowError::wrong(format!("Missing value for required parameter '{key}'."))
        })
    }

    /// The id of a run, under either of the names that it has had.
    pub(crate) fn run(&self) -> Result<&str, MlflowError> {
        match self.text("run_id")? {
            Some(id) if !id.is_empty() => Ok(id),
            _ => self
                .text("run_uuid")?
                .filter(|id| !id.is_empty())
                .ok_or_else(|| {
                    MlflowError::wrong("Missing value for required parameter 'run_id'.")
                }),
        }
    }

    /// A whole number, if it is there; also as text.
    pub(crate) fn whole(&self, key: &str) -> Result<Option<i64>, MlflowError> {
        self.get(key).map(|value| whole(key, value)).transpose()
    }

    /// Texts; also one alone.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, MlflowError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(all)) => {
                let texts = all.iter().map(|value| value.as_str().map(str::to_owned));
                let texts: Option<Vec<String>> = texts.collect();
                texts.ok_or_else(|| MlflowError::wrong(format!("'{key}' must be a list of texts")))
            }
            Some(other) => Err(wrong(key, "a list of texts", other)),
        }
    }

    /// The tables of a list; none if it is not there.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<RequestFields>, MlflowError> {
        let Some(found) = self.get(key) else {
            return Ok(Vec::new());
        };
        let Value::Array(all) = found else {
            return Err(wrong(key, "a list", found));
        };
        let tables = all.iter().map(|value| match value {
            Value::Object(table) => Ok(RequestFields(table.clone())),
            other => Err(wrong(key, "a list of objects", other)),
        });
        tables.collect()
    }

    /// Keys with values, such as tags.
    pub(crate) fn tags(&self, key: &str) -> Result<BTreeMap<String, String>, MlflowError> {
        self.tables(key)?.iter().map(RequestFields::tag).collect()
    }

    /// A tag: its key and its value, both of which this has.
    pub(crate) fn tag(&self) -> Result<(String, String), MlflowError> {
        Ok((self.key()?, self.value(TAG)?))
    }

    /// The tags of a registered model or of a version.
    pub(crate) fn model_tags(&self) -> Result<BTreeMap<String, String>, MlflowError> {
        let tags = self.tables("tags")?;
        tags.iter().map(RequestFields::model_tag).collect()
    }

    /// A tag of a registered model or of a version. A prompt is one, so it is never cut.
    pub(crate) fn model_tag(&self) -> Result<(String, String), MlflowError> {
        let (key, value) = (self.key()?, self.value(usize::MAX)?);
        match value.len() <= MODEL_TAG {
            true => Ok((key, value)),
            false => Err(MlflowError::wrong(format!(
                "The value of the tag {key:.100} has {} bytes; at most {MODEL_TAG} are kept",
                value.len()
            ))),
        }
    }

    /// A parameter.
    pub(crate) fn param(&self) -> Result<(String, String), MlflowError> {
        Ok((self.key()?, self.value(PARAM)?))
    }

    /// A point of a metric. `now` is when it happened if that is not said.
    pub(crate) fn point(&self, now: i64) -> Result<(String, Point), MlflowError> {
        let found = self.get("value");
        let value = found.and_then(number).ok_or_else(|| {
            let found = found.map(ToString::to_string).unwrap_or_default();
            MlflowError::wrong(format!(
                "Got invalid value {found:.100} for metric: it must be a number"
            ))
        })?;
        let point = Point {
            value: shown(value),
            timestamp: self.whole("timestamp")?.unwrap_or(now),
            step: self.whole("step")?.unwrap_or(0),
        };
        Ok((self.key()?, point))
    }

    fn key(&self) -> Result<String, MlflowError> {
        let key = self.needed("key")?;
        check_key(key)?;
        Ok(key.to_owned())
    }

    fn value(&self, most: usize) -> Result<String, MlflowError> {
        let value = match self.get("value") {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        Ok(value.chars().take(most).collect())
    }
}

fn whole(key: &str, value: &Value) -> Result<i64, MlflowError> {
    let whole = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => {
            // Some clients write whole numbers as 3.0.
            let rounded = || {
                number
                    .as_f64()
                    .filter(|n| n.fract() == 0.0 && n.abs() < 9e15)
            };
            number.as_i64().or_else(|| rounded().map(|n| n as i64))
        }
        _ => None,
    };
    whole.ok_or_else(|| wrong(key, "a whole number", value))
}

fn wrong(key: &str, what: &str, found: &Value) -> MlflowError {
    MlflowError::wrong(format!(
        "Invalid value {:.100} for parameter '{key}': it must be {what}",
        found.to_string()
    ))
}

/// Refuses names that MLflow refuses.
fn check_key(key: &str) -> Result<(), MlflowError> {
    let right = |c: char| c.is_alphanumeric() || "/_-. :".contains(c);
    let odd = key.starts_with('/')
        || key
            .split('/')
            .any(|part| part == ".." || part == "." || part.is_empty());
    match key.len() <= KEY && key.chars().all(right) && !odd {
        true => Ok(()),
        false => Err(MlflowError::wrong(format!(
            "Invalid name: {key:.100?}. Names may contain letters, digits, _ - . : / and spaces, up to {KEY} characters, \
             and no part of a path may be empty, . or .."
        ))),
    }
}
