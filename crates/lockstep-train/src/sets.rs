//! The data sets of a job, opened and checked against each other and against the job.

use crate::TrainError;
use crate::source::source;
use crate::targets::{self, Outputs};
use lockstep_data::{
    Augment, Augmenter, Dataset, Normaliser, Source, TargetKind, TargetScale, Unseen, split,
};
use lockstep_fs::CacheDir;
use lockstep_job::{DataRef, Job, Validation};

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
    /// Varies the images that are trained on, and those alone.
    pub(crate) augmenter: Option<Augmenter>,
}

impl Sets {
    pub(crate) fn open(
        job: &Job,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, TrainError> {
        let mut find = |name: &str, reference: &DataRef, target: Option<TargetKind>| {
            let source = source(job, name, reference, target)?;
            source.ensure(cache, progress)?;
            Ok::<Source, TrainError>(source)
        };
        let wanted = job.train.loss.map(targets::kind);
        let train = Dataset::open(&find("train", &job.data.train, wanted)?, cache)?;
        targets::check(job, &train)?;
        let mut open = |name: &str, reference: &DataRef| -> Result<Dataset, TrainError> {
            let source = find(name, reference, Some(train.target_kind()))?;
            let classes = train.class_names();
            let refuse = Unseen::Refuse;
            Ok(Dataset::open_with_classes(&source, cache, classes, refuse)?)
        };
        let (val, share) = match &job.data.validation {
            Validation::Set(reference) => (Some(open("val", reference)?), 0.0),
            Validation::Split(share) => (None, *share),
        };
        let test = job.data.test.as_ref();
        let test = test.map(|reference| open("test", reference)).transpose()?;
        for set in [&val, &test].into_iter().flatten() {
            set.check_against(&train)?;
        }
        let (train_indices, split_indices) = split(train.len(), share, job.train.seed);
        let val_indices = match &val {
            Some(set) => all_indices(set),
            None => split_indices,
        };
        let channels = train.shape()[0];
        let normaliser = match &job.data.normalise {
            Some(normalise) => Normaliser::new(&normalise.mean, &normalise.std, channels)?,
            None => Normaliser::identity(channels),
        };
        let augmenter = job.data.augment.as_ref().map(|augment| {
            let augment = Augment {
                crop_padding: augment.crop_padding,
                flip: augment.flip,
            };
            Augmenter::new(augment, train.shape(), job.train.seed)
        });
        Ok(Self {
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

    /// A hash of the samples that are trained on and chosen by.
    pub(crate) fn sha256(&self) -> Vec<String> {
        let val = self.val.as_ref().map(Dataset::sha256);
        std::iter::once(self.train.sha256()).chain(val).collect()
    }

    /// The set that the validation samples are of.
    pub(crate) fn val_set(&self) -> &Dataset {
        self.val.as_ref().unwrap_or(&self.train)
    }
}

/// Opens the test set of a job for a model with these outputs. Says through `progress` what may take
/// a while. Samples of other classes have labels beyond them.
///
/// # Errors
/// When the job has none, or it is missing or damaged.
pub fn open_test(
    job: &Job,
    outputs: &Outputs,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<Dataset, TrainError> {
    let Some(reference) = &job.data.test else {
        return Err(TrainError::Misfit {
            key: "data.test",
            reason: "the job has none".to_owned(),
        });
    };
    let source = source(job, "test", reference, Some(outputs.kind))?;
    source.ensure(cache, progress)?;
    let list = Unseen::List;
    Ok(Dataset::open_with_classes(
        &source,
        cache,
        &outputs.names,
        list,
    )?)
}

/// Every sample of a set.
pub(crate) fn all_indices(set: &Dataset) -> Vec<u32> {
    (0..set.len() as u32).collect()
}
