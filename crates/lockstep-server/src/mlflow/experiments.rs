//! Experiments: what MLflow calls the runs of one job.
//!
//! Every job name of the store is an experiment, so MLflow's clients find Lockstep's own runs too. What only MLflow knows
//! of one (that it was made before it had runs, its tags, that it is in the bin) is in `experiments.json` in the server's
//! folder. An id is made from the name, so it is the same for everybody who looks at the store.

use super::MlflowError;
use lockstep_base::fs::{AtomicFile, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The id of the experiment of those who name none.
pub(crate) const DEFAULT: &str = "0";
const DEFAULT_NAME: &str = "Default";
/// The longest name.
const NAME: usize = 500;

/// One experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Experiment {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// The name of the token that made it; nobody's of one that comes from a job's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub(crate) created: i64,
    /// When it was changed.
    pub(crate) updated: i64,
    /// Whether it is in the bin.
    pub(crate) deleted: bool,
    /// Its tags.
    pub(crate) tags: BTreeMap<String, String>,
}

impl Experiment {
    fn named(name: &str) -> Experiment {
        let id = match name {
            DEFAULT_NAME => DEFAULT.to_owned(),
            name => {
                let hash = sha256(name.as_bytes());
                let number = u64::from_str_radix(&hash[..12], 16).unwrap_or_default();
                // Fifteen digits, and never that of the default.
                (100_000_000_000_000 + number).to_string()
            }
        };
        Experiment {
            id,
            name: name.to_owned(),
            ..Experiment::default()
        }
    }

    /// As MLflow's clients read it.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "experiment_id": self.id,
            "name": self.name,
            "artifact_location": format!("mlflow-artifacts:/{}", self.id),
            "lifecycle_stage": if self.deleted { "deleted" } else { "active" },
            "creation_time": self.created,
            "last_update_time": self.updated,
            "tags": super::view::pairs(&self.tags),
        })
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct Experiments {
    path: PathBuf,
    /// Held while the file is read, changed and written.
    changing: Mutex<()>,
}

impl Experiments {
    /// Those of a server's folder.
    pub(crate) fn of(folder: &Path) -> Experiments {
        Experiments {
            path: folder.join("experiments.json"),
            changing: Mutex::default(),
        }
    }

    /// All: those of the file, the default, and those of these jobs.
    pub(crate) fn all<'a>(
        &self,
        jobs: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Experiment>, MlflowError> {
        let mut all = self.read()?;
        for name in [DEFAULT_NAME].into_iter().chain(jobs) {
            if !all.iter().any(|known| known.name == name) {
                all.push(Experiment::named(name));
            }
        }
        Ok(all)
    }

    /// Makes one.
    pub(crate) fn create(
        &self,
        name: &str,
        owner: &str,
        tags: BTreeMap<String, String>,
        now: i64,
    ) -> Result<Experiment, MlflowError> {
        check_name(name)?;
        self.change(|all| {
            if let Some(known) = all.iter().find(|known| known.name == name) {
                let bin = if known.deleted {
                    " It is in the bin: restore it."
                } else {
                    ""
                };
                return Err(MlflowError::exists(format!(
                    "Experiment '{name}' already exists.{bin}"
                )));
            }
            let mut made = Experiment::named(name);
            // One that had this name before may have been given another.
            while all.iter().any(|known| known.id == made.id) {
                made.id += "0";
            }
            (made.created, made.updated, made.tags) = (now, now, tags);
            made.owner = Some(owner.to_owned());
            all.push(made.clone());
            Ok(made)
        })
    }

    /// Changes one, which may be that of a job and not in the file yet.
    pub(crate) fn update(
        &self,
        experiment: Experiment,
        now: i64,
        change: impl FnOnce(&mut Experiment),
    ) -> Result<(), MlflowError> {
        self.change(|all| {
            let known = all.iter().position(|known| known.id == experiment.id);
            let at = known.unwrap_or_else(|| {
                all.push(experiment);
                all.len() - 1
            });
            let Some(known) = all.get_mut(at) else {
                return Ok(());
            };
            let before = known.name.clone();
            change(known);
            known.updated = now;
            let name = known.name.clone();
            check_name(&name)?;
            if name != before && all.iter().filter(|other| other.name == name).count() > 1 {
                return Err(MlflowError::exists(format!(
                    "Experiment '{name}' already exists."
                )));
            }
            Ok(())
        })
    }

    fn read(&self) -> Result<Vec<Experiment>, MlflowError> {
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let path = self.path.display();
                MlflowError::state(format!("{path} is damaged: {error}"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Experiment>) -> Result<T, MlflowError>,
    ) -> Result<T, MlflowError> {
        let _alone = self
            .changing
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        let mut all = self.read()?;
        let done = change(&mut all)?;
        let text = serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
        // It is nobody's but the server's.
        let write = || {
            let mut file = AtomicFile::create(&self.path).map_err(io::Error::other)?;
            fs::set_permissions(file.temporary(), fs::Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())?;
            file.commit().map_err(io::Error::other)
        };
        write()?;
        Ok(done)
    }
}

fn check_name(name: &str) -> Result<(), MlflowError> {
    let right = !name.trim().is_empty() && name.len() <= NAME && !name.contains(char::is_control);
    match right {
        true => Ok(()),
        false => Err(MlflowError::wrong(format!(
            "Invalid experiment name: {name:?}. It must have 1 to {NAME} characters, and no control characters"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_the_name_and_a_name_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let experiments = Experiments::of(folder.path());
        let made = experiments
            .create("digits", "anna", BTreeMap::new(), 5)
            .unwrap();
        assert!(
            experiments
                .create("digits", "anna", BTreeMap::new(), 6)
                .is_err()
        );
        assert!(experiments.create(" ", "anna", BTreeMap::new(), 6).is_err());
        let all = experiments.all(["digits", "other"].into_iter()).unwrap();
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["digits", "Default", "other"]);
        assert_eq!(all[0].id, made.id);
        assert_eq!(all[1].id, "0");
        assert_eq!(all[2].id, Experiment::named("other").id);
        assert!(made.id.len() == 15 && made.id.bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn one_of_a_job_can_be_changed_too() {
        let folder = tempfile::tempdir().unwrap();
        let experiments = Experiments::of(folder.path());
        let job = Experiment::named("job");
        experiments
            .update(job.clone(), 7, |one| one.deleted = true)
            .unwrap();
        let all = experiments.all(["job"].into_iter()).unwrap();
        let found = all.iter().find(|one| one.id == job.id).unwrap();
        assert!(found.deleted && found.updated == 7);
        experiments
            .create("taken", "anna", BTreeMap::new(), 8)
            .unwrap();
        let renamed = experiments.update(job, 9, |one| one.name = "taken".to_owned());
        assert!(renamed.is_err());
    }
}
