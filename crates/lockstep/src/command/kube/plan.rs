//! From a job file to manifests.

use crate::args::KubeJobArgs;
use crate::command::submit::{inputs, layout};
use anyhow::Context;
use lockstep_base::fs::random_letters;
use lockstep_cluster::kube::{
    Client, KubeError, Manifest, PLACEHOLDER, Plan, Travelling, check_manifests, kube_manifests,
    name_of, ray_manifests,
};
use lockstep_job::{Job, KubeEngine};

/// Letters that make a name one that no other job has.
const LETTERS: usize = 5;
/// Letters that are as hard to guess as 256 bits: five bits each.
const TOKEN_BYTES: usize = 32;

/// Who can be asked about the cluster.
pub(super) enum Asking<'c> {
    /// Nobody: what is made is only shown.
    Nobody,
    /// The cluster that it is for.
    Cluster(&'c Client),
}

/// The manifests of a job, checked.
pub(super) fn manifests(args: &KubeJobArgs, asking: &Asking<'_>) -> anyhow::Result<Vec<Manifest>> {
    let plan = plan(args, asking)?;
    let token = match asking {
        Asking::Nobody => PLACEHOLDER.to_owned(),
        Asking::Cluster(_) => token()?,
    };
    let manifests = match through_ray(&plan, asking)? {
        true => ray_manifests(&plan, &token)?,
        false => kube_manifests(&plan, &token),
    };
    check_manifests(&manifests)?;
    Ok(manifests)
}

/// The manifests of a cluster that stands, checked.
pub(super) fn cluster(args: &KubeJobArgs, client: &Client) -> anyhow::Result<Vec<Manifest>> {
    let plan = plan(args, &Asking::Cluster(client))?;
    let manifests = lockstep_cluster::kube::cluster(&plan, &token()?)?;
    check_manifests(&manifests)?;
    Ok(manifests)
}

fn through_ray(plan: &Plan, asking: &Asking<'_>) -> Result<bool, KubeError> {
    match (plan.kube.engine, asking) {
        (KubeEngine::Kuberay, Asking::Cluster(client)) if !client.has_kuberay()? => {
            Err(KubeError::NoKind {
                kind: "RayJob".to_owned(),
            })
        }
        (KubeEngine::Kuberay, _) => Ok(true),
        (KubeEngine::Kube, _) => Ok(false),
        // An image has Ray if the job says which.
        (KubeEngine::Auto, Asking::Cluster(client)) => {
            Ok(plan.kube.ray_version.is_some() && client.has_kuberay()?)
        }
        (KubeEngine::Auto, Asking::Nobody) => Ok(false),
    }
}

fn plan(args: &KubeJobArgs, asking: &Asking<'_>) -> anyhow::Result<Plan> {
    let job = args.job.load()?;
    let name = match (&args.id, asking) {
        (Some(id), _) => id.clone(),
        // The same job gives the same text.
        (None, Asking::Nobody) => name_of(&job.name, None),
        (None, Asking::Cluster(_)) => name_of(&job.name, Some(&random_letters::<LETTERS>()?)),
    };
    let asked = args.at.namespace.clone().or(job.kube.namespace.clone());
    let namespace = match (asked, asking) {
        (Some(namespace), _) => namespace,
        (None, Asking::Cluster(client)) => client.namespace(),
        (None, Asking::Nobody) => "default".to_owned(),
    };
    let travelling = travelling(args, &job)?;
    let words = args.job.words().split_off(1);
    Ok(Plan::new(&job, name, namespace, words, travelling)?)
}

/// The job file and what it names by relative paths, as they are now.
fn travelling(args: &KubeJobArgs, job: &Job) -> anyhow::Result<Travelling> {
    let moving = inputs::moving(&args.job, job)?.inputs;
    let (files, job) = layout::files(&args.job.path, &moving)?;
    let mut travelling = Travelling {
        job,
        ..Travelling::default()
    };
    for (name, path) in files {
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        travelling.files.insert(name, bytes);
    }
    Ok(travelling)
}

/// A token that nobody can guess, as 64 hexadecimal digits.
fn token() -> anyhow::Result<String> {
    // 64 letters of five bits each, hashed to 256 bits.
    let letters = random_letters::<{ TOKEN_BYTES * 2 }>()?;
    Ok(lockstep_base::fs::sha256(letters.as_bytes()))
}
