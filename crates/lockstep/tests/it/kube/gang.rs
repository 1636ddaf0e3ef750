//! Whether a job asks for Kubernetes' own gang scheduling, as far as a server that plays the API server can tell.

use super::scripted::{SENT, server};
use crate::common::Place;
use crate::common::kube::{job, kube};

type Answer = fn(&str, &str) -> (u16, &'static str);

const DISCOVERY: &str = "/apis/scheduling.k8s.io/v1beta1";

/// A cluster that has groups, and takes everything.
fn with_groups(method: &str, path: &str) -> (u16, &'static str) {
    match (method, path) {
        ("GET", DISCOVERY) => (
            200,
            r#"{"resources":[{"name":"workloads"},{"name":"podgroups"}]}"#,
        ),
        ("GET", _) => (404, "{}"),
        _ => (201, r#"{"metadata":{"uid":"u"}}"#),
    }
}

/// An old one, with other things under the same version.
fn without_groups(method: &str, path: &str) -> (u16, &'static str) {
    match (method, path) {
        ("GET", DISCOVERY) => (200, r#"{"resources":[{"name":"priorityclasses"}]}"#),
        _ => with_groups(method, path),
    }
}

/// One that has groups, of which whoever asks may make none.
fn forbidden(method: &str, path: &str) -> (u16, &'static str) {
    match method == "POST" && path.contains("/podgroups") {
        true => (
            403,
            r#"{"kind":"Status","message":"podgroups is forbidden"}"#,
        ),
        false => with_groups(method, path),
    }
}

/// What was said, and what was sent, when a job was applied to a cluster.
fn applied(more: &str, answer: Answer, args: &[&str]) -> (String, String) {
    let place = Place::new();
    place.write_job(&job(&place, more));
    let config = server(&place, answer);
    let apply = ["kube", "apply", "job.toml", "--id", "gang"];
    let ran = kube(&place, config, &[&apply, args].concat());
    let sent = std::fs::read_to_string(place.path(SENT)).unwrap_or_default();
    (ran.stderr, sent)
}

/// Whether what was sent has a group, and pods of it.
fn is_grouped(sent: &str) -> bool {
    let pods = sent.contains(r#""schedulingGroup":{"podGroupName":"gang"}"#);
    let made = sent
        .lines()
        .filter(|line| line.contains(r#""kind":"PodGroup""#));
    // One of them only asks whether it could be made.
    assert!(
        !pods || made.count() > 0,
        "pods of a group that nobody made: {sent}"
    );
    pods
}

#[test]
fn a_job_asks_for_gang_scheduling_where_it_can_be_had() {
    let elastic = ["--set", "train.workers={ min = 1, max = 2 }"];
    for (more, answer, args, grouped) in [
        ("", with_groups as Answer, &[][..], true),
        ("", without_groups, &[], false),
        ("", forbidden, &[], false),
        ("kueue_queue = \"q\"", with_groups, &[], false),
        (
            "kueue_queue = \"q\"\ngang_scheduling = \"on\"",
            with_groups,
            &[],
            true,
        ),
        ("volcano_queue = \"q\"", with_groups, &[], false),
        ("gang_scheduling = \"off\"", with_groups, &[], false),
        ("gang_scheduling = \"on\"", with_groups, &[], true),
        // A run that begins with one pod waits for no other.
        ("", with_groups, &elastic, false),
    ] {
        let (said, sent) = applied(more, answer, args);
        assert!(sent.contains(r#""kind":"Job""#), "{more}: {said}");
        assert_eq!(is_grouped(&sent), grouped, "{more}: {sent}");
    }
}

#[test]
fn gang_scheduling_that_cannot_be_had_is_refused_before_anything_is_made() {
    let (said, sent) = applied("gang_scheduling = \"on\"", without_groups, &[]);
    assert!(said.contains("this cluster has no PodGroups"), "{said}");
    assert!(sent.is_empty(), "{sent}");
    let (said, _) = applied("gang_scheduling = \"on\"", forbidden, &[]);
    assert!(said.contains("you may not create podgroups"), "{said}");
    for (more, why) in [
        (
            "gang_scheduling = \"on\"\nvolcano_queue = \"q\"",
            "volcano_queue",
        ),
        (
            "gang_scheduling = \"on\"\nengine = \"kuberay\"\nray_version = \"2.60.0\"",
            "kuberay",
        ),
        ("gang_scheduling = true", "gang_scheduling"),
    ] {
        let (said, sent) = applied(more, with_groups, &[]);
        assert!(said.contains(why), "{more}: {said}");
        assert!(sent.is_empty(), "{sent}");
    }
}

#[test]
fn manifests_that_are_rendered_without_a_cluster_say_what_they_assume() {
    let place = Place::new();
    let render = |more: &str| {
        place.write_job(&job(&place, more));
        place
            .run(&["kube", "render", "job.toml", "--id", "gang"])
            .stdout
    };
    let open = render("");
    assert!(
        open.starts_with("# For a cluster without gang scheduling."),
        "{open}"
    );
    assert!(!open.contains("PodGroup"), "{open}");
    let on = render("gang_scheduling = \"on\"");
    assert!(on.starts_with("apiVersion"), "{on}");
    for part in ["kind: PodGroup", "minCount: 2", "podGroupName: gang"] {
        assert!(on.contains(part), "{part}: {on}");
    }
    assert!(render("gang_scheduling = \"off\"").starts_with("apiVersion"));
}
