//! The chart of the server: what helm makes of it, and the server that comes of that on a real control plane.

use super::forwarded::Forwarded;
use super::real::cluster;
use crate::common::{LIMIT, Place};
use lockstep_testkit::{KubeCluster, kube_tools, succeed, wrong_manifests};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/lockstep");

/// Values that use most of what there is.
const FULL: &[&str] = &[
    "store=s3://bucket/runs",
    "ingress.enabled=true",
    "ingress.className=nginx",
    "ingress.host=runs.example.com",
    "ingress.tlsSecretName=certificate",
    "tls.secretName=own",
    "image.digest=sha256:00",
    "image.pullSecrets[0].name=registry",
    "storage.existingClaim=runs",
    "tokens[0].name=anna",
    "tokens[0].role=submit",
    "tokens[0].sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "args[0]=--per-user",
    "args[1]=4",
    "envFrom[0].secretRef.name=bucket",
    "env[0].name=RUST_LOG",
    "env[0].value=info",
    "nodeSelector.pool=cpu",
    "serviceAccount.annotations.role=runs",
    "priorityClassName=high",
];

fn helm(words: &[&str], values: &[&str]) -> Command {
    let mut helm = Command::new(kube_tools().join("helm"));
    helm.args(words);
    for value in values {
        helm.args(["--set-string", value]);
    }
    helm
}

/// What the chart comes to in a namespace with these values.
pub(crate) fn template(namespace: &str, values: &[&str]) -> String {
    let words = ["template", "team", CHART, "--namespace", namespace];
    succeed(&mut helm(&words, values))
}

#[test]
fn the_chart_is_well_made_and_matches_the_schemas() {
    let lint = succeed(&mut helm(&["lint", "--strict", CHART], &[]));
    assert!(lint.contains("0 chart(s) failed"), "{lint}");
    let place = Place::new();
    let path = place.path("chart.yaml");
    for values in [&[][..], FULL] {
        let text = template("default", values);
        fs::write(&path, &text).unwrap();
        assert_eq!(wrong_manifests(&path), None, "{values:?}");
        assert_eq!(text.contains("kind: Ingress"), !values.is_empty());
        for promised in [
            "runAsNonRoot: true",
            "readOnlyRootFilesystem: true",
            "automountServiceAccountToken: false",
            "kind: NetworkPolicy",
            "path: /healthz",
        ] {
            assert!(text.contains(promised), "{promised}");
        }
        // The pod gets hashes, and the token stays in the Secret.
        let mounted = text
            .split("secretName: team-lockstep-tokens")
            .nth(1)
            .unwrap();
        assert!(mounted.contains("defaultMode: 0400") && mounted.contains("key: tokens.json"));
    }
}

#[test]
fn values_that_cannot_work_are_refused_with_what_would_be_right() {
    for (value, said) in [
        ("store=/elsewhere", "a folder under /data"),
        ("ingress.enabled=true", "ingress.host is empty"),
        ("tokens[0].name=a b", "is no name"),
        ("tokens[0].name=anna", "it can be read, submit or admin"),
    ] {
        let output = helm(&["template", "team", CHART], &[value])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{value}");
        assert!(stderr.contains(said), "{value}: {stderr}");
    }
}

fn pods(cluster: &KubeCluster) -> String {
    let selector = "app.kubernetes.io/name=lockstep-server";
    let running = "--field-selector=status.phase=Running";
    cluster.kubectl(&["get", "pods", "-l", selector, running, "-o", "name"])
}

fn wait_for_pod(cluster: &KubeCluster) -> String {
    let began = Instant::now();
    loop {
        let found = pods(cluster);
        if found.lines().count() == 1 {
            return found.trim().to_owned();
        }
        assert!(began.elapsed() < LIMIT, "pods that run: {found}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn the_chart_comes_to_a_server_that_is_reached_by_its_token_and_outlives_its_pod() {
    let place = Place::new();
    let cluster = cluster();
    // The API server takes all of it, with and without what can be added.
    for values in [&[][..], FULL] {
        let path = place.path("chart.yaml");
        fs::write(&path, template("default", values)).unwrap();
        let file = path.to_str().unwrap();
        cluster.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", file]);
    }
    let at = [
        "--kubeconfig",
        cluster.kubeconfig(),
        "--namespace",
        "default",
    ];
    let release = |verb: &[&str]| succeed(&mut helm(&[verb, &at].concat(), &[]));
    release(&["install", "team", CHART]);
    let pod = wait_for_pod(&cluster);
    let token = || {
        let secret = ["get", "secret", "team-lockstep-tokens", "-o"];
        let template = ["go-template={{ .data.token | base64decode }}"];
        cluster.kubectl(&[&secret[..], &template].concat())
    };
    let first = token();

    let forwarded = Forwarded::start(&place, &cluster, &["forward", "team-lockstep"]);
    forwarded.get_at_last("/healthz", "");
    let jobs = forwarded.get("/api/jobs/", &first);
    assert!(jobs.starts_with("HTTP/1.1 200"), "{jobs}");
    let refused = forwarded.get("/api/jobs/", "lockstep_wrong");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");

    // Its pod is replaced, and the same port here leads to the next one; an upgrade keeps the token.
    cluster.kubectl(&["delete", &pod, "--wait=true"]);
    assert_ne!(wait_for_pod(&cluster), pod);
    forwarded.get_at_last("/api/jobs/", &first);
    release(&["upgrade", "team", CHART]);
    assert_eq!(token(), first);
    forwarded.get_at_last("/api/jobs/", &first);

    // The claim stays when the rest goes.
    release(&["uninstall", "team"]);
    let left = cluster.kubectl(&["get", "pvc,deploy,svc,secret", "-o", "name"]);
    assert!(
        left.contains("persistentvolumeclaim/team-lockstep"),
        "{left}"
    );
    assert!(
        !left.contains("deployment") && !left.contains("team-lockstep-tokens"),
        "{left}"
    );
}
