//! What the dashboard's pages ask of the server, and the files that they are made of. A browser shows them in the program
//! `peers`.

use crate::common::Place;
use crate::common::dashboard::{submit, two_runs};
use crate::common::serve::{Serve, token};
use serde_json::{Value, json};
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
    assert_eq!(get("me")["role"], "admin");
    change_models_and_runs(&server, &runs);
    assert_eq!(server.stop(), Some(0));
    only_owners_change(&place, &runs[0]);
}

/// Whoever may do everything makes versions, points aliases and removes runs; what cannot be is said.
fn change_models_and_runs(server: &Serve, runs: &[String]) {
    let post = |path: &str, body: Value| server.post(&format!("/api/v1/{path}"), &body);
    let of_run = |name: &str| json!({ "name": name, "run": runs[0], "note": "the second" });
    let made = post("models", of_run("stripes")).ok().json();
    assert_eq!(
        (&made["number"], &made["note"]),
        (&json!(2), &json!("the second"))
    );
    assert_eq!(made["lineage"]["run"], runs[0].as_str());
    assert_eq!(post("models", of_run("../x")).status, 400);
    let aliases = "models/stripes/aliases";
    let pointed = post(aliases, json!({ "alias": "champion", "version": 2 }));
    assert_eq!(pointed.ok().json()["aliases"], json!({ "champion": 2 }));
    assert_eq!(
        post(aliases, json!({ "alias": "champion", "version": 7 })).status,
        404
    );
    assert_eq!(
        post(aliases, json!({ "alias": "latest", "version": 1 })).status,
        400
    );
    let gone = post(aliases, json!({ "alias": "champion", "version": null }));
    assert_eq!(gone.ok().json()["aliases"], json!({}));
    let removed = post(
        "runs/actions",
        json!({ "action": "delete", "ids": [runs[1], runs[0], "../x"] }),
    );
    let removed = removed.ok().json();
    assert_eq!(removed[0]["error"], Value::Null);
    assert!(
        removed[1]["error"].as_str().unwrap().contains("stripes@1"),
        "{removed}"
    );
    assert!(
        removed[2]["error"].as_str().unwrap().contains("no run"),
        "{removed}"
    );
    assert_eq!(server.get(&format!("/api/v1/runs/{}", runs[1])).status, 404);
}

/// A run that was trained at a terminal is of nobody, so it and its models are for admins.
fn only_owners_change(place: &Place, run: &str) {
    let (ben, eve) = (token(place, "ben", "submit"), token(place, "eve", "read"));
    let root = token(place, "root", "admin");
    let server = Serve::start(place, &["--require-token"]);
    let changes = [
        ("models", json!({ "name": "stripes", "run": run })),
        (
            "models/stripes/aliases",
            json!({ "alias": "champion", "version": 1 }),
        ),
    ];
    let removal = json!({ "action": "delete", "ids": [run] });
    for (path, body) in &changes {
        for token in [&ben, &eve] {
            let refused = server.post_as(token, &format!("/api/v1/{path}"), body);
            assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        }
    }
    assert_eq!(
        server
            .post_as(&eve, "/api/v1/runs/actions", &removal)
            .status,
        403
    );
    let kept = server.post_as(&ben, "/api/v1/runs/actions", &removal);
    let kept = kept.ok().json()[0]["error"].to_string();
    assert!(
        kept.contains("ben may change only what is its own"),
        "{kept}"
    );
    let may_change = |token: &str| {
        let run = server.send_as(token, "GET", &format!("/api/v1/runs/{run}"), b"");
        run.ok().json()["may_change"].clone()
    };
    assert_eq!(
        [&ben, &eve, &root].map(|one| may_change(one)),
        [false, false, true]
    );
    let me = server.send_as(&ben, "GET", "/api/v1/me", b"").ok().json();
    assert_eq!(
        me,
        json!({ "name": "ben", "role": "submit", "has_token": true })
    );
}

#[test]
fn an_address_that_nothing_is_at_has_a_page_for_browsers_and_a_sentence_for_programs() {
    let place = Place::new();
    let server = Serve::start(&place, &[]);
    let page = server.send(
        "GET",
        "/nowhere/at?all",
        &[("Accept", "text/html,*/*")],
        b"",
    );
    assert_eq!(page.status, 404);
    assert!(page.text().contains("<nav id=\"nav\""), "{}", page.text());
    assert!(page.header("content-security-policy").is_some());
    let said = server.get("/nowhere");
    assert_eq!(
        (said.status, said.text().as_str()),
        (404, "there is no such address\n")
    );
    let posted = server.send("POST", "/nowhere", &[("Accept", "text/html")], b"");
    assert_eq!(
        (posted.status, posted.text().contains("<html")),
        (404, false)
    );
    // The door has the colours of the house.
    let style = server.get("/login.css").ok().text();
    for colour in [
        "--paper: light-dark(#f7f6f2, #131514)",
        "--accent: light-dark(#0b6e63, #5fd0bd)",
    ] {
        assert!(style.contains(colour), "{colour}");
    }
    let base = server.get("/assets/style/base.css").ok().text();
    for colour in [
        "--paper: #f7f6f2",
        "--paper: #131514",
        "--accent: #0b6e63",
        "--accent: #5fd0bd",
    ] {
        assert!(base.contains(colour), "{colour}");
    }
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
    assert!(bytes < 60_000, "the first page has {bytes} bytes");
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
