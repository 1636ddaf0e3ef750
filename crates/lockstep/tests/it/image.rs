//! The container image that `make image` builds: whole, small, the same every time, and a root that the program
//! trains in, for a user without rights.

use crate::common::{Place, read_json};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/image/build.py");

/// What a container runtime does, as far as it matters: a root that cannot be written to, a volume, and what the
/// kernel offers.
const CONTAINER: &str = r#"
root=$1 user=$2; shift 2
mount --make-rprivate / && mount --bind "$root" "$root" && mount --bind "$root/volume" "$root/volume" &&
mount -o remount,bind,ro "$root" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" && exec chroot "$user" "$root" "$@"
"#;

/// Builds the image of a program, and returns its file.
fn build(program: &str, out: &Path) -> PathBuf {
    let built = Command::new("python3")
        .args([SCRIPT, program, "--level", "1", "--out"])
        .arg(out)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    out.join("lockstep.tar")
}

fn unpack(archive: &Path, into: &Path) {
    std::fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(into);
    assert!(tar.status().unwrap().success(), "{archive:?}");
}

#[test]
fn an_image_is_the_same_every_time_and_names_its_parts_by_their_hashes() {
    let place = Place::new();
    // Of a small program: one for tests is large.
    let mut python = Command::new("python3");
    let python =
        lockstep_testkit::succeed(python.args(["-c", "import sys; print(sys.executable)"]));
    let [one, other] = ["one", "other"].map(|out| build(python.trim(), &place.path(out)));
    assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap());
    let layout = place.path("layout");
    unpack(&one, &layout);
    let blob = |described: &Value| {
        let digest = described["digest"].as_str().unwrap();
        let path = layout.join("blobs").join(digest.replace(':', "/"));
        let sum = Command::new("sha256sum").arg(&path).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert!(
            sum.starts_with(&digest["sha256:".len()..]),
            "{digest}: {sum}"
        );
        assert_eq!(described["size"], path.metadata().unwrap().len());
        path
    };
    let manifest = read_json(&blob(
        &read_json(&layout.join("index.json"))["manifests"][0],
    ));
    let config = read_json(&blob(&manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    for layer in manifest["layers"].as_array().unwrap() {
        blob(layer);
    }
}

#[test]
fn the_program_trains_in_the_root_that_the_image_gives_it() {
    let place = Place::new();
    let here = place.weights(&["--workers", "2"]);
    let (layout, root) = (place.path("layout"), place.path("root"));
    let image = build(env!("CARGO_BIN_EXE_lockstep"), &place.path("image"));
    unpack(&image, &layout);
    for layer in read_json(&layout.join("manifest.json"))[0]["Layers"]
        .as_array()
        .unwrap()
    {
        unpack(&layout.join(layer.as_str().unwrap()), &root);
    }
    // A volume, with a job and its data, that the image's user may write to.
    let volume = root.join("volume");
    std::fs::create_dir(&volume).unwrap();
    for name in [
        "job.toml",
        "train-images",
        "train-labels",
        "test-images",
        "test-labels",
    ] {
        std::fs::copy(place.path(name), volume.join(name)).unwrap();
    }
    assert!(
        Command::new("chmod")
            .args(["-R", "a+rwX"])
            .arg(&volume)
            .status()
            .unwrap()
            .success()
    );
    // Root can be somebody else inside; others are at least in a namespace of their own.
    let (own, user) = match rustix::process::getuid().is_root() {
        true => ("--mount", "--userspec=65532:65532"),
        false => ("--map-root-user", "--userspec="),
    };
    let ran = Command::new("unshare")
        .args([
            own, "--mount", "--pid", "--fork", "sh", "-c", CONTAINER, "sh",
        ])
        .arg(&root)
        .args([user, "/usr/local/bin/lockstep", "run", "/volume/job.toml"])
        .args(["--workers", "2", "--json"])
        .env_clear()
        .envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("LOCKSTEP_CACHE", "/tmp/cache"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let result: Value = serde_json::from_str(said.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&ran.stderr)));
    assert_eq!(result["weights_sha256"], here, "{result}");
}
