//! A run by a part of its name: the four letters at its end are enough. Or by the name of its job, or `latest`: the newest.

use crate::name::split_run_name;
use crate::{RunDir, RunsError};
use lockstep_place::Place;

/// Names that are listed when several may be meant.
const LISTED: usize = 5;
/// What stands for the newest run of all jobs.
const LATEST: &str = "latest";

/// Which of some names is meant by one of them, or by a part that no other has. Nothing if none has it.
///
/// # Errors
/// When several have it.
pub fn pick<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<Option<&'a str>, RunsError> {
    let mut holding = Vec::new();
    for name in names {
        if name == given {
            return Ok(Some(name));
        }
        if name.contains(given) {
            holding.push(name);
        }
    }
    if holding.len() < 2 {
        return Ok(holding.pop());
    }
    let mut listed = holding[..holding.len().min(LISTED)].join(", ");
    if holding.len() > LISTED {
        listed += &format!(" and {} more", holding.len() - LISTED);
    }
    Err(RunsError::Several {
        given: given.to_owned(),
        listed,
    })
}

impl RunDir {
    /// The newest run of a store that is meant by the name of its job, or by `latest`. Nothing if none is called so.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest_called(store: &Place, given: &str) -> Result<Option<RunDir>, RunsError> {
        match Self::newest(store, Some(given))? {
            None if given == LATEST => Self::newest(store, None),
            found => Ok(found),
        }
    }

    /// The run of a store that is given by its name, by `latest` or its job's name if it is the newest, or by a part of its
    /// name that no other has. Nothing if there is none.
    ///
    /// # Errors
    /// When several runs may be meant, or the store cannot be read.
    pub fn find(store: &Place, given: &str) -> Result<Option<RunDir>, RunsError> {
        if let Ok(place) = store.beneath().join(given) {
            let run = RunDir::named(given, place);
            if run.job().entry()?.is_some() {
                return Ok(Some(run));
            }
        }
        if let Some(newest) = Self::newest_called(store, given)? {
            return Ok(Some(newest));
        }
        let mut folders = store.folders()?;
        folders.retain(|name| split_run_name(name).is_some());
        let Some(name) = pick(given, folders.iter().map(String::as_str))? else {
            return Ok(None);
        };
        Ok(Some(RunDir::named(name, store.beneath().join(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    #[test]
    fn a_run_is_found_by_a_part_of_its_name_that_no_other_has() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        for name in [
            "digits-20261118-040000-ab27",
            "digits-20261118-050000-x3k5",
            "models",
        ] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let found = |given: &str| RunDir::find(&store, given).map(|run| run.map(|run| run.name));
        let first = Some("digits-20261118-040000-ab27".to_owned());
        for given in ["ab27", "digits-20261118-04", "digits-20261118-040000-ab27"] {
            assert_eq!(found(given).unwrap(), first, "{given}");
        }
        assert_eq!(found("zzzz").unwrap(), None);
        assert_eq!(found("odel").unwrap(), None);
        let several = found("digits-2026").unwrap_err().to_string();
        assert!(
            several.contains("ab27") && several.contains("x3k5"),
            "{several}"
        );
    }

    #[test]
    fn latest_and_a_jobs_name_mean_its_newest_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        for name in [
            "digits-20261118-040000-ab27",
            "digits-20261118-050000-x3k5",
            "digits-big-20261118-060000-c2d3",
            "digits-20261118-070000-aaaa",
        ] {
            let run = folder.path().join(name);
            std::fs::create_dir(&run).unwrap();
            // One without a job file was never begun.
            if !name.ends_with("aaaa") {
                std::fs::write(run.join("job.toml"), "").unwrap();
            }
        }
        let found = |given: &str| RunDir::find(&store, given).unwrap().map(|run| run.name);
        let newest = |name: &str| Some(name.to_owned());
        assert_eq!(found("digits"), newest("digits-20261118-050000-x3k5"));
        assert_eq!(found("latest"), newest("digits-big-20261118-060000-c2d3"));
        assert_eq!(found("big"), newest("digits-big-20261118-060000-c2d3"));
        assert_eq!(found("ab27"), newest("digits-20261118-040000-ab27"));
        assert_eq!(found("oldest"), None);
    }
}
