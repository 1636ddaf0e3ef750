//! What people say of a model and of its versions, and may change: descriptions, tags, stages.
//!
//! It lies in `details.json` beside the versions, which themselves never change. A model that has this file and no
//! version was made by its name alone, as MLflow's clients do before they make the first version.

use crate::document;
use crate::registry::models::FILES;
use crate::registry::reference::check_name;
use crate::registry::version::FORMAT;
use crate::registry::{Pick, Registry, RegistryError};
use lockstep_base::calendar;
use lockstep_place::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is said of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The version of the format of this file.
    pub format: u32,
    /// Who made the model; nobody who is known if it was made on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When the model was made, in seconds since 1970 in UTC; 0 if its first version made it.
    pub created: f64,
    /// When this was changed.
    pub updated: f64,
    /// What the user says of it.
    pub note: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// What is said of its versions, by their numbers.
    pub versions: BTreeMap<u64, VersionDetails>,
}

/// What is said of a version after it was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionDetails {
    /// In place of the note that it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// MLflow's stage: `Staging`, `Production` or `Archived`; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// When this was changed.
    pub updated: f64,
}

impl Registry {
    /// Makes a model that has no version yet. Returns whether there was none of this name.
    ///
    /// # Errors
    /// When the name is none for a model, or the store cannot be read or written.
    pub fn create(&self, name: &str, details: Details) -> Result<bool, RegistryError> {
        if self.find_model(name)?.is_some() {
            return Ok(false);
        }
        let now = calendar::now();
        let details = Details {
            format: FORMAT,
            created: now,
            updated: now,
            ..details
        };
        let file = self.details_of(name)?;
        Ok(file.create_new(&document::text(&details))?.is_some())
    }

    /// Changes what is said of a model that is there.
    ///
    /// # Errors
    /// When there is none, or the store cannot be read or written.
    pub fn describe(&self, name: &str, change: impl Fn(&mut Details)) -> Result<(), RegistryError> {
        self.model(name)?;
        let changed = document::change(&self.details_of(name)?, FILES, |details: &mut Details| {
            details.format = FORMAT;
            details.updated = calendar::now();
            change(details);
        });
        Ok(changed?)
    }

    /// Changes what is said of a version that is there: `change` gets all that is said of the model, and the number.
    ///
    /// # Errors
    /// When there is none, or the store cannot be read or written.
    pub fn describe_version(
        &self,
        name: &str,
        number: u64,
        change: impl Fn(&mut Details, u64),
    ) -> Result<(), RegistryError> {
        self.model(name)?.pick(&Pick::Number(number))?;
        self.describe(name, |details| {
            details.versions.entry(number).or_default().updated = calendar::now();
            change(details, number);
        })
    }

    pub(super) fn details_of(&self, name: &str) -> Result<Place, RegistryError> {
        Ok(self.folder_of(check_name(name)?)?.join("details.json")?)
    }
}
