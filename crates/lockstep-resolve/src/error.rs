//! Why a job cannot be understood.

use lockstep_job::JobError;
use lockstep_place::PlaceError;

/// Why a job cannot be understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// A place of the job makes no sense.
    #[error(transparent)]
    Place(#[from] PlaceError),

    /// There is nothing where the data should be.
    #[error("{0} does not exist; paths are relative to the job file")]
    Missing(String),

    /// The job says nothing about the size of its pictures.
    #[error(
        "data.transform: pictures must come out in one size; add for example \
         `transform = {{ resize = 256, crop = 224 }}`"
    )]
    NoTransform,

    /// A folder of tables is given as one of pictures would be.
    #[error(
        "{folder} holds tables, and a folder that is named alone would hold pictures; write \
         `{{ {kind} = \"{folder}\" }}`"
    )]
    FolderOfTables {
        /// The folder.
        folder: String,
        /// What its tables are.
        kind: &'static str,
    },

    /// The columns of a table are handed out as they are.
    #[error(
        "data.normalise: the columns of {table} are handed out as they are; name the `features` that are to be \
         normalised, or leave it out"
    )]
    NormalisedColumns {
        /// The table.
        table: String,
    },

    /// A script may have a part of its set for validation, but not one by classes.
    #[error(
        "data.stratify: what a script is handed is split without regard to classes; leave it out"
    )]
    StratifiedScript,

    /// A script parts what it is handed by itself.
    #[error(
        "data.{key}: what a script is handed is split by `val_split` alone; leave it out, or name a set of its own"
    )]
    SplitScript {
        /// The key.
        key: &'static str,
    },

    /// There would be two test sets.
    #[error(
        "data.test: a part of data.train is the test set, by `test_split` or as a fold; leave one of them out"
    )]
    TwoTests,

    /// What is parted by a column has none.
    #[error("data.split: it names the column `{column}`, and data.train is no table")]
    NoColumns {
        /// The column.
        column: String,
    },

    /// Rows would be grouped twice.
    #[error(
        "data.split.group: it is `{split}`, and rows are ranked within groups of `{ranked}`; make them the same"
    )]
    TwoGroups {
        /// The groups that stay together.
        split: String,
        /// The groups that are ranked in.
        ranked: String,
    },

    /// Samples are drawn by class for networks alone.
    #[error("data.balance: it is for networks, and {learner}; leave it out")]
    Balanced {
        /// Who sees all samples alike.
        learner: &'static str,
    },

    /// Nothing but trees ranks.
    #[error(
        "data.{set}.group: rows are ranked within groups by trees alone; leave `group` out, or use \
         `kind = \"xgboost\"` with a ranking objective such as \"rank:ndcg\""
    )]
    Group {
        /// The set that has groups.
        set: &'static str,
    },

    /// Chance would depend on how the rows are divided.
    #[error(
        "model.parameters: `{name}` would make the model depend on the number of workers; leave it out, or say \
         `exact = false`"
    )]
    InexactTrees {
        /// XGBoost's name of the parameter.
        name: String,
    },

    /// GPUs would have to exchange histograms.
    #[error(
        "train.device: trees on a GPU are grown by one worker, found train.workers = {workers}; say `workers = 1`, or \
         `device = \"cpu\"`"
    )]
    TreesOnGpus {
        /// How many the job wants, at the most.
        workers: usize,
    },

    /// The job file of a run cannot be read.
    #[error(transparent)]
    Job(#[from] JobError),

    /// A network is wanted, and the run is one of a script.
    #[error("the model is a script's own, and no network of Lockstep's")]
    ScriptModel,

    /// A network is wanted, and the run has grown trees.
    #[error("the model is trees, and no network")]
    TreesModel,

    /// The model of a script is the script's own.
    #[error(
        "{name} is a job whose script makes the model: only the script knows how to predict with it"
    )]
    Script {
        /// The job.
        name: String,
    },

    /// The job has no data.
    #[error("data.train: the job has none")]
    NoData,

    /// The job has no test set.
    #[error("data.test: the job has none")]
    NoTest,
}
