//! The job file's words on pictures and on where things lie, in the terms of the crates that read them.

use lockstep_image::{Filter, Normalise, Transform};
use lockstep_job::{
    DataRef, Embed, Job, JobFilter, Location, Storage, Validation, without_secrets,
};
use lockstep_place::{Access, Place, PlaceError};

/// How the job's places are reached.
///
/// # Errors
/// When an address of the `[storage]` section is none.
pub fn access(storage: &Storage) -> Result<Access, PlaceError> {
    let endpoint = |key: &str, address: &Option<String>| {
        let parsed = address.as_deref().map(str::parse).transpose();
        parsed.map_err(|error| PlaceError::Setting {
            place: without_secrets(address.as_deref().unwrap_or_default()).into_owned(),
            why: format!("storage.{key}: {error}"),
        })
    };
    let default = Access::default();
    Ok(Access {
        endpoint: endpoint("endpoint", &storage.endpoint)?,
        region: storage.region.clone(),
        anonymous: storage.anonymous,
        allow_http: storage.allow_http,
        virtual_host: storage.virtual_host,
        account: storage.account.clone(),
        role_arn: storage.role_arn.clone(),
        external_id: storage.external_id.clone(),
        sts_endpoint: endpoint("sts_endpoint", &storage.sts_endpoint)?,
        retries: storage.retries,
        timeout_s: storage.timeout_s,
        stall_s: storage.stall_s,
        session_name: storage.session_name.clone().unwrap_or(default.session_name),
        session_s: storage.session_s.unwrap_or(default.session_s),
    })
}

/// The place that a location of the job means.
///
/// # Errors
/// When its name or the `[storage]` section makes no sense.
pub fn place(location: &Location, storage: &Storage) -> Result<Place, PlaceError> {
    Place::parse(location.as_str(), &access(storage)?)
}

/// A set of pictures that becomes one of vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedSet {
    /// `train`, `val` or `test`.
    pub name: &'static str,
    /// The folder of its pictures.
    pub folder: Location,
    /// The folder of its vectors.
    pub store: Location,
}

/// The sets of a job with an `[embed]` section; none of one without.
pub fn embedded_sets(job: &Job) -> Vec<EmbeddedSet> {
    let Some(embed) = &job.embed else {
        return Vec::new();
    };
    let val = match &job.data.validation {
        Validation::Set(reference) => Some(reference),
        Validation::Split(_) => None,
    };
    let sets = [
        ("train", Some(&job.data.train)),
        ("val", val),
        ("test", job.data.test.as_ref()),
    ];
    let pictures = sets
        .into_iter()
        .filter_map(|(name, reference)| match reference {
            Some(DataRef::Pictures { folder }) => Some((name, folder.clone())),
            _ => None,
        });
    pictures
        .map(|(name, folder)| EmbeddedSet {
            name,
            folder,
            store: embed.store.join(name),
        })
        .collect()
}

/// What becomes of the job's pictures, if it says so.
pub fn image_transform(job: &Job) -> Option<Transform> {
    let transform = job.data.transform.as_ref()?;
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

/// The scale of the pictures that are embedded, if the job sets one: a number a channel, or one for all.
pub fn image_normalise(embed: &Embed) -> Option<Normalise> {
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
