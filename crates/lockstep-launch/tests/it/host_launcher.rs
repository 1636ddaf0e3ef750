//! Hosts as a launcher: it does what is asked of every launcher, and workers end with their coordinator.

use lockstep_gang::Secret;
use lockstep_launch::hosts::{Host, HostEnd, Hosts, HostsError, HostsRequest, Surroundings};
use lockstep_launch::{
    Ending, Launcher, WorkerEnd,
    conformance::{self, NoticeChannel, spec},
};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn open(seats: usize, enough: usize) -> (Hosts, Secret) {
    let token = Secret::random().unwrap();
    let hosts = Hosts::open(HostsRequest {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: token.clone(),
        seats,
        enough,
        lease: Duration::from_secs(2),
        warn: Box::new(|odd| eprintln!("{odd}")),
    });
    (hosts.unwrap(), token)
}

type Served = JoinHandle<Result<HostEnd, HostsError>>;

/// A host that serves until it is told to leave.
fn host(hosts: &Hosts, token: &Secret, index: usize, program: &Path) -> (Served, Arc<AtomicBool>) {
    let host = Host {
        index,
        coordinator: hosts.address().to_string(),
        token: token.clone(),
        program: program.to_owned(),
        patience: Duration::from_secs(5),
    };
    let leaving = Arc::new(AtomicBool::new(false));
    let left = leaving.clone();
    let serve = move || {
        host.serve(&mut Surroundings {
            leaving: &left,
            is_over: &mut || None,
            say: &mut |_| {},
        })
    };
    (thread::spawn(serve), leaving)
}

/// Writes a program into a folder.
fn script(folder: &tempfile::TempDir, name: &str, body: &str) -> PathBuf {
    let path = folder.path().join(name);
    lockstep_testkit::write_program(&path, body);
    path
}

#[test]
fn hosts_conform_to_what_is_asked_of_a_launcher() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    conformance::check(&mut |body| {
        let program = script(&folder, &format!("worker-{}.sh", all.len()), body);
        let (hosts, token) = open(3, 3);
        let served: Vec<_> = (0..3)
            .map(|index| host(&hosts, &token, index, &program))
            .collect();
        let mut launcher = hosts.launcher();
        assert!(launcher.ready(LIMIT, &mut |_| true).unwrap());
        all.push((hosts, served));
        Box::new(launcher)
    });
    for (hosts, served) in all {
        hosts.dismiss(true);
        for (served, _) in served {
            let end = served.join().unwrap().unwrap();
            assert_eq!(end, HostEnd::Over { success: true });
        }
    }
}

#[test]
fn a_worker_whose_host_is_not_there_starts_when_it_comes_and_can_be_ended_before() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(&folder, "worker.sh", "read line; echo \"$line\"");
    let (hosts, token) = open(2, 0);
    let mut launcher = hosts.launcher();
    let heard = NoticeChannel::default();
    launcher.start(&spec(1, 1), heard.notify()).unwrap();
    assert_eq!(launcher.end(spec(1, 1).id), Ending::Certain);
    assert!(heard.end(spec(1, 1).id).is_violent());
    launcher.start(&spec(1, 2), heard.notify()).unwrap();
    let (served, leaving) = host(&hosts, &token, 1, &program);
    assert_eq!(heard.end(spec(1, 2).id), WorkerEnd::Code(0));
    leaving.store(true, Ordering::Relaxed);
    assert_eq!(served.join().unwrap().unwrap(), HostEnd::Left);
}

#[test]
fn a_host_that_loses_its_coordinator_ends_its_worker_and_serves_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(&folder, "worker.sh", "exec sleep 1000");
    let (hosts, token) = open(1, 1);
    let address = hosts.address();
    let (served, _) = host(&hosts, &token, 0, &program);
    let mut launcher = hosts.launcher();
    let heard = NoticeChannel::default();
    launcher.start(&spec(0, 1), heard.notify()).unwrap();
    let pid = loop {
        use lockstep_launch::WorkerEvent::Started;
        if let Started(pid) = heard.next(LIMIT).expect("it starts").what {
            break pid;
        }
    };
    drop(hosts);
    let begin = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(begin.elapsed() < LIMIT, "the worker is left");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(matches!(heard.end(spec(0, 1).id), WorkerEnd::Lost(_)));
    let next = Hosts::open(HostsRequest {
        listen: address,
        token,
        seats: 1,
        enough: 1,
        lease: Duration::from_secs(2),
        warn: Box::new(|_| {}),
    });
    let next = next.unwrap();
    assert!(next.launcher().ready(LIMIT, &mut |_| true).unwrap());
    next.dismiss(false);
    let end = served.join().unwrap().unwrap();
    assert_eq!(end, HostEnd::Over { success: false });
}

#[test]
fn of_two_hosts_with_one_number_the_later_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(&folder, "worker.sh", "exec sleep 1000");
    let (hosts, token) = open(1, 1);
    let (first, _) = host(&hosts, &token, 0, &program);
    let mut launcher = hosts.launcher();
    assert!(launcher.ready(LIMIT, &mut |_| true).unwrap());
    let heard = NoticeChannel::default();
    launcher.start(&spec(0, 1), heard.notify()).unwrap();
    let (second, _) = host(&hosts, &token, 0, &program);
    let error = first.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("another host 0 has come"), "{error}");
    assert!(heard.end(spec(0, 1).id).is_violent());
    launcher.start(&spec(0, 2), heard.notify()).unwrap();
    launcher.end_all();
    assert!(heard.end(spec(0, 2).id).is_violent());
    hosts.dismiss(true);
    second.join().unwrap().unwrap();
}

#[test]
fn a_number_that_has_no_seat_is_sent_away() {
    let (hosts, token) = open(2, 1);
    let (served, _) = host(&hosts, &token, 2, Path::new("/bin/true"));
    let error = served.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("seats for 2 hosts"), "{error}");
}
