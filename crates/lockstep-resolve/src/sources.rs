//! Where the samples of a job come from.

use crate::parts::{part_of, split_rule};
use crate::places::place;
use crate::training::target_kind;
use crate::trees::target as trees_target;
use crate::{EmbedPlan, ResolveError, data_of};
use lockstep_data::{
    CellForm, CifarSplit, ColumnType, CsvFormat, FrameSource, Pictures, Source, SplitPart,
    SplitRule, TableFormat, TableSource, TargetKind, TextEncoding,
};
use lockstep_image::{Filter, Limits, Transform, names_a_picture};
use lockstep_job::{
    Data, DataRef, Features, Job, JobColumnType, JobColumns, JobCsv, JobEncoding, JobFilter, Label,
    Location, NetworkJob, Split, Storage, TreesJob,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::Path;

/// Where the sets of a job come from. Of a job with an `[embed]` section, those are the vectors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetSources {
    /// What is trained on.
    pub train: Source,
    /// What the best epoch is chosen on, if that is a set of its own.
    pub val: Option<Source>,
    /// What every epoch is measured on.
    pub test: Option<Source>,
}

impl SetSources {
    pub(crate) fn of(job: &Job, network: &NetworkJob) -> Result<Self, ResolveError> {
        let data = data_of(job)?;
        no_groups(data)?;
        let wanted = network.train.learner.loss.map(target_kind);
        let rule = split_rule(data, network.train.seed);
        Self::of_each(data, rule, |name, reference| {
            let target = wanted.filter(|_| name == "train");
            source((data, &job.storage), network, name, reference, target)
        })
    }

    /// The sets of a job, each made by `of` of its name and what the job says of it. With a rule, sets that the job does not
    /// name are parts of the one that is trained on.
    pub(crate) fn of_each(
        data: &Data,
        rule: Option<SplitRule>,
        of: impl Fn(&str, &DataRef) -> Result<Source, ResolveError>,
    ) -> Result<Self, ResolveError> {
        let named = |wanted: &str| {
            let set = data.sets().find(|(name, _)| *name == wanted);
            set.map(|(name, reference)| of(name, reference)).transpose()
        };
        let (val, test) = (named("val")?, named("test")?);
        let train = of("train", &data.train)?;
        match rule {
            None => Ok(Self { train, val, test }),
            Some(rule) if rule.tests() && test.is_some() => Err(ResolveError::TwoTests),
            Some(rule) => {
                let part = |part| part_of(train.clone(), &rule, part);
                Ok(Self {
                    train: part(SplitPart::Train)?,
                    val: match val {
                        None if rule.val > 0.0 => Some(part(SplitPart::Val)?),
                        val => val,
                    },
                    test: match test {
                        None if rule.tests() => Some(part(SplitPart::Test)?),
                        test => test,
                    },
                })
            }
        }
    }
}

/// The test set of a job, for a model that was trained before.
#[derive(Debug, Clone)]
pub struct TestSource {
    /// Where its samples come from.
    pub source: Source,
    /// How its pictures become those, if that must be done first.
    pub embedding: Option<EmbedPlan>,
}

impl TestSource {
    /// Resolves the test set of a network's job, and nothing else: what the job was trained on may be gone.
    ///
    /// # Errors
    /// When it cannot be resolved, or the job has no test set.
    pub fn of_network(job: &Job, network: &NetworkJob) -> Result<Self, ResolveError> {
        let data = data_of(job)?;
        match (&data.test, split_rule(data, network.train.seed)) {
            (Some(reference), _) => Ok(Self {
                source: source((data, &job.storage), network, "test", reference, None)?,
                embedding: EmbedPlan::of_sets(job, network, |name| name == "test")?,
            }),
            (None, Some(rule)) if rule.tests() => {
                let wanted = network.train.learner.loss.map(target_kind);
                let whole = source((data, &job.storage), network, "train", &data.train, wanted)?;
                Ok(Self {
                    source: part_of(whole, &rule, SplitPart::Test)?,
                    embedding: EmbedPlan::of_sets(job, network, |name| name == "train")?,
                })
            }
            (None, _) => Err(ResolveError::NoTest),
        }
    }

    /// The same of a job that learns with trees.
    ///
    /// # Errors
    /// When it cannot be resolved, or the job has no test set.
    pub fn of_trees(job: &Job, trees: &TreesJob) -> Result<Self, ResolveError> {
        let data = data_of(job)?;
        let of = |reference, target| {
            let source = of_reference((data, &job.storage), reference, target)?;
            Ok::<_, ResolveError>(source.with_gaps().grouped_by(group_of(&data.train)))
        };
        let source = match (&data.test, split_rule(data, trees.train.seed)) {
            (Some(reference), _) => of(reference, None)?,
            (None, Some(rule)) if rule.tests() => {
                let whole = of(&data.train, trees_target(data, trees))?;
                part_of(whole, &rule, SplitPart::Test)?
            }
            (None, _) => return Err(ResolveError::NoTest),
        };
        Ok(Self {
            source,
            embedding: None,
        })
    }
}

/// The source of one of a network's sets. Its labels are `target`, or what they are found to be.
fn source(
    data: (&Data, &Storage),
    network: &NetworkJob,
    name: &str,
    reference: &DataRef,
    target: Option<TargetKind>,
) -> Result<Source, ResolveError> {
    match &network.embed {
        // Their labels are folders.
        Some(embed) => {
            let (store, classes) = (embed.store.join(name), Some(TargetKind::Classes));
            let columns = embedded_columns();
            table(data, &store, TableFormat::Parquet, &columns, classes)
        }
        None => of_reference(data, reference, target),
    }
}

/// The source that a reference of the job file means, with what its `[data]` and `[storage]` say of all.
pub(crate) fn of_reference(
    (data, storage): (&Data, &Storage),
    reference: &DataRef,
    target: Option<TargetKind>,
) -> Result<Source, ResolveError> {
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
            pictures((data, storage), &folder)?
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
        DataRef::Pictures { folder } => pictures((data, storage), folder)?,
        DataRef::Parquet { .. }
        | DataRef::Arrow { .. }
        | DataRef::JsonLines { .. }
        | DataRef::Csv { .. } => {
            let (location, format, columns) = table_of(reference).expect("it is a table");
            table((data, storage), location, format, columns, target)?
        }
    })
}

/// The table that a reference names, what its files are, and its columns.
fn table_of(reference: &DataRef) -> Option<(&Location, TableFormat, &JobColumns)> {
    match reference {
        DataRef::Parquet { files, columns } => Some((files, TableFormat::Parquet, columns)),
        DataRef::Arrow { files, columns } => Some((files, TableFormat::Arrow, columns)),
        DataRef::JsonLines { files, columns } => Some((files, TableFormat::JsonLines, columns)),
        DataRef::Csv {
            file,
            columns,
            written,
        } => Some((file, TableFormat::Csv(csv_format(*written)), columns)),
        _ => None,
    }
}

fn csv_format(written: JobCsv) -> CsvFormat {
    // The job file allows ASCII alone.
    let byte = |sign: Option<char>| sign.map(|sign| sign as u8);
    CsvFormat {
        delimiter: byte(written.delimiter),
        comment: byte(written.comment),
        encoding: written.encoding.map(|encoding| match encoding {
            JobEncoding::Utf8 => TextEncoding::Utf8,
            JobEncoding::Latin1 => TextEncoding::Latin1,
            JobEncoding::Utf16 => TextEncoding::Utf16,
        }),
    }
}

/// The column of the groups that a reference names.
pub(crate) fn group_of(reference: &DataRef) -> Option<&str> {
    table_of(reference)?.2.group.as_deref()
}

/// Checks that no set has groups, where nothing could be made of them.
pub(crate) fn no_groups(data: &Data) -> Result<(), ResolveError> {
    match data
        .sets()
        .find(|(_, reference)| group_of(reference).is_some())
    {
        None => Ok(()),
        Some((set, _)) => Err(ResolveError::Group { set }),
    }
}

/// The table that a reference means, if it says nothing of which columns are the input and which to be predicted.
pub(crate) fn frame(
    (data, storage): (&Data, &Storage),
    reference: &DataRef,
) -> Result<Option<FrameSource>, ResolveError> {
    let is_plain = |columns: &JobColumns| *columns == JobColumns::default();
    let Some((location, format, _)) = table_of(reference).filter(|table| is_plain(table.2)) else {
        return Ok(None);
    };
    Ok(Some(FrameSource {
        place: place(location, storage)?,
        format,
        memory: data.memory.0,
    }))
}

/// Whether this is a folder with pictures in it, or with folders, as those of classes.
fn holds_pictures(path: &Path) -> bool {
    let mut entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_one = |name: &OsStr| name.to_str().is_some_and(names_a_picture);
    entries.any(|entry| is_one(&entry.file_name()) || entry.path().is_dir())
}

/// The kind of the tables in a folder, or in folders of it down to so many levels, if some of the first entries are any: this
/// is for a message, and a folder of pictures may be large.
fn table_in(folder: &Path, levels: u32) -> Option<&'static str> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(50).find_map(|entry| {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        match () {
            () if name.ends_with(".csv") || name.ends_with(".csv.gz") => Some("csv"),
            () if name.ends_with(".parquet") => Some("parquet"),
            () if name.ends_with(".arrow") || name.ends_with(".feather") => Some("arrow"),
            () if name.ends_with(".jsonl") || name.ends_with(".ndjson") => Some("jsonl"),
            () if levels > 1 && entry.path().is_dir() => table_in(&entry.path(), levels - 1),
            () => None,
        }
    })
}

/// The columns that the embedding writes.
fn embedded_columns() -> JobColumns {
    JobColumns {
        path: Some("path".to_owned()),
        ..JobColumns::default()
    }
}

fn of_columns(columns: &JobColumns) -> lockstep_table::ColumnNames {
    let (label, numbers) = match &columns.label {
        Label::One(column) => (Some(column.clone()), Vec::new()),
        Label::Several(columns) => (None, columns.clone()),
    };
    lockstep_table::ColumnNames {
        features: match &columns.features {
            None => Vec::new(),
            Some(Features::List(column)) => vec![column.clone()],
            Some(Features::Numbers(columns)) => columns.clone(),
        },
        label,
        numbers,
        path: columns.path.clone(),
        weight: columns.weight.clone(),
        group: columns.group.clone(),
        types: (columns.types.iter())
            .map(|(name, word)| (name.clone(), column_type(*word)))
            .collect(),
        drop: columns.drop.clone(),
        form: CellForm {
            na: columns
                .na
                .iter()
                .map(|word| word.trim().to_owned())
                .collect(),
            decimal_comma: columns.decimal == ',',
            thousands: columns.thousands,
        },
        ..lockstep_table::ColumnNames::default()
    }
}

fn column_type(word: JobColumnType) -> ColumnType {
    match word {
        JobColumnType::Number => ColumnType::Number,
        JobColumnType::Boolean => ColumnType::Boolean,
        JobColumnType::Category | JobColumnType::Embedding => ColumnType::Category,
        JobColumnType::Date => ColumnType::Date,
        JobColumnType::Text => ColumnType::Text,
    }
}

fn table(
    (data, storage): (&Data, &Storage),
    location: &Location,
    format: TableFormat,
    columns: &JobColumns,
    target: Option<TargetKind>,
) -> Result<Source, ResolveError> {
    Ok(Source::Table(TableSource {
        place: place(location, storage)?,
        format,
        columns: of_columns(columns),
        target,
        memory: data.memory.0,
    }))
}

fn pictures((data, storage): (&Data, &Storage), folder: &Location) -> Result<Source, ResolveError> {
    let folder = place(folder, storage)?;
    // Who mistyped a path would else be told of pictures.
    if folder.local().is_some_and(|path| !path.exists()) {
        return Err(ResolveError::Missing(folder.to_string()));
    }
    let transform = image_transform(data).ok_or_else(|| {
        match folder.local().and_then(|path| table_in(path, 3)) {
            Some(kind) => ResolveError::FolderOfTables {
                folder: folder.to_string(),
                kind,
            },
            None => ResolveError::NoTransform,
        }
    })?;
    Ok(Source::Pictures(Pictures {
        folder,
        transform,
        limits: Limits {
            max_memory: data.memory.0,
            ..Limits::default()
        },
        max_bad: data.max_bad,
        memory: data.memory.0,
        threads: 0,
    }))
}

/// What becomes of the job's pictures, if it says so.
pub(crate) fn image_transform(data: &Data) -> Option<Transform> {
    let transform = data.transform.as_ref()?;
    Some(Transform {
        resize: transform.resize,
        crop: transform.crop,
        filter: match transform.filter {
            JobFilter::Nearest => Filter::Nearest,
            JobFilter::Bilinear => Filter::Bilinear,
            JobFilter::Bicubic => Filter::Bicubic,
            JobFilter::Lanczos => Filter::Lanczos,
        },
        ..Transform::default()
    })
}
