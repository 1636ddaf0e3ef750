//! A job file on its way to Kubernetes.

use super::{JobSource, Program, SubmitRequest, Work, inputs, layout};
use crate::ClusterError;
use crate::kube::{
    Client, Config, JobName, KubeError, Manifest, PLACEHOLDER, Plan, Travelling, Wanted,
    check_manifests, cluster, kube_manifests, name_of, pod_group, ray_manifests,
};
use lockstep_base::fs::{random_letters, sha256};
use lockstep_job::{GangScheduling, KubeEngine};

/// Letters that make a name one that no other job has.
const LETTERS: usize = 5;
/// Letters that are as hard to guess as 256 bits: five bits each.
const TOKEN_LETTERS: usize = 64;

/// What is said of manifests for which no cluster was asked whether it has gang scheduling.
const WITHOUT_GROUPS: &str = "For a cluster without gang scheduling. One with scheduling.k8s.io/v1beta1 places all pods at \
     once, or none, with kube.gang_scheduling = \"on\".";

/// A job file that is to run on Kubernetes.
#[derive(Debug)]
pub struct KubeRequest<'r> {
    /// The job.
    pub source: &'r JobSource,
    /// The name of everything that is made, and of the run; by default the job's name and some letters.
    pub id: Option<String>,
    /// The namespace, if the command line says it.
    pub namespace: Option<String>,
}

impl SubmitRequest {
    /// Brings it to the cluster that is wanted.
    ///
    /// # Errors
    /// When Kubernetes cannot do what is asked, when the job cannot run there as it is, and when the cluster refuses.
    pub fn submit_to_kube(&self, at: &Wanted) -> Result<(Client, JobName), ClusterError> {
        let Work::Job(job) = &self.work else {
            return Err(ClusterError::CommandOnKube);
        };
        if !self.queue.is_empty() {
            return Err(ClusterError::NoQueueOnKube);
        }
        let travels = job.program != Program::Own;
        if job.fork.is_some() || travels || !self.variables.is_empty() {
            return Err(ClusterError::NotForKube);
        }
        let resumed = match &job.resume {
            Some(None) => return Err(ClusterError::ResumeWithoutName),
            Some(run) => run.clone(),
            None => None,
        };
        let request = KubeRequest {
            source: &job.source,
            id: self.id.clone().or(resumed),
            namespace: at.namespace.clone(),
        };
        let client = Client::new(Config::find(at)?)?;
        let submitted = client.submit(&request.manifests(Some(&client))?)?;
        Ok((client, submitted))
    }
}

impl KubeRequest<'_> {
    /// The manifests of the job, checked, for the cluster of `client`. Without one they are only to be shown.
    ///
    /// # Errors
    /// When the job cannot run on Kubernetes, or on this cluster.
    pub fn manifests(&self, client: Option<&Client>) -> Result<Vec<Manifest>, ClusterError> {
        let plan = self.plan(client)?;
        let token = match client {
            None => PLACEHOLDER.to_owned(),
            Some(_) => token()?,
        };
        let manifests = match through_ray(&plan, client)? {
            true => ray_manifests(&plan, &token)?,
            false => kube_manifests(&plan, &token, group(&plan, client)?),
        };
        check_manifests(&manifests)?;
        Ok(manifests)
    }

    /// What manifests that are made without a cluster take for granted of the one that they are for.
    ///
    /// # Errors
    /// When the job cannot run on Kubernetes.
    pub fn assumes(&self) -> Result<Option<&'static str>, ClusterError> {
        let plan = self.plan(None)?;
        let open = plan.kube.gang_scheduling == GangScheduling::Auto && may_be_grouped(&plan);
        Ok(open
            .then_some(WITHOUT_GROUPS)
            .filter(|_| plan.kube.engine != KubeEngine::Kuberay))
    }

    /// The manifests of a cluster that stands, checked.
    ///
    /// # Errors
    /// When the job cannot run there.
    pub fn cluster_manifests(&self, client: &Client) -> Result<Vec<Manifest>, ClusterError> {
        if !client.has_kuberay()? {
            let kind = "RayCluster".to_owned();
            return Err(KubeError::NoKind { kind }.into());
        }
        let manifests = cluster(&self.plan(Some(client))?, &token()?)?;
        check_manifests(&manifests)?;
        Ok(manifests)
    }

    fn plan(&self, client: Option<&Client>) -> Result<Plan, ClusterError> {
        let job = &self.source.job;
        let name = match (&self.id, client) {
            (Some(id), _) => id.clone(),
            // The same job gives the same text.
            (None, None) => name_of(&job.name, None),
            (None, Some(_)) => name_of(&job.name, Some(&random_letters::<LETTERS>()?)),
        };
        let named = self.namespace.clone().or(job.kube.namespace.clone());
        let namespace = match (named, client) {
            (Some(namespace), _) => namespace,
            (None, Some(client)) => client.namespace(),
            (None, None) => "default".to_owned(),
        };
        let words = self.source.words.clone();
        Ok(Plan::new(job, name, namespace, words, self.travelling()?)?)
    }

    /// The job file and what it names by relative paths, as they are now.
    fn travelling(&self) -> Result<Travelling, ClusterError> {
        let moving = inputs::moving(self.source)?.inputs;
        let (files, job) = layout::files(&self.source.path, &moving)?;
        let mut travelling = Travelling {
            job,
            ..Travelling::default()
        };
        for (name, path) in files {
            let bytes = std::fs::read(&path);
            let bytes = bytes.map_err(|source| ClusterError::Read { path, source })?;
            travelling.files.insert(name, bytes);
        }
        Ok(travelling)
    }
}

/// Whether a job goes through KubeRay.
fn through_ray(plan: &Plan, client: Option<&Client>) -> Result<bool, KubeError> {
    match (plan.kube.engine, client) {
        (KubeEngine::Kuberay, Some(client)) if !client.has_kuberay()? => Err(KubeError::NoKind {
            kind: "RayJob".to_owned(),
        }),
        (KubeEngine::Kuberay, _) => Ok(true),
        (KubeEngine::Kube, _) => Ok(false),
        // An image has Ray if the job says which.
        (KubeEngine::Auto, Some(client)) => {
            let plain = plan.kube.gang_scheduling == GangScheduling::On;
            Ok(!plain && plan.kube.ray_version.is_some() && client.has_kuberay()?)
        }
        (KubeEngine::Auto, None) => Ok(false),
    }
}

/// The group as which the pods are placed, if they are.
///
/// By itself, a job asks for one where the cluster has groups and whoever submits may make them; without a cluster to ask,
/// it is taken for one that has none.
fn group(plan: &Plan, client: Option<&Client>) -> Result<Option<Manifest>, KubeError> {
    if !may_be_grouped(plan) {
        return Ok(None);
    }
    let (on, group) = (
        plan.kube.gang_scheduling == GangScheduling::On,
        pod_group(plan),
    );
    let Some(client) = client else {
        return Ok(on.then_some(group));
    };
    if on {
        return match client.has_pod_groups()? {
            true => Ok(Some(group)),
            false => Err(KubeError::NoPodGroups),
        };
    }
    // It also finds out whether whoever submits may make one.
    let can_be = client
        .has_pod_groups()
        .and_then(|has| has.then(|| client.dry_run(&group)).transpose());
    match can_be {
        Ok(made) => Ok(made.map(|_| group)),
        Err(error) if error.is_passing() => Err(error),
        // Whatever else is in the way of a group need not be in the way of the job.
        Err(_) => Ok(None),
    }
}

/// Whether the job wants its pods placed as a group, if that can be.
fn may_be_grouped(plan: &Plan) -> bool {
    let kube = &plan.kube;
    // Who admits the job sees to it that there is room for all of it.
    let queued = kube.kueue_queue.is_some() || kube.volcano_queue.is_some();
    let wanted = match kube.gang_scheduling {
        GangScheduling::Off => false,
        GangScheduling::Auto => !queued,
        GangScheduling::On => true,
    };
    // A run that begins with one pod waits for no other.
    wanted && plan.workers.1 > 1
}

/// A token that nobody can guess, as 64 hexadecimal digits.
fn token() -> Result<String, ClusterError> {
    let letters = random_letters::<TOKEN_LETTERS>()?;
    Ok(sha256(letters.as_bytes()))
}
