//! The registry of a store.

use crate::RunDir;
use crate::document::{self, DocumentError, Format, TRIES};
use crate::registry::reference::{check_alias, check_name};
use crate::registry::version::{Aliases, FORMAT, Pointed, Removed};
use crate::registry::{Details, Lineage, MlflowVersion, Pick, Reference, RegistryError, Version};
use lockstep_base::calendar;
use lockstep_base::fs::random_letters;
use lockstep_place::{FileEntry, Place, PlaceError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The folder of the registry in a store.
const FOLDER: &str = "models";
/// How its files say of which version they are.
pub(super) const FILES: Format = Format {
    key: "format",
    known: FORMAT,
};
/// The tag by which MLflow's clients tell prompts from models.
pub const PROMPT_TAG: &str = "mlflow.prompt.is_prompt";
/// The folder of a version that MLflow's clients load.
pub const MLFLOW_FOLDER: &str = "mlflow";
/// How many bytes of a file are copied at a time.
const PIECE: u64 = 16 << 20;
/// How many changes of aliases are remembered.
const HISTORY: usize = 1000;

/// The models of a store.
#[derive(Debug, Clone)]
pub struct Registry {
    store: Place,
    place: Place,
}

/// A model: all its versions, and what its aliases point to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// The number that each alias points to.
    pub aliases: BTreeMap<String, u64>,
    /// Its versions, the newest last.
    pub versions: Vec<Version>,
    /// What is said of it.
    pub details: Details,
}

/// A version that is to be made.
#[derive(Debug, Default)]
pub struct NewVersion {
    /// What the user says of it.
    pub note: String,
    /// Where it comes from.
    pub lineage: Lineage,
    /// What MLflow's client said of it, if one makes it.
    pub mlflow: Option<MlflowVersion>,
    /// Files to copy: from where, and the name that each gets within the version.
    pub copied: Vec<(Place, String)>,
    /// Files to write.
    pub written: Vec<(String, Vec<u8>)>,
}

impl Model {
    /// Whether it is a prompt of MLflow's, which is kept as a model.
    pub fn is_prompt(&self) -> bool {
        let said = self.details.tags.get(PROMPT_TAG);
        said.is_some_and(|said| said == "true")
    }

    /// The aliases that point to this version.
    pub fn aliases_of(&self, number: u64) -> Vec<&str> {
        let pointing = self.aliases.iter().filter(|(_, to)| **to == number);
        pointing.map(|(alias, _)| alias.as_str()).collect()
    }

    /// The version that is meant.
    ///
    /// # Errors
    /// When there is none.
    pub fn pick(&self, pick: &Pick) -> Result<&Version, RegistryError> {
        let numbered = |number: u64| {
            self.versions
                .iter()
                .find(|version| version.number == number)
        };
        let found = match pick {
            Pick::Newest => self.versions.last(),
            Pick::Number(number) => numbered(*number),
            Pick::Alias(alias) => self.aliases.get(alias).and_then(|number| numbered(*number)),
        };
        found.ok_or_else(|| RegistryError::NoVersion {
            name: self.name.clone(),
            what: match pick {
                Pick::Newest => "version".to_owned(),
                Pick::Number(number) => format!("version {number}"),
                Pick::Alias(alias) => format!("alias `{alias}`"),
            },
            known: match pick {
                Pick::Alias(_) => self.aliases.keys().cloned().collect(),
                _ => self.versions.iter().map(|v| v.number.to_string()).collect(),
            },
        })
    }
}

/// A description, of a version that is there or of one that was removed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Described {
    Version(Box<Version>),
    Removed {
        #[serde(rename = "removed")]
        _at: f64,
    },
}

impl Registry {
    /// The registry of a store.
    ///
    /// # Errors
    /// When the store cannot hold one.
    pub fn of(store: &Place) -> Result<Self, RegistryError> {
        Ok(Self {
            store: store.beneath(),
            place: store.beneath().join(FOLDER)?,
        })
    }

    /// Makes a version of what a run learned: copies its model, and gives it the next number. `mlflow` is the folder that
    /// MLflow's clients load, if there is one.
    ///
    /// # Errors
    /// When the run has no model, or the store cannot be read or written. Then there is no new version.
    pub fn register(
        &self,
        name: &str,
        run: &RunDir,
        lineage: Lineage,
        note: &str,
        mlflow: Vec<(String, Vec<u8>)>,
    ) -> Result<Version, RegistryError> {
        check_name(name)?;
        let wanted = |file: &FileEntry| {
            file.path.starts_with("model/")
                || matches!(
                    file.path.as_str(),
                    "job.toml" | "model.json" | "evaluation.json"
                )
        };
        let mut files = run.place().list()?;
        files.retain(wanted);
        if !files.iter().any(|file| file.path.ends_with("model.json")) {
            return Err(RegistryError::NoModelInRun {
                run: run.name.clone(),
            });
        }
        let copied = files
            .into_iter()
            .map(|file| Ok((run.place().join(&file.path)?, file.path)));
        let written = mlflow.into_iter();
        let written = written.map(|(path, bytes)| (format!("{MLFLOW_FOLDER}/{path}"), bytes));
        let new = NewVersion {
            note: note.to_owned(),
            lineage,
            mlflow: None,
            copied: copied.collect::<Result<_, RegistryError>>()?,
            written: written.collect(),
        };
        self.add(name, new)
    }

    /// Makes a version: brings its files, and gives it the next number.
    ///
    /// # Errors
    /// When the store cannot be read or written. Then there is no new version.
    pub fn add(&self, name: &str, new: NewVersion) -> Result<Version, RegistryError> {
        let model = self.folder_of(check_name(name)?)?;
        let folder = format!("files/{}", random_letters::<8>()?);
        let to = model.join(&folder)?;
        let mut version = Version {
            format: FORMAT,
            name: name.to_owned(),
            number: 0,
            created: calendar::now(),
            note: new.note,
            folder,
            bytes: 0,
            lineage: new.lineage,
            mlflow: new.mlflow,
        };
        let bring = || -> Result<u64, RegistryError> {
            let mut bytes = 0;
            for (from, name) in &new.copied {
                bytes += copy(from, &to.join(name)?)?;
            }
            for (name, content) in &new.written {
                to.join(name)?.write(content)?;
                bytes += content.len() as u64;
            }
            Ok(bytes)
        };
        let done = bring().and_then(|bytes| {
            version.bytes = bytes;
            self.number(&model, &mut version)
        });
        if done.is_err() {
            // Nothing points to what was brought; the first error is the one worth reporting.
            let _ = to.delete_all();
        }
        done.map(|()| version)
    }

    pub(super) fn folder_of(&self, name: &str) -> Result<Place, RegistryError> {
        Ok(self.place.join(name)?)
    }

    /// Takes the next number that is free.
    fn number(&self, model: &Place, version: &mut Version) -> Result<(), RegistryError> {
        let first = 1 + self.numbers(model)?.last().copied().unwrap_or(0);
        for next in (first..).take(TRIES) {
            version.number = next;
            if document::create(&description(model, next)?, version)? {
                return Ok(());
            }
        }
        let path = model.to_string();
        Err(DocumentError::Contended { path }.into())
    }

    /// The numbers that were ever given, in order.
    fn numbers(&self, model: &Place) -> Result<Vec<u64>, RegistryError> {
        let listed = model.join("versions")?.list()?;
        let number = |file: FileEntry| file.path.strip_suffix(".json")?.parse().ok();
        let mut numbers: Vec<u64> = listed.into_iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// All models that have a version, and are not prompts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn models(&self) -> Result<Vec<Model>, RegistryError> {
        let mut models = self.all()?;
        models.retain(|model| !model.versions.is_empty() && !model.is_prompt());
        Ok(models)
    }

    /// All models, also those that have no version yet, and prompts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn all(&self) -> Result<Vec<Model>, RegistryError> {
        let mut models = Vec::new();
        for name in self.place.folders()? {
            if check_name(&name).is_ok() {
                models.extend(self.read(&name)?);
            }
        }
        Ok(models)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// When there is none, or the store cannot be read.
    pub fn model(&self, name: &str) -> Result<Model, RegistryError> {
        if let Some(model) = self.find_model(name)? {
            return Ok(model);
        }
        let known = self.models()?.into_iter().map(|model| model.name);
        Err(RegistryError::NoModel {
            name: name.to_owned(),
            store: self.store.to_string(),
            known: known.collect(),
        })
    }

    /// The model of this name, if there is one.
    pub(super) fn find_model(&self, name: &str) -> Result<Option<Model>, RegistryError> {
        self.read(check_name(name)?)
    }

    fn read(&self, name: &str) -> Result<Option<Model>, RegistryError> {
        let place = self.place.join(name)?;
        let mut versions = Vec::new();
        for number in self.numbers(&place)? {
            let file = description(&place, number)?;
            if let Some(Described::Version(version)) = document::read(&file, FILES)? {
                versions.push(*version);
            }
        }
        let details: Option<Details> = document::read(&self.details_of(name)?, FILES)?;
        if versions.is_empty() && details.is_none() {
            return Ok(None);
        }
        let aliases: Option<Aliases> = document::read(&place.join("aliases.json")?, FILES)?;
        Ok(Some(Model {
            name: name.to_owned(),
            aliases: aliases.unwrap_or_default().aliases,
            versions,
            details: details.unwrap_or_default(),
        }))
    }

    /// The version that is meant.
    ///
    /// # Errors
    /// When there is none, or the store cannot be read.
    pub fn find(&self, reference: &Reference) -> Result<Version, RegistryError> {
        // Whoever asks again and again need not read what all versions are.
        if let Some(version) = self.find_one(reference)? {
            return Ok(version);
        }
        Ok(self.model(&reference.name)?.pick(&reference.pick)?.clone())
    }

    /// The version that is meant, if there is one, without a look at others.
    fn find_one(&self, reference: &Reference) -> Result<Option<Version>, RegistryError> {
        let place = self.place.join(check_name(&reference.name)?)?;
        let numbers = match &reference.pick {
            Pick::Number(number) => vec![*number],
            Pick::Alias(alias) => {
                let aliases: Option<Aliases> = document::read(&place.join("aliases.json")?, FILES)?;
                let aliases = aliases.unwrap_or_default().aliases;
                aliases.get(alias).copied().into_iter().collect()
            }
            Pick::Newest => self.numbers(&place)?,
        };
        for number in numbers.into_iter().rev() {
            let described = document::read(&description(&place, number)?, FILES)?;
            if let Some(Described::Version(version)) = described {
                return Ok(Some(*version));
            }
        }
        Ok(None)
    }

    /// The files of a version, as a run that has nothing but its job and its model.
    ///
    /// # Errors
    /// When the description of the version leads elsewhere.
    pub fn run(&self, version: &Version) -> Result<RunDir, RegistryError> {
        let place = self
            .place
            .join(check_name(&version.name)?)?
            .join(&version.folder)?;
        let name = format!("{}@{}", version.name, version.number);
        Ok(RunDir::named(&name, place))
    }

    /// Points an alias to a version that is there, or to none. Returns what it pointed to before.
    ///
    /// # Errors
    /// When there is no such version, or the store cannot be read or written.
    pub fn point(
        &self,
        name: &str,
        alias: &str,
        number: Option<u64>,
    ) -> Result<Option<u64>, RegistryError> {
        check_alias(alias)?;
        let model = self.model(name)?;
        match number {
            Some(number) => drop(model.pick(&Pick::Number(number))?),
            None => drop(model.pick(&Pick::Alias(alias.to_owned()))?),
        }
        let file = self.place.join(name)?.join("aliases.json")?;
        let before = document::change(&file, FILES, |aliases: &mut Aliases| {
            aliases.format = FORMAT;
            aliases.history.push(Pointed {
                time: calendar::now(),
                alias: alias.to_owned(),
                version: number,
            });
            let surplus = aliases.history.len().saturating_sub(HISTORY);
            aliases.history.drain(..surplus);
            match number {
                Some(number) => aliases.aliases.insert(alias.to_owned(), number),
                None => aliases.aliases.remove(alias),
            }
        });
        Ok(before?)
    }

    /// Removes a version and its files. Its number is not given again.
    ///
    /// # Errors
    /// When an alias points to it, there is none, or the store cannot be written.
    pub fn remove(&self, name: &str, number: u64) -> Result<(), RegistryError> {
        let model = self.model(name)?;
        let version = model.pick(&Pick::Number(number))?;
        if let Some(alias) = model.aliases_of(number).first() {
            return Err(RegistryError::Aliased {
                name: name.to_owned(),
                number,
                alias: (*alias).to_owned(),
            });
        }
        let removed = Removed {
            format: FORMAT,
            removed: calendar::now(),
        };
        let place = self.folder_of(name)?;
        // First the description, so that nobody finds a version without its files.
        document::write(&description(&place, number)?, &removed)?;
        Ok(place.join(&version.folder)?.delete_all()?)
    }

    /// Removes a model with all that it has. Its numbers are given again to one that is made later under its name.
    ///
    /// # Errors
    /// When there is none, or the store cannot be written.
    pub fn remove_model(&self, name: &str) -> Result<(), RegistryError> {
        self.model(name)?;
        Ok(self.folder_of(name)?.delete_all()?)
    }

    /// The versions that were made from each run: `digits@3`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn by_run(&self) -> Result<BTreeMap<String, Vec<String>>, RegistryError> {
        let mut by_run: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for model in self.models()? {
            for version in model.versions {
                let name = format!("{}@{}", model.name, version.number);
                by_run.entry(version.lineage.run).or_default().push(name);
            }
        }
        Ok(by_run)
    }
}

fn description(model: &Place, number: u64) -> Result<Place, RegistryError> {
    Ok(model.join(&format!("versions/{number:06}.json"))?)
}

/// Copies a file, and returns how many bytes it has.
fn copy(from: &Place, to: &Place) -> Result<u64, RegistryError> {
    let mut writer = to.writer()?;
    let missing = || PlaceError::NotFound {
        place: from.to_string(),
    };
    let entry = from.entry()?.ok_or_else(missing)?;
    let mut at = 0;
    while at < entry.size {
        let end = entry.size.min(at + PIECE);
        writer.write_all(&from.read_range_of(&entry, at..end)?)?;
        at = end;
    }
    writer.commit()?;
    Ok(entry.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;
    use std::thread;

    struct Scratch {
        _folder: tempfile::TempDir,
        run: RunDir,
        registry: Registry,
    }

    fn scratch() -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let (run, _lock) = RunDir::create(&store, "job").unwrap();
        run.job().write(b"name = \"job\"\n").unwrap();
        run.model().write(b"{}").unwrap();
        run.weights().write(b"weights").unwrap();
        Scratch {
            registry: Registry::of(&store).unwrap(),
            run,
            _folder: folder,
        }
    }

    fn register(scratch: &Scratch) -> Version {
        let lineage = Lineage {
            run: scratch.run.name.clone(),
            ..Lineage::default()
        };
        scratch
            .registry
            .register("digits", &scratch.run, lineage, "", Vec::new())
            .unwrap()
    }

    #[test]
    fn a_version_outlives_its_run_and_its_number_is_not_given_again() {
        let scratch = scratch();
        assert_eq!(register(&scratch).number, 1);
        let second = register(&scratch);
        scratch.registry.remove("digits", 2).unwrap();
        assert_eq!(register(&scratch).number, 3);
        scratch.run.clone().discard().unwrap();
        let registry = &scratch.registry;
        let found = registry.find(&"digits@1".parse().unwrap()).unwrap();
        let files = registry.run(&found).unwrap();
        assert_eq!(files.weights().read().unwrap(), b"weights");
        assert_eq!(
            RunDir::open(files.place()).unwrap().job().read().unwrap(),
            b"name = \"job\"\n"
        );
        let error = registry.find(&"digits@2".parse().unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("no version 2; it has 1, 3"),
            "{error}"
        );
        assert!(
            registry
                .run(&second)
                .unwrap()
                .place()
                .list()
                .unwrap()
                .is_empty()
        );
        let by_run = registry.by_run().unwrap();
        assert_eq!(by_run[&scratch.run.name], ["digits@1", "digits@3"]);
    }

    #[test]
    fn an_alias_moves_and_keeps_its_version_from_being_removed() {
        let scratch = scratch();
        register(&scratch);
        register(&scratch);
        let registry = &scratch.registry;
        assert_eq!(registry.point("digits", "champion", Some(1)).unwrap(), None);
        assert_eq!(
            registry.point("digits", "champion", Some(2)).unwrap(),
            Some(1)
        );
        let champion = "digits@champion".parse().unwrap();
        assert_eq!(registry.find(&champion).unwrap().number, 2);
        let error = registry.remove("digits", 2).unwrap_err();
        assert!(matches!(error, RegistryError::Aliased { .. }), "{error}");
        registry.remove("digits", 1).unwrap();
        let error = registry.point("digits", "champion", Some(1)).unwrap_err();
        assert!(matches!(error, RegistryError::NoVersion { .. }), "{error}");
        registry.point("digits", "champion", None).unwrap();
        assert!(registry.find(&champion).is_err());
        let error = registry.find(&"other".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("there are digits"), "{error}");
    }

    #[test]
    fn of_many_who_register_and_promote_at_once_none_is_lost() {
        let scratch = scratch();
        thread::scope(|scope| {
            for number in 0..8 {
                let scratch = &scratch;
                scope.spawn(move || {
                    let version = register(scratch);
                    let alias = format!("a{number}");
                    let registry = &scratch.registry;
                    registry
                        .point("digits", &alias, Some(version.number))
                        .unwrap();
                });
            }
        });
        let model = scratch.registry.model("digits").unwrap();
        let numbers: Vec<u64> = model
            .versions
            .iter()
            .map(|version| version.number)
            .collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        let mut pointed: Vec<u64> = model.aliases.values().copied().collect();
        pointed.sort_unstable();
        assert_eq!(pointed, numbers);
    }

    #[test]
    fn what_a_newer_version_wrote_is_refused_with_its_path() {
        let scratch = scratch();
        register(&scratch);
        let model = scratch.registry.place.join("digits").unwrap();
        let file = description(&model, 2).unwrap();
        file.write(br#"{"format": 9, "number": 2}"#).unwrap();
        let error = scratch.registry.model("digits").unwrap_err().to_string();
        assert!(
            error.contains("newer") && error.contains("000002.json"),
            "{error}"
        );
    }

    #[test]
    fn a_run_without_a_model_becomes_no_version() {
        let scratch = scratch();
        scratch.run.model().delete().unwrap();
        let lineage = Lineage::default();
        let error = scratch
            .registry
            .register("digits", &scratch.run, lineage, "", Vec::new())
            .unwrap_err();
        assert!(
            matches!(error, RegistryError::NoModelInRun { .. }),
            "{error}"
        );
        assert!(scratch.registry.models().unwrap().is_empty());
    }
}
