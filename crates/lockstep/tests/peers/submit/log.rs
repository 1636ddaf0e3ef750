//! A log is read to its end, whatever is between us and the head.

use super::heads::{assert_says, events_of, head, run, submission, submit};
use crate::common::proxy::Proxy;
use crate::common::{Place, Running};
use serde_json::Value;

#[test]
fn a_log_that_is_cut_is_read_on_where_it_was() {
    let place = Place::new();
    let address = head().strip_prefix("http://").unwrap();
    let proxy = Proxy::new(address, 3, 3000);
    let cut = submit(
        &place,
        &proxy.url(),
        &["--json", "--id", "cut", "--epochs", "1000"],
    );
    assert_eq!(cut.code, Some(0), "{}", cut.stderr);
    // On a quick machine the run may be over before the third.
    assert!(proxy.cuts() >= 2, "{} {}", proxy.cuts(), cut.stderr);
    let log = run(&place, &["jobs", "logs", "cut", "--to", head()]);
    let wanted = events_of(&log.stdout);
    assert!(wanted.len() > 1000, "{}", wanted.len());
    // What submit says before the run begins is no event of the run.
    let own = |event: &Value| event["event"] == "preparing" || event["event"] == "note";
    let strange = |event: &&Value| !own(event);
    let wanted: Vec<&Value> = wanted.iter().filter(strange).collect();
    let found = cut.events();
    let found: Vec<&Value> = found.iter().filter(strange).collect();
    // A warning of submit's own comes first.
    assert_eq!(found[0]["event"], "warning");
    let differs = found[1..].iter().zip(&wanted).position(|(a, b)| a != b);
    assert_eq!(differs, None, "the first event that is another one");
    assert_eq!(found.len() - 1, wanted.len());
    assert!(
        cut.stderr.contains("is lost and tried again"),
        "{}",
        cut.stderr
    );
    assert!(cut.stderr.contains("is back"), "{}", cut.stderr);
}

#[test]
fn a_lost_head_never_looks_like_success_and_the_job_is_found_again() {
    let place = Place::new();
    let address = head().strip_prefix("http://").unwrap();
    let proxy = Proxy::new(address, 0, 0);
    let (to, id) = (proxy.url(), "lost");
    let args = ["--json", "--id", id, "--patience", "2", "--epochs", "300"];
    let mut running = Running::new(submission(&place, &to, "image", &args));
    running.wait_for("first_step");
    proxy.die();
    let (code, last, stderr) = running.finish();
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(last["status"], "failed", "{last}");
    for part in ["is not known", "lockstep jobs wait lost"] {
        assert!(stderr.contains(part), "{part} is missing in {stderr}");
    }
    let found = run(&place, &["jobs", "wait", id, "--to", head(), "--json"]);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert_eq!(found.result()["status"], "succeeded");
}

#[test]
fn where_websockets_do_not_get_through_the_log_is_asked_for() {
    let place = Place::new();
    let here = place.weights(&["--workers", "1"]);
    let address = head().strip_prefix("http://").unwrap();
    // The head itself answers 404 where there is no such job: a proxy that does so means something else.
    for (status, id) in [
        ("400 Bad Request", "asked-400"),
        ("404 Not Found", "asked-404"),
    ] {
        let proxy = Proxy::refusing_logs(address, status);
        let asked = submit(&place, &proxy.url(), &["--json", "--id", id]);
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
        assert_eq!(asked.result()["weights_sha256"], here.as_str());
        // Otherwise what is tested here is something else.
        assert_eq!(proxy.refusals(), 3, "{}", asked.stderr);
        let log = run(&place, &["jobs", "logs", id, "--to", head()]);
        let followed = run(&place, &["jobs", "logs", "-f", id, "--to", &proxy.url()]);
        assert_eq!(followed.code, Some(0), "{}", followed.stderr);
        assert_eq!(followed.stdout, log.stdout);
        let none = run(
            &place,
            &["jobs", "logs", "-f", "none", "--to", &proxy.url()],
        );
        assert_says(&none, 1, &["there is no job `none`"]);
    }
}
