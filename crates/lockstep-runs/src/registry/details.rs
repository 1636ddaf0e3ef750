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
        Ok(document::create(&self.details_of(name)?, &details)?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::NewVersion;
    use lockstep_place::Access;

    fn registry(folder: &tempfile::TempDir) -> Registry {
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        Registry::of(&store).unwrap()
    }

    #[test]
    fn a_model_is_made_once_and_is_listed_when_it_has_a_version() {
        let folder = tempfile::tempdir().unwrap();
        let registry = registry(&folder);
        assert!(registry.create("digits", Details::default()).unwrap());
        assert!(!registry.create("digits", Details::default()).unwrap());
        assert!(registry.models().unwrap().is_empty());
        let version = registry.add("digits", NewVersion::default()).unwrap();
        assert_eq!(registry.models().unwrap().len(), 1);
        let tag = |details: &mut Details, number| {
            let version: &mut VersionDetails = details.versions.entry(number).or_default();
            version.tags.insert("checked".into(), "yes".into());
        };
        registry
            .describe_version("digits", version.number, tag)
            .unwrap();
        assert!(registry.describe_version("digits", 2, tag).is_err());
        let said = registry.model("digits").unwrap().details;
        assert_eq!(said.versions[&1].tags["checked"], "yes");
        registry.remove_model("digits").unwrap();
        assert!(registry.all().unwrap().is_empty());
    }

    #[test]
    fn nobody_says_so_much_of_a_model_that_models_cannot_be_listed_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let registry = registry(&folder);
        registry.create("digits", Details::default()).unwrap();
        let long = "x".repeat(1 << 20);
        let tag = |number: usize| {
            registry.describe("digits", |details| {
                details.tags.insert(number.to_string(), long.clone());
            })
        };
        let done: Vec<bool> = (0..6).map(|number| tag(number).is_ok()).collect();
        assert_eq!(done, [true, true, true, false, false, false]);
        assert_eq!(registry.all().unwrap()[0].details.tags.len(), 3);
        let lineage = crate::registry::Lineage {
            data: "x".repeat(5 << 20).into(),
            ..Default::default()
        };
        let new = NewVersion {
            lineage,
            written: vec![("file".into(), Vec::new())],
            ..NewVersion::default()
        };
        assert!(registry.add("digits", new).is_err());
        assert!(registry.all().unwrap()[0].versions.is_empty());
        let left = folder.path().join("models/digits/files");
        assert!(std::fs::read_dir(left).is_ok_and(|mut left| left.next().is_none()));
    }
}
