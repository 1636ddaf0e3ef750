//! A real control plane of Kubernetes: API server, etcd, Job controller and KubeRay's operator, with nodes that run
//! pods' commands as processes of this machine.

use crate::{Server, cache, once, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long it may take to end what it started.
const ENDING: Duration = Duration::from_secs(15);

/// A cluster on loopback.
pub struct KubeCluster {
    server: Server,
    /// Where its logs and the folders of its pods are.
    pub folder: tempfile::TempDir,
}

/// The folder with the programs of a control plane, built once from Go's modules: minutes, and some gigabytes of
/// Go's own cache.
///
/// # Panics
/// When there is no Go, or a part cannot be built.
pub fn kube_programs(parts: &[&str]) -> PathBuf {
    let folder = cache().join("kube");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/kube/build.sh");
    for part in parts {
        // Parts lie beside each other, so each has a note of its own.
        once(&cache().join("kube-parts").join(part), "1", |_| {
            succeed(Command::new("sh").arg(script).arg(&folder).arg(part));
        });
    }
    folder
}

impl KubeCluster {
    /// Starts one with three nodes. Pods find programs in `path` first.
    ///
    /// # Panics
    /// When it cannot be built or does not start.
    pub fn start(path: &Path, kuberay: bool) -> KubeCluster {
        let mut parts = vec!["etcd", "apiserver", "controller-manager", "kubectl"];
        if kuberay {
            parts.push("kuberay");
        }
        let programs = kube_programs(&parts);
        let folder = tempfile::tempdir().expect("a folder");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/kube_cluster.py");
        let mut command = Command::new(crate::server::python_with_moto());
        command.arg(script).arg(&programs).arg(folder.path());
        command.arg("--path").arg(path);
        if kuberay {
            command.arg("--kuberay");
        }
        let mut server = Server::introduced(command, "the cluster");
        server.patience = ENDING;
        KubeCluster { server, folder }
    }

    /// The kubeconfig of one who may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.server.said["kubeconfig"]
    }

    /// The kubeconfig of one who may do nothing.
    pub fn guest(&self) -> &str {
        &self.server.said["guest"]
    }

    /// Gives an order, and waits until it was carried out: `restart apiserver`, `kill POD`, `drain NODE`,
    /// `undrain NODE`. A pod is meant by how its name begins.
    ///
    /// # Panics
    /// When the cluster is gone.
    pub fn order(&mut self, order: &str) {
        self.server.write_line(order);
        let mut answer = String::new();
        self.server.read_line(&mut answer);
        assert!(
            answer.contains("done"),
            "{order}: {}",
            self.server.last_words()
        );
    }

    /// What kubectl says.
    ///
    /// # Panics
    /// When it fails.
    pub fn kubectl(&self, words: &[&str]) -> String {
        let program = kube_programs(&["kubectl"]).join("kubectl");
        let mut command = Command::new(program);
        command
            .args(["--kubeconfig", self.kubeconfig()])
            .args(words);
        succeed(&mut command)
    }
}
