//! Actors as a launcher.

use super::{assert_nothing_is_left, cluster};
use crate::common::Place;
use lockstep_job::Resources;
use lockstep_launch::ray::{RayLauncher, RayRequest};
use lockstep_launch::{Launcher, WorkerEnd, conformance};
use lockstep_testkit::RayCluster;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[test]
fn actors_of_ray_conform_to_what_is_asked_of_a_launcher() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let mut scripts = 0;
    conformance::check(&mut |script| {
        // Each in a file of its own: actors of the last launcher may still run the file before.
        scripts += 1;
        let path = folder.path().join(format!("worker-{scripts}.sh"));
        write_script(&path, script);
        launcher(&cluster, path)
    });
}

#[test]
fn a_program_that_is_unpacked_once_more_while_a_worker_starts_is_waited_for() {
    let cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = (folder.path().join("program"), folder.path().join("whole"));
    write_script(&path, "read line; exit 7");
    write_script(&whole, "read line; exit 7");
    let mut launcher = launcher(&cluster, path.clone());
    // As Ray does: the old one goes, the new one grows, and may be executed in the end.
    fs::remove_file(&path).unwrap();
    let unpack = std::thread::spawn(move || {
        let pause = || std::thread::sleep(Duration::from_millis(300));
        pause();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        pause();
        fs::write(&path, fs::read(&whole).unwrap()).unwrap();
        pause();
        fs::rename(&whole, &path).unwrap();
    });
    let heard = conformance::NoticeChannel::default();
    let spec = conformance::spec(1, 1);
    launcher.start(&spec, heard.notify()).unwrap();
    assert_eq!(heard.end(spec.id), WorkerEnd::Code(7));
    unpack.join().unwrap();
}

/// A launcher on the cluster whose program is at `program`.
fn launcher(cluster: &RayCluster, program: PathBuf) -> Box<dyn Launcher> {
    let request = RayRequest {
        name: "launcher".to_owned(),
        workers: 3,
        enough: 3,
        resources: Resources::default(),
        program,
        lease_s: 2.0,
        python: Some(cluster.python.clone()),
        address: Some(cluster.address.clone()),
    };
    let mut launcher = RayLauncher::open(request).unwrap();
    let patience = Duration::from_secs(60);
    assert!(launcher.ready(patience, &mut |_| true).unwrap());
    Box::new(launcher)
}

/// Writes a program; by a shell, since nobody may have it open for writing when it is started.
fn write_script(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
    shell.args(["-c", write, "sh", script]).arg(path);
    assert!(shell.status().unwrap().success());
}

#[test]
fn a_node_that_lacks_the_program_gets_a_copy() {
    let mut cluster = cluster();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    write_script(&path, "read line; echo \"$line\"");
    // A name that means this file in this process and its children, and nothing on a node.
    let file = fs::File::open(&path).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let program = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut launcher = launcher(&cluster, program);
    let heard = conformance::NoticeChannel::default();
    let spec = conformance::spec(1, 1);
    launcher.start(&spec, heard.notify()).unwrap();
    assert_eq!(heard.end(spec.id), WorkerEnd::Code(0));
    drop(launcher);
    let copies = (0..9).filter(|node| cluster.cache(*node).join("programs").is_dir());
    assert!(copies.count() >= 1);
    let place = Place::new();
    assert_nothing_is_left(&mut cluster, &place);
}
