//! What the dashboard's pages ask of the server, and the files that they are made of. A browser shows them in the program
//! `peers`.

use crate::common::Place;
use crate::common::dashboard::{submit, two_runs};
use crate::common::serve::Serve;
use serde_json::json;
use std::io::Read;

#[test]
fn what_pages_ask_is_answered_and_a_name_is_never_a_path() {
    let place = Place::new();
    let runs = two_runs(&place, "");
    let server = Serve::start(&place, &[]);
    let get = |path: &str| server.get(&format!("/api/v1/{path}")).ok().json();
    let list = get("runs?sort=accuracy&columns=optimizer.lr&filter=lr%20%3E%200.01");
    assert_eq!(
        (list["chosen"].as_u64(), list["total"].as_u64()),
        (Some(2), Some(2))
    );
    assert!(list["runs"][0]["values"]["optimizer.lr"].is_number());
    let curves = get(&format!(
        "curves?runs={},{}&names=train.loss&width=1",
        runs[0], runs[1]
    ));
    let loss = &curves[1]["series"][0];
    assert_eq!(
        (&loss["name"], &loss["points"]),
        (&json!("train.loss"), &json!(3))
    );
    let lists = ["x", "y", "low", "high"].map(|list| loss[list].as_array().unwrap().len());
    assert_eq!(lists, [1; 4]);
    assert!(loss["low"][0].as_f64() < loss["high"][0].as_f64());
    let run = get(&format!("runs/{}", runs[0]));
    assert_eq!(run["models"][0], "stripes@1");
    assert_eq!(run["has_evaluation"], true);
    let picture = server.get(&format!("/api/v1/runs/{}/mistakes", runs[0]));
    assert!(picture.status == 404 || picture.body.starts_with(b"\x89PNG"));
    // The words of a client become no path, and a mistake is told with what would be right.
    for path in [
        "runs/..%2F..%2Fetc",
        "runs/%2Fetc%2Fpasswd/log",
        "runs/.server",
        "runs/index.sqlite/evaluation",
        "curves?runs=../x",
        "models/..%2Fx",
        "benchmarks/..",
        "jobs/..%2Fx/log",
        "jobs/x",
        "live?job=..%2Fx",
    ] {
        let answer = server.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    let wrong = server.get("/api/v1/runs?filter=acuracy%20%3E%201");
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.text().contains("did you mean `accuracy`"),
        "{}",
        wrong.text()
    );
    // A tag is there at once, and for `lockstep runs` too.
    let said = json!({ "tags": { "good": "" }, "note": "<b>first</b>" });
    server
        .post(&format!("/api/v1/runs/{}/tags", runs[0]), &said)
        .ok();
    assert_eq!(get("runs?filter=tag.good")["chosen"], 1);
    assert!(
        place
            .run(&["runs", "list", "tag.good"])
            .stdout
            .contains(&runs[0])
    );
}

#[test]
fn files_of_pages_are_small_sent_once_and_allow_nothing_from_elsewhere() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let document = server.get("/runs/any").ok();
    let policy = document
        .header("content-security-policy")
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(!document.text().contains("//cdn") && !document.text().contains("<style"));
    let mut paths = vec!["/".to_owned()];
    let text = document.text();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\"/assets/") {
        rest = &rest[at + 1..];
        paths.push(rest[..rest.find('"').unwrap()].to_owned());
    }
    // What the overview brings beside what the document names.
    paths.extend(
        [
            "pages/overview",
            "curve/chart",
            "curve/series",
            "curve/scale",
            "machine",
        ]
        .map(|name| format!("/assets/js/{name}.js")),
    );
    paths.push("/api/v1/overview".to_owned());
    let mut bytes = 0;
    for path in &paths {
        let answer = server.send("GET", path, &[("Accept-Encoding", "gzip")], b"");
        bytes += answer.ok().body.len();
    }
    assert!(bytes < 150_000, "the first page has {bytes} bytes");
    println!("the first page: {bytes} bytes in {} files", paths.len());
    let tag = document.header("etag").unwrap().to_owned();
    let again = server.send("GET", "/", &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    for path in [
        "/assets/../Cargo.toml",
        "/assets/index.html",
        "/assets/%2e%2e/x",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn news_are_pushed_and_a_server_with_open_pages_still_ends() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let mut page = server.connect();
    let ask = format!(
        "GET /api/v1/live?machine=true HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    std::io::Write::write_all(&mut page, ask.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut wait_for = |words: &str| {
        let mut piece = [0; 65536];
        while !heard.contains(words) {
            let read = page.read(&mut piece).unwrap();
            assert!(read > 0, "{words:?} did not come: {heard}");
            heard += &String::from_utf8_lossy(&piece[..read]);
        }
    };
    wait_for("event: hello");
    wait_for("event: machine");
    submit(&server, "true");
    wait_for("event: jobs");
    place.train(&[]);
    wait_for("event: runs");
    assert_eq!(server.stop(), Some(0));
}
