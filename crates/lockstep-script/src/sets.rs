//! The data sets that a script may ask for.

use crate::ScriptError;
use lockstep_data::{Dataset, DecodedSet, Normaliser, Source, UnseenClasses, split};
use lockstep_fs::CacheDir;
use lockstep_job::JobNormalise;
use lockstep_resolve::ResolvedScript;
use serde::{Deserialize, Serialize};

/// The sets as they were found when the job was prepared: where each comes from and lies decoded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ScriptSets {
    sets: Vec<FoundSet>,
    /// The share of the training set that is handed out as `val`.
    val_share: f64,
    normalise: Option<JobNormalise>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FoundSet {
    name: String,
    source: Source,
    decoded: DecodedSet,
    samples: usize,
}

/// A set, open, and the samples of it that are handed out under one name.
#[derive(Debug)]
pub(crate) struct OpenSet {
    pub(crate) set: Dataset,
    pub(crate) indices: Vec<u32>,
    pub(crate) normaliser: Normaliser,
}

impl ScriptSets {
    /// Opens the sets of a job where they come from, so that workers find them decoded. Says through `progress`
    /// what may take a while.
    ///
    /// # Errors
    /// When one is missing or damaged, or does not fit the training set.
    pub fn find(
        job: &ResolvedScript,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, ScriptError> {
        let mut sets = Vec::new();
        let mut train: Option<Dataset> = None;
        for (name, source) in &job.sets {
            let set = open(source, train.as_ref(), cache, progress)?;
            sets.push(FoundSet {
                name: (*name).to_owned(),
                source: source.clone(),
                decoded: set.decoded(),
                samples: set.len(),
            });
            if train.is_none() {
                train = Some(set);
            }
        }
        Ok(Self {
            sets,
            val_share: job.val_share,
            normalise: job.normalise.clone(),
        })
    }

    /// How many samples a set has that is handed out under this name.
    pub fn samples(&self, name: &str) -> usize {
        let of = |name: &str| self.sets.iter().find(|set| set.name == name);
        let aside =
            || of("train").map_or(0, |train| split(train.samples, self.val_share, 0).1.len());
        match (name, of(name)) {
            ("train", Some(train)) => train.samples - aside(),
            (_, Some(set)) => set.samples,
            ("val", None) => aside(),
            _ => 0,
        }
    }

    /// The names under which sets are handed out.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let names = ["train", "val", "test"].into_iter();
        names.filter(|name| self.samples(name) > 0).collect()
    }

    /// Opens the set of this name: as it was found, or on a host that has not decoded it, anew.
    pub(crate) fn open(&self, name: &str, seed: u64) -> Result<Option<OpenSet>, ScriptError> {
        let of = |name: &str| self.sets.iter().find(|set| set.name == name);
        let found = match (name, of(name)) {
            (_, Some(found)) => found,
            ("val", None) if self.val_share > 0.0 => match of("train") {
                Some(train) => train,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let set = match Dataset::reopen(&found.decoded) {
            Ok(set) => set,
            Err(_) => {
                let cache = CacheDir::locate().map_err(lockstep_runs::RunsError::from)?;
                let train = match of("train").filter(|train| train.name != found.name) {
                    Some(train) => Some(open(&train.source, None, &cache, &mut |_| {})?),
                    None => None,
                };
                open(&found.source, train.as_ref(), &cache, &mut |_| {})?
            }
        };
        let (train, val) = split(set.len(), self.val_share, seed);
        let indices = match name {
            "train" => train,
            "val" if found.name == "train" => val,
            _ => (0..set.len() as u32).collect(),
        };
        let channels = set.shape()[0];
        let normaliser = match &self.normalise {
            Some(normalise) => Normaliser::new(&normalise.mean, &normalise.std, channels)?,
            None => Normaliser::identity(channels),
        };
        Ok(Some(OpenSet {
            set,
            indices,
            normaliser,
        }))
    }
}

fn open(
    source: &Source,
    train: Option<&Dataset>,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<Dataset, ScriptError> {
    let Some(train) = train else {
        return Ok(Dataset::open_telling(source, cache, progress)?);
    };
    let source = source.clone().labelled_as(train.target_kind());
    let set = Dataset::open_telling(&source, cache, progress)?;
    let set = set.with_classes(train.class_names(), UnseenClasses::Refuse)?;
    set.check_against(train)?;
    Ok(set)
}
