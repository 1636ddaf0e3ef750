//! Real Ray clusters, of several nodes on this machine.

use crate::kept::Kept;
use crate::python;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// The version that is used unless the environment names another.
const RAY: &str = "2.60.0";
/// The variable that names one.
const VERSION: &str = "LOCKSTEP_TEST_RAY";

/// The version of Ray that the tests use.
pub fn ray_version() -> String {
    std::env::var(VERSION).unwrap_or_else(|_| RAY.to_owned())
}

/// A Python that has Ray.
pub fn python_with_ray() -> PathBuf {
    python_with_ray_of(&ray_version())
}

/// A Python that has this version of Ray.
pub fn python_with_ray_of(version: &str) -> PathBuf {
    python("ray", &[&package(version)])
}

/// The environment with this version of Ray.
pub(crate) fn environment(version: &str) -> Kept {
    crate::python::environment("ray", &[&package(version)])
}

fn package(version: &str) -> String {
    format!("ray[default]=={version}")
}

/// A cluster of its own, whose processes end with this one at the latest. No other Ray of this machine is touched.
pub struct RayCluster {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The head's address: `10.0.0.1:40123`.
    pub address: String,
    /// Its Python.
    pub python: PathBuf,
    folder: TempDir,
}

impl RayCluster {
    /// Starts a cluster of so many nodes with two processors each. Node `n` has the label `node=n`, and a cache folder
    /// of its own.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(nodes: usize) -> Self {
        Self::open(nodes, &[], None)
    }

    /// The same, with these variables in the environment of all its processes.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_with(nodes: usize, variables: &[(&str, &str)]) -> Self {
        Self::open(nodes, variables, None)
    }

    /// A head alone, with an autoscaler that brings up to two nodes of the kind `small` when they are asked for.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_autoscaled() -> Self {
        Self::open(1, &[], Some("works"))
    }

    /// A head alone, with an autoscaler that tries to bring such nodes for ever.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_with_hanging_autoscaler() -> Self {
        Self::open(1, &[], Some("hangs"))
    }

    fn open(nodes: usize, variables: &[(&str, &str)], autoscaler: Option<&str>) -> Self {
        let python = python_with_ray();
        // Ray's sockets lie here, and their names must be short.
        let folder = tempfile::Builder::new().prefix("ray").tempdir_in("/tmp");
        let folder = folder.expect("a folder for Ray");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/ray_cluster.py");
        let log = std::fs::File::create(folder.path().join("cluster.log")).expect("a log");
        let mut child = Command::new(&python)
            .arg(script)
            .envs(variables.iter().copied())
            // Ray's processes run in another folder than whoever uses the cluster.
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("Python starts");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut cluster = Self {
            orders: child.stdin.take(),
            child,
            answers,
            address: String::new(),
            python,
            folder,
        };
        cluster.wake();
        let nodes: Vec<Value> = (0..nodes).map(|node| cluster.node(node, &[])).collect();
        let said = cluster
            .ask(&json!({ "folder": cluster.path(), "nodes": nodes, "autoscaler": autoscaler }));
        cluster.address = said["address"].as_str().expect("an address").to_owned();
        cluster
    }

    /// The folder of the cluster.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The cache folder of a node.
    pub fn cache(&self, node: usize) -> PathBuf {
        self.path().join(format!("cache-{node}"))
    }

    /// From now on a step of a gang on this cluster takes a while, so that a run has a middle to disturb it in.
    pub fn slow_down(&self) {
        std::fs::remove_file(self.awake()).expect("the cluster was awake");
    }

    /// From now on a step takes no longer than it must.
    pub fn wake(&self) {
        std::fs::write(self.awake(), "").expect("the cluster's folder");
    }

    fn awake(&self) -> PathBuf {
        self.path().join("awake")
    }

    fn node(&self, node: usize, variables: &[(&str, &str)]) -> Value {
        let mut env = json!({
            "LOCKSTEP_CACHE": self.cache(node),
            "LOCKSTEP_FAILPOINTS": "step.begin=sleep:30",
            "LOCKSTEP_FAILPOINTS_AWAKE": self.awake(),
        });
        for (name, value) in variables {
            env[name] = (*value).into();
        }
        json!({ "CPU": 2, "labels": { "node": node.to_string() }, "env": env })
    }

    /// Adds node `node`.
    pub fn add(&mut self, node: usize) {
        self.add_with(node, &[]);
    }

    /// Adds node `node`, with these variables in the environment of its processes.
    pub fn add_with(&mut self, node: usize, variables: &[(&str, &str)]) {
        let node = self.node(node, variables);
        self.ask(&json!({ "do": "add", "node": node }));
    }

    /// Removes the node that was added last.
    pub fn remove_last(&mut self) {
        self.ask(&json!({ "do": "remove" }));
    }

    /// Announces that node `node` will be taken away in half a minute.
    pub fn drain(&mut self, node: usize) {
        self.ask(&json!({ "do": "drain", "label": node.to_string() }));
    }

    /// Kills the head. Nothing can be asked of the cluster after that.
    pub fn kill_head(&mut self) {
        self.ask(&json!({ "do": "kill_head" }));
    }

    /// The names of the placement groups and the actors that there are.
    pub fn left(&mut self) -> Vec<String> {
        let left = self.ask(&json!({ "do": "left" }));
        let names = |kind: &str| left[kind].as_array().cloned().unwrap_or_default();
        let names = [names("groups"), names("actors")].concat();
        names.iter().map(ToString::to_string).collect()
    }

    fn ask(&mut self, order: &Value) -> Value {
        let orders = self.orders.as_mut().expect("open");
        writeln!(orders, "{order}").expect("the cluster listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(self.folder.path().join("cluster.log"));
            panic!("Ray said {line:?} to {order}: {}", log.unwrap_or_default())
        })
    }
}

impl Drop for RayCluster {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}
