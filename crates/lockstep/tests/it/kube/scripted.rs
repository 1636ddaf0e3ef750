//! Errors of an API server, each told by a server that says nothing else.

use crate::common::Place;
use crate::common::kube::{job, kube};
use crate::common::serve::Serve;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;

/// Where the bodies that a server was sent are, as documents of YAML.
pub(crate) const SENT: &str = "sent.yaml";

/// Starts a server that answers every request with what `answer` makes of its method and path.
pub(crate) fn server(place: &Place, answer: fn(&str, &str) -> (u16, &'static str)) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sent = place.path(SENT);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sent = sent.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut length) = (String::new(), 0);
                reader.read_line(&mut first).unwrap();
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                if length > 0 {
                    let mut file = fs::File::options()
                        .append(true)
                        .create(true)
                        .open(sent)
                        .unwrap();
                    file.write_all(&[b"---\n", &body[..], b"\n"].concat())
                        .unwrap();
                }
                let mut words = first.split(' ');
                let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
                let (status, text) = answer(method, path);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    text.len()
                );
                let mut stream = stream;
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(text.as_bytes());
            });
        }
    });
    config(place, &format!("http://{address}"), "{token: t}")
}

fn config(place: &Place, server: &str, user: &str) -> PathBuf {
    let path = place.path("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {{server: \"{server}\"}}\n\
         users:\n- name: u\n  user: {user}\ncontexts:\n- name: c\n  context: {{cluster: k, user: u, namespace: team}}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// What `submit` says when the server answers everything so.
fn refusal(answer: fn(&str, &str) -> (u16, &'static str), args: &[&str]) -> String {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    let config = server(&place, answer);
    let submit = [
        "submit", "job.toml", "--to", "kube", "--detach", "--id", "same",
    ];
    let ran = kube(&place, config, &[&submit, args].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    ran.stderr
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    let config = config(&place, "https://127.0.0.1:9", "{}");
    let ran = kube(&place, config, &["kube", "list"]);
    assert!(
        ran.stderr.contains("https://127.0.0.1:9 cannot be reached"),
        "{}",
        ran.stderr
    );
}

#[test]
fn no_configuration_says_where_it_was_looked_for() {
    let place = Place::new();
    let ran = kube(&place, place.path("missing"), &["kube", "list"]);
    assert!(
        ran.stderr.contains("missing is not there"),
        "{}",
        ran.stderr
    );
}

#[test]
fn credentials_that_have_expired_are_told() {
    let said = refusal(
        |_, _| (401, r#"{"kind":"Status","message":"Unauthorized"}"#),
        &[],
    );
    assert!(said.contains("have expired"), "{said}");
}

#[test]
fn credentials_of_a_program_are_asked_for_again_when_they_have_expired() {
    let place = Place::new();
    let counter = place.path("asked");
    let program = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [\"-c\", \"echo x >> {}; \
         echo '{{\\\"status\\\": {{\\\"token\\\": \\\"t\\\"}}}}'\"]}}}}",
        counter.display()
    );
    server(&place, |_, _| (401, "{}"));
    let text = fs::read_to_string(place.path("kubeconfig")).unwrap();
    fs::write(
        place.path("kubeconfig"),
        text.replace("{token: t}", &program),
    )
    .unwrap();
    let ran = kube(&place, place.path("kubeconfig"), &["kube", "list"]);
    assert!(ran.stderr.contains("have expired"), "{}", ran.stderr);
    let asked = fs::read_to_string(counter).unwrap();
    assert_eq!(
        asked.lines().count(),
        2,
        "once to begin with, once after the refusal"
    );
}

#[test]
fn missing_rights_name_the_verb_and_the_resource() {
    let said = refusal(
        |_, _| {
            (
                403,
                r#"{"message":"jobs.batch is forbidden: User \"u\" cannot create"}"#,
            )
        },
        &[],
    );
    assert!(
        said.contains("you may not create jobs in the namespace `team`"),
        "{said}"
    );
}

#[test]
fn a_quota_that_is_used_up_is_told() {
    let said = refusal(
        |_, _| {
            (
                403,
                r#"{"message":"jobs.batch \"same\" is forbidden: exceeded quota: few, used: 3, limited: 3"}"#,
            )
        },
        &[],
    );
    assert!(
        said.contains("quota of the namespace `team`") && said.contains("limited: 3"),
        "{said}"
    );
}

#[test]
fn a_second_submit_of_one_name_is_told() {
    let said = refusal(
        |_, _| (409, r#"{"reason":"AlreadyExists","message":"exists"}"#),
        &[],
    );
    assert!(
        said.contains("there is a job `same`") && said.contains("another --id"),
        "{said}"
    );
}

#[test]
fn a_cluster_without_kuberay_is_told_before_anything_is_sent() {
    let said = refusal(
        |method, _| match method {
            "GET" => (404, "404 page not found"),
            _ => (500, "nothing should be sent"),
        },
        &[
            "--set",
            "kube.engine=\"kuberay\"",
            "--set",
            "kube.ray_version=\"2.60.0\"",
        ],
    );
    assert!(said.contains("KubeRay is not installed"), "{said}");
}

#[test]
fn a_namespace_that_is_not_there_is_told() {
    let said = refusal(
        |_, _| {
            (
                404,
                r#"{"message":"namespaces \"team\" not found","details":{"kind":"namespaces"}}"#,
            )
        },
        &[],
    );
    assert!(said.contains("no namespace `team`"), "{said}");
}

#[test]
fn what_was_made_is_removed_when_the_rest_is_refused() {
    let said = refusal(
        |method, path| match (method, path) {
            ("POST", path) if path.contains("/jobs") => (201, r#"{"metadata":{"uid":"u"}}"#),
            ("DELETE", path) if path.contains("/jobs/same") => (200, "{}"),
            ("POST", path) if path.contains("/services") => {
                (403, r#"{"message":"services is forbidden"}"#)
            }
            ("GET", "/apis/scheduling.k8s.io/v1beta1") => (404, "{}"),
            _ => (500, "unexpected"),
        },
        &[],
    );
    assert!(said.contains("you may not create services"), "{said}");
}

#[test]
fn a_job_that_is_not_there_is_told() {
    let place = Place::new();
    let config = server(&place, |_, _| {
        (
            404,
            r#"{"message":"jobs.batch \"x\" not found","details":{"kind":"jobs"}}"#,
        )
    });
    let ran = kube(&place, config, &["kube", "status", "x"]);
    assert!(ran.stderr.contains("there is no job `x`"), "{}", ran.stderr);
}

#[test]
fn the_dashboard_shows_the_nodes_of_a_namespace_and_its_pods() {
    let place = Place::new();
    let config = server(&place, |_, path| match path {
        "/api/v1/nodes" => (
            200,
            r#"{"items":[{"metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"True"}],
                "allocatable":{"cpu":"3920m","memory":"8Gi"}}}]}"#,
        ),
        _ if path.starts_with("/api/v1/namespaces/team/pods") => (
            200,
            r#"{"items":[{"metadata":{"labels":{"lockstep.dev/run":"digits-1"}},"status":{"phase":"Running"},
                "spec":{"nodeName":"n1","containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}},
                {"metadata":{},"status":{"phase":"Pending"},"spec":{"containers":[]}}]}"#,
        ),
        _ => (404, "{}"),
    });
    let first = ["serve", "--store", "runs", "--port", "0", "--kube", "team"];
    let mut command = place.command(&first);
    command.env("KUBECONFIG", config);
    let serve = Serve::of(command);
    let found = serve.get("/api/v1/cluster/elsewhere").ok().json();
    let cluster = &found[0];
    assert_eq!(cluster["name"], "Kubernetes namespace team");
    let lead = cluster["lead"].as_str().unwrap();
    assert!(lead.ends_with("1 node, one pod waits for room"), "{lead}");
    let node = &cluster["nodes"][0];
    assert_eq!(node["state"], "alive");
    assert_eq!(
        node["cpus"],
        serde_json::json!({ "used": 1.0, "total": 3.92 })
    );
    assert_eq!(node["what"], "digits-1: 1 pod");
}

#[test]
fn a_cluster_that_answers_is_in_good_health() {
    let place = Place::new();
    let config = server(&place, |_, path| match path {
        "/apis/ray.io/v1" => (200, "{}"),
        _ => (200, "{\"items\": []}"),
    });
    let ran = kube(&place, config, &["doctor", "--to", "kube", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let kubernetes: Vec<_> = checks
        .filter(|check| check["name"] == "kubernetes")
        .collect();
    assert_eq!(kubernetes[0]["state"], "ok", "{report}");
    let found = kubernetes[0]["found"].as_str().unwrap();
    assert!(
        found.ends_with("namespace team: 0 jobs of Lockstep, with KubeRay"),
        "{found}"
    );
}
