//! `[run]`: where the run goes.

use crate::field::Field;
use crate::keys::FromField;
use crate::section::Section;
use crate::{Keep, Location};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where the run goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// The folder in which every run makes a folder of its own: a path, or a URL such as `s3://bucket/runs`.
    pub store: Location,
    /// Which runs of this job stay when one has ended: `20` of the newest, `{ days = 30 }`, `{ best = 5, by = "accuracy" }`,
    /// or several of these; all if this is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// The name of the model that a run becomes a version of when it has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register: Option<String>,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            store: Location::new("runs"),
            keep: None,
            register: None,
        }
    }
}

impl Run {
    /// What holds for a job file in `folder` that says nothing.
    pub(crate) fn default_in(folder: &Path) -> Run {
        Run {
            store: Location::new(folder.join(Run::default().store.as_str()).to_string_lossy()),
            ..Run::default()
        }
    }

    pub(crate) fn read(mut section: Section<'_>) -> Option<Run> {
        let default = Run::default_in(section.folder());
        let store = section.or("store", default.store, |field| Location::from_field(&field));
        let keep = section.maybe("keep", |field| Keep::from_field(&field));
        let register = section.maybe("register", |field| model_name(&field));
        section.finish();
        Some(Run {
            store: store?,
            keep: keep?,
            register: register?,
        })
    }
}

/// The name of a model: a folder's.
fn model_name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let first = name.bytes().next();
    let starts_well = first.is_some_and(|byte| byte.is_ascii_alphanumeric());
    match starts_well && name.len() <= 100 && name.bytes().all(fits) {
        true => Some(name.to_owned()),
        false => field.reject(
            format!("cannot be {name:?}"),
            "use 1 to 100 letters, digits, `-`, `_` or `.`, the first of them a letter or a digit",
        ),
    }
}
