//! What a model is to look at, as it was named: the job's own set, another one, or pictures one by one.

use super::InferError;
use lockstep_image::names_a_picture;
use lockstep_job::{DataRef, Job, JobCsv, JobError, Override};
use lockstep_model::SampleUse;
use std::path::Path;

/// Samples that are looked at together, as they were named.
#[derive(Debug, Default)]
pub struct NamedSamples {
    /// What it changes in the job; nothing where the job's own set is meant.
    change: Option<Override>,
    /// Whether it need not be known what the samples are.
    predicts: bool,
    /// The names of pictures in one folder, where not all of it is meant.
    pub(super) pictures: Option<Vec<String>>,
    /// What comes before the names of pictures for a person to find them.
    prefix: String,
    /// Whether only a path was given, without a word on columns.
    bare: bool,
}

impl NamedSamples {
    /// The set to measure a model on, as `data.test` of a job file names it; none means the job's own.
    ///
    /// # Errors
    /// When it cannot be read as a value of the job file.
    pub fn to_measure(data: Option<&str>) -> Result<Self, InferError> {
        Ok(Self {
            change: data.map(change).transpose()?,
            bare: data.is_some_and(is_bare),
            ..Self::default()
        })
    }

    /// All that a model is to look at. Pictures that follow each other and lie in one folder are one set.
    ///
    /// # Errors
    /// When one cannot be read as a value of the job file.
    pub fn to_predict(data: &[String]) -> Result<Vec<Self>, InferError> {
        let mut all: Vec<Self> = Vec::new();
        for text in data {
            let Some((folder, name)) = picture(text) else {
                let prefix = match data.len() {
                    1 => String::new(),
                    _ => format!("{}/", text.trim_end_matches('/')),
                };
                all.push(Self {
                    change: Some(change(text)?),
                    predicts: true,
                    prefix,
                    bare: is_bare(text),
                    ..Self::default()
                });
                continue;
            };
            if let Some(last) = all.last_mut()
                && let Some(pictures) = &mut last.pictures
                && last.prefix == folder
            {
                pictures.push(name.to_owned());
                continue;
            }
            let parent = if folder.is_empty() { "./" } else { folder };
            all.push(Self {
                change: Some(change(parent)?),
                predicts: true,
                pictures: Some(vec![name.to_owned()]),
                prefix: folder.to_owned(),
                ..Self::default()
            });
        }
        if all.is_empty() {
            all.push(Self {
                predicts: true,
                ..Self::default()
            });
        }
        Ok(all)
    }

    /// Whether the job's own set is meant.
    pub(super) fn is_own(&self) -> bool {
        self.change.is_none()
    }

    /// What is done with the samples.
    pub(super) fn samples(&self) -> SampleUse<'_> {
        match self.predicts {
            true => SampleUse::Predict {
                pictures: self.pictures.as_deref(),
            },
            false => SampleUse::Measure,
        }
    }

    /// The job at `path` with `overrides`, whose test set these samples are. A table of which nothing but its path
    /// was said has the columns of the one that was trained on.
    pub(super) fn load(&self, path: &Path, overrides: &[Override]) -> Result<Job, JobError> {
        let mut overrides = overrides.to_vec();
        overrides.extend(self.change.clone());
        let mut job = Job::load(path, &overrides, None)?;
        let Some(data) = job.data.as_mut().filter(|_| self.bare) else {
            return Ok(job);
        };
        let Some(trained) = data.train.columns().cloned() else {
            return Ok(job);
        };
        let written = match &data.train {
            DataRef::Csv { written, .. } => *written,
            _ => JobCsv::default(),
        };
        let Some(test) = &mut data.test else {
            return Ok(job);
        };
        if let Some(columns) = test.columns_mut() {
            *columns = trained;
        }
        if let DataRef::Csv { written: own, .. } = test {
            *own = written.or(*own);
        }
        Ok(job)
    }

    /// What comes before the names of samples of `job`, whose test set they are.
    pub(super) fn prefix(&self, job: &Job) -> String {
        let test = job.data.as_ref().and_then(|data| data.test.as_ref());
        match test {
            Some(DataRef::Pictures { .. } | DataRef::Idx { .. }) => self.prefix.clone(),
            _ => String::new(),
        }
    }
}

/// Whether this is only a name or path, not a table of keys.
fn is_bare(data: &str) -> bool {
    !data.trim_start().starts_with('{')
}

/// The folder of a picture, with the `/` at its end, and its name in it.
fn picture(text: &str) -> Option<(&str, &str)> {
    let (folder, name) = text.split_at(text.rfind('/').map_or(0, |at| at + 1));
    let there = folder.contains("://") || Path::new(text).is_file();
    (there && names_a_picture(name)).then_some((folder, name))
}

/// `KEY=VALUE` of the command line as a change to the job of a run. Relative paths in it are of the current folder: who
/// types it does not stand in the run's.
pub(super) fn here(set: &str) -> Result<Override, InferError> {
    let folder = std::env::current_dir().map_err(InferError::CurrentFolder)?;
    Ok(Override::parse_in(&folder, set)?)
}

/// `--data` as a change to the job. Paths in it are of the current folder, not of the job file's.
fn change(data: &str) -> Result<Override, InferError> {
    let path = Path::new(data);
    let whole = std::path::absolute(path).ok().filter(|_| path.exists());
    Ok(match whole.as_deref().and_then(Path::to_str) {
        Some(whole) => {
            // What ends in a slash is a folder of pictures, also when it is whole.
            let end = if data.ends_with('/') && !whole.ends_with('/') {
                "/"
            } else {
                ""
            };
            Override::text("--data", "data.test", &format!("{whole}{end}"))
        }
        None => here(&format!("data.test={data}"))?,
    })
}
