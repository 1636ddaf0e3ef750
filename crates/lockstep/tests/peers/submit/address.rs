//! How a head is found, and what is told where there is none.

use super::heads::{TOKEN, assert_says, command, guarded_head, head, ran, run, submission, submit};
use crate::common::Place;
use lockstep_testkit::Server;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_token_is_found_as_rays_client_finds_it_and_its_lack_is_told() {
    let place = Place::new();
    let to = guarded_head();
    let list = ["jobs", "list", "--to", to];
    let none = run(&place, &list);
    assert_says(
        &none,
        1,
        &["wants a token", "RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token"],
    );
    let wrong = ran(command(&place, &list).env("RAY_AUTH_TOKEN", "wrong"));
    assert_says(
        &wrong,
        1,
        &["does not accept the token from RAY_AUTH_TOKEN"],
    );
    let right = |command: &mut Command| {
        let ran = ran(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    right(command(&place, &list).env("RAY_AUTH_TOKEN", TOKEN));
    let at_once = [("RAY_AUTH_TOKEN", TOKEN), ("RAY_AUTH_MODE", "token")];
    right(command(&place, &list).envs(at_once));
    fs::write(place.path("token"), TOKEN).unwrap();
    right(command(&place, &list).env("RAY_AUTH_TOKEN_PATH", place.path("token")));
    let header = format!("{{\"Authorization\": \"Bearer {TOKEN}\"}}");
    right(command(&place, &list).env("RAY_JOB_HEADERS", &header));
    right(&mut command(
        &place,
        &[&list[..], &["--headers", &header]].concat(),
    ));
    fs::create_dir_all(place.path("home/.ray")).unwrap();
    fs::write(place.path("home/.ray/auth_token"), TOKEN).unwrap();
    // The whole way, the log's connection included. The image has no program.
    let ran = submit(&place, to, &[]);
    assert_says(&ran, 1, &["no `lockstep` in the PATH"]);
}

#[test]
fn what_is_no_head_is_told_by_what_it_is_instead() {
    let place = Place::new();
    let list = |to: &str| run(&place, &["jobs", "list", "--to", to]);
    assert_says(
        &list("head:8265"),
        1,
        &["--to", "no `http://`", "http://HOST:8265"],
    );
    assert_says(&list("ray://head:10001"), 1, &["Ray Client"]);
    let unknown = list("http://no-such-host.invalid:8265");
    assert_says(
        &unknown,
        1,
        &["the host of http://no-such-host.invalid:8265 is not known"],
    );
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let dead = list(&format!("http://127.0.0.1:{port}"));
    assert_says(
        &dead,
        1,
        &["nothing answers", "refused", "is the head running"],
    );
    let of_gcs = ran(command(&place, &["jobs", "list"]).env("RAY_ADDRESS", "10.0.0.1:6379"));
    assert_says(&of_gcs, 1, &["RAY_ADDRESS"]);

    // Some other web server.
    let mut other = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(other.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
    let port = said
        .split(" port ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let ran = list(&format!("http://127.0.0.1:{port}"));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_says(
        &ran,
        1,
        &["no Ray Jobs API", "answered with 404", "ray[default]"],
    );
}

#[test]
fn a_head_behind_https_is_known_by_its_authority() {
    let place = Place::new();
    let here = place.weights(&["--workers", "1"]);
    let address = head().strip_prefix("http://").unwrap();
    let proxy = Server::tls_proxy(address, &place.path(""));
    let to = proxy.endpoint();
    let authority = place.path("ca.pem");
    // The log's connection is encrypted too.
    let there = ran(submission(&place, to, "image", &["--json"]).env("SSL_CERT_FILE", &authority));
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here.as_str());
    assert!(!there.stderr.contains("is lost"), "{}", there.stderr);

    let list = |to: &str, authority: &Path| {
        ran(command(&place, &["jobs", "list", "--to", to]).env("SSL_CERT_FILE", authority))
    };
    // The authority of somebody else, and the right one for another name.
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    let _other = Server::tls_proxy(address, &other);
    let strange = list(to, &other.join("ca.pem"));
    assert_says(
        &strange,
        1,
        &[
            "certificate of https://127.0.0.1",
            "is not accepted",
            "SSL_CERT_FILE",
        ],
    );
    let by_name = to.replace("127.0.0.1", "localhost");
    let misnamed = list(&by_name, &authority);
    assert_says(
        &misnamed,
        1,
        &[
            "certificate of https://localhost",
            "is not accepted",
            "not valid for name",
        ],
    );
    let plain = list(&head().replace("http://", "https://"), &authority);
    assert_says(
        &plain,
        1,
        &[
            "no encrypted connection to https://",
            "is it http:// instead",
        ],
    );
    // Whoever needs no certificates needs no authorities.
    let none = list(head(), Path::new("/nowhere"));
    assert_eq!(none.code, Some(0), "{}", none.stderr);
}
