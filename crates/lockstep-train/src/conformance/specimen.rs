//! Jobs on little data, which every device must train.

use crate::prepare::working_model;
use crate::sets::Sets;
use crate::snapshot::{Position, Snapshot};
use lockstep_base::fs::CacheDir;
use lockstep_job::Job;
use lockstep_nn::{LossSum, Model, Threads, Update};
use lockstep_resolve::{ResolvedJob, TrainingSettings};
use std::fs;
use std::path::Path;

/// A job on little data, with the folder that the data lies in.
pub(super) struct Specimen {
    _folder: tempfile::TempDir,
    pub(super) sets: Sets,
    pub(super) settings: TrainingSettings,
}

impl Specimen {
    /// A job on 43 images of 12 x 10 pixels of four classes, or as many rows of nine numbers of three. It begins with the
    /// keys of [data].
    pub(super) fn new(job: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (samples, len) = (43u32, 360u32);
        let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
        let mut images = vec![0, 0, 8, 4];
        images.extend(
            [samples, 12, 10, 3]
                .iter()
                .flat_map(|side| side.to_be_bytes()),
        );
        images.extend((0..samples * len).map(noise));
        let mut labels = vec![0, 0, 8, 1];
        labels.extend(samples.to_be_bytes());
        labels.extend((0..samples).map(|i| noise(i + 77) % 4));
        fs::write(path("images"), images).unwrap();
        fs::write(path("labels"), labels).unwrap();
        let row = |i: u32| {
            let number = |j: u32| format!("{}", f32::from(noise(90 * i + j)) / 64.0 - 1.7);
            let numbers: Vec<_> = (0..9).map(number).collect();
            format!(
                "{},{}\n",
                numbers.join(","),
                ["a", "b", "c"][(i % 3) as usize]
            )
        };
        let rows: String = (0..samples).map(row).collect();
        fs::write(path("rows.csv"), format!("a,b,c,d,e,f,g,h,i,label\n{rows}")).unwrap();
        let text = format!("name = 'specimen'\n[data]\n{job}");
        let job = Job::parse(Path::new(&path("job.toml")), &text, &[], None).unwrap();
        let cache = CacheDir::at(&path("cache")).unwrap();
        let network = job.network(Path::new("job.toml")).unwrap();
        let job = ResolvedJob::of(&job, network).unwrap();
        Self {
            sets: Sets::open(&job.training, &job.sets, &cache, &mut |_| {}).unwrap(),
            settings: job.training,
            _folder: folder,
        }
    }

    /// The job's network on the processor, and what it begins with.
    pub(super) fn model(&self) -> (Model, Snapshot) {
        let (model, _) =
            working_model(&self.settings, &self.sets.facts(), &Threads::default()).unwrap();
        let beginning = Snapshot {
            position: Position {
                lane_sums: vec![LossSum::default(); self.settings.lanes],
                ..Position::default()
            },
            state: model.initial_state(self.settings.seed),
            ..Snapshot::default()
        };
        (model, beginning)
    }

    pub(super) fn update(&self, number: u64) -> Update {
        let optimizer = self.settings.learner.optimizer;
        optimizer.at(number, 0.02 / (1.0 + number as f32))
    }
}

/// Pictures, as an IDX file has them, and rows of a table.
const IMAGES: &str = "train = { images = 'images', labels = 'labels' }\n";
const ROWS: &str = "train = { csv = 'rows.csv', label = 'label' }\n";

/// A job with products in fixed point.
pub(super) fn in_fixed16(job: &str) -> String {
    job.replace("[train]\n", "[train]\nprecision = 'fixed16'\n")
}

/// The jobs that every device must train: dense and convolutional networks, each way of exchanging a layer, lanes that
/// end up without rows, clipping, averages, frozen layers, images that are varied in each way, mixed and smoothed targets.
pub(super) fn jobs() -> Vec<String> {
    let mlp = "[model]\nkind = 'mlp'\nhidden = [512, 40]\nbatch_norm = true\ndropout = 0.3\n";
    let wide = "[model]\nkind = 'mlp'\nhidden = [640]\n";
    let cnn = "[model]\nkind = 'cnn'\nchannels = [16, 32]\ndropout = [0.2, 0.3]\ndense = 24\n";
    let crops = "normalise = { mean = [0.4, 0.5, 0.6], std = [0.2, 0.2, 0.3] }\n\
                 augment = { crop_padding = 2, flip = true, mixup = 0.4 }\n";
    let parts = "augment = { crop_padding = 2, flip = true }\n";
    let changes = "normalise = { mean = [0.4], std = [0.2] }\n\
                   augment = { crop_padding = 1, flip = true, resized_crop = [0.3, 1.0], rotation = 30, brightness = 0.4, \
                   contrast = 0.4, saturation = 0.4, erase = 0.5 }\n";
    let mixed = "augment = { cutmix = 1.0 }\n";
    let mixed_changes = "normalise = { mean = [0.4], std = [0.2] }\n\
                   augment = { rotation = 20, contrast = 0.4, mixup = 0.3, cutmix = 0.8 }\n";
    let sgd = "optimizer = { kind = 'sgd', lr = 0.1, momentum = 0.9 }";
    let ahead = "optimizer = { kind = 'sgd', lr = 0.1, momentum = 0.9, nesterov = true }";
    let train = |batch: usize, lanes: usize, keys: &str| {
        format!("[train]\nepochs = 2\nbatch = {batch}\nlanes = {lanes}\n{keys}\n")
    };
    vec![
        format!("{ROWS}{mlp}{}", train(10, 1, sgd)),
        format!(
            "{ROWS}{mlp}{}",
            train(11, 5, "clip_norm = 0.01\noptimizer = 'adam'")
        ),
        format!("{IMAGES}{wide}{}", train(10, 4, ahead)),
        format!(
            "{IMAGES}{changes}{wide}{}",
            train(10, 3, "average = 0.9\noptimizer = 'lion'")
        ),
        format!(
            "{IMAGES}{crops}{cnn}{}",
            train(14, 3, "label_smoothing = 0.1\noptimizer = 'adamw'")
        ),
        format!(
            "{IMAGES}{parts}{cnn}{}",
            train(20, 2, "freeze = ['layers.0']\noptimizer = 'rmsprop'")
        ),
        format!("{IMAGES}{mixed}{wide}{}", train(14, 1, sgd)),
        format!("{IMAGES}{mixed_changes}{wide}{}", train(10, 2, sgd)),
    ]
}
