//! Manifests as people see them, and jobs that cannot run on Kubernetes as they are.

use super::scripted::{SENT, server};
use crate::common::kube::kube;
use crate::common::{JOB, Place};
use lockstep_testkit::wrong_manifests;
use std::fs;
use std::path::Path;

/// A job with most of what `[kube]` can say.
const FULL: &str = r#"
name = "Digits"
[data]
train = "fashion-mnist:train"
[model]
kind = "mlp"
hidden = [16]
[train]
epochs = 1
batch = 32
workers = { min = 2, max = 4 }
optimizer = { kind = "sgd", lr = 0.1 }
[run]
store = "s3://bucket/runs"
[resources]
cpus = 1.5
gpus = 1
memory = "4 GiB"
place = "strict-spread"
[kube]
image = "registry.example.com/team/lockstep:1.0"
pull = "if-not-present"
pull_secrets = ["registry"]
namespace = "team-a"
service_account = "trainer"
node_selector = { pool = "gpu" }
tolerations = ["nvidia.com/gpu:NoSchedule", "spot=true:NoSchedule"]
labels = { cost = "research" }
annotations = { "example.com/owner" = "ada" }
volumes = { "/data" = "claim:datasets:ro", "/keys" = "secret:keys" }
env = { RUST_LOG = "info" }
env_from = ["bucket"]
cache = "20 GiB"
deadline_s = 3600
priority_class = "low"
kueue_queue = "research"
ray_version = "2.60.0"
[kube.patch.Job.spec.template.spec]
hostname = "patched"
"#;

/// What `kube render` prints of a job is as it was when somebody last looked at it. LOCKSTEP_BLESS=1 takes what is
/// printed now.
fn as_it_was(args: &[&str], file: &str) {
    let place = Place::new();
    place.write_job(FULL);
    let ran = place.run(&[&["kube", "render", "job.toml"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/kube/golden")
        .join(file);
    if std::env::var_os("LOCKSTEP_BLESS").is_some() {
        fs::write(&path, &ran.stdout).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        ran.stdout == wanted,
        "{} is another now:\n{}",
        path.display(),
        ran.stdout
    );
    // Nothing in it changes from one time to the next.
    let again = place.run(&[&["kube", "render", "job.toml"], args].concat());
    assert_eq!(again.stdout, ran.stdout);
}

#[test]
fn manifests_for_plain_kubernetes_are_as_they_were() {
    as_it_was(&[], "kube.yaml");
}

#[test]
fn manifests_for_kuberay_are_as_they_were() {
    as_it_was(&["--set", "kube.engine=\"kuberay\""], "kuberay.yaml");
}

/// The schemas are those of Kubernetes itself and of KubeRay's CRDs.
#[test]
fn manifests_match_the_schemas_of_their_kinds() {
    let place = Place::new();
    place.write_job(FULL);
    let path = place.path("manifests.yaml");
    let ray = "kube.engine=\"kuberay\"";
    let smallest = [
        "--set",
        "kube={ image = \"x:1\", ray_version = \"2.60.0\", engine = \"kuberay\" }",
        "--set",
        "resources={}",
    ];
    for args in [
        &["--set", "kube.engine=\"kube\""][..],
        &["--set", "kube.gang_scheduling=\"on\""],
        &["--set", ray],
        &smallest,
    ] {
        let rendered = place.run(&[&["kube", "render", "job.toml"], args].concat());
        assert_eq!(rendered.code, Some(0), "{}", rendered.stderr);
        fs::write(&path, &rendered.stdout).unwrap();
        assert_eq!(wrong_manifests(&path), None, "{args:?}");
        // It can say no: to a key of a pod, and to one of what is around it.
        for (right, wrong) in [
            ("readOnlyRootFilesystem", "readOnlyRoot"),
            ("completionMode", "completionMood"),
            ("rayStartParams", "rayStartParameters"),
            ("minCount", "minimum"),
            ("podGroupName", "group"),
        ] {
            if rendered.stdout.contains(right) {
                fs::write(&path, rendered.stdout.replace(right, wrong)).unwrap();
                let said = wrong_manifests(&path).expect("it is wrong");
                assert!(said.contains(wrong) || said.contains(right), "{said}");
            }
        }
    }
}

/// As the server sees it: `kube cluster start` prints no manifests.
#[test]
fn a_cluster_that_stands_matches_the_schemas_too() {
    for workers in ["2", "{ min = 1, max = 4 }"] {
        let place = Place::new();
        place.write_job(FULL);
        let config = server(&place, |method, path| match (method, path) {
            ("POST", _) => (201, r#"{"metadata":{"uid":"u"}}"#),
            ("GET", "/apis/ray.io/v1") => (200, "{}"),
            _ => (404, "{}"),
        });
        let args = ["kube", "cluster", "start", "job.toml", "--set"];
        let workers = format!("train.workers={workers}");
        let ran = kube(&place, config, &[&args[..], &[&workers]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let sent = place.path(SENT);
        let text = fs::read_to_string(&sent).unwrap();
        assert!(text.contains("RayCluster"), "{text}");
        assert_eq!(wrong_manifests(&sent), None, "{text}");
    }
}

#[test]
fn a_job_that_cannot_run_on_kubernetes_is_refused_with_what_to_do() {
    let place = Place::new();
    let refusal = |args: &[&str]| {
        let ran = place.run(&[&["kube", "render", "job.toml"], args].concat());
        assert_ne!(ran.code, Some(0), "{args:?}");
        ran.stderr
    };
    let said = refusal(&[]);
    assert!(said.contains("kube.image"), "{said}");
    let image = ["--set", "kube.image=\"x:1\""];
    let said = refusal(&image);
    assert!(
        said.contains("run.store") && said.contains("goes away with its pod"),
        "{said}"
    );
    let bucket = ["--set", "run.store=\"s3://b/runs\""];
    fs::write(place.path("train-images"), vec![0; 1 << 20]).unwrap();
    let said = refusal(&[image, bucket].concat());
    assert!(
        said.contains("train-images") && said.contains("volume"),
        "{said}"
    );
    let said = refusal(&[&image[..], &bucket, &["--id", &"a".repeat(48)]].concat());
    assert!(said.contains("48 characters"), "{said}");
    let read_only = [
        "--set",
        "kube.volumes={ \"/runs\" = \"claim:r:ro\" }",
        "--set",
        "run.store=\"/runs\"",
    ];
    let said = refusal(&[&image[..], &read_only].concat());
    assert!(said.contains("read-only"), "{said}");
    place.write_job(&JOB.replace("\"runs\"", "\"s3://b/runs\""));
    let ray = ["--set", "kube.engine=\"kuberay\""];
    let known = [
        "--set",
        "data.train=\"fashion-mnist:train\"",
        "--set",
        "data.test=\"fashion-mnist:test\"",
    ];
    let said = refusal(&[&image[..], &ray, &known].concat());
    assert!(said.contains("ray_version"), "{said}");
    let patched = [
        "--set",
        "kube.ray_version=\"2.60.0\"",
        "--set",
        "kube.patch={ RayJob = { spec = { shutdownAfterJobFinishes = false } } }",
    ];
    let said = refusal(&[&image[..], &ray, &known, &patched].concat());
    assert!(
        said.contains("would be refused by KubeRay's operator"),
        "{said}"
    );
}
