//! The data sets of a job, opened and checked against each other and against the job.

use crate::TrainError;
use crate::network;
use crate::targets;
use lockstep_base::fs::CacheDir;
use lockstep_data::{
    Augmenter, Dataset, DecodedSet, Encoding, Normaliser, TargetKind, TargetScale, leak_note, split,
};
use lockstep_learner::VectorFacts;
use lockstep_model::{Decision, OwnMetrics};
use lockstep_nn::EmbeddingTable;
use lockstep_resolve::{SetSources, TrainingSettings};
use serde::{Deserialize, Serialize};

/// The sets a job trains and is measured on.
pub(crate) struct Sets {
    pub(crate) train: Dataset,
    /// The training samples, in the order of the set.
    pub(crate) train_indices: Vec<u32>,
    /// The validation samples of [`Sets::val_set`]; empty without validation.
    pub(crate) val_indices: Vec<u32>,
    /// The set that the validation samples are of, if it is one of its own.
    val: Option<Dataset>,
    pub(crate) test: Option<Dataset>,
    pub(crate) normaliser: Normaliser,
    /// How the numbers that are to be predicted become those that are learned.
    pub(crate) scale: TargetScale,
    /// How the model decides, if it tells two classes apart.
    pub(crate) decision: Option<Decision>,
    /// Metrics of the job's own.
    pub(crate) metrics: OwnMetrics,
    /// Varies the images that are trained on, and those alone.
    pub(crate) augmenter: Option<Augmenter>,
}

/// A job's sets as they were found when it was prepared: where each lies decoded, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSets {
    train: DecodedSet,
    val: Option<DecodedSet>,
    test: Option<DecodedSet>,
}

impl FoundSets {
    /// The sets by what they are used for.
    pub fn by_use(&self) -> impl Iterator<Item = (&'static str, &DecodedSet)> {
        let sets = [
            ("train", Some(&self.train)),
            ("val", self.val.as_ref()),
            ("test", self.test.as_ref()),
        ];
        sets.into_iter()
            .filter_map(|(name, set)| set.map(|set| (name, set)))
    }
}

/// What must be known of a job's data to plan its training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFacts {
    /// Samples to train on, at least 1.
    pub train: usize,
    /// Samples to validate on.
    pub val: usize,
    /// Samples to test on.
    pub test: usize,
    /// Shape of a sample: channels, height, width.
    pub shape: [usize; 3],
    /// What is predicted.
    pub kind: TargetKind,
    /// What each output is called: a class, or the column of a table.
    pub names: Vec<String>,
    /// The tables of vectors that the network begins with, for the last inputs of a row.
    pub embeddings: Vec<EmbeddingTable>,
}

impl DataFacts {
    /// Of vectors, each of one class: of those to train on a share may be set aside for validation.
    pub fn of_vectors(settings: &TrainingSettings, vectors: &VectorFacts) -> Self {
        let (val, test) = match &settings.split {
            Some(rule) => rule.counts(vectors.train),
            None => (share_of(vectors.train, settings.val_share), 0),
        };
        Self {
            train: vectors.train - val - test,
            val: vectors.val + val,
            test: vectors.test + test,
            shape: [vectors.width, 1, 1],
            kind: TargetKind::Classes,
            names: vectors.classes.clone(),
            embeddings: Vec::new(),
        }
    }
}

impl Sets {
    /// What planning must know of them.
    pub(crate) fn facts(&self) -> DataFacts {
        DataFacts {
            train: self.train_indices.len(),
            val: self.val_indices.len(),
            test: self.test.as_ref().map_or(0, Dataset::len),
            shape: self.input_shape(),
            kind: self.train.target_kind(),
            names: self.train.output_names().to_vec(),
            embeddings: network::embeddings(self.normaliser.encoding()),
        }
    }

    /// The shape of what the network takes: that of a sample, or of a row of a table as it is encoded.
    pub(crate) fn input_shape(&self) -> [usize; 3] {
        match self.normaliser.encoding() {
            Some(encoding) => [encoding.width(), 1, 1],
            None => self.train.shape(),
        }
    }

    /// Numbers of what the network takes.
    pub(crate) fn input_len(&self) -> usize {
        self.input_shape().iter().product()
    }

    /// Opens the sets where they come from. Says through `progress` what may take a while.
    pub(crate) fn open(
        settings: &TrainingSettings,
        sources: &SetSources,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, TrainError> {
        let train = Dataset::open_telling(&sources.train, cache, progress)?;
        targets::check(settings, &train)?;
        let mut open = |source| Dataset::open_beside(source, &train, cache, progress);
        let val = sources.val.as_ref().map(&mut open).transpose()?;
        let test = sources.test.as_ref().map(&mut open).transpose()?;
        Self::of(settings, train, val, test)
    }

    /// Opens what the coordinator found; nothing is listed, and no sample is read.
    pub(crate) fn reopen(
        settings: &TrainingSettings,
        found: &FoundSets,
    ) -> Result<Self, TrainError> {
        let reopen = |set: &Option<DecodedSet>| set.as_ref().map(Dataset::reopen).transpose();
        let train = Dataset::reopen(&found.train)?;
        Self::of(settings, train, reopen(&found.val)?, reopen(&found.test)?)
    }

    /// Refuses sets that hold other samples than those that were found when the job was prepared: on another
    /// machine, a file of the same name may be another.
    pub(crate) fn check_same(&self, found: &FoundSets) -> Result<(), TrainError> {
        let here = self.found();
        let sets = [
            ("data.train", Some(&here.train), Some(&found.train)),
            ("data.val", here.val.as_ref(), found.val.as_ref()),
            ("data.test", here.test.as_ref(), found.test.as_ref()),
        ];
        for (key, here, found) in sets {
            let hashes = (here.map(|set| &set.sha256), found.map(|set| &set.sha256));
            if let (Some(here), Some(found)) = hashes
                && here != found
            {
                let reason = format!(
                    "the samples on this machine are not those that the coordinator found \
                     (SHA-256 {here}, and {found} there)"
                );
                return Err(TrainError::misfit(key, reason));
            }
        }
        Ok(())
    }

    /// What others need to open these sets again.
    pub(crate) fn found(&self) -> FoundSets {
        FoundSets {
            train: self.train.decoded(),
            val: self.val.as_ref().map(Dataset::decoded),
            test: self.test.as_ref().map(Dataset::decoded),
        }
    }

    /// The sets, open, as the job uses them.
    fn of(
        settings: &TrainingSettings,
        train: Dataset,
        val: Option<Dataset>,
        test: Option<Dataset>,
    ) -> Result<Self, TrainError> {
        let (train_indices, split_indices) =
            train.split(settings.val_share, settings.stratify, settings.seed);
        let val_indices = match &val {
            Some(set) => all_indices(set),
            None => split_indices,
        };
        let counts = |weights: &[f32]| {
            let mut trained = train_indices.iter();
            trained.any(|&sample| weights[sample as usize] > 0.0)
        };
        if train.weights().is_some_and(|weights| !counts(weights)) {
            let reason =
                "the column of weights is 0 in all rows that are trained on: none of them counts";
            return Err(TrainError::misfit("data.train", reason));
        }
        let normaliser = settings.normaliser(&train, &train_indices)?;
        let augmenter = settings.augment.map(|images| {
            let augmenter = Augmenter::new(images.augment, train.shape(), settings.seed)?;
            augmenter.with_changes(images.changes)
        });
        let samples = (&train, &train_indices[..]);
        let rules = &settings.learner.decision;
        Ok(Self {
            decision: Decision::of(rules, samples, !val_indices.is_empty())?,
            metrics: OwnMetrics::bind(
                &settings.metrics,
                train.target_kind(),
                train.output_names(),
            )?,
            scale: TargetScale::of(&train, &train_indices),
            train,
            train_indices,
            val_indices,
            val,
            test,
            normaliser,
            augmenter: augmenter.transpose()?,
        })
    }

    /// Writes training samples as they are seen in a step of the run, normalised, to the rows of `out`.
    pub(crate) fn gather_training(&self, samples: &[u32], step: u64, out: &mut [f32]) {
        match &self.augmenter {
            None => self.train.gather(samples, &self.normaliser, out),
            Some(augmenter) => {
                let seen = (augmenter, step);
                self.train
                    .gather_augmented(samples, &self.normaliser, seen, out);
            }
        }
    }

    /// A hash of the samples that are trained on and chosen by.
    pub(crate) fn sha256(&self) -> Vec<String> {
        let val = self.val.as_ref().map(Dataset::sha256);
        std::iter::once(self.train.sha256()).chain(val).collect()
    }

    /// What was read of tables and decided for them, each a sentence.
    pub(crate) fn notes(&self, settings: &TrainingSettings) -> Vec<String> {
        let mut notes = self.train.table().notes();
        let samples = (&self.train, &self.train_indices[..]);
        let rules = &settings.learner.decision;
        notes.extend(self.decision.map(|decision| decision.note(rules, samples)));
        if let Some(encoding) = self.normaliser.encoding() {
            let scaled = match encoding.changes_scale() {
                true => {
                    "; numbers have mean 0 and deviation 1 over the training rows (`standardise = false` in [data] \
                     leaves them as they are)"
                }
                false => "",
            };
            let width = encoding.width();
            notes.push(format!(
                "a row becomes {width} inputs of the network{scaled}"
            ));
            notes.extend(self.embedding_notes(encoding));
        }
        for set in self.val.iter().chain(&self.test) {
            let unseen = set.table().unseen_notes().into_iter();
            notes.extend(unseen.map(|note| format!("{}: {note}", set.name())));
        }
        let train = (&self.train, &self.train_indices[..]);
        notes.extend(leak_note(train, (self.val_set(), &self.val_indices)));
        if let Some(test) = &self.test {
            notes.extend(leak_note(train, (test, &all_indices(test))));
        }
        notes
    }

    /// Which columns become learned vectors.
    fn embedding_notes(&self, encoding: &Encoding) -> Vec<String> {
        let mut notes = Vec::new();
        let mut at = 0;
        for column in &self.train.table().columns {
            let embedded = encoding.embedded.iter().find(|one| one.column == at);
            notes.extend(embedded.map(|embedded| {
                format!(
                    "each of the {} values of {} becomes a learned vector of {} numbers",
                    embedded.values.len(),
                    column.column.name,
                    embedded.width
                )
            }));
            at += column.column.kind.width();
        }
        notes
    }

    /// The set that the validation samples are of.
    pub(crate) fn val_set(&self) -> &Dataset {
        self.val.as_ref().unwrap_or(&self.train)
    }
}

/// The samples that are set aside of so many.
fn share_of(samples: usize, share: f64) -> usize {
    split(samples, share, 0).1.len()
}

/// Every sample of a set.
pub(crate) fn all_indices(set: &Dataset) -> Vec<u32> {
    (0..set.len() as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::Job;
    use lockstep_resolve::ResolvedJob;
    use std::fs;
    use std::path::Path;

    const JOB: &str = "name = 'x'\n[data]\ntrain = 'train.csv'\ntest = 'test.csv'\nval_split = 0.25\n\
         [model]\nkind = 'mlp'\nhidden = [3]\n\
         [train]\nepochs = 1\nbatch = 2\noptimizer = { kind = 'sgd' }\n";

    #[test]
    fn a_worker_opens_what_was_found_without_the_files_that_it_came_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let rows = |classes: &str| {
            let row = |(i, class)| format!("{i},{class}\n");
            let rows: String = classes.chars().enumerate().map(row).collect();
            format!("x,label\n{rows}")
        };
        fs::write(path("train.csv"), rows("bacbacba")).unwrap();
        fs::write(path("test.csv"), rows("cc")).unwrap();
        let job = Job::parse(Path::new(&path("job.toml")), JOB, &[], None).unwrap();
        let cache = CacheDir::at(&path("cache")).unwrap();
        let network = job.network(Path::new("job.toml")).unwrap();
        let job = ResolvedJob::of(&job, network).unwrap();
        let open = || Sets::open(&job.training, &job.sets, &cache, &mut |_| {});
        let sets = open().unwrap();
        let facts = sets.facts();
        assert_eq!((facts.train, facts.val, facts.test), (6, 2, 2));
        assert_eq!(facts.names, ["a", "b", "c"]);

        let told = serde_json::to_string(&sets.found()).unwrap();
        fs::remove_file(path("train.csv")).unwrap();
        fs::remove_file(path("test.csv")).unwrap();
        assert!(open().is_err());
        let again = Sets::reopen(&job.training, &serde_json::from_str(&told).unwrap()).unwrap();
        assert_eq!(again.facts(), facts);
        assert_eq!(again.sha256(), sets.sha256());
        assert_eq!(again.train_indices, sets.train_indices);
        assert_eq!(again.test.unwrap().labels(), [2, 2]);
    }
}
