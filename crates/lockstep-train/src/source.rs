//! Where the job's data lie, in the terms of the crate that reads them.

use crate::TrainError;
use crate::places::{image_transform, place};
use lockstep_data::{CifarSplit, Pictures, Source, TargetKind};
use lockstep_image::{Limits, names_a_picture};
use lockstep_job::{DataRef, Features, Job, JobColumns, Label, Location, Split};
use std::ffi::OsStr;
use std::path::Path;

/// The source of one of the job's sets, `name` of them: `train`, `val` or `test`. Of a job with an `[embed]`
/// section, that is the vectors. Its labels are `target`, or what they are found to be.
pub(crate) fn source(
    job: &Job,
    name: &str,
    reference: &DataRef,
    target: Option<TargetKind>,
) -> Result<Source, TrainError> {
    match &job.embed {
        // Their labels are folders.
        Some(embed) => {
            let classes = Some(TargetKind::Classes);
            parquet(job, &embed.store.join(name), &embedded_columns(), classes)
        }
        None => of_reference(job, reference, target),
    }
}

/// The source that a reference of the job file means.
fn of_reference(
    job: &Job,
    reference: &DataRef,
    target: Option<TargetKind>,
) -> Result<Source, TrainError> {
    Ok(match reference {
        DataRef::Known { name, split } => Source::Known {
            name: name.clone(),
            split: split.clone(),
        },
        // Only here it is known what lies at a path. CIFAR's folder has no folders and no pictures in it.
        DataRef::Idx {
            images,
            labels: None,
        } if holds_pictures(images) => {
            let folder = Location::new(images.to_string_lossy());
            pictures(job, &folder)?
        }
        DataRef::Idx { images, labels } => Source::Idx {
            images: images.clone(),
            labels: labels.clone(),
            class_names: None,
        },
        DataRef::CifarFolder { folder, split } => Source::CifarFolder {
            folder: folder.clone(),
            split: match split {
                Split::Train => CifarSplit::Train,
                Split::Test => CifarSplit::Test,
            },
        },
        DataRef::CifarFiles { files } => Source::CifarFiles {
            files: files.clone(),
        },
        DataRef::Pictures { folder } => pictures(job, folder)?,
        DataRef::Parquet { files, columns } => parquet(job, files, columns, target)?,
        DataRef::Csv {
            file,
            columns,
            delimiter,
        } => Source::Csv {
            place: place(file, &job.storage)?,
            // The job file allows ASCII alone.
            delimiter: *delimiter as u8,
            columns: of_columns(columns),
            target,
            memory: job.data.memory.0,
        },
    })
}

/// Whether this is a folder with pictures in it, or with folders, as those of classes.
fn holds_pictures(path: &Path) -> bool {
    let mut entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_one = |name: &OsStr| name.to_str().is_some_and(names_a_picture);
    entries.any(|entry| is_one(&entry.file_name()) || entry.path().is_dir())
}

/// The columns that the embedding writes.
fn embedded_columns() -> JobColumns {
    JobColumns {
        path: Some("path".to_owned()),
        ..JobColumns::default()
    }
}

fn of_columns(columns: &JobColumns) -> lockstep_table::ColumnNames {
    lockstep_table::ColumnNames {
        features: match &columns.features {
            None => Vec::new(),
            Some(Features::List(column)) => vec![column.clone()],
            Some(Features::Numbers(columns)) => columns.clone(),
        },
        label: match &columns.label {
            Label::One(column) => Some(column.clone()),
            Label::Several(_) => None,
        },
        numbers: match &columns.label {
            Label::One(_) => Vec::new(),
            Label::Several(columns) => columns.clone(),
        },
        path: columns.path.clone(),
    }
}

fn parquet(
    job: &Job,
    files: &Location,
    columns: &JobColumns,
    target: Option<TargetKind>,
) -> Result<Source, TrainError> {
    Ok(Source::Parquet {
        place: place(files, &job.storage)?,
        columns: of_columns(columns),
        target,
        memory: job.data.memory.0,
    })
}

fn pictures(job: &Job, folder: &Location) -> Result<Source, TrainError> {
    let Some(transform) = image_transform(job) else {
        return Err(TrainError::Misfit {
            key: "data.transform",
            reason: "pictures must come out in one size; add for example \
                     `transform = { resize = 256, crop = 224 }`"
                .to_owned(),
        });
    };
    Ok(Source::Pictures(Pictures {
        folder: place(folder, &job.storage)?,
        transform,
        limits: Limits::default(),
        max_bad: job.data.max_bad,
        memory: job.data.memory.0,
        threads: 0,
    }))
}
