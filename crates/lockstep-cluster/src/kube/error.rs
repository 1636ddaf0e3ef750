//! What can go wrong, in words that say what to do.

use std::path::PathBuf;
use std::time::Duration;

/// What can go wrong with a job on Kubernetes, seen from outside its pods.
#[derive(Debug, thiserror::Error)]
pub enum KubeError {
    /// A name that objects cannot have.
    #[error("objects in Kubernetes cannot be named {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// No image.
    #[error(
        "the job does not say which image its pods have: add `image = \"...\"` to [kube], or --set kube.image=..."
    )]
    NoImage,
    /// No version of Ray.
    #[error(
        "KubeRay must know which Ray the image has: add `ray_version = \"2.60.0\"` to [kube], or use `engine = \"kube\"`, \
         which needs no Ray"
    )]
    NoRayVersion,
    /// A Ray without tokens.
    #[error(
        "kube.ray_version is {found}; tokens, without which anyone in the cluster could start programs, need Ray 2.52"
    )]
    OldRay {
        /// What the job says.
        found: String,
    },
    /// A store that is not kept.
    #[error(
        "{key} is {path:?}, which {why}; use a URL such as s3://bucket/runs, or a folder on a volume: \
         `volumes = {{ \"/runs\" = \"claim:NAME\" }}` in [kube] and `store = \"/runs\"`"
    )]
    Store {
        /// The key of the job file.
        key: &'static str,
        /// What it says.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A cluster without gang scheduling.
    #[error(
        "kube.gang_scheduling is \"on\", and this cluster has no PodGroups (scheduling.k8s.io/v1beta1): they need \
         Kubernetes 1.37 with the feature gate GenericWorkload and the API switched on; leave the key out to go without"
    )]
    NoPodGroups,
    /// Files that do not fit into a ConfigMap.
    #[error(
        "the job and its files are {total_kib} KiB, and a ConfigMap takes {most_kib} KiB; the largest: {largest}. Put \
         data on a volume (`volumes` in [kube]) or in a bucket, and name it in the job file by its absolute path there or \
         its URL: only relative paths travel"
    )]
    TooLarge {
        /// What it comes to.
        total_kib: usize,
        /// The limit.
        most_kib: usize,
        /// The largest files.
        largest: String,
    },
    /// What the operator would refuse after the server has taken it.
    #[error("{kind} {name:?} would be refused by KubeRay's operator: {why}")]
    Rejected {
        /// What it is.
        kind: String,
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A file of the configuration cannot be used.
    #[error("{path}: {why}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is no configuration.
    #[error(
        "no cluster is configured: {looked} is not there, and this is not a pod with an account; `--kubeconfig FILE`, or \
         `az aks get-credentials`, `aws eks update-kubeconfig`, `minikube start`, write one"
    )]
    NoConfig {
        /// Where it was looked for.
        looked: String,
    },
    /// The program that hands out credentials failed.
    #[error("{command:?}, which hands out credentials for the cluster, failed: {why}")]
    Exec {
        /// The program.
        command: String,
        /// What happened.
        why: String,
    },
    /// Nothing answers.
    #[error("the API server at {server} cannot be reached: {cause}")]
    Unreachable {
        /// The server.
        server: String,
        /// What the system says.
        cause: String,
    },
    /// The certificate of what answers is not to be trusted.
    #[error(
        "the certificate of {server} is not accepted: {cause}; the kubeconfig names the authority that is trusted"
    )]
    Certificate {
        /// The server.
        server: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The server does not know us.
    #[error(
        "the API server at {server} does not accept these credentials ({said}); they are wrong or have expired: sign in \
         again, as with `az login` or `aws sso login`"
    )]
    Unauthorized {
        /// The server.
        server: String,
        /// Its words.
        said: String,
    },
    /// The server does not allow it.
    #[error("you may not {verb} {resource} in the namespace `{namespace}`: {said}")]
    Forbidden {
        /// What was tried.
        verb: String,
        /// On what.
        resource: String,
        /// Where.
        namespace: String,
        /// The server's words.
        said: String,
    },
    /// A quota is used up.
    #[error("the quota of the namespace `{namespace}` does not allow it: {said}")]
    Quota {
        /// Where.
        namespace: String,
        /// The server's words.
        said: String,
    },
    /// The server does not know the kind.
    #[error(
        "the cluster has no {kind}: KubeRay is not installed there; use `engine = \"kube\"` in [kube], which needs nothing, or \
         install it: helm install kuberay-operator kuberay/kuberay-operator"
    )]
    NoKind {
        /// The kind.
        kind: String,
    },
    /// There is no such namespace.
    #[error("there is no namespace `{0}` in this cluster: kubectl create namespace {0}")]
    NoNamespace(String),
    /// There is one of that name.
    #[error(
        "there is a {kind} `{name}` in the namespace `{namespace}` already; choose another --id, or remove it: \
         lockstep kube delete {name}"
    )]
    Exists {
        /// What.
        kind: String,
        /// Its name.
        name: String,
        /// Where.
        namespace: String,
    },
    /// There is none of that name.
    #[error(
        "there is no job `{name}` in the namespace `{namespace}`; `lockstep kube list` shows all"
    )]
    NoSuchJob {
        /// The name.
        name: String,
        /// Where.
        namespace: String,
    },
    /// The server says that it is wrong.
    #[error("the API server refuses {what}: {said}")]
    Invalid {
        /// What was sent.
        what: String,
        /// The server's words.
        said: String,
    },
    /// Another answer than was hoped for.
    #[error("cannot {doing}: {server} answers {status}: {said}")]
    Refused {
        /// What was tried.
        doing: String,
        /// The server.
        server: String,
        /// The status of HTTP.
        status: u16,
        /// Its words.
        said: String,
    },
    /// The connection broke.
    #[error("cannot {doing}: the connection to {server} broke: {cause}")]
    Broken {
        /// What was tried.
        doing: String,
        /// The server.
        server: String,
        /// How.
        cause: String,
    },
    /// A job cannot be followed any more.
    #[error(
        "the API server could not be reached for {} s ({cause}). How the job `{name}` ends is not known; it may well go on: \
         `lockstep kube status {name}`",
        for_.as_secs()
    )]
    Lost {
        /// The job.
        name: String,
        /// How long it was tried.
        for_: Duration,
        /// What the last try came to.
        cause: String,
    },
    /// Nothing of that name has a port.
    #[error(
        "there is no job, no RayCluster and no Service `{name}` in the namespace `{namespace}`; `lockstep kube list` and \
         `kubectl get services` show all"
    )]
    NothingToReach {
        /// The name.
        name: String,
        /// Where.
        namespace: String,
    },
    /// No pod that could answer.
    #[error("no pod of `{name}` runs that could answer{why}")]
    NoPod {
        /// What was meant.
        name: String,
        /// Why there is none, with a colon before it, or nothing.
        why: String,
    },
    /// No port is meant.
    #[error("`{name}` has no port {wanted}; {known}")]
    NoPort {
        /// What was meant.
        name: String,
        /// The port, in words.
        wanted: String,
        /// What would be right.
        known: String,
    },
    /// The port here cannot be had.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {cause}; `--local PORT` takes another, 0 a free one"
    )]
    Listen {
        /// The port.
        port: u16,
        /// What the system says.
        cause: String,
    },
    /// A connection to a pod failed.
    #[error("port {port} of the pod `{pod}`: {cause}")]
    Forward {
        /// The pod.
        pod: String,
        /// Its port.
        port: u16,
        /// How.
        cause: String,
    },
    /// This machine cannot talk to a network.
    #[error("no connection can be made from here: {0}")]
    Setup(String),
}

impl KubeError {
    /// Whether it may be another in a moment: the network, or a server that is busy or being started.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
