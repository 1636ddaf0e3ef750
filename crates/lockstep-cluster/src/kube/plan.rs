//! What a job comes to on Kubernetes, before it is written as manifests.

use crate::kube::KubeError;
use lockstep_job::{Bytes, Job, Kube, Location, Resources, VolumeSource, pod};
use std::collections::BTreeMap;

/// The memory of a worker where the job does not say: a pod without a limit can take its node down.
const MEMORY: Bytes = Bytes(2 << 30);
/// Seconds that pods wait for each other at least: one node may have the image, and another pull it for minutes.
const PATIENCE_S: f64 = 600.0;
/// What a ConfigMap may hold in all: Kubernetes stops at 1 MiB, of which names and base64 take a part.
const MOST: usize = 900 << 10;

/// The files that travel with a job, in a ConfigMap.
#[derive(Debug, Clone, Default)]
pub struct Travelling {
    /// What is in each, by its path below the folder of the job.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The path of the job file.
    pub job: String,
}

/// What a job comes to on Kubernetes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of all objects, which is also that of the run.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// Workers, the most and the fewest.
    pub workers: (usize, usize),
    /// The `[kube]` section.
    pub kube: Kube,
    /// What each worker needs.
    pub resources: Resources,
    /// How long pods wait for each other, in seconds.
    pub patience_s: f64,
    /// Words that stand behind the job file in the command: `--set` and the like.
    pub words: Vec<String>,
    /// What travels.
    pub travelling: Travelling,
}

impl Plan {
    /// What `job` comes to under the name `name`.
    ///
    /// # Errors
    /// When the job cannot run on Kubernetes as it is: no image, a store that goes away with its pod, files that
    /// are too large to travel.
    pub fn new(
        job: &Job,
        name: String,
        namespace: String,
        words: Vec<String>,
        travelling: Travelling,
    ) -> Result<Self, KubeError> {
        crate::kube::check_name(&name)?;
        let workers = job.workers();
        let plan = Self {
            name,
            namespace,
            workers: (workers.max, workers.min),
            kube: job.kube.clone(),
            resources: job.resources.clone(),
            patience_s: job.gang.start_deadline_s.max(PATIENCE_S),
            words,
            travelling,
        };
        plan.has_image()?;
        for (key, store) in job.stores() {
            plan.keeps(key, store)?;
        }
        plan.fits()?;
        Ok(plan)
    }

    /// The image of the pods.
    pub(crate) fn image(&self) -> &str {
        self.kube.image.as_deref().unwrap_or_default()
    }

    /// The memory of each worker.
    pub(crate) fn memory(&self) -> Bytes {
        self.resources.memory.unwrap_or(MEMORY)
    }

    /// The path of the job file in the pods.
    pub(crate) fn job_path(&self) -> String {
        format!("{}/{}", pod::JOB_FOLDER, self.travelling.job)
    }

    fn has_image(&self) -> Result<(), KubeError> {
        match self.kube.image {
            Some(_) => Ok(()),
            None => Err(KubeError::NoImage),
        }
    }

    /// Whether what is written there outlives the pods.
    fn keeps(&self, key: &'static str, store: &Location) -> Result<(), KubeError> {
        if store.is_url() {
            return Ok(());
        }
        let path = store.as_str();
        let below = |mount: &String| {
            let rest = path.strip_prefix(mount.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let volume = self.kube.volumes.iter().find(|(mount, _)| below(mount));
        let why = match volume {
            Some((_, volume)) if volume.read_only => "is on a volume that is mounted read-only",
            Some((_, volume)) if matches!(volume.source, VolumeSource::Secret(_)) => {
                "is in a Secret, where nothing can be written"
            }
            Some(_) => return Ok(()),
            None => "goes away with its pod",
        };
        Err(KubeError::Store {
            key,
            path: path.to_owned(),
            why,
        })
    }

    fn fits(&self) -> Result<(), KubeError> {
        let cost = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(_) => bytes.len().div_ceil(3) * 4,
        };
        let files = &self.travelling.files;
        let total: usize = files.values().map(cost).sum();
        if total <= MOST {
            return Ok(());
        }
        let mut largest: Vec<(&String, usize)> = files
            .iter()
            .map(|(name, bytes)| (name, bytes.len()))
            .collect();
        largest.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        let named =
            |(name, size): &(&String, usize)| format!("{name} ({} KiB)", size.div_ceil(1024));
        let named: Vec<String> = largest.iter().take(3).map(named).collect();
        Err(KubeError::TooLarge {
            total_kib: total.div_ceil(1024),
            most_kib: MOST >> 10,
            largest: named.join(", "),
        })
    }
}
