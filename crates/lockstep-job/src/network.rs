//! Jobs that train a network.

use crate::field::Field;
use crate::file::job_file;
use crate::keys::{Any, Check, Table};
use crate::metrics::SaysBest;
use crate::section::Section;
use crate::{Data, Embed, JobCheckpoint, JobMetrics, JobModel, Train};

job_file! {
    /// What to train, on which data, how, and where the result goes.
    NetworkFile "Job" of NetworkJob in Network given (workers: Option<Field<'_>>, embeds: bool) {
        /// What to learn from.
        data = need("add a [data] section with `train = \"...\"`") => Any, |field, ()| {
            let data = Table(|section: &mut Section<'_>| Data::read_keys(section, embeds)).read(field);
            data.map(Some)
        };
        own {
            /// Pictures become vectors before anything is trained on them.
            embed: Option<Embed> = optional => Table(Embed::read_keys);
            /// The network and the weights it begins with.
            model: JobModel = need("add a [model] section with a `kind` or `layers`")
                => Any, |field, ()| JobModel::read(field.section()?);
            /// How to train it.
            train: Train = need("add a [train] section, for example with `epochs = 20`; it may be empty")
                => Any, |field, ()| {
                    let batch_norm = model.as_ref().is_some_and(|model| model.network.uses_batch_norm());
                    Train::read(field.section()?, workers, batch_norm)
                };
            /// Metrics of your own, each a formula over labels and predictions.
            #[serde(default)]
            metrics: JobMetrics = hidden(JobMetrics::default()) => Any;
        }
        /// When the run's state is written.
        checkpoint: JobCheckpoint, |field, checkpoint: JobCheckpoint| checkpoint.checked(field, metrics.as_ref());
        gang = " How the workers talk to each other.";
    }
}

impl NetworkFile {
    /// Reads the whole file; `workers` is what the command line says about them.
    pub(crate) fn read(mut root: Section<'_>, workers: Option<Field<'_>>) -> Option<Self> {
        let (folder, embeds) = (root.folder(), root.has("embed"));
        let file = NetworkFile::read_keys(&mut root, folder, workers, embeds);
        root.finish();
        file
    }
}
