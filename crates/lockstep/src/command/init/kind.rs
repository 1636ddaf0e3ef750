//! The kinds of jobs that `lockstep init` knows, each a commented file that runs.

use clap::ValueEnum;

/// What a job learns from, or with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobKind {
    /// Rows of a CSV or Parquet file
    Table,
    /// Photos in folders, learned from the beginning
    Photos,
    /// Photos as vectors of a pretrained encoder
    Embeddings,
    /// Fashion-MNIST or files like it: a network of any shape, with every key explained
    Images,
    /// A pretrained ResNet-18, trained further on photos
    FineTuning,
    /// Boosted trees on a table
    Trees,
    /// A script of your own as a gang
    Script,
}

impl JobKind {
    /// All of them, in the order in which they are offered.
    pub(super) const ALL: [Self; 7] = [
        Self::Table,
        Self::Photos,
        Self::Embeddings,
        Self::Images,
        Self::FineTuning,
        Self::Trees,
        Self::Script,
    ];

    /// Its name on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Photos => "photos",
            Self::Embeddings => "embeddings",
            Self::Images => "images",
            Self::FineTuning => "fine-tuning",
            Self::Trees => "trees",
            Self::Script => "script",
        }
    }

    /// What it is for.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Table => "rows of a CSV or Parquet file",
            Self::Photos => "photos in folders, learned from the beginning",
            Self::Embeddings => "photos as vectors of a pretrained encoder",
            Self::Images => "Fashion-MNIST or files like it; every key explained",
            Self::FineTuning => "a pretrained ResNet-18, trained further on photos",
            Self::Trees => "boosted trees on a table",
            Self::Script => "a script of your own as a gang",
        }
    }

    /// The job file, for a job of this name.
    pub(super) fn text(self, name: &str) -> String {
        let text = match self {
            Self::Table => include_str!("table.toml"),
            Self::Photos => include_str!("photos.toml"),
            Self::Embeddings => include_str!("embeddings.toml"),
            Self::Images => return lockstep_job::template(name),
            Self::FineTuning => include_str!("fine-tuning.toml"),
            Self::Trees => include_str!("trees.toml"),
            Self::Script => include_str!("script.toml"),
        };
        text.replace("name = \"NAME\"", &format!("name = \"{name}\""))
    }

    /// A file that the job needs beside it and that can be written too: its name and text.
    pub(super) fn beside(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Script => Some(("train.py", include_str!("train.py"))),
            _ => None,
        }
    }

    /// What must be there before the job runs.
    pub(super) fn needs(self) -> Option<&'static str> {
        match self {
            Self::Table => Some("your table: train.csv with a column `label`"),
            Self::Photos => Some("your photos: photos/train/CLASS/…"),
            Self::Embeddings => Some("your photos, photos/train/CLASS/…"),
            Self::FineTuning => {
                Some("your photos, photos/train/CLASS/…, and the weights of a ResNet-18")
            }
            Self::Trees => {
                Some("your table, train.csv with a column `label`, and `lockstep data get xgboost`")
            }
            Self::Images | Self::Script => None,
        }
    }
}
