//! The data sets that a script may ask for.

use crate::ScriptError;
use lockstep_base::fs::CacheDir;
use lockstep_data::{
    Dataset, DecodedFrame, DecodedSet, Frame, Normalisation, Normaliser, TargetKind, split,
};
use lockstep_resolve::{ResolvedScript, ScriptSource};
use serde::{Deserialize, Serialize};

/// The sets as they were found when the job was prepared: where each comes from and lies decoded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ScriptSets {
    sets: Vec<FoundSet>,
    /// The share of the training set that is handed out as `val`.
    val_share: f64,
    normalise: Option<Normalisation>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FoundSet {
    name: String,
    source: ScriptSource,
    decoded: FoundDecoded,
    samples: usize,
}

/// Where a set lies decoded.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum FoundDecoded {
    Samples(DecodedSet),
    Columns(DecodedFrame),
}

/// A set, open, and the samples of it that are handed out under one name.
#[derive(Debug)]
pub(crate) struct OpenSet {
    pub(crate) data: OpenData,
    pub(crate) indices: Vec<u32>,
}

/// What is handed out.
#[derive(Debug)]
pub(crate) enum OpenData {
    Samples(Box<OpenSamples>),
    Columns(Frame),
}

/// Samples as networks see them.
#[derive(Debug)]
pub(crate) struct OpenSamples {
    pub(crate) set: Dataset,
    pub(crate) normaliser: Normaliser,
}

impl OpenData {
    fn len(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.set.len(),
            Self::Columns(frame) => frame.len(),
        }
    }

    /// The names of the classes, where samples have any.
    pub(crate) fn classes(&self) -> &[String] {
        match self {
            Self::Samples(samples) if samples.set.target_kind() == TargetKind::Classes => {
                samples.set.class_names()
            }
            _ => &[],
        }
    }

    fn decoded(&self) -> FoundDecoded {
        match self {
            Self::Samples(samples) => FoundDecoded::Samples(samples.set.decoded()),
            Self::Columns(frame) => FoundDecoded::Columns(frame.decoded()),
        }
    }
}

impl ScriptSets {
    /// Opens the sets of a job where they come from, so that workers find them decoded. Says through `progress`
    /// what may take a while.
    ///
    /// # Errors
    /// When one is missing or damaged, or does not fit the training set.
    pub(crate) fn find(
        job: &ResolvedScript,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, ScriptError> {
        let mut sets = Vec::new();
        let mut train: Option<OpenData> = None;
        let normalise = job.normalise.as_ref();
        for (name, source) in &job.sets {
            let set = open(source, train.as_ref(), normalise, cache, progress)?;
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
    pub(crate) fn samples(&self, name: &str) -> usize {
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

    /// What each set is used for, what it is called, and its hash; of a table that is not known.
    pub(crate) fn by_use(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.sets.iter().map(|set| match &set.decoded {
            FoundDecoded::Samples(decoded) => (&*set.name, &*decoded.name, &*decoded.sha256),
            FoundDecoded::Columns(decoded) => (&*set.name, decoded.name(), ""),
        })
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
        let normalise = self.normalise.as_ref();
        let data = match reopen(&found.decoded, normalise) {
            Ok(data) => data,
            Err(_) => {
                let cache = CacheDir::locate().map_err(lockstep_runs::RunsError::from)?;
                let cannot_tell = &mut |_: &str| {};
                let train = match of("train").filter(|train| train.name != found.name) {
                    Some(train) => Some(open(&train.source, None, normalise, &cache, cannot_tell)?),
                    None => None,
                };
                open(
                    &found.source,
                    train.as_ref(),
                    normalise,
                    &cache,
                    cannot_tell,
                )?
            }
        };
        let (train, val) = split(data.len(), self.val_share, seed);
        let indices = match name {
            "train" => train,
            "val" if found.name == "train" => val,
            _ => (0..data.len() as u32).collect(),
        };
        Ok(Some(OpenSet { data, indices }))
    }
}

fn reopen(
    found: &FoundDecoded,
    normalise: Option<&Normalisation>,
) -> Result<OpenData, ScriptError> {
    match found {
        FoundDecoded::Samples(decoded) => samples(Dataset::reopen(decoded)?, normalise),
        FoundDecoded::Columns(decoded) => Ok(OpenData::Columns(Frame::reopen(decoded)?)),
    }
}

fn open(
    source: &ScriptSource,
    train: Option<&OpenData>,
    normalise: Option<&Normalisation>,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<OpenData, ScriptError> {
    let source = match source {
        ScriptSource::Samples(source) => source,
        ScriptSource::Columns(source) => {
            return Ok(OpenData::Columns(Frame::open(source, cache, progress)?));
        }
    };
    let set = match train {
        Some(OpenData::Samples(train)) => {
            Dataset::open_beside(source, &train.set, cache, progress)?
        }
        _ => Dataset::open_telling(source, cache, progress)?,
    };
    samples(set, normalise)
}

fn samples(set: Dataset, normalise: Option<&Normalisation>) -> Result<OpenData, ScriptError> {
    let channels = set.shape()[0];
    let normaliser = Normaliser::of(normalise, channels)?;
    Ok(OpenData::Samples(Box::new(OpenSamples { set, normaliser })))
}
