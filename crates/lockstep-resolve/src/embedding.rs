//! Pictures that become vectors before anything is trained on them.

use crate::learning::precision;
use crate::places::place;
use crate::sources::image_transform;
use crate::{ResolveError, data_of, device};
use lockstep_base::known_encoders::EncoderRef;
use lockstep_cuda::{DeviceChoice, DeviceDecision};
use lockstep_image::{Normalise, Transform};
use lockstep_job::{DataRef, Embed, Job, NetworkJob};
use lockstep_nn::Precision;
use lockstep_place::Place;

/// How a job's pictures become vectors, and where those go.
#[derive(Debug, Clone)]
pub struct EmbedPlan {
    /// The encoder.
    pub model: EncoderRef,
    /// A hash of the encoder's weights and configuration, where it must be a certain one.
    pub model_sha256: Option<String>,
    /// Pictures that a worker encodes at a time.
    pub batch: usize,
    /// What it encodes them on.
    pub device: DeviceChoice,
    /// How its products are computed.
    pub precision: Precision,
    /// Whether a cluster keeps GPUs for the workers.
    pub asks_gpus: bool,
    /// Pictures in one Parquet file.
    pub part: usize,
    /// What is done to a picture, if not what the encoder was trained with.
    pub transform: Option<Transform>,
    /// The scale of the pixels, if not that of the encoder.
    pub normalise: Option<Normalise>,
    /// Bytes that reading may take in each process.
    pub memory: u64,
    /// The share of the pictures that may be unreadable.
    pub max_bad: f64,
    /// The sets; `train` comes first.
    pub sets: Vec<EmbeddedSet>,
}

/// A set of pictures that becomes one of vectors.
#[derive(Debug, Clone)]
pub struct EmbeddedSet {
    /// `train`, `val` or `test`.
    pub name: &'static str,
    /// The folder of its pictures.
    pub folder: Place,
    /// The folder of its vectors.
    pub store: Place,
}

impl EmbedPlan {
    /// Of all sets of a job with an `[embed]` section; none of one without.
    pub(crate) fn of(job: &Job, network: &NetworkJob) -> Result<Option<Self>, ResolveError> {
        Self::of_sets(job, network, |_| true)
    }

    /// Of those sets of the job that are `wanted`.
    pub(crate) fn of_sets(
        job: &Job,
        network: &NetworkJob,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, ResolveError> {
        let Some(embed) = &network.embed else {
            return Ok(None);
        };
        let data = data_of(job)?;
        let mut sets = Vec::new();
        for (name, reference) in data.sets() {
            if let DataRef::Pictures { folder } = reference
                && wanted(name)
            {
                sets.push(EmbeddedSet {
                    name,
                    folder: place(folder, &job.storage)?,
                    store: place(&embed.store.join(name), &job.storage)?,
                });
            }
        }
        Ok(Some(Self {
            model: embed.model.clone(),
            model_sha256: None,
            batch: embed.batch,
            device: device(embed.device),
            precision: precision(embed.precision),
            asks_gpus: job.resources.gpus > 0.0,
            part: embed.part,
            transform: image_transform(data),
            normalise: image_normalise(embed),
            memory: data.memory.0,
            max_bad: data.max_bad,
            sets,
        }))
    }

    /// What the workers encode on. With a precision that GPUs have no kernels for it is the processor, if the job leaves
    /// that open.
    pub fn decide(&self) -> DeviceDecision {
        let decision = self.device.decide(self.asks_gpus);
        if (self.precision, self.device) != (Precision::Fixed16, DeviceChoice::Auto) {
            return decision;
        }
        let note = "encoding on the processor, since embed.precision = \"fixed16\" is computed on processors only";
        DeviceDecision {
            note: decision.gpu.map(|_| note.to_owned()),
            ..DeviceChoice::Cpu.decide(false)
        }
    }
}

/// The scale of the pictures, if the job sets one: a number a channel, or one for all.
pub(crate) fn image_normalise(embed: &Embed) -> Option<Normalise> {
    let normalise = embed.normalise.as_ref()?;
    let channels = |numbers: &[f64]| {
        std::array::from_fn(|channel| {
            *numbers.get(channel).or(numbers.first()).unwrap_or(&1.0) as f32
        })
    };
    Some(Normalise {
        mean: channels(&normalise.mean),
        std: channels(&normalise.std),
    })
}
