//! What somebody asks for when submitting a job, as it is written down.
//!
//! What Ray's clients cannot say goes through keys of the metadata that begin with `lockstep.`, so that they can say
//! it too.

use crate::{Needs, QueueError, is_valid_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The exit code that asks for another attempt: `EX_TEMPFAIL`.
const TEMPORARY: i32 = 75;
/// The most attempts beside the first.
const MOST_RETRIES: u32 = 100;
/// The longest that a job may be waited for after it was asked to stop.
const LONGEST_GRACE: f64 = 3600.0;

/// A job that is to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Submission {
    /// Its id; a new one if there is none.
    pub id: Option<String>,
    /// Who asks.
    pub user: String,
    /// The command, as a shell reads it.
    pub entrypoint: String,
    /// Its package, modules and variables, in Ray's words.
    pub runtime_env: BTreeMap<String, Value>,
    /// What is to be found again; keys that begin with `lockstep.` mean something.
    pub metadata: BTreeMap<String, String>,
    /// What it needs of the machine.
    pub needs: Needs,
    /// The highest priority that whoever asks may give it; any if nothing is said.
    pub highest_priority: Option<i64>,
}

/// What was asked, as `job.json` has it. It is never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its id.
    pub id: String,
    /// Jobs are numbered in the order in which they came.
    pub number: u64,
    /// Who asked.
    pub user: String,
    /// When, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// The command, as a shell reads it.
    pub entrypoint: String,
    /// Its package, modules and variables, in Ray's words.
    #[serde(default)]
    pub runtime_env: BTreeMap<String, Value>,
    /// Who sent the packages that it names; nobody where they are from before packages had owners.
    #[serde(default)]
    pub packages_of: Option<String>,
    /// What whoever submitted it wrote down.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// What it needs of the machine.
    #[serde(default)]
    pub needs: Needs,
    /// A job of a higher one begins first.
    #[serde(default)]
    pub priority: i64,
    /// Jobs that must have succeeded before it begins.
    #[serde(default)]
    pub after: Vec<String>,
    /// How often it is tried again.
    #[serde(default)]
    pub retries: u32,
    /// The exit codes after which it is.
    #[serde(default)]
    pub retry_codes: Vec<i32>,
    /// Seconds between being asked to stop and being killed.
    pub grace_s: f64,
    /// How many bytes of its log are kept.
    pub log_limit: u64,
    /// By this value of a variable, its processes are known.
    pub mark: String,
}

/// What the metadata says beside Ray's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Extras {
    pub(crate) priority: i64,
    pub(crate) after: Vec<String>,
    pub(crate) retries: u32,
    pub(crate) retry_codes: Vec<i32>,
    pub(crate) grace_s: Option<f64>,
    pub(crate) user: Option<String>,
}

impl Extras {
    /// Reads the keys that begin with `lockstep.`; others of them are left to later versions.
    pub(crate) fn read(metadata: &BTreeMap<String, String>) -> Result<Extras, QueueError> {
        let grace_s: Option<f64> = number(metadata, "lockstep.grace", "seconds, such as 60")?;
        if grace_s.is_some_and(|grace| !(0.0..=LONGEST_GRACE).contains(&grace)) {
            return Err(QueueError::Wrong(format!(
                "metadata lockstep.grace: it must be between 0 and {LONGEST_GRACE} seconds"
            )));
        }
        let retries: Option<u32> =
            number(metadata, "lockstep.retries", "a whole number, such as 3")?;
        if retries.is_some_and(|retries| retries > MOST_RETRIES) {
            return Err(QueueError::Wrong(format!(
                "metadata lockstep.retries: it must be at most {MOST_RETRIES}"
            )));
        }
        let codes = list(metadata, "lockstep.retry_codes");
        let parsed: Result<Vec<i32>, _> = codes.iter().map(|code| code.parse()).collect();
        let mut retry_codes = parsed.map_err(|_| {
            QueueError::Wrong(
                "metadata lockstep.retry_codes: they must be exit codes, such as 75,143".to_owned(),
            )
        })?;
        if retry_codes.is_empty() {
            retry_codes.push(TEMPORARY);
        }
        let after = list(metadata, "lockstep.after");
        if let Some(id) = after.iter().find(|id| !is_valid_id(id)) {
            return Err(QueueError::Wrong(format!(
                "metadata lockstep.after: {id:?} is no job's id"
            )));
        }
        Ok(Extras {
            priority: number(metadata, "lockstep.priority", "a whole number, such as 10")?
                .unwrap_or(0),
            after,
            retries: retries.unwrap_or(0),
            retry_codes,
            grace_s,
            user: metadata.get("lockstep.user").cloned(),
        })
    }
}

fn number<T: FromStr>(
    metadata: &BTreeMap<String, String>,
    key: &str,
    what: &str,
) -> Result<Option<T>, QueueError> {
    let Some(text) = metadata.get(key) else {
        return Ok(None);
    };
    let number = text.trim().parse();
    number
        .map(Some)
        .map_err(|_| QueueError::Wrong(format!("metadata {key}: {text:?} is not {what}")))
}

fn list(metadata: &BTreeMap<String, String>, key: &str) -> Vec<String> {
    let text = metadata.get(key).map_or("", String::as_str);
    let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Extras, QueueError> {
        let pairs = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        Extras::read(&pairs.collect())
    }

    #[test]
    fn what_ray_has_no_words_for_goes_through_the_metadata() {
        let extras = read(&[
            ("lockstep.priority", "-3"),
            ("lockstep.after", "a, b"),
            ("lockstep.retries", "2"),
            ("lockstep.retry_codes", "75,143"),
            ("lockstep.grace", "1.5"),
            ("lockstep.of a later version", "x"),
            ("owner", "me"),
        ])
        .unwrap();
        let wanted = Extras {
            priority: -3,
            after: vec!["a".into(), "b".into()],
            retries: 2,
            retry_codes: vec![75, 143],
            grace_s: Some(1.5),
            user: None,
        };
        assert_eq!(extras, wanted);
        assert_eq!(read(&[]).unwrap().retry_codes, [TEMPORARY]);
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_its_key() {
        for (key, value) in [
            ("lockstep.priority", "high"),
            ("lockstep.retries", "-1"),
            ("lockstep.retries", "1000000"),
            ("lockstep.retry_codes", "a"),
            ("lockstep.grace", "nan"),
            ("lockstep.grace", "-1"),
            ("lockstep.after", "../x"),
        ] {
            let error = read(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
