//! A cluster that is asked: objects are made, read, changed and removed.

use crate::kube::config::Config;
use crate::kube::job::{ClusterJob, JobName, JobState};
use crate::kube::manifest::{Manifest, ManifestKind, merge};
use crate::kube::request::{self, About};
use crate::kube::{KubeError, Tail, log};
use lockstep_place::http::{HttpError, Method, RequestBuilder, Response, StatusCode, with_login};
use serde_json::{Value, json};
use std::cell::{Ref, RefCell};
use std::future::Future;
use std::time::Duration;

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(30);
/// How many events of a namespace are looked at.
const EVENTS: usize = 500;

/// A cluster, and who asks it.
pub struct Client {
    config: RefCell<Config>,
    http: RefCell<lockstep_place::http::Client>,
    server: String,
}

/// The path of a kind, or of one object of it.
fn path(kind: ManifestKind, namespace: &str, name: &str) -> String {
    object(kind.api(), kind.plural(), namespace, name)
}

fn object(api: &str, plural: &str, namespace: &str, name: &str) -> String {
    let root = match api.contains('/') {
        true => "apis",
        false => "api",
    };
    let slash = if name.is_empty() { "" } else { "/" };
    format!("/{root}/{api}/namespaces/{namespace}/{plural}{slash}{name}")
}

impl Client {
    /// Makes ready to ask. Nothing is sent yet.
    ///
    /// # Errors
    /// When the configuration's certificates cannot be used.
    pub fn new(config: Config) -> Result<Self, KubeError> {
        let http = lockstep_place::http::Client::new(request::settings(&config.access));
        Ok(Self {
            http: RefCell::new(http.map_err(|error| KubeError::Setup(error.to_string()))?),
            server: config.access.server.clone(),
            config: RefCell::new(config),
        })
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The namespace that is meant where a job names none.
    pub fn namespace(&self) -> String {
        let config: Ref<'_, Config> = self.config.borrow();
        config
            .namespace
            .clone()
            .unwrap_or_else(|| "default".to_owned())
    }

    pub(crate) fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.http.borrow().block(future)
    }

    /// Asks, and once more with new credentials if the old ones have run out. The answer's body is not read yet.
    pub(crate) fn open(
        &self,
        about: About<'_>,
        method: Method,
        path: &str,
        with: &dyn Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, KubeError> {
        let mut renewed = false;
        loop {
            let answer = {
                let (http, config) = (self.http.borrow(), self.config.borrow());
                let access = &config.access;
                let request = http.request(method.clone(), format!("{}{path}", self.server));
                let request = with_login(request, access.token.as_deref(), access.basic.as_ref());
                http.open(with(request), SOON)
            };
            let answer = answer.map_err(|error| self.explain(about, &error))?;
            if answer.status() != StatusCode::UNAUTHORIZED || renewed {
                return Ok(answer);
            }
            renewed = true;
            let mut config = self.config.borrow_mut();
            if !config.renew()? {
                return Ok(answer);
            }
            let http = self
                .http
                .borrow_mut()
                .renew(request::settings(&config.access));
            http.map_err(|error| self.explain(about, &error))?;
        }
    }

    fn explain(&self, about: About<'_>, error: &HttpError) -> KubeError {
        request::explain(&self.server, &about.doing(), error)
    }

    /// Reads all of an answer, or makes words of a refusal.
    pub(crate) fn read(&self, about: About<'_>, answer: Response) -> Result<Vec<u8>, KubeError> {
        let reply = self.http.borrow().read(answer, SOON);
        let reply = reply.map_err(|error| self.explain(about, &error))?;
        match reply.status.is_success() {
            true => Ok(reply.body),
            false => Err(request::refusal(
                &self.server,
                about,
                reply.status,
                &reply.body,
            )),
        }
    }

    pub(crate) fn ask(
        &self,
        about: About<'_>,
        method: Method,
        path: &str,
        with: &dyn Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Value, KubeError> {
        let answer = self.open(about, method, path, with)?;
        let body = self.read(about, answer)?;
        serde_json::from_slice(&body).map_err(|error| {
            let cause = format!("its answer makes no sense: {error}");
            self.explain(about, &HttpError::Broken(cause))
        })
    }

    /// Makes an object.
    ///
    /// # Errors
    /// When there is one of that name, or the server refuses it.
    pub fn create(&self, manifest: &Manifest) -> Result<Value, KubeError> {
        self.make(manifest, "")
    }

    /// Has the server check an object without making it.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub fn dry_run(&self, manifest: &Manifest) -> Result<Value, KubeError> {
        self.make(manifest, "&dryRun=All")
    }

    fn make(&self, manifest: &Manifest, more: &str) -> Result<Value, KubeError> {
        let meta = &manifest.value["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or_default();
        let about = About::new(
            "create",
            manifest.kind.plural(),
            meta["name"].as_str().unwrap_or_default(),
            namespace,
        );
        // A key that the server does not know would be dropped without a word.
        let path = path(manifest.kind, namespace, "") + "?fieldValidation=Strict" + more;
        let body = manifest.value.to_string();
        self.ask(about, Method::POST, &path, &|r| {
            r.header("Content-Type", "application/json")
                .body(body.clone())
        })
    }

    /// Makes what belongs to a job. The first manifest owns the others: it is made first, held back until all are
    /// there, and takes them with it when it goes.
    ///
    /// # Errors
    /// When anything cannot be made; then what was made is removed again.
    pub fn submit(&self, manifests: &[Manifest]) -> Result<JobName, KubeError> {
        let (owner, others) = (&manifests[0], &manifests[1..]);
        let job = JobName::of(owner);
        let kind = owner.kind;
        // A RayCluster cannot be held back everywhere, and does not need it: its pods wait for what they mount.
        let hold = kind != ManifestKind::RayCluster && owner.value["spec"]["suspend"].is_null();
        let mut first = owner.clone();
        if hold {
            first.value["spec"]["suspend"] = json!(true);
        }
        let made = self.create(&first)?;
        let belongs = json!({ "metadata": { "ownerReferences": [{
            "apiVersion": kind.api(),
            "kind": kind.word(),
            "name": job.name,
            "uid": made["metadata"]["uid"],
            "controller": false,
            "blockOwnerDeletion": false,
        }] } });
        let rest = || {
            for other in others {
                let mut other = other.clone();
                merge(&mut other.value, &belongs);
                self.create(&other)?;
            }
            match hold {
                true => self.suspend(&job, false),
                false => Ok(()),
            }
        };
        let done = rest();
        if done.is_err() {
            // The reason is what was refused; that half of it stays behind would only be one more.
            let _ = self.delete(kind, &job.namespace, &job.name);
        }
        done.map(|()| job)
    }

    /// Stops a job's pods, in good order, or lets them go on.
    ///
    /// # Errors
    /// When there is no such job, or the server does not allow it.
    pub fn suspend(&self, job: &JobName, suspend: bool) -> Result<(), KubeError> {
        let (kind, namespace, name) = job.parts();
        let about = About::new("patch", kind.plural(), name, namespace);
        let patch = json!({ "spec": { "suspend": suspend } }).to_string();
        self.ask(about, Method::PATCH, &path(kind, namespace, name), &|r| {
            r.header("Content-Type", "application/merge-patch+json")
                .body(patch.clone())
        })?;
        Ok(())
    }

    /// One object.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn get(&self, kind: ManifestKind, namespace: &str, name: &str) -> Result<Value, KubeError> {
        let about = About::new("get", kind.plural(), name, namespace);
        self.ask(about, Method::GET, &path(kind, namespace, name), &|r| r)
    }

    /// Removes an object and all that it owns.
    ///
    /// # Errors
    /// When there is none of that name, or the server does not allow it.
    pub fn delete(&self, kind: ManifestKind, namespace: &str, name: &str) -> Result<(), KubeError> {
        let about = About::new("delete", kind.plural(), name, namespace);
        let path = path(kind, namespace, name) + "?propagationPolicy=Background";
        self.ask(about, Method::DELETE, &path, &|r| r).map(drop)
    }

    /// All objects of a kind in a namespace that our labels are on.
    ///
    /// # Errors
    /// When the server does not allow it, or does not know the kind.
    pub fn list(&self, kind: ManifestKind, namespace: &str) -> Result<Vec<Value>, KubeError> {
        let labels = "app.kubernetes.io/managed-by%3Dlockstep";
        self.items(
            kind.api(),
            kind.plural(),
            namespace,
            &format!("labelSelector={labels}"),
        )
    }

    pub(crate) fn items(
        &self,
        api: &str,
        plural: &str,
        namespace: &str,
        query: &str,
    ) -> Result<Vec<Value>, KubeError> {
        let about = About::new("list", plural, "", namespace);
        let path = object(api, plural, namespace, "") + "?" + query;
        let mut answer = self.ask(about, Method::GET, &path, &|r| r)?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// The pods of a run.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub fn pods(&self, namespace: &str, run: &str) -> Result<Vec<Value>, KubeError> {
        self.selected(namespace, &format!("lockstep.dev%2Frun%3D{run}"))
    }

    /// The pods that a selector of labels, as a query writes it, is about.
    pub(crate) fn selected(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, KubeError> {
        let query = format!("labelSelector={selector}");
        self.items("v1", "pods", namespace, &query)
    }

    /// What happened to a run's objects, as far as the cluster still knows. Who may not see it sees nothing.
    pub fn events(&self, namespace: &str, run: &str) -> Vec<Value> {
        let events = self.items("v1", "events", namespace, &format!("limit={EVENTS}"));
        let about = |event: &Value| {
            let name = event["involvedObject"]["name"].as_str().unwrap_or_default();
            name == run
                || name
                    .strip_prefix(run)
                    .is_some_and(|rest| rest.starts_with('-'))
        };
        events
            .unwrap_or_default()
            .into_iter()
            .filter(about)
            .collect()
    }

    /// Whether KubeRay is installed.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn has_kuberay(&self) -> Result<bool, KubeError> {
        let about = About::new("get", "rayjobs", "", "");
        match self.ask(about, Method::GET, "/apis/ray.io/v1", &|r| r) {
            Ok(_) => Ok(true),
            // A proxy may say one, a server says the other.
            Err(KubeError::NoKind { .. } | KubeError::NoSuchJob { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the cluster has Kubernetes' own gang scheduling.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn has_pod_groups(&self) -> Result<bool, KubeError> {
        let kind = ManifestKind::PodGroup;
        let about = About::new("get", kind.plural(), "", "");
        let path = format!("/apis/{}", kind.api());
        match self.ask(about, Method::GET, &path, &|r| r) {
            // Old servers have other things under this version.
            Ok(found) => Ok(found["resources"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["name"] == kind.plural()))),
            Err(KubeError::NoKind { .. } | KubeError::NoSuchJob { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The job of that name, of whichever kind it is.
    ///
    /// # Errors
    /// When there is none, or the server cannot be asked.
    pub fn job(&self, namespace: &str, name: &str) -> Result<ClusterJob, KubeError> {
        let mut missing = None;
        for kind in [
            ManifestKind::Job,
            ManifestKind::RayJob,
            ManifestKind::RayCluster,
        ] {
            match self.get(kind, namespace, name) {
                Ok(value) => return Ok(ClusterJob { kind, value }),
                Err(error @ KubeError::NoSuchJob { .. }) => {
                    missing.get_or_insert(error);
                }
                // A cluster without KubeRay has no such kinds; who may not see them has no job of them.
                Err(error) if kind != ManifestKind::Job && !error.is_passing() => drop(error),
                Err(error) => return Err(error),
            }
        }
        Err(missing.unwrap_or_else(|| KubeError::NoSuchJob {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }))
    }

    /// How a job is.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn state(&self, job: &JobName) -> Result<JobState, KubeError> {
        let (kind, namespace, name) = job.parts();
        let value = self.get(kind, namespace, name)?;
        Ok(ClusterJob { kind, value }.state())
    }

    /// The log of the pod that tells of a job's run, as it is now; nothing if there is no such pod.
    ///
    /// # Errors
    /// When the server cannot be asked, or the pod has not begun.
    pub fn log(&self, job: &JobName) -> Result<String, KubeError> {
        let (kind, namespace, name) = job.parts();
        let pods = self.pods(namespace, name)?;
        let Some(pod) = log::teller(kind, &pods) else {
            return Ok(String::new());
        };
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
        let about = About::new("get", "pods/log", name, namespace);
        let container = log::container(kind);
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}");
        let answer = self.open(about, Method::GET, &path, &|r| r)?;
        let log = self.read(about, answer)?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// The log of the pod that tells of a job's run, from its beginning and as it grows.
    pub fn tail(&self, job: JobName, patience: Duration) -> Tail<'_> {
        Tail::new(self, job, patience)
    }
}
