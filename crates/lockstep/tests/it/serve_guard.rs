//! Every promise about the server's security, tried as an attack on the real binary.

use crate::common::serve::{Answer, Serve, token};
use crate::common::{AT_ONCE, Place};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NOT_LOOPBACK: [&str; 2] = ["--host", "0.0.0.0"];

/// The token that a server showed when it started.
fn shown(serve: &Serve) -> Option<String> {
    let said = serve.said();
    let line = said
        .lines()
        .find(|line| line.trim().starts_with("lockstep_"))?;
    Some(line.trim().to_owned())
}

fn with(serve: &Serve, token: &str, method: &str, path: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    serve.send(method, path, &[("Authorization", &bearer)], b"")
}

fn audit(place: &Place) -> Vec<Value> {
    lines(place, "audit.jsonl")
}

fn lines(place: &Place, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.path("runs/.server").join(file)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn it_listens_on_loopback_alone_and_needs_no_token_there() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    assert!(serve.address.ip().is_loopback());
    assert_eq!(shown(&serve), None);
    assert_eq!(serve.get("/healthz").ok().text(), "ok\n");
    let mode = serve.get("/api/authentication_mode").ok().json();
    assert_eq!(mode, json!({ "authentication_mode": "disabled" }));
}

#[test]
fn elsewhere_a_token_is_made_at_the_first_start_and_shown_once_and_kept_hashed() {
    let place = Place::new();
    let serve = Serve::start(&place, &NOT_LOOPBACK);
    let admin = shown(&serve).unwrap();
    assert_eq!(admin.len(), "lockstep_".len() + 64);
    let kept = place.path("runs/.server/tokens.json");
    let text = fs::read_to_string(&kept).unwrap();
    assert!(!text.contains(&admin["lockstep_".len()..]), "{text}");
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o077, 0);
    assert_eq!(with(&serve, &admin, "GET", "/nothing").status, 404);
    serve.stop();
    let again = Serve::start(&place, &NOT_LOOPBACK);
    assert_eq!(shown(&again), None, "{}", again.said());
    assert_eq!(with(&again, &admin, "GET", "/nothing").status, 404);
}

#[test]
fn without_a_token_or_with_a_wrong_one_nothing_is_said() {
    let place = Place::new();
    let serve = Serve::start(&place, &NOT_LOOPBACK);
    let admin = shown(&serve).unwrap();
    let kept: Value = crate::common::read_json(&place.path("runs/.server/tokens.json"));
    let hash = kept[0]["sha256"].as_str().unwrap();
    for path in [
        "/nothing",
        "/api/jobs/",
        "/api/version",
        "/metrics",
        "/api/openapi.json",
        "/%2e/login",
        "/login/",
        "//login",
    ] {
        let none = serve.get(path);
        assert_eq!(none.status, 401, "{path}");
        assert_eq!(none.text(), "Unauthorized: Missing authentication token");
        assert!(none.header("www-authenticate").is_some());
        let shorter = &admin[..admin.len() - 1];
        for wrong in [
            "",
            "x",
            hash,
            shorter,
            &format!("{admin}0"),
            &admin.to_uppercase(),
        ] {
            let answer = with(&serve, wrong, "GET", path);
            assert_eq!(answer.status, 403, "{path} {wrong}");
            assert_eq!(answer.text(), "Forbidden: Invalid authentication token");
        }
        let odd = serve.send(
            "GET",
            path,
            &[("Authorization", &format!("Basic {admin}"))],
            b"",
        );
        assert_eq!(odd.status, 403, "{path}");
        // A token belongs into no URL: it would be in logs.
        assert_eq!(
            serve.get(&format!("{path}?token={admin}")).status,
            401,
            "{path}"
        );
    }
}

#[test]
fn rays_ways_to_send_a_token_are_understood() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let admin = shown(&serve).unwrap();
    let bearer = format!("Bearer {admin}");
    let cookie = format!("a=b; ray-authentication-token={admin}");
    let status = |headers: &[(&str, &str)]| serve.send("GET", "/nothing", headers, b"").status;
    assert_eq!(status(&[("X-Ray-Authorization", &bearer)]), 404);
    assert_eq!(status(&[("Cookie", &cookie)]), 404);
    // The first of them counts.
    assert_eq!(
        status(&[
            ("Authorization", "Bearer x"),
            ("X-Ray-Authorization", &bearer)
        ]),
        403
    );
    assert_eq!(
        status(&[("X-Ray-Authorization", "Bearer x"), ("Cookie", &cookie)]),
        403
    );
    let mode = serve.get("/api/authentication_mode").ok().json();
    assert_eq!(mode, json!({ "authentication_mode": "token" }));
    let known = serve
        .send(
            "POST",
            "/api/authenticate",
            &[("Authorization", &bearer)],
            b"",
        )
        .ok();
    let said = json!({ "status": "authenticated", "message": "Token is valid" });
    assert_eq!(known.json(), said);
    let cookie = known.header("set-cookie").unwrap();
    for part in [
        &admin,
        "HttpOnly",
        "SameSite=Strict",
        "Max-Age=2592000",
        "Path=/",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(
        serve.send("POST", "/api/authenticate", &[], b"").status,
        401
    );
    let wrong = serve.send(
        "POST",
        "/api/authenticate",
        &[("Authorization", "Bearer x")],
        b"",
    );
    assert_eq!((wrong.status, wrong.header("set-cookie")), (403, None));
}

#[test]
fn a_role_may_do_what_it_says_and_a_removed_token_nothing() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let reader = token(&place, "reader", "read");
    let submitter = token(&place, "submitter", "submit");
    assert_eq!(with(&serve, &reader, "GET", "/nothing").status, 404);
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get"] {
        let answer = with(&serve, &reader, method, "/nothing");
        assert_eq!(answer.status, 403, "{method}");
        assert!(
            answer.text().contains("submit is needed"),
            "{}",
            answer.text()
        );
        assert_eq!(
            with(&serve, &submitter, method, "/nothing").status,
            404,
            "{method}"
        );
    }
    let listed = place.run(&["serve", "token", "list", "--store", "runs"]);
    assert!(
        listed.stdout.contains("reader") && listed.stdout.contains("admin"),
        "{}",
        listed.stdout
    );
    assert!(!listed.stdout.contains(&reader["lockstep_".len()..]));
    let removed = place.run(&["serve", "token", "remove", "reader", "--store", "runs"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert_eq!(with(&serve, &reader, "GET", "/nothing").status, 403);
    let again = place.run(&["serve", "token", "remove", "reader", "--store", "runs"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("submitter"), "{}", again.stderr);
}

#[test]
fn a_name_that_was_made_to_point_here_is_refused() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--allow-host", "train.lan"]);
    let status = |host: &str| serve.send("GET", "/healthz", &[("Host", host)], b"").status;
    for right in [
        "localhost:8265",
        "127.0.0.1",
        "[::1]:1",
        "train.lan",
        "TRAIN.LAN:80",
    ] {
        assert_eq!(status(right), 200, "{right}");
    }
    for wrong in [
        "evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.1",
        "localhost.evil.example:8265",
        "localhost@evil.example",
    ] {
        assert_eq!(status(wrong), 421, "{wrong}");
    }
    assert_eq!(serve.send_raw(b"GET /healthz HTTP/1.0\r\n\r\n").status, 400);
    let two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(serve.send_raw(two).status, 400);
    let absolute =
        b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(serve.send_raw(absolute).status, 400);
}

#[test]
fn pages_of_other_sites_can_neither_do_nor_read_anything() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let own = serve.url();
    let other_port = "http://127.0.0.1:1";
    let attacks: &[(&str, &[(&str, &str)])] = &[
        // A form of an old browser, which says where it is from.
        (
            "POST",
            &[
                ("Origin", "http://evil.example"),
                ("Content-Type", "text/plain"),
            ],
        ),
        (
            "POST",
            &[
                ("Origin", "null"),
                ("Content-Type", "application/x-www-form-urlencoded"),
            ],
        ),
        ("POST", &[("Origin", other_port)]),
        (
            "DELETE",
            &[("Origin", "https://evil.example"), ("x-lockstep", "1")],
        ),
        (
            "PUT",
            &[
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "no-cors"),
            ],
        ),
        (
            "POST",
            &[("Sec-Fetch-Site", "same-site"), ("x-lockstep", "1")],
        ),
        // One of our own pages does add the header.
        ("POST", &[("Origin", &own)]),
        ("POST", &[("Sec-Fetch-Site", "same-origin")]),
        // The question before a request with headers.
        (
            "OPTIONS",
            &[
                ("Origin", "http://evil.example"),
                ("Access-Control-Request-Headers", "x-lockstep"),
            ],
        ),
        // An image, a script, a frame, a fetch.
        (
            "GET",
            &[
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "no-cors"),
                ("Sec-Fetch-Dest", "image"),
            ],
        ),
        (
            "GET",
            &[
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "navigate"),
                ("Sec-Fetch-Dest", "iframe"),
            ],
        ),
        ("GET", &[("Origin", "http://evil.example")]),
        // A web socket.
        (
            "GET",
            &[
                ("Origin", "http://evil.example"),
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
            ],
        ),
    ];
    for (method, headers) in attacks {
        let answer = serve.send(method, "/healthz", headers, b"");
        assert_eq!(answer.status, 403, "{method} {headers:?} {}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let ours = [
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
        ("x-lockstep", "1"),
    ];
    assert_eq!(serve.send("POST", "/nothing", &ours, b"").status, 404);
    // Ray's client.
    assert_eq!(serve.send("POST", "/nothing", &[], b"").status, 404);
    let link = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    assert_eq!(serve.send("GET", "/healthz", &link, b"").status, 200);
}

#[test]
fn every_answer_tells_browsers_what_to_leave_alone() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let browser = [("Accept", "text/html")];
    for answer in [
        serve.get("/healthz"),
        serve.get("/nothing"),
        serve.send("GET", "/", &browser, b""),
        serve.send("GET", "/healthz", &[("Host", "evil.example")], b""),
    ] {
        let header = |name: &str| answer.header(name).unwrap_or_else(|| panic!("{name}"));
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
    }
}

#[test]
fn a_browser_logs_in_with_a_token_and_gets_a_cookie_that_no_script_can_read() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let admin = shown(&serve).unwrap();
    let browser = ("Accept", "text/html,application/xhtml+xml");
    let asked = serve.send("GET", "/runs?x=%22%3E%3Cscript%3E", &[browser], b"");
    assert_eq!(asked.status, 401);
    assert!(
        asked.text().contains("<form") && asked.text().contains("%3Cscript"),
        "{}",
        asked.text()
    );
    let form = |body: &str| {
        let headers = [
            ("Origin", serve.url()),
            ("Sec-Fetch-Site", "same-origin".to_owned()),
            (
                "Content-Type",
                "application/x-www-form-urlencoded".to_owned(),
            ),
        ];
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        serve.send("POST", "/login", &headers, body.as_bytes())
    };
    let wrong = form("token=wrong&next=/runs");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (403, None));
    let right = form(&format!("token={admin}&next=/runs?a=b"));
    assert_eq!(
        (right.status, right.header("location")),
        (303, Some("/runs?a=b"))
    );
    let cookie = right.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(
        serve
            .send("GET", "/nothing", &[("Cookie", cookie)], b"")
            .status,
        404
    );
    // Another site cannot use it, nor have somebody log in as it likes, nor lead somebody elsewhere.
    let other = [
        ("Cookie", cookie),
        ("Origin", "http://evil.example"),
        ("x-lockstep", "1"),
    ];
    assert_eq!(serve.send("POST", "/nothing", &other, b"").status, 403);
    assert_eq!(
        serve.send("POST", "/login", &other[1..], b"token=x").status,
        403
    );
    let rebound = [("Cookie", cookie), ("Host", "evil.example")];
    assert_eq!(serve.send("GET", "/nothing", &rebound, b"").status, 421);
    let led = form(&format!("token={admin}&next=//evil.example"));
    assert_eq!(led.header("location"), Some("/"));
    let out = serve.send("POST", "/logout", &[("Origin", &serve.url())], b"");
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    // Behind a link from elsewhere the browser leaves the cookie away, and the page asks once more by itself.
    let link = [
        browser,
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    assert!(
        serve
            .send("GET", "/", &link, b"")
            .text()
            .contains("http-equiv=\"refresh\"")
    );
}

#[test]
fn a_body_that_is_too_large_is_refused_before_and_while_it_comes() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--package-limit", "1MiB"]);
    let package = "/api/packages/gcs/_ray_pkg_0123456789abcdef.zip";
    let huge = serve.send("PUT", package, &[("Content-Length", "104857601")], b"");
    assert_eq!(
        (huge.status, huge.text().as_str()),
        (413, "Maximum request body size 1048576 exceeded.")
    );
    let huge = serve.send("POST", "/login", &[("Content-Length", "99999999999")], b"");
    assert_eq!(huge.status, 413);
    // One that does not say how large it is.
    let mut body = Vec::new();
    for _ in 0..20 {
        body.extend_from_slice(b"100000\r\n");
        body.extend_from_slice(&vec![b'a'; 1 << 20]);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let endless = serve.send("POST", "/login", &[("Transfer-Encoding", "chunked")], &body);
    assert_eq!(endless.status, 413);
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "a".repeat(300_000)
    );
    assert_eq!(serve.send_raw(head.as_bytes()).status, 431);
    assert_eq!(serve.get("/healthz").status, 200);
}

#[test]
fn two_lengths_or_a_length_and_chunks_are_no_way_to_smuggle_a_request() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let smuggled = "GET /api/authentication_mode HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for lengths in [
        "Content-Length: 0\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked, identity\r\n",
        "Content-Length: +5\r\n",
    ] {
        let request = format!("POST /login HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n{smuggled}");
        let answer = serve.send_raw(request.as_bytes());
        assert_eq!(answer.status, 400, "{lengths}");
        assert!(
            !answer.text().contains("authentication_mode"),
            "{}",
            answer.text()
        );
    }
}

#[test]
fn clients_that_say_nothing_keep_nobody_out() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    // More than one address may have; the rest is closed at once.
    let mut silent: Vec<_> = (0..450).map(|_| serve.connect()).collect();
    for stream in &mut silent {
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
    }
    let closed = silent.last_mut().unwrap().read(&mut [0; 1]);
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    let began = Instant::now();
    // From another address of this machine.
    let out = Command::new("python3")
        .args(["-c", "import socket,sys; s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),60,('127.0.0.2',0)); \
                      s.sendall(b'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); print(s.recv(100))"])
        .arg(serve.address.port().to_string())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("200 OK"), "{said}");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn a_request_that_comes_byte_by_byte_is_not_waited_for() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let mut slow = serve.connect();
    slow.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let began = Instant::now();
    for byte in b"GET /healthz HTTP/1.1\r\nX: "
        .iter()
        .chain(std::iter::repeat(&b'a'))
    {
        let sent = slow.write_all(&[*byte]);
        let mut answer = [0; 100];
        let heard = slow.read(&mut answer);
        if sent.is_err() || heard.is_ok() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(100));
    }
    assert!(
        began.elapsed() > Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn the_audit_log_says_who_did_what_from_where_and_with_which_result() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let anna = token(&place, "anna", "submit");
    with(&serve, &anna, "GET", "/nothing");
    with(&serve, &anna, "POST", "/nothing?secret=1");
    with(&serve, "wrong", "DELETE", "/api/jobs/x");
    serve.send("GET", "/a\u{1b}[31m", &[("Host", "evil.example")], b"");
    let (lines, refused) = (audit(&place), lines(&place, "refused.jsonl"));
    let entry = |line: &Value| {
        (
            line["who"].clone(),
            line["method"].clone(),
            line["path"].clone(),
            line["status"].clone(),
        )
    };
    assert_eq!(
        entry(&lines[0]),
        (json!("anna"), json!("POST"), json!("/nothing"), json!(404))
    );
    assert_eq!(
        entry(&refused[0]),
        (
            Value::Null,
            json!("DELETE"),
            json!("/api/jobs/x"),
            json!(403)
        )
    );
    assert_eq!(lines[0]["role"], "submit");
    assert!(lines[0]["from"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!((lines.len(), refused.len()), (1, 1));
    assert!(
        refused[0]["what"]
            .as_str()
            .unwrap()
            .contains("Invalid authentication token")
    );
    let file = place.path("runs/.server/audit.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o077, 0);
    // Reading is nobody's business, tokens are not written down, and what was written stays.
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains(&anna) && !text.contains("secret") && !text.contains('\u{1b}'),
        "{text}"
    );
    serve.kill();
    let serve = Serve::start(&place, &["--require-token"]);
    with(&serve, &anna, "POST", "/again");
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&text) && after.contains("/again"));
}

#[test]
fn with_certificates_it_speaks_tls_and_nothing_else() {
    let place = Place::new();
    let subject = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ];
    let made = Command::new("openssl")
        .args(subject)
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
        ])
        .arg(place.path("key.pem"))
        .arg("-out")
        .arg(place.path("cert.pem"))
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let refused = place.run(&[
        "serve",
        "--store",
        "runs",
        "--port",
        "0",
        "--tls-cert",
        "key.pem",
        "--tls-key",
        "cert.pem",
    ]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("key.pem"), "{}", refused.stderr);
    let serve = Serve::start(
        &place,
        &[
            "--require-token",
            "--tls-cert",
            "cert.pem",
            "--tls-key",
            "key.pem",
        ],
    );
    assert_eq!(serve.scheme, "https");
    let admin = shown(&serve).unwrap();
    let script = "import http.client,ssl,sys; c=ssl.create_default_context(cafile=sys.argv[1]); \
        h=http.client.HTTPSConnection('127.0.0.1',int(sys.argv[2]),context=c,timeout=10); \
        h.request('POST','/api/authenticate',headers={'Authorization':'Bearer '+sys.argv[3]}); r=h.getresponse(); \
        print(r.status, r.getheader('set-cookie'), h.sock.version())";
    let out = Command::new("python3")
        .args(["-c", script])
        .arg(place.path("cert.pem"))
        .arg(serve.address.port().to_string())
        .arg(&admin)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        said.starts_with("200") && said.contains("Secure") && said.contains("TLSv1.3"),
        "{said} {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut plain = serve.connect();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(
        !answer.starts_with(b"HTTP"),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
}

#[test]
fn the_real_ray_client_sends_its_token_and_is_told_when_it_is_wrong() {
    let place = Place::new();
    let serve = Serve::start(&place, &["--require-token"]);
    let anna = token(&place, "anna", "submit");
    let ray = lockstep_testkit::python_with_ray().with_file_name("ray");
    let submit = |token: &str| {
        let out = Command::new(&ray)
            .args([
                "job",
                "submit",
                "--address",
                &serve.url(),
                "--submission-id",
                "one",
                "--",
                "true",
            ])
            .env("RAY_AUTH_MODE", "token")
            .env("RAY_AUTH_TOKEN", token)
            .current_dir(place.path(""))
            .output()
            .unwrap();
        let said = [out.stdout, out.stderr].concat();
        (
            out.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let (code, said) = submit("wrong");
    assert!(
        code == Some(1) && said.contains("invalid or incorrect"),
        "{said}"
    );
    let (code, said) = submit(&anna);
    assert!(code == Some(0) && said.contains("succeeded"), "{said}");
    let lines = audit(&place);
    let is_submission = |line: &&Value| line["path"] == "/api/jobs/" && line["status"] == 200;
    let done = lines.iter().find(is_submission).unwrap();
    assert_eq!(
        (&done["who"], &done["method"]),
        (&json!("anna"), &json!("POST"))
    );
}
